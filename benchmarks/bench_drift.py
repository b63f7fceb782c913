"""How long turns take when 1,000 of 5,000 nodes have drifted, with 50 windows of 50 schedules.

Five pools of 1,000 nodes. The template of one of them is edited: all of its nodes drift in the same
turn. Then turn follows turn, each with what the actions of the former one changed: conditions,
commands, replacements. In the end a window that held all pools closes, and one window is edited.
What the turns write is carried out on the tables at once; the guard is asked about each action, as the
executor does beside the turns. Processor time: what other programs do meanwhile does not count.

Turns of smaller fleets are counted in calls of functions, which are the same on every machine: how
many the longest turn makes for each node, and that they do not grow faster than the fleet.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from benchmarks import fleet
from benchmarks.figures import Figure, Figures
from tenure.core.decision import Action, Create, Delete, Patch
from tenure.core.marks.templatehash import field_hashes, hash_annotations
from tenure.core.policy.deciders import PATIENCE, UNMOVED, deciders
from tenure.core.policy.readers import READERS
from tenure.kube.cache.changes import Changes
from tenure.model.api.meta import ApiObject, format_time
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.api.resource import (
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    Resource,
)
from tenure.model.api.window import MaintenanceWindow
from tenure.model.api.workload import PodDisruptionBudget
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Change, Snapshot, Tables
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.executor.guard import veto
from tenure.runtime.executor.handlers import dated, stamped
from tenure.sim.apiserver.patch.merge import merge_patch
from tenure.sim.cloud.catalogue import instance_types, select
from tenure.sim.collector import rest_collector

NODES_ALL: Final = 5_000
POOLS: Final = 5
PODS_PER_NODE: Final = 20
#: Each with a PodDisruptionBudget.
WORKLOADS: Final = 50
WINDOWS: Final = 50
SCHEDULES: Final = 50
#: Seconds.
TURN_MAX: Final = 1.0
#: Calls of functions in all turns, twice as many nodes.
GROWTH_MAX: Final = 2.3
#: Calls of functions in the longest turn, for each node with its 20 pods.
CALLS_MAX: Final = 1_250
#: So many turns follow the edit of the template.
TURNS: Final = 8
_MACHINE: Final = "m7i.4xlarge"
_SIZE: Final = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "20Gi"}
#: A Monday; the fleet was launched at 8.
_NOW: Final = datetime(2026, 1, 5, 12, tzinfo=UTC)
_ZONES: Final = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC", "Australia/Sydney")
_TYPES: Final[Mapping[Resource, type[ApiObject]]] = {
    NODE_CLAIMS: NodeClaim,
    NODES: Node,
    NODE_POOLS: NodePool,
    MAINTENANCE_WINDOWS: MaintenanceWindow,
}


class Turn(msgspec.Struct, frozen=True):
    what: str
    seconds: float
    actions: int
    #: Seconds of the guard, all actions together.
    guard: float
    #: Of functions; none where they are not counted, because counting takes time.
    calls: int = 0


class Cluster:
    """Tables, and what a turn makes of them."""

    def __init__(self, nodes: int, windows: int = WINDOWS, *, counted: bool = False) -> None:
        self._counted = counted
        self.tables, self.now, self.version = Tables(READERS), _NOW, 1
        types = instance_types(select([_MACHINE]), seed=0, zones=fleet.ZONES)
        self.observations = Observations(
            instance_types={f"{fleet.CLASS['kind']}/{fleet.CLASS['name']}": tuple(types)}
        )
        self.evaluator = Evaluator(deciders(), Settings(), PATIENCE, UNMOVED)
        self.turns: list[Turn] = []
        self._written: dict[tuple[Resource, str], Any] = {}
        self.changes = Changes()
        self._fill(nodes)
        for number in range(windows):
            self.put(MAINTENANCE_WINDOWS, a_window(number))
        self.changes.clear()

    @property
    def snapshot(self) -> Snapshot:
        ours = frozenset({KWOK_NODE_CLASSES.group_kind})
        return Snapshot(self.tables, self.observations, ours=ours)

    def _fill(self, nodes: int) -> None:
        node_class = fleet.setting()[0]
        node_class["metadata"] |= {"uid": "uid-class", "generation": 1}
        ready = {"type": "Ready", "status": "True", "observedGeneration": 1}
        node_class["status"] = {"conditions": [ready]}
        self.tables.put(KWOK_NODE_CLASSES, msgspec.convert(node_class, NodeClass))
        for number in range(POOLS):
            self.put(NODE_POOLS, a_pool(number))
        for number in range(WORKLOADS):
            self.tables.put(POD_DISRUPTION_BUDGETS, _pdb(number))
        for number in range(nodes):
            pool = self.tables.table(NODE_POOLS)[_pool_name(number)]
            claim = fleet.claim(number) | {"status": fleet.claim_status(number)}
            claim["metadata"] |= {
                "uid": f"uid-{number}",
                "annotations": hash_annotations(field_hashes(pool.spec.template)),
            }
            claim["status"] |= {"capacity": _SIZE, "allocatable": _SIZE}
            node = fleet.node(number, f"uid-{number}")
            node["status"] |= {"capacity": _SIZE, "allocatable": _SIZE, "images": []}
            self.put(NODE_CLAIMS, _of_pool(claim, number))
            self.put(NODES, _of_pool(node, number))
            for which in range(PODS_PER_NODE):
                self.tables.put(PODS, msgspec.convert(_pod(number, which), Pod))

    def put(self, resource: Resource, manifest: dict[str, Any]) -> None:
        """As the API server would show it."""
        self.version += 1
        metadata = {"creationTimestamp": "2026-01-05T07:58:00Z", **manifest["metadata"]}
        metadata["resourceVersion"] = str(self.version)
        metadata.setdefault("uid", f"uid-of-{manifest['metadata']['name']}")
        shown = {**manifest, "metadata": metadata}
        self._written[resource, metadata["name"]] = shown
        item = msgspec.convert(shown, _TYPES[resource])
        self.add_change(self.tables.put(resource, item))

    def add_change(self, change: Change) -> None:
        """One that was made in the tables; the next turn sees it."""
        earlier = self.changes.earlier(change)
        old = change.old if earlier is None else earlier.old
        self.changes.note(msgspec.structs.replace(change, old=old))

    def edit(self, resource: Resource, name: str, patch: Mapping[str, Any]) -> None:
        self.put(resource, merge_patch(self._written[resource, name], patch))

    def turn(self, what: str, after: timedelta = timedelta(seconds=1)) -> None:
        self.now += after
        changes = self.changes.take(most=None)
        profile, began = cProfile.Profile(), time.process_time()
        with profile if self._counted else nullcontext():
            self.evaluator.evaluate(self.snapshot, changes, (), self.now)
        took = time.process_time() - began
        actions = [one.action for one in self.evaluator.actionable() if one.action is not None]
        guard = self._carry_out(actions[: Settings().actions_max * 10])
        calls = pstats.Stats(profile).total_calls if self._counted else 0  # type: ignore[attr-defined]
        self.turns.append(Turn(what, took, len(actions), guard, calls))

    def _carry_out(self, actions: Iterable[Action]) -> float:
        """What the guard allows; the seconds that it took."""
        guarded = 0.0
        for action in actions:
            began = time.process_time()
            why = veto(action, self.snapshot, self.now)
            guarded += time.process_time() - began
            assert why is None, why
            if isinstance(action, Create):
                body: Any = {**action.body, "status": {}}
                body["metadata"] = {**body["metadata"], "name": action.name}
                self.put(action.resource, body)
            elif isinstance(action, Delete) and action.resource in _TYPES:
                leaves = {"deletionTimestamp": format_time(self.now)}
                self.edit(action.resource, action.name, {"metadata": leaves})
            elif isinstance(action, Patch) and action.resource in _TYPES:
                stamp = dated(stamped(action.body, self.now), action.dated, self.now + action.ahead)
                self.edit(action.resource, action.name, stamp)
        return guarded


# -- the objects -----------------------------------------------------------------------------


def _pool_name(number: int) -> str:
    return f"pool-{number % POOLS}"


def a_pool(number: int) -> dict[str, Any]:
    pool = fleet.setting()[1]
    pool["metadata"] = {"name": _pool_name(number), "generation": 1}
    pool["spec"]["disruption"] = {"budgets": [{"nodes": "10%"}], "consolidateAfter": "Never"}
    pool["spec"]["template"]["metadata"] = {"labels": {"release": "1"}}
    return pool


def _of_pool(manifest: dict[str, Any], number: int) -> dict[str, Any]:
    labels = manifest["metadata"]["labels"]
    labels |= {"karpenter.sh/nodepool": _pool_name(number), "release": "1"}
    labels["node.kubernetes.io/instance-type"] = _MACHINE
    return manifest


def _pod(node: int, which: int) -> dict[str, Any]:
    name = f"web-{node}-{which}"
    requests = {"cpu": "700m", "memory": "2Gi"}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-01-05T08:00:00Z",
            "labels": {"app": f"web-{node % WORKLOADS}"},
            "ownerReferences": [
                {
                    "kind": "ReplicaSet",
                    "name": f"web-{node % WORKLOADS}",
                    "uid": "1",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "nodeName": fleet.node_name(node),
            "containers": [{"name": "main", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Running"},
    }


def _pdb(number: int) -> PodDisruptionBudget:
    labels = {"app": f"web-{number}"}
    status = {"disruptionsAllowed": 5, "currentHealthy": 2000, "expectedPods": 2000}
    manifest = {
        "metadata": {"name": f"web-{number}", "namespace": "default", "uid": f"uid-pdb-{number}"},
        "spec": {"selector": {"matchLabels": labels}, "maxUnavailable": 5},
        "status": status,
    }
    return msgspec.convert(manifest, PodDisruptionBudget)


def a_window(number: int) -> dict[str, Any]:
    """The first blocks every pool from 12:10 to 13:10; the others block one pool each at night."""
    schedules = [
        {
            "cron": f"{minute} {1 + number % 4} * * {minute % 7}",
            "duration": f"{30 + minute}m",
            "timeZone": _ZONES[number % len(_ZONES)],
        }
        for minute in range(SCHEDULES)
    ]
    selector = {"key": "karpenter.sh/nodepool", "operator": "In", "values": [_pool_name(number)]}
    expressions = [selector]
    if number == 0:
        schedules[0] = {"cron": "10 12 * * *", "duration": "1h"}
        expressions = []
    spec = {"actions": ["Drift", "Expiration", "Consolidation"], "schedules": schedules}
    return {
        "metadata": {"name": f"window-{number:02d}", "generation": 1},
        "spec": {**spec, "selector": {"matchExpressions": expressions}},
    }


# -- the day ---------------------------------------------------------------------------------


def a_day(nodes: int, *, counted: bool = False) -> list[Turn]:
    cluster = Cluster(nodes, counted=counted)
    rest_collector()
    cluster.turn("the first turn of a process")
    cluster.turn("its writes are seen")
    cluster.edit(NODE_POOLS, "pool-0", _release("2"))
    for number in range(TURNS):
        cluster.turn(f"turn {number + 1} after the edit of a template")
    cluster.turn("a window closes for all", until(cluster, 12, 10))
    cluster.turn("the turn after it")
    cluster.edit(MAINTENANCE_WINDOWS, "window-07", {"spec": {"actions": ["Drift"]}})
    cluster.turn("one window is edited")
    cluster.turn("a window opens for all", until(cluster, 13, 10))
    cluster.turn("the turn after it")
    return cluster.turns


def _release(version: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"release": version}}}
    return {"metadata": {"generation": 2}, "spec": {"template": template}}


def until(cluster: Cluster, hour: int, minute: int) -> timedelta:
    return cluster.now.replace(hour=hour, minute=minute, second=0) - cluster.now


def measure(nodes: int = NODES_ALL) -> Figures:
    few, many = a_day(nodes // 10, counted=True), a_day(nodes // 5, counted=True)
    turns = a_day(nodes)
    growth = sum(turn.calls for turn in many) / sum(turn.calls for turn in few)
    busiest = max(turn.calls for turn in many) / (nodes // 5)
    slowest = max(turns, key=lambda turn: turn.seconds)
    asked = sum(turn.actions for turn in turns)
    return Figures(
        title=f"{nodes // POOLS:,} of {nodes:,} nodes drift, {WINDOWS} windows of {SCHEDULES} schedules",
        relative=(
            Figure(what="calls in the longest turn, per node", value=busiest, limit=CALLS_MAX),
            Figure(what="growth of calls, twice as many nodes", value=growth, limit=GROWTH_MAX),
        ),
        absolute=(
            Figure(what="longest turn", value=slowest.seconds, unit="s", limit=TURN_MAX),
            Figure(
                what="guard, per action",
                value=sum(turn.guard for turn in turns) / max(asked, 1) * 1e3,
                unit="ms",
            ),
            *(Figure(what=turn.what, value=turn.seconds, unit="s") for turn in turns),
        ),
    )


if __name__ == "__main__":
    for turn in a_day(int(sys.argv[1]) if sys.argv[1:] else NODES_ALL):
        print(
            f"{turn.what:<45} {turn.seconds:8.3f} s {turn.actions:6} actions, guard {turn.guard:.3f} s"
        )
