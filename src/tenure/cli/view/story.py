"""The demo's story: some web servers and a report, a node that becomes unhealthy, and a pool whose template changes.

The story is what users and nodes do; everything else on the screen is decided by Tenure. Each
beat waits for the one before it to come to rest, so a story told with another seed (other
boot times, other prices) still makes sense.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from tenure.model.api.names import CAPACITY_TYPE, DO_NOT_DISRUPT
from tenure.model.api.resource import (
    DEPLOYMENTS,
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PODS,
)
from tenure.sim.cloud.catalogue import CPU_LABEL
from tenure.sim.serve.welcome import NODE_CLASS, NODE_CLASS_REF
from tenure.sim.world import World

#: The longest the story may take, in the cluster's time.
END: Final = timedelta(minutes=15)

#: A pause between two beats, so that a viewer can follow.
BREATH: Final = timedelta(seconds=12)

#: From the pod's creation. Longer than its node needs to become unhealthy, to be replaced, and to
#: be drained of all other pods: the node has to wait for this one.
REPORT_PROTECTED_FOR: Final = "3m"
#: What the node-problem-detector says of a kernel that hangs.
KERNEL_HANGS: Final = "KernelDeadlock"
POOL: Final = "general"
WINDOW: Final = "mornings"
#: Later than the repair needs, so that the new template has to wait for it.
WINDOW_OPENS: Final = "08:05"


class Beat(msgspec.Struct, frozen=True):
    """Something a user does, and how it is announced."""

    say: str
    do: Callable[[World], tuple[str, str]]
    #: For how long the cluster rests before.
    after: timedelta = BREATH


class Story:
    """Plays its beats, each when the cluster has been at rest for long enough."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._beats = list(BEATS)
        self._restless_at = world.now
        self._resting = True
        self._window_open = False

    @property
    def over(self) -> bool:
        return self._world.elapsed >= END or (not self._beats and self._rested(BREATH))

    def _rested(self, length: timedelta) -> bool:
        return self._resting and self._world.now - self._restless_at >= length

    def advance(self) -> None:
        """Look at the cluster; play the next beat if it is time."""
        self._look()
        self._look_at_window()
        if self._beats and self._rested(self._beats[0].after):
            beat = self._beats.pop(0)
            subject, reason = beat.do(self._world)
            self._world.history.note("script", subject, reason, beat.say)
            self._restless_at = self._world.now

    def _look(self) -> None:
        world = self._world
        rests = at_rest(world)
        if rests and not self._resting:
            nodes, pods = len(world.store.list(NODES)), len(world.store.list(PODS))
            message = f"all pods run: {pods} pods on {nodes} nodes"
            world.history.note("cluster", "Pods", "AllRunning", message)
        self._resting = rests
        if not rests:
            self._restless_at = world.now

    def _look_at_window(self) -> None:
        opens = any(_says(w, "Active") for w in self._world.store.list(MAINTENANCE_WINDOWS))
        if opens and not self._window_open:
            message = "the maintenance window opens: drifted nodes may be replaced, one at a time"
            self._world.history.note(
                "cluster", f"{MAINTENANCE_WINDOWS.kind}/{WINDOW}", "Active", message
            )
        self._window_open = opens


def at_rest(world: World) -> bool:
    """Every pod runs, every node serves, is healthy and as its pool asks; nothing is terminating."""
    snapshot = world.controller.snapshot()
    pods = [pod for pod in world.store.list(PODS) if "deletionTimestamp" not in pod["metadata"]]
    return (
        all(_says(pod, "Ready") for pod in pods)
        and _replicas_wanted(world) <= len(pods)
        and all(c.initialized and not c.deleting for c in snapshot.claims.values())
        and not any(_says(node, KERNEL_HANGS) for node in world.store.list(NODES))
        and not any(_says(claim, "Drifted") for claim in world.store.list(NODE_CLAIMS))
    )


def _says(thing: Mapping[str, Any], condition: str) -> bool:
    conditions = thing.get("status", {}).get("conditions", ())
    return any(c["type"] == condition and c["status"] == "True" for c in conditions)


def _replicas_wanted(world: World) -> int:
    return sum(d["spec"]["replicas"] for d in world.store.list(DEPLOYMENTS))


# -- the beats -------------------------------------------------------------------------


def _open(world: World) -> tuple[str, str]:
    world.apply(NODE_CLASS)
    world.apply(_POOL)
    world.apply(_WINDOW)
    return f"NodePool/{POOL}", "Created"


def _deploy(world: World) -> tuple[str, str]:
    world.apply(_BUDGET)
    world.apply(_deployment("web", 8, cpu="1", memory="2Gi"))
    report = _deployment("report", 1, cpu="500m", memory="1Gi")
    report["spec"]["template"]["metadata"]["annotations"] = {DO_NOT_DISRUPT: REPORT_PROTECTED_FOR}
    world.apply(report)
    return "Deployment/default/web", "Created"


def _kernel_hangs(world: World) -> tuple[str, str]:
    node = _node_of_report(world)
    world.kubelets.set_condition(node, KERNEL_HANGS, "True", "TaskHung")
    return f"Node/{node}", KERNEL_HANGS


def _change_template(world: World) -> tuple[str, str]:
    labels = {"metadata": {"labels": {"example.com/release": "two"}}}
    world.store.patch(NODE_POOLS, "", POOL, {"spec": {"template": labels}})
    return f"NodePool/{POOL}", "TemplateChanged"


def _node_of_report(world: World) -> str:
    (pod,) = (p for p in world.store.list(PODS) if p["metadata"]["labels"]["app"] == "report")
    return str(pod["spec"]["nodeName"])


BEATS: Final = (
    Beat(
        "a NodePool and a MaintenanceWindow are created: nodes of 4 cpus, disrupted one at a time. A node "
        f"that is unhealthy for 20s is replaced; drifted nodes are replaced from {WINDOW_OPENS} on",
        _open,
        timedelta(0),
    ),
    Beat(
        "8 web servers and a report are deployed; there is no node yet. At most 1 web server may be "
        f"down at a time, and the report is protected from disruption for {REPORT_PROTECTED_FOR}",
        _deploy,
        timedelta(seconds=4),
    ),
    Beat("the kernel of the node under the report hangs: the node is unhealthy", _kernel_hangs),
    Beat(
        "a user changes the template of the NodePool (kubectl edit nodepool): every node has drifted",
        _change_template,
    ),
)

_POOL: Final = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": POOL},
    "spec": {
        "disruption": {"budgets": [{"nodes": "1"}]},
        "repair": {
            "terminationMode": "Graceful",
            "policies": [
                {
                    "conditionType": KERNEL_HANGS,
                    "status": "True",
                    "toleration": "20s",
                    "terminationGracePeriod": "10m",
                }
            ],
        },
        "template": {
            "spec": {
                "requirements": [
                    {"key": CAPACITY_TYPE, "operator": "In", "values": ["spot", "on-demand"]},
                    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                    {"key": CPU_LABEL, "operator": "In", "values": ["4"]},
                ],
                "nodeClassRef": NODE_CLASS_REF,
            }
        },
    },
}

_WINDOW: Final = {
    "apiVersion": MAINTENANCE_WINDOWS.api_version,
    "kind": MAINTENANCE_WINDOWS.kind,
    "metadata": {"name": WINDOW},
    "spec": {
        "type": "Allow",
        "actions": ["Drift"],
        "schedules": [
            {"cron": f"{WINDOW_OPENS[3:]} {WINDOW_OPENS[:2]} * * *", "duration": "10m"},
        ],
    },
}

_BUDGET: Final = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web"},
    "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}


def _deployment(app: str, replicas: int, *, cpu: str, memory: str) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": memory}
    spec = {"containers": [{"name": "main", "image": app, "resources": {"requests": requests}}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": app},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": app}},
            "template": {"metadata": {"labels": {"app": app}}, "spec": spec},
        },
    }
