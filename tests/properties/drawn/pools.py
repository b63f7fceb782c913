"""Random pools with their budgets and repair rules, random policies for them, and maintenance windows."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from tenure.model.api import names
from tenure.model.api.nodepool import NodePool
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.api.window import ACTIONS, MaintenanceWindow
from tests.properties.drawn.basics import FOREIGN, OURS, metas

REPAIRS: tuple[dict[str, Any], ...] = (
    {"defaultTolerationDuration": "10m"},
    {"defaultTolerationDuration": "10m", "maxUnhealthy": "100%"},
    {"defaultTolerationDuration": "590s", "maxUnhealthy": 1},
    {"policies": [{"conditionType": "Ready", "toleration": "Never"}]},
    {"policies": [{"conditionType": "Ready", "toleration": "nonsense"}]},
    {"terminationMode": "Graceful", "maxUnhealthy": "100%"},
    {
        "terminationMode": "Graceful",
        "maxUnhealthy": "100%",
        "policies": [{"conditionType": "Gpu", "status": "True", "toleration": "10m"}],
    },
)
#: How nodes may be disrupted: none at all, by the clock, and what cannot be understood.
DISRUPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"maxPodProtection": "9m"},
    {"budgets": [{"nodes": "0"}]},
    {"budgets": [{"nodes": "50%"}]},
    {"budgets": [{"nodes": "0", "schedule": "0 12 * * *", "duration": "1m"}]},
    {"budgets": [{"nodes": "many"}]},
    {"consolidateAfter": "20s", "budgets": [{"nodes": "100%"}]},
    {"consolidateAfter": "Never"},
    {"consolidateAfter": "soon"},
    {"expirationPolicy": "Always"},
    {"expirationPolicy": "Always", "consolidateAfter": "590s"},
    {"budgets": [{"nodes": "1", "within": "10m"}]},
    {"budgets": [{"nodes": "1", "within": "1h", "per": "topology.kubernetes.io/zone"}]},
)
#: What a pool may remember: a start just now, long ago, ahead of the clock, and unreadable.
STARTS: tuple[dict[str, Any], ...] = (
    {"at": "2026-03-02T11:59:59Z", "claim": "uid-c0", "reason": "Unhealthy"},
    {"at": "2026-03-02T11:51:30Z", "claim": "uid-c1", "reason": "Unhealthy"},
    {"at": "2026-03-02T08:00:00Z", "claim": "gone", "reason": "Drifted"},
    {"at": "2026-03-02T12:00:30Z", "claim": "gone", "reason": "Drifted"},
    {"at": "2026-03-02T12:10:00Z", "claim": "gone", "reason": "Drifted"},
    {"at": "soon", "claim": "gone", "reason": "Drifted"},
)
#: Satisfied by every claim, by some, and by none; and what cannot be understood.
REQUIREMENTS: tuple[list[dict[str, Any]], ...] = (
    [],
    [],
    [],
    [{"key": names.ZONE, "operator": "In", "values": ["zone-a", "zone-b"]}],
    [{"key": names.ZONE, "operator": "In", "values": ["zone-b"]}],
    [{"key": "team", "operator": "Exists"}],
    [{"key": "team", "operator": "Near"}],
)


@st.composite
def pools(draw: st.DrawFn, name: str) -> NodePool:
    limits = draw(st.sampled_from([{}, {}, {"cpu": "4"}, {"nodes": "1"}, {"cpu": "broken"}]))
    spec: dict[str, Any] = {
        "template": {
            "spec": {
                "requirements": draw(st.sampled_from(REQUIREMENTS)),
                "nodeClassRef": msgspec.to_builtins(draw(st.sampled_from([OURS] * 5 + [FOREIGN]))),
                "expireAfter": draw(st.sampled_from(["720h", "720h", "Never"])),
                **draw(st.sampled_from([{}, {"readinessTTL": "15m"}, {"readinessTTL": "8m"}])),
            }
        },
        "disruption": draw(st.sampled_from(DISRUPTIONS)),
        "limits": limits,
    }
    if repair := draw(st.sampled_from([None, *REPAIRS])):
        spec["repair"] = repair
    if draw(st.sampled_from([False] * 9 + [True])):
        spec["replicas"] = 2
    starts = draw(st.lists(st.sampled_from(STARTS), max_size=2))
    status = {"disruptionStarts": starts} if "within" in str(spec["disruption"]) else {}
    pool = msgspec.convert({"spec": spec, "status": status}, NodePool)
    return msgspec.structs.replace(pool, metadata=draw(metas(name)))


POLICY_NAMES = ((), (), ("usual",), ("usual", "special"))
POLICIES: tuple[dict[str, Any], ...] = (
    {"readinessTTL": "9m50s"},
    {"readinessTTL": "soon"},
    {"initializationTTL": "590s", "maxPodProtection": "9m"},
    {"expireAfter": "11m"},
    {"budgets": [{"nodes": "1"}, {"nodes": "1", "within": "10m"}]},
    {"budgets": [{"nodes": "many"}]},
    {"budgets": [{"nodes": "1"}]},
    {"budgets": [{"nodes": "0", "schedule": "59 11 * * *", "duration": "2m"}, {"nodes": "50%"}]},
    {"budgets": [{"nodes": "1", "within": "1h", "per": "topology.kubernetes.io/zone"}]},
    {"repair": {"defaultTolerationDuration": "590s", "maxUnhealthy": "100%"}},
    {"repair": {"maxUnhealthy": "most"}},
)
POOLS_SELECTED: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"names": ["general"]},
    {"names": ["another"]},
    {"matchLabels": {"team": "a"}},
    {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
)


@st.composite
def policies(draw: st.DrawFn, name: str) -> NodePoolPolicy:
    spec = draw(st.sampled_from(POLICIES)) | {"nodePools": draw(st.sampled_from(POOLS_SELECTED))}
    starts = draw(st.lists(st.sampled_from(STARTS), max_size=2)) if "within" in str(spec) else []
    named = [one | {"pool": draw(st.sampled_from(["general", "gone"]))} for one in starts]
    content = {"spec": spec, "status": {"disruptionStarts": named}}
    policy = msgspec.convert(content, NodePoolPolicy)
    return msgspec.structs.replace(policy, metadata=draw(metas(name)))


#: Active for long, opening and closing within minutes, always, at one date, and unreadable.
TIMES: tuple[dict[str, Any], ...] = (
    {"schedules": [{"cron": "0 6 * * 1-5", "duration": "8h"}]},
    {"schedules": [{"cron": "0 12 * * *", "duration": "1m"}]},
    {"schedules": [{"cron": "1 12 * * *", "duration": "30s"}]},
    {"schedules": [{"cron": "50 11 * * *", "duration": "10m5s", "timeZone": "UTC"}]},
    {"dates": [{"from": "2026-03-02T11:00:00Z", "until": "2026-03-02T12:00:09Z"}]},
    {"dates": [{"from": "2026-03-02T12:00:04Z", "until": "2026-03-02T12:01:00Z"}]},
    {},
    {"schedules": [{"cron": "not a cron", "duration": "8h"}]},
    {"schedules": [{"cron": "0 12 * * *", "duration": "1m", "timeZone": "Mars/Olympus"}]},
)
WINDOW_NAMES = ((), ("office-hours",), ("office-hours", "freeze"))
SELECTED: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"matchExpressions": [{"key": names.NODEPOOL, "operator": "In", "values": ["general"]}]},
    {"matchExpressions": [{"key": names.NODEPOOL, "operator": "Gt", "values": ["x"]}]},
)


@st.composite
def windows(draw: st.DrawFn, name: str) -> MaintenanceWindow:
    actions = st.lists(st.sampled_from(["Drift", *ACTIONS]), min_size=1, max_size=3, unique=True)
    spec = draw(st.sampled_from(TIMES)) | {
        "type": draw(st.sampled_from(["Block", "Allow"])),
        "actions": draw(actions),
        "selector": draw(st.sampled_from(SELECTED)),
    }
    window = msgspec.convert({"spec": spec}, MaintenanceWindow)
    return msgspec.structs.replace(window, metadata=draw(metas(name)))
