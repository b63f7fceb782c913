"""Pods that wait for the room of others: whatever the instants are, none that matters is missed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tenure.core.disrupt.pipeline import DisruptionDecider
from tenure.core.policy.deciders import decide_all
from tenure.core.provision.decider import ProvisionDecider
from tenure.core.provision.vacating import REMOVAL_TAKES, WAITS
from tenure.core.reasons import Reason
from tenure.model.api.pod import TopologySpreadConstraint
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Snapshot
from tests.core.build import (
    a_claim,
    a_class,
    a_node,
    a_pending_pod,
    a_pod,
    a_pool,
    ago,
    ahead,
    condition,
    types,
)
from tests.properties.deciderchecks import SETTINGS, check_honest_recheck
from tests.properties.drawn.basics import NOW
from tests.properties.thoroughness import reached, tried
from tests.snapshots import snapshot_with

DECIDERS = ProvisionDecider(), DisruptionDecider()
LATER = [timedelta(seconds=seconds) for seconds in (1, 3, 6, 11, 21, 41, 90)]
SPREAD = TopologySpreadConstraint(
    max_skew=1, topology_key="kubernetes.io/hostname", when_unsatisfiable="DoNotSchedule"
)


@st.composite
def vacated(draw: st.DrawFn) -> Snapshot:
    """Up to three nodes whose pods terminate, beside pods that wait."""
    objects: list[Any] = [a_class(), a_pool(disruption={"consolidateAfter": "0s"})]
    count, cpus = draw(st.integers(1, 3)), st.sampled_from(["500m", "1", "2", "4"])
    for index in range(count):
        said = condition("Empty", reason="NoReschedulablePods", at=ago(draw(st.integers(0, 30))))
        conditions = [said] if draw(st.booleans()) else []
        objects += [
            a_claim(f"c{index}", conditions=conditions),
            a_node(f"n{index}", claim=f"c{index}"),
        ]
    for index in range(draw(st.integers(0, 5))):
        ends = draw(st.one_of(st.none(), st.integers(-10, 45)))
        objects.append(
            a_pod(
                f"there-{index}",
                node=f"n{draw(st.integers(0, count - 1))}",
                requests={"cpu": draw(cpus)},
                owner=draw(st.sampled_from(["ReplicaSet", "ReplicaSet", "StatefulSet"])),
                deletion_timestamp=None if ends is None else ahead(ends),
            )
        )
    for index in range(draw(st.integers(1, 4))):
        spread = {"topology_spread_constraints": (SPREAD,)} if draw(st.booleans()) else {}
        objects.append(
            a_pending_pod(
                f"next-{index}",
                since=ago(draw(st.integers(0, 50))),
                requests={"cpu": draw(cpus)},
                spec=spread,
            )
        )
    left = {f"n{index}": ago(draw(st.integers(0, 60))) for index in range(count)}
    return snapshot_with(
        *objects, observations=Observations(instance_types=types(), pods_left=left)
    )


@tried(200)
@given(snapshot=vacated())
def test_no_verdict_changes_before_it_said_it_might(snapshot: Snapshot) -> None:
    for decider in DECIDERS:
        for later in LATER:
            check_honest_recheck(decider, snapshot, NOW, later)


@tried(100)
@given(snapshot=vacated())
def test_no_pod_waits_for_room_for_long(snapshot: Snapshot) -> None:
    """Whatever becomes of those that terminate: here they all stay."""
    for verdict in decide_all(DECIDERS[0], snapshot, SETTINGS, _after()):
        assert verdict.reason is not Reason.ROOM_SOON


def _after() -> datetime:
    return NOW + WAITS + REMOVAL_TAKES


def test_the_random_clusters_have_pods_that_wait() -> None:
    def waits(snapshot: Snapshot) -> bool:
        found = decide_all(DECIDERS[0], snapshot, SETTINGS, NOW)
        return any(verdict.reason is Reason.ROOM_SOON for verdict in found)

    assert True in reached(vacated(), lambda one: {waits(one)}, {True}, within=200)
