"""What maintenance windows cost a decision about repair: 50 windows of 50 schedules each.

A window is parsed once per version, and its phase is found once per instant: twice as many unhealthy
nodes must not find twice as many phases. Calls of functions are counted: they are the same on every
machine.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from benchmarks import fleet
from benchmarks.figures import Figure, Figures
from tenure.core.repair.decider import RepairDecider
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import MAINTENANCE_WINDOWS, NODE_CLAIMS, NODE_POOLS, NODES
from tenure.model.api.window import MaintenanceWindow
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot, Tables
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES

WINDOWS: Final = 50
SCHEDULES: Final = 50
NODES_UNHEALTHY: Final = 200
#: With windows against without: each node is compared with each window, and nothing more. It was
#: 230 when windows were parsed for each node.
RATIO_MAX: Final = 10.0
#: Seconds.
DECISION_MAX: Final = 1.0
_NOW: Final = datetime(2026, 1, 5, 12, tzinfo=UTC)


def measure() -> Figures:
    without, _ = _cost(0, NODES_UNHEALTHY)
    few, _ = _cost(WINDOWS, NODES_UNHEALTHY // 2)
    many, seconds = _cost(WINDOWS, NODES_UNHEALTHY)
    size = f"{WINDOWS} windows of {SCHEDULES} schedules"
    return Figures(
        title=f"Repair of {NODES_UNHEALTHY} unhealthy nodes with {size}",
        relative=(
            Figure(
                what="calls, with against without windows", value=many / without, limit=RATIO_MAX
            ),
            Figure(what="growth of calls, twice as many nodes", value=many / few, limit=1.7),
        ),
        absolute=(Figure(what="first decision", value=seconds, unit="s", limit=DECISION_MAX),),
    )


def _cost(windows: int, nodes: int) -> tuple[int, float]:
    """Calls of functions and seconds of the first decision about windows that have just come."""
    _decide(_snapshot(windows, nodes, f"warm-up-{nodes}"), nodes)
    snapshot = _snapshot(windows, nodes, f"counted-{nodes}")
    calls = cProfile.Profile()
    calls.enable()
    _decide(snapshot, nodes)
    calls.disable()
    snapshot = _snapshot(windows, nodes, f"timed-{nodes}")
    began = time.process_time()
    _decide(snapshot, nodes)
    took = time.process_time() - began
    return pstats.Stats(calls).total_calls, took  # type: ignore[attr-defined]


def _decide(snapshot: Snapshot, nodes: int) -> None:
    decider = RepairDecider()
    view = decider.view(snapshot, fleet.POOL)
    assert view is not None
    verdicts = decider.decide(view, Settings(), _NOW)
    assert len(verdicts) >= 2 * nodes, len(verdicts)


def _snapshot(windows: int, nodes: int, name: str) -> Snapshot:
    tables = Tables()
    repair = {
        "maxUnhealthy": "100%",
        "policies": [{"conditionType": "Broken", "status": "True", "toleration": "10m"}],
    }
    pool = fleet.setting()[1]
    pool["spec"]["repair"] = repair
    tables.put(NODE_POOLS, msgspec.convert(pool, NodePool))
    for number in range(nodes):
        claim = fleet.claim(number) | {"status": fleet.claim_status(number)}
        claim["metadata"]["uid"] = f"uid-{number}"
        tables.put(NODE_CLAIMS, msgspec.convert(claim, NodeClaim))
        tables.put(NODES, msgspec.convert(_unhealthy(number), Node))
    for number in range(windows):
        tables.put(MAINTENANCE_WINDOWS, _window(number, f"{name}-{number}"))
    return Snapshot(tables, ours=frozenset({KWOK_NODE_CLASSES.group_kind}))


def _unhealthy(number: int) -> dict[str, Any]:
    node = fleet.node(number, f"uid-{number}")
    broken = {"type": "Broken", "status": "True", "lastTransitionTime": "2026-01-05T11:00:00Z"}
    node["status"]["conditions"].append(broken)
    return node


def _window(number: int, name: str) -> MaintenanceWindow:
    """Not active at noon."""
    schedules = [
        {"cron": f"{minute} {number % 10} * * 1-5", "duration": "30m", "timeZone": "Europe/Berlin"}
        for minute in range(SCHEDULES)
    ]
    spec = {"type": "Block", "actions": ["Repair"], "schedules": schedules}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, MaintenanceWindow)
