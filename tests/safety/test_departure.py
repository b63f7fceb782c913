"""A claim goes only on a ground that holds: each rule, kept and broken, asked through the guard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from tenure.core.conditions import Wanted
from tenure.core.decision import Create, Delete, Ground
from tenure.core.marks.ownership import claim_status
from tenure.core.marks.stamp import stamp_claim, take_off_stamp
from tenure.core.writes import delete_claim, patch
from tenure.model.api import names
from tenure.model.api.meta import format_time
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import (
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOL_POLICIES,
    Resource,
)
from tenure.model.api.window import MaintenanceWindow
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.unreadable import stand_in
from tenure.providers.kwok.repairs import kwok_statements
from tenure.runtime.executor.guard import veto
from tenure.safety.departure import RULES
from tests.core.build import (
    DISRUPTED,
    NOW,
    OURS,
    SETTINGS,
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pod,
    a_pool,
    a_window,
    ago,
    ahead,
    condition,
)
from tests.snapshots import snapshot_with

UNHEALTHY = condition("KWOKUnhealthy", "True", "Disk")
MARKS = {names.REPLACED_BY: "b", names.DISRUPTION_REASON: "Unhealthy"}
STAMP = {names.TERMINATION_TIMESTAMP: format_time(NOW)}
REPLACEMENT = a_claim("b", annotations={names.REPLACES: "uid-a"})
BUDGETS = {"budgets": [{"nodes": "1"}]}
POOL = a_pool(repair={"terminationMode": "Graceful"}, disruption=BUDGETS)
FORCEFUL = a_pool(repair={"terminationMode": "Forceful"}, disruption={"budgets": [{"nodes": "0"}]})

Objects = dict[str, Any]


def unhealthy_node(claim: str = "a", **fields: Any) -> Any:
    reports = {"conditions": (condition("Ready"), UNHEALTHY)}
    usual: Any = {"status": reports, "taints": (DISRUPTED,)}
    return a_node(f"node-{claim}", claim=claim, **usual | fields)


def a_fleet(**changed: Any) -> list[Any]:
    """Five nodes; ``a`` is unhealthy and replaced by ``b``. Keywords replace or add objects."""
    objects: Objects = {
        "pool": POOL,
        "claim": a_claim(annotations=MARKS),
        "node": unhealthy_node(),
        "replacement": REPLACEMENT,
        "node_b": a_node("node-b", claim="b"),
    }
    for name in "cde":
        objects[f"claim_{name}"] = a_claim(name)
        objects[f"node_{name}"] = a_node(f"node-{name}", claim=name)
    return [one for one in (objects | changed).values() if one is not None]


def asked(
    ground: Ground | None,
    objects: Sequence[Any],
    settings: Settings = SETTINGS,
    unlisted: Mapping[Resource, str] = MappingProxyType({}),
    **known: Any,
) -> str | None:
    """What the guard says when the claim ``a`` is deleted on that ground."""
    observations = Observations(repair_statements=kwok_statements(), **known)
    snapshot = snapshot_with(*objects, observations=observations, unlisted=unlisted)
    deletion = delete_claim(snapshot.claims["a"], ground or Ground.REPLACED)
    return veto(msgspec.structs.replace(deletion, ground=ground), snapshot, NOW, settings)


def a_named_window(**spec: Any) -> MaintenanceWindow:
    usual: Any = {"actions": ["Repair"], "schedules": [{"cron": "0 11 * * *", "duration": "2h"}]}
    return a_window(spec=usual | spec)


def test_a_replaced_claim_goes() -> None:
    assert asked(Ground.REPLACED, a_fleet()) is None


def test_every_ground_has_rules() -> None:
    assert set(RULES) == set(Ground)


GRACEFUL: list[Any] = [
    pytest.param(
        {"claim": a_claim()}, "it is not marked with a disruption reason", id="not marked"
    ),
    pytest.param(
        {"claim": a_claim(annotations={names.REPLACED_BY: "b"})},
        "it is not marked with a disruption reason",
        id="no reason",
    ),
    pytest.param({"node": None}, "it has 0 Nodes", id="no Node"),
    pytest.param(
        {"replacement": a_claim("b", stage=2, annotations={names.REPLACES: "uid-a"})},
        "its replacement NodeClaim b is not Initialized",
        id="replacement not Initialized",
    ),
    pytest.param(
        {"replacement": a_leaving_claim("b", annotations={names.REPLACES: "uid-a"})},
        "its replacement NodeClaim b is not Initialized",
        id="replacement leaves",
    ),
    pytest.param(
        {"replacement": None},
        "its replacement NodeClaim b does not exist",
        id="replacement gone",
    ),
    pytest.param(
        {"replacement": a_claim("b")},
        "its replacement NodeClaim b does not exist",
        id="a replacement of another claim",
    ),
    pytest.param(
        {"node": unhealthy_node(taints=())}, "Node node-a is not closed", id="Node takes pods"
    ),
    pytest.param(
        {"node": unhealthy_node(annotations={names.DO_NOT_REPAIR: "true"})},
        'karpenter.sh/do-not-repair: "true" on node-a forbids it',
        id="veto on the Node",
    ),
    pytest.param(
        {"claim": a_claim(annotations={**MARKS, names.DO_NOT_REPAIR: "2h"})},
        'karpenter.sh/do-not-repair: "2h" on a forbids it',
        id="veto on the claim that nothing has noted yet",
    ),
    pytest.param(
        {"node": a_node(taints=(DISRUPTED,))},
        "Node node-a has no condition that is watched",
        id="healthy",
    ),
    pytest.param(
        {
            "node": unhealthy_node(
                status={"conditions": (condition("KWOKUnhealthy", "True", at=ago(29)),)}
            )
        },
        "what is wrong with Node node-a is tolerated until 2026-03-02T12:00:01Z",
        id="tolerated",
    ),
    pytest.param(
        {"node_c": unhealthy_node("c")},
        "2 of 5 Nodes of NodePool general are unhealthy, and nothing is repaired above 1",
        id="breaker",
    ),
    pytest.param(
        {"node_c": a_leaving_node("node-c", claim="c")},
        "NodePool general: budget 1 allows 1 of 5 Nodes, 1 of them unavailable already (node-c)",
        id="budget",
    ),
    pytest.param(
        {"claim_c": a_claim("c", conditions=(condition("Rebooting"),))},
        "NodePool general: budget 1 allows 1 of 5 Nodes, 1 of them unavailable already (node-c)",
        id="budget, another reboots",
    ),
    pytest.param(
        {"window": a_named_window()},
        "MaintenanceWindow office-hours blocks Unhealthy of Node node-a now",
        id="Block window",
    ),
    pytest.param(
        {"window": a_named_window(schedules=[{"cron": "bad", "duration": "2h"}])},
        "MaintenanceWindow office-hours blocks",
        id="a Block window that cannot be read",
    ),
    pytest.param(
        {
            "window": a_named_window(
                type="Allow", schedules=[{"cron": "0 13 * * *", "duration": "1h"}]
            )
        },
        "no MaintenanceWindow that allows Unhealthy of Node node-a is active: office-hours",
        id="outside the Allow window",
    ),
    pytest.param(
        {"pod": stand_in(a_pod(), "bad quantity")}, "Pod default/web", id="an unreadable pod"
    ),
]


@pytest.mark.parametrize(("changed", "sentence"), GRACEFUL)
def test_a_graceful_repair_is_refused(changed: Objects, sentence: str) -> None:
    refusal = asked(Ground.REPLACED, a_fleet(**changed))
    assert refusal is not None
    assert sentence in refusal


NO_BUDGETS: list[Any] = [
    pytest.param([{"nodes": "0"}], False, id="none may go"),
    pytest.param([], True, id="no budgets"),
    pytest.param([{"nodes": "10%"}], True, id="a share is rounded up"),
    pytest.param([{"nodes": "5"}, {"nodes": "0"}], False, id="the tightest wins"),
    pytest.param([{"nodes": "0", "reasons": ["Drifted"]}], True, id="of another reason"),
    pytest.param([{"nodes": "0", "reasons": ["Unhealthy"]}], False, id="of this reason"),
    pytest.param(
        [{"nodes": "0", "schedule": "0 11 * * *", "duration": "1h30m"}], False, id="scheduled, on"
    ),
    pytest.param(
        [{"nodes": "0", "schedule": "0 11 * * *", "duration": "1h"}], True, id="scheduled, off"
    ),
    pytest.param(
        [{"nodes": "0", "schedule": "0 11 * * *", "duration": "1h", "timeZone": "Asia/Tokyo"}],
        True,
        id="scheduled, off in its zone",
    ),
    pytest.param([{"nodes": "many"}], False, id="malformed"),
    pytest.param([{"nodes": "5", "schedule": "0 11 * * *"}], False, id="without a duration"),
]


@pytest.mark.parametrize(("budgets", "goes"), NO_BUDGETS)
def test_the_budgets_of_its_pool_count(budgets: list[Any], goes: bool) -> None:
    pool = a_pool(repair={"terminationMode": "Graceful"}, disruption={"budgets": budgets})
    refusal = asked(Ground.REPLACED, a_fleet(pool=pool))
    assert (refusal is None) is goes
    assert goes or "budget" in str(refusal)


def test_budgets_count_the_label_of_per_apart() -> None:
    pool = a_pool(
        repair={"terminationMode": "Graceful"},
        disruption={"budgets": [{"nodes": "1", "per": names.ZONE}]},
    )
    zones = {"node": unhealthy_node(labels={names.ZONE: "x"})}
    leaving = a_leaving_node("node-c", claim="c", labels={names.ZONE: "y"})
    assert asked(Ground.REPLACED, a_fleet(pool=pool, node_c=leaving, **zones)) is None
    same = a_leaving_node("node-c", claim="c", labels={names.ZONE: "x"})
    assert asked(Ground.REPLACED, a_fleet(pool=pool, node_c=same, **zones)) is not None


def test_two_commands_do_not_wait_for_each_other() -> None:
    """Neither node is being deleted, so one of them may go."""
    other = a_claim("c", annotations=MARKS)
    assert asked(Ground.REPLACED, a_fleet(claim_c=other)) is None


def test_a_window_that_does_not_select_the_node_holds_nothing() -> None:
    expression = {"key": "team", "operator": "In", "values": ["web"]}
    window = a_named_window(selector={"matchExpressions": [expression]})
    assert asked(Ground.REPLACED, a_fleet(window=window)) is None
    named = unhealthy_node(labels={"team": "web"})
    assert asked(Ground.REPLACED, a_fleet(window=window, node=named)) is not None


def test_a_window_selects_by_the_label_of_provisioners_too() -> None:
    def blocked(operator: str, value: str) -> bool:
        expression = {"key": names.PROVISIONER_NAME, "operator": operator, "values": [value]}
        window = a_named_window(selector={"matchExpressions": [expression]})
        node = unhealthy_node(labels={names.NODEPOOL: "general", names.PROVISIONER_NAME: "other"})
        return asked(Ground.REPLACED, a_fleet(window=window, node=node)) is not None

    assert blocked("In", "general")
    assert blocked("NotIn", "other")
    assert not blocked("In", "other")


def test_a_window_for_other_actions_holds_no_repair() -> None:
    assert asked(Ground.REPLACED, a_fleet(window=a_named_window(actions=["Drift"]))) is None


def test_windows_that_cannot_be_listed_hold_a_command_and_no_forceful_repair() -> None:
    unlisted = {MAINTENANCE_WINDOWS: "forbidden"}
    said = asked(Ground.REPLACED, a_fleet(), unlisted=unlisted)
    assert said is not None
    assert "MaintenanceWindows cannot be listed: forbidden" in said
    forced = a_fleet(pool=FORCEFUL, claim=a_claim(annotations=STAMP))
    assert asked(Ground.REPAIR, forced, unlisted=unlisted) is None


def test_policies_that_cannot_be_listed_hold_a_command_and_no_forceful_repair() -> None:
    """A budget of one of them may let nothing go."""
    unlisted = {NODE_POOL_POLICIES: "forbidden"}
    said = asked(Ground.REPLACED, a_fleet(), unlisted=unlisted)
    assert said is not None
    assert "budget" in said
    forced = a_fleet(pool=FORCEFUL, claim=a_claim(annotations=STAMP))
    assert asked(Ground.REPAIR, forced, unlisted=unlisted) is None


RETIRED = {**MARKS, names.DISRUPTION_REASON: "Retired"}
VOLUNTARY: list[Any] = [
    pytest.param({}, "", id="of a healthy Node"),
    pytest.param({"node_c": unhealthy_node("c")}, "", id="breakers are for repair"),
    pytest.param({"window": a_named_window(actions=["Drift"])}, "blocks Retired", id="any window"),
    pytest.param({"window": a_named_window()}, "blocks Retired", id="a window for repair"),
    pytest.param(
        {"node": a_node(taints=(DISRUPTED,), annotations={names.DO_NOT_DISRUPT: "true"})},
        "do-not-disrupt",
        id="do-not-disrupt",
    ),
    pytest.param(
        {"node": a_node(taints=(DISRUPTED,), annotations={names.DO_NOT_REPAIR: "true"})},
        "",
        id="do-not-repair",
    ),
    pytest.param(
        {"node_c": a_node("node-c", claim="c", ready=False)},
        "budget 1 allows 1 of",
        id="Nodes that are not Ready use the budget",
    ),
    pytest.param(
        {"pool": a_pool(disruption={"budgets": [{"nodes": "0", "reasons": ["Unhealthy"]}]})},
        "",
        id="a budget for repair",
    ),
]


@pytest.mark.parametrize(("changed", "sentence"), VOLUNTARY)
def test_a_reason_that_is_not_known_is_voluntary(changed: Objects, sentence: str) -> None:
    usual = {"claim": a_claim(annotations=RETIRED), "node": a_node(taints=(DISRUPTED,))}
    refusal = asked(Ground.REPLACED, a_fleet(**usual | changed))
    assert (refusal is not None) == bool(sentence)
    assert sentence in str(refusal or "")


def test_a_veto_ends_with_its_duration() -> None:
    noted = {
        names.DO_NOT_REPAIR: "1h",
        f"{names.DO_NOT_REPAIR}-since": f"1h {format_time(ago(3600))}",
    }
    assert asked(Ground.REPLACED, a_fleet(node=unhealthy_node(annotations=noted))) is None


def test_repair_that_is_switched_off_repairs_nothing() -> None:
    off = Settings(node_repair=False)
    for ground in (Ground.REPLACED, Ground.REPAIR, Ground.REPAIR_FORCED):
        assert "node repair is switched off" in str(asked(ground, a_fleet(), off))


def test_no_deletion_without_a_ground_or_a_version() -> None:
    assert "nothing says why" in str(asked(None, a_fleet()))
    anywhere = Delete(resource=NODE_CLAIMS, name="a", uid="uid-a", ground=Ground.REPLACED)
    assert "on any version" in str(veto(anywhere, snapshot_with(*a_fleet()), NOW))


# -- by force, and what is not voluntary -----------------------------------------------


def test_a_forceful_repair_needs_no_budget_and_no_replacement() -> None:
    forced = a_fleet(claim=a_claim(annotations=STAMP), replacement=None, pool=FORCEFUL)
    assert asked(Ground.REPAIR_FORCED, forced) is None


FORCED: list[Any] = [
    pytest.param({"node": a_node()}, "no condition that is watched", id="healthy"),
    pytest.param({"node_c": unhealthy_node("c")}, "nothing is repaired above 1", id="breaker"),
    pytest.param({"window": a_named_window()}, "blocks Unhealthy", id="window"),
    pytest.param(
        {"node": unhealthy_node(annotations={names.DO_NOT_REPAIR: "true"})}, "forbids it", id="veto"
    ),
]


@pytest.mark.parametrize(("changed", "sentence"), FORCED)
def test_a_forceful_repair_is_refused(changed: Objects, sentence: str) -> None:
    forced = a_fleet(**{"claim": a_claim(annotations=STAMP), "pool": FORCEFUL} | changed)
    assert sentence in str(asked(Ground.REPAIR_FORCED, forced))


def an_outage(**changed: Any) -> list[Any]:
    """Three of three nodes of a zone, in two pools, without a breaker of their own."""
    zone = {names.ZONE: "x"}
    pools = {name: a_pool(name, repair={"maxUnhealthy": "100%"}) for name in ("general", "other")}
    objects: Objects = {**pools, "a": a_claim(annotations=STAMP)}
    objects["node-a"] = unhealthy_node(labels=zone)
    for name in "bc":
        of_other = {names.NODEPOOL: "other"}
        objects[name] = a_claim(name, labels=of_other)
        objects[f"node-{name}"] = unhealthy_node(name, labels=zone | of_other)
    return list((objects | changed).values())


def test_an_outage_of_a_failure_domain_holds_all_but_the_probe() -> None:
    assert "3 of the 3 Nodes with zone=x are unhealthy" in str(
        asked(Ground.REPAIR_FORCED, an_outage())
    )
    noted = {names.REPAIR_PROBE: f"zone=x a {format_time(ago(60))}"}
    probed = a_pool(repair={"maxUnhealthy": "100%"}, annotations=noted)
    assert asked(Ground.REPAIR_FORCED, an_outage(general=probed)) is None
    off = Settings(repair_domain_breaker=False)
    assert asked(Ground.REPAIR_FORCED, an_outage(), off) is None


LOST = condition("NodeLost", at=ago(900))
FAILED = (condition("Rebooting", "False", "RebootFailed"), condition("RebootIssued", "False", "x"))

INVOLUNTARY: list[Any] = [
    pytest.param(Ground.LAUNCH_FAILED, [a_claim(stage=0)], "", id="not launched"),
    pytest.param(Ground.LAUNCH_FAILED, [a_claim()], "it has an instance", id="launched"),
    pytest.param(Ground.NODE_DELETED, [a_claim(), a_leaving_node()], "", id="its Node is deleted"),
    pytest.param(
        Ground.NODE_DELETED,
        [a_claim(), a_node()],
        "none of its Nodes is being deleted",
        id="its Node stays",
    ),
    pytest.param(Ground.NODE_LOST, [a_claim(conditions=(LOST,))], "", id="lost"),
    pytest.param(
        Ground.NODE_LOST,
        [a_claim(conditions=(LOST,)), a_node()],
        "its Node is not lost",
        id="found again",
    ),
    pytest.param(
        Ground.NODE_LOST,
        [a_claim(conditions=(condition("NodeLost", at=ago(899)),))],
        "not lost for long enough",
        id="lost a moment ago",
    ),
    pytest.param(Ground.TIME_OUT, [a_claim(stage=1)], "", id="timed out"),
    pytest.param(
        Ground.TIME_OUT,
        [a_claim(stage=1, creation_timestamp=ago(899))],
        "it times out at 2026-03-02T12:00:01Z at the earliest",
        id="not yet",
    ),
    pytest.param(Ground.TIME_OUT, [a_claim(), a_node()], "it is Initialized", id="came up in time"),
    pytest.param(
        Ground.TIME_OUT,
        [a_claim(stage=1, annotations={names.DO_NOT_REPAIR: "true"})],
        "forbids it",
        id="vetoed",
    ),
    pytest.param(
        Ground.REBOOT_FAILED, [POOL, a_claim(conditions=FAILED), a_node()], "", id="reboot failed"
    ),
    pytest.param(
        Ground.REBOOT_FAILED,
        [POOL, a_claim(), a_node()],
        "its reboot has not failed",
        id="no reboot",
    ),
    pytest.param(
        Ground.INSTANCE_GONE, [a_claim()], "the cloud still lists its instance", id="listed"
    ),
]


@pytest.mark.parametrize(("ground", "objects", "sentence"), INVOLUNTARY)
def test_what_is_not_voluntary_needs_its_own_ground(
    ground: Ground, objects: list[Any], sentence: str
) -> None:
    refusal = asked(ground, objects)
    assert (refusal is None) is (not sentence)
    assert sentence in str(refusal or "")


def test_an_instance_that_the_cloud_does_not_list_is_gone_unless_its_node_is_ready() -> None:
    gone: Any = {"vanished": {"uid-a": ago(1)}}
    assert asked(Ground.INSTANCE_GONE, [a_claim(), a_node(ready=False)], **gone) is None
    assert "is Ready" in str(asked(Ground.INSTANCE_GONE, [a_claim(), a_node()], **gone))


# -- deadlines, and the beginning of a command -----------------------------------------


def refused(action: Any, objects: Sequence[Any]) -> str:
    observations = Observations(repair_statements=kwok_statements())
    return veto(action, snapshot_with(*objects, observations=observations), NOW) or ""


def test_a_deadline_is_set_on_the_same_terms_as_the_deletion() -> None:
    claim = a_claim(annotations=MARKS)
    stamp = stamp_claim(claim, Ground.REPLACED, timedelta(seconds=45))
    assert refused(stamp, a_fleet()) == ""
    assert "is not Initialized" in refused(
        stamp, a_fleet(replacement=a_claim("b", stage=2, annotations={names.REPLACES: "uid-a"}))
    )
    assert "nothing says why" in refused(msgspec.structs.replace(stamp, ground=None), a_fleet())


def test_the_deadline_of_a_leaving_claim_is_brought_forward_and_never_put_off() -> None:
    written = {names.TERMINATION_TIMESTAMP: format_time(ahead(60))}
    claim = a_leaving_claim(annotations=written)
    objects = a_fleet(claim=claim)
    assert refused(stamp_claim(claim, Ground.REPAIR, timedelta(seconds=30)), objects) == ""
    put_off = "claim a has to be gone by 2026-03-02T12:01:00Z: that is never put off"
    assert refused(stamp_claim(claim, Ground.REPAIR, timedelta(seconds=61)), objects) == put_off
    assert refused(take_off_stamp(claim), objects) == put_off
    stays = a_claim(annotations=written)
    assert refused(take_off_stamp(stays), a_fleet(claim=stays)) == ""


def test_a_deadline_that_is_written_down_is_the_one_of_the_grace_period() -> None:
    claim = a_leaving_claim(spec={"termination_grace_period": "1m"})

    def written(at: Any) -> str:
        stamp = patch(claim, {"annotations": {names.TERMINATION_TIMESTAMP: format_time(at)}})
        return refused(stamp, a_fleet(claim=claim))

    assert written(ahead(30)) == ""
    assert written(ahead(-3570)) == "nothing asks for that deadline of claim a"


def marked(claim: NodeClaim) -> Any:
    return patch(claim, {"annotations": MARKS})


def test_a_command_begins_within_budgets_and_windows_only() -> None:
    claim = a_claim()
    plain = {"claim": claim, "node": unhealthy_node(taints=())}
    assert refused(marked(claim), a_fleet(**plain)) == ""
    other = a_fleet(**plain, claim_c=a_claim("c", annotations=MARKS))
    assert "budget 1 allows 1 of 5 Nodes" in refused(marked(claim), other)
    assert "blocks Unhealthy" in refused(marked(claim), a_fleet(**plain, window=a_named_window()))


def test_a_reboot_begins_within_budgets_and_windows_only() -> None:
    claim = a_claim()
    begins = claim_status(claim, Wanted("Rebooting", "True", "RebootRequested"))
    plain = {"claim": claim, "node": unhealthy_node(taints=())}
    assert refused(begins, a_fleet(**plain)) == ""
    assert "blocks Unhealthy" in refused(begins, a_fleet(**plain, window=a_named_window()))
    leaving = a_fleet(**plain, node_c=a_leaving_node("node-c", claim="c"))
    assert "budget 1 allows 1 of 5 Nodes" in refused(begins, leaving)
    at_once = a_claim(annotations={names.REBOOT_GRACE_PERIOD: "0s"})
    assert refused(begins, [*leaving, at_once]) == ""


def test_other_reasons_ask_their_own_windows_and_vetoes() -> None:
    marks = {names.REPLACED_BY: "b", names.DISRUPTION_REASON: "Drifted"}
    drifted = a_claim(annotations=marks, conditions=[condition("Drifted")])
    healthy: Objects = {"claim": drifted, "node": a_node(taints=(DISRUPTED,))}
    assert asked(Ground.REPLACED, a_fleet(**healthy)) is None
    drift = a_named_window(actions=["Drift"])
    assert "blocks Drifted" in str(asked(Ground.REPLACED, a_fleet(**healthy, window=drift)))
    assert asked(Ground.REPLACED, a_fleet(**healthy, window=a_named_window())) is None
    kept = a_node(taints=(DISRUPTED,), annotations={names.DO_NOT_DISRUPT: "true"})
    assert "do-not-disrupt" in str(asked(Ground.REPLACED, a_fleet(**healthy | {"node": kept})))
    unready = a_node("node-c", claim="c", ready=False)
    assert "budget 1" in str(asked(Ground.REPLACED, a_fleet(**healthy, node_c=unready)))


# -- replaced together -----------------------------------------------------------------------

GROUP: list[Any] = [
    pytest.param(a_claim("c"), "NodeClaim c is replaced together with it", id="not marked"),
    pytest.param(a_claim("c", annotations=MARKS), "", id="marked"),
    pytest.param(a_leaving_claim("c"), "", id="terminating"),
    pytest.param(a_claim("c", annotations={names.INTERRUPTION: "kwok"}), "", id="interrupted"),
    pytest.param(None, "", id="gone"),
]


@pytest.mark.parametrize(("other", "sentence"), GROUP)
def test_a_claim_goes_once_all_that_are_replaced_with_it_are_marked(
    other: NodeClaim | None, sentence: str
) -> None:
    new = a_claim("b", annotations={names.REPLACES: "uid-a,uid-c"})
    pool = a_pool(disruption={"budgets": [{"nodes": "2"}]}, repair={"maxUnhealthy": "100%"})
    said = asked(Ground.REPLACED, a_fleet(pool=pool, replacement=new, claim_c=other, node_c=None))
    assert sentence in str(said) if sentence else said is None


# -- a replacement that is created -----------------------------------------------------------


def created(reason: str = "Unhealthy", uids: str = "uid-a", **changed: Any) -> str | None:
    """What the guard says of a replacement for ``a``, for which no command has begun."""
    ref = {"group": OURS.group, "kind": OURS.kind, "name": OURS.name}
    body = {"metadata": {"annotations": {names.REPLACES: uids}}, "spec": {"nodeClassRef": ref}}
    create = Create(resource=NODE_CLAIMS, name="n", body=body, disrupts_for=reason)
    usual = {"claim": a_claim(), "node": unhealthy_node(taints=()), "replacement": None}
    observations = Observations(repair_statements=kwok_statements())
    snapshot = snapshot_with(*a_fleet(**usual | changed), observations=observations)
    return veto(create, snapshot, NOW, SETTINGS)


def test_a_replacement_is_created_where_a_command_may_begin() -> None:
    assert created() is None


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        pytest.param({"window": a_named_window()}, "blocks Unhealthy", id="window"),
        pytest.param({"node": a_node()}, "no condition that is watched", id="healthy"),
        pytest.param({"claim": a_leaving_claim()}, "gone or being deleted", id="leaving"),
        pytest.param({"claim": None}, "gone or being deleted", id="gone"),
        pytest.param({"claim_c": a_claim("c", annotations=MARKS)}, "budget 1 allows", id="budget"),
        pytest.param({"reason": ""}, "not marked with a disruption reason", id="no reason"),
    ],
)
def test_no_replacement_is_created_for_nothing(changed: Objects, sentence: str) -> None:
    assert sentence in str(created(**changed))


def test_a_replacement_of_several_needs_a_budget_for_all_of_them() -> None:
    pool = a_pool(disruption={"budgets": [{"nodes": "2"}]})
    assert created("Merged", "uid-a,uid-c", pool=pool) is None
    assert "budget 2 allows" in str(created("Merged", "uid-a,uid-c,uid-d", pool=pool))


def test_a_command_under_way_gets_another_replacement() -> None:
    """Other commands do not use the budget then, else two would wait for each other."""
    other = a_claim("c", annotations=MARKS)
    assert created(claim=a_claim(annotations=MARKS), claim_c=other) is None
