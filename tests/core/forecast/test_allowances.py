"""Budgets that are counted on allow the same as budgets that are counted anew."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from tenure.core.forecast.allowances import PoolAllowance
from tenure.core.gates.budgets import allowance
from tenure.core.gates.fleet import FleetNode, PoolFleet
from tenure.core.gates.reasons import TRAITS, Disruption
from tenure.model.api.meta import format_time
from tenure.model.api.nodepool import DisruptionStart
from tests.core.build import NOW, a_node, a_pool

ZONE: Final = "topology.kubernetes.io/zone"
TRAIT: Final = TRAITS[Disruption.DRIFTED]
SHARES = st.sampled_from(["0", "1", "2", "10%", "33%", "100%"])
BUDGETS = st.lists(
    st.fixed_dictionaries(
        {"nodes": SHARES},
        optional={
            "per": st.just(ZONE),
            "within": st.just("1h"),
            "reasons": st.sampled_from([["Drifted"], ["Empty"]]),
            "selector": st.just(
                {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a", "b"]}]}
            ),
        },
    ),
    max_size=4,
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["start", "gone", "join", "wait"]),
        st.sampled_from(["a", "b", "c", ""]),
    ),
    max_size=14,
)


def labels_of(zone: str) -> dict[str, str]:
    return {ZONE: zone} if zone else {}


class Recounted:
    """The same nodes and starts, counted anew by the gate."""

    def __init__(self) -> None:
        self.nodes: list[FleetNode] = []
        self.starts: list[DisruptionStart] = []

    def step(self, what: str, zone: str, now: Any) -> bool:
        """Whether it could be done."""
        index = len(self.nodes)
        if what == "join":
            self.nodes.append(FleetNode(name=f"n{index}", labels=labels_of(zone)))
            return True
        leaves = what == "gone"
        for at, node in enumerate(self.nodes):
            if node.labels == labels_of(zone) and node.leaving == leaves:
                if leaves:
                    del self.nodes[at]
                else:
                    self.nodes[at] = FleetNode(name=node.name, labels=node.labels, leaving=True)
                    start = DisruptionStart(
                        claim=f"uid-{index}", at=format_time(now), labels={ZONE: zone}
                    )
                    self.starts.append(start)
                return True
        return False


@given(budgets=BUDGETS, steps=STEPS)
def test_they_agree_after_every_step(budgets: list[dict[str, Any]], steps: Any) -> None:
    recounted, now = Recounted(), NOW
    for zone in ("a", "a", "a", "b", "b", "c", ""):
        recounted.step("join", zone, now)
    pool = a_pool(disruption={"budgets": budgets})
    counted_on = PoolAllowance(pool, PoolFleet(tuple(recounted.nodes)), now)
    for what, zone in steps:
        if what == "wait":
            now += timedelta(minutes=23)
        elif recounted.step(what, zone, now):
            labels = labels_of(zone)
            if what == "join":
                counted_on.join(labels)
            elif what == "start":
                counted_on.take(labels)
                counted_on.start(labels, now)
            else:
                counted_on.take(labels, -1)
                counted_on.join(labels, -1)
        status = [
            {"claim": one.claim, "at": one.at, "labels": one.labels} for one in recounted.starts
        ]
        pool = a_pool(disruption={"budgets": budgets}, status={"disruptionStarts": status})
        fleet = PoolFleet(tuple(recounted.nodes))
        for probe in ("a", "b", "c", ""):
            node = a_node(labels=labels_of(probe))
            gate = allowance(pool, TRAIT, node, fleet, now)
            assert counted_on.left(TRAIT, node.labels, now).nodes == gate.allowed
