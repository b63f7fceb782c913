"""What a forecast of 14 days costs: 5,000 nodes with ten pods each, 50 windows of 50 schedules.

Every node expires within the 14 days, and 1,000 have drifted now. The gates answer once for a group of
nodes, and budgets are counted on: twice as many nodes must take about twice as many calls of functions.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from benchmarks import fleet
from benchmarks.figures import Figure, Figures
from tenure.core.forecast.forecast import forecast
from tenure.core.forecast.result import Forecast
from tenure.core.policy.readers import READERS
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.api.resource import MAINTENANCE_WINDOWS, NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.model.api.window import MaintenanceWindow
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot, Tables
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES

NODES_: Final = 5000
PODS_EACH: Final = 10
DRIFTED: Final = 1000
WINDOWS: Final = 50
SCHEDULES: Final = 50
#: Seconds.
FORECAST_MAX: Final = 6.0
_NOW: Final = datetime(2026, 1, 5, 12, tzinfo=UTC)


def measure() -> Figures:
    few, _, _ = _cost(NODES_ // 10, DRIFTED // 10)
    many, _, _ = _cost(NODES_ // 5, DRIFTED // 5)
    snapshot = _snapshot(NODES_, DRIFTED, "timed")
    began = time.process_time()
    found = _forecast(snapshot)
    seconds = time.process_time() - began
    size = f"{NODES_} nodes, {WINDOWS} windows of {SCHEDULES} schedules"
    return Figures(
        title=f"Forecast of 14 days, {size}: {len(found.starts)} starts",
        relative=(
            Figure(what="growth of calls, twice as many nodes", value=many / few, limit=2.3),
        ),
        absolute=(Figure(what="forecast", value=seconds, unit="s", limit=FORECAST_MAX),),
    )


def _cost(nodes: int, drifted: int) -> tuple[int, int, float]:
    snapshot = _snapshot(nodes, drifted, f"counted-{nodes}")
    calls = cProfile.Profile()
    calls.enable()
    began = time.process_time()
    found = _forecast(snapshot)
    took = time.process_time() - began
    calls.disable()
    return pstats.Stats(calls).total_calls, len(found.starts), took  # type: ignore[attr-defined]


def _forecast(snapshot: Snapshot) -> Forecast:
    found = forecast(snapshot, Settings(), _NOW)
    assert found.starts, "nothing starts"
    return found


def _snapshot(nodes: int, drifted: int, name: str) -> Snapshot:
    tables = Tables(READERS)
    pool = fleet.setting()[1]
    pool["spec"]["disruption"] = {
        "budgets": [{"nodes": "5%"}, {"nodes": "30%", "per": "topology.kubernetes.io/zone"}]
    }
    pool["spec"]["template"]["spec"]["expireAfter"] = "720h"
    tables.put(NODE_POOLS, msgspec.convert(pool, NodePool))
    for number in range(nodes):
        tables.put(NODE_CLAIMS, msgspec.convert(aging_claim(number, nodes, drifted), NodeClaim))
        node = fleet.node(number, f"uid-{number}")
        node["metadata"]["labels"]["topology.kubernetes.io/zone"] = f"zone-{number % 3}"
        tables.put(NODES, msgspec.convert(node, Node))
    for number in range(nodes * PODS_EACH):
        tables.put(PODS, msgspec.convert(fleet.bound_pod(number, nodes), Pod))
    for number in range(WINDOWS):
        tables.put(MAINTENANCE_WINDOWS, night_window(number, f"{name}-{number}"))
    return Snapshot(tables, ours=frozenset({KWOK_NODE_CLASSES.group_kind}))


def aging_claim(number: int, nodes: int, drifted: int) -> dict[str, Any]:
    """It expires within the fortnight; its node took 40 seconds to come up."""
    created = _NOW - timedelta(days=29) + timedelta(days=13) * number / nodes
    up = created + timedelta(seconds=40)
    claim = fleet.claim(number) | {"status": fleet.claim_status(number)}
    claim["metadata"] |= {"uid": f"uid-{number}", "creationTimestamp": _written(created)}
    claim["spec"]["expireAfter"] = "720h"
    for condition in claim["status"]["conditions"]:
        condition["lastTransitionTime"] = _written(up)
    if number < drifted:
        said = {"type": "Drifted", "status": "True", "lastTransitionTime": _written(_NOW)}
        claim["status"]["conditions"].append(said)
    return claim


def _written(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def night_window(number: int, name: str) -> MaintenanceWindow:
    """Each blocks one hour or the other of the night in one of three zones."""
    schedules = [
        {"cron": f"{minute} {number % 6} * * *", "duration": "30m", "timeZone": "Europe/Berlin"}
        for minute in range(SCHEDULES)
    ]
    zone = {
        "key": "topology.kubernetes.io/zone",
        "operator": "In",
        "values": [f"zone-{number % 3}"],
    }
    spec = {
        "type": "Block",
        "actions": ["Drift", "Expiration"],
        "selector": {"matchExpressions": [zone]},
        "schedules": schedules,
    }
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, MaintenanceWindow)
