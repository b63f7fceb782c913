"""What the cloud and the API server may have answered about a random cluster."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from hypothesis import strategies as st

from tenure.core.disrupt.facts.consolidation import PodWithoutController
from tenure.model.api import names
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance, InstanceState
from tenure.model.cloud.offering import InstanceType, Offering
from tenure.model.matching.requirements import Requirement as Wanted
from tenure.model.matching.requirements import Requirements
from tenure.model.snapshot.consolidation import ConsolidationPlan, PlannedMove
from tenure.model.snapshot.observations import (
    Announcement,
    Arrival,
    DriftAnswer,
    EvictionAnswer,
    InspectionAnswer,
    LaunchFailure,
    LaunchProblem,
    OrphanSighting,
    RebootAnswer,
    TerminationAnswer,
)
from tenure.model.values.quantity import UNIT
from tests.properties.drawn.basics import GIB, NOW, instants, past


@st.composite
def instances(draw: st.DrawFn, index: int) -> Instance:
    return Instance(
        provider_id=f"cloud://{index}",
        cluster="embedded",
        claim_uid=f"uid-claim-{index}",
        claim_name=f"claim-{index}",
        state=draw(st.sampled_from(list(InstanceState))),
        instance_type="small",
        zone="zone-a",
        capacity_type="spot",
        launched_at=draw(instants) - timedelta(minutes=5),
        labels={names.ZONE: "zone-a"},
    )


@st.composite
def plans(draw: st.DrawFn, claims: int) -> ConsolidationPlan | None:
    """Of consolidation: it may be older than the cluster, and name what is not there any more."""
    if draw(st.booleans()):
        return None
    moves = []
    for index in draw(st.permutations(range(claims))):
        if draw(st.booleans()):
            price = draw(st.sampled_from([20_000, 200_000]))
            names_ = (f"claim-{index}",), (f"node-{index}",)
            moves.append(PlannedMove(claims=names_[0], nodes=names_[1], price=price))
    why = {"node-0": (PodWithoutController("default/pod-0"),)} if draw(st.booleans()) else {}
    return ConsolidationPlan(at=draw(past), moves=tuple(moves), why=why)


@st.composite
def announced(draw: st.DrawFn, claims: int) -> Mapping[str, Announcement]:
    said = st.builds(Announcement, by=st.just("kwok"), at=past, deadline=st.none() | instants)
    return {
        f"uid-claim-{index}": draw(said)
        for index in range(claims)
        if draw(st.sampled_from([False] * 7 + [True]))
    }


DRIFT_ANSWERS = st.just(DriftAnswer()) | st.builds(
    DriftAnswer,
    drift=st.none() | st.just(Drift("ImageDrift", "runs v1, its class asks for v2")),
    silent_since=st.none() | past,
    failure=st.just("no answer"),
)
INSPECTIONS = st.builds(InspectionAnswer, asked_at=past, gone=st.booleans())
FAILURES = st.builds(
    LaunchFailure,
    problem=st.sampled_from([LaunchProblem.FAILED, *LaunchProblem]),
    message=st.just("no answer"),
    at=past,
    retry_at=instants | instants | st.none(),
)
ARRIVALS = st.builds(
    Arrival,
    claim=st.just("claim-9"),
    failure=st.sampled_from(["", "readiness_timeout"]),
    generations=st.sampled_from([(1, None), (1, 1), (0, 1)]),
)
ANSWERS = st.builds(TerminationAnswer, asked_at=instants, gone=st.booleans())
#: To the first claim's operation, if it was requested now, or to none.
REBOOT_ANSWERS = st.builds(
    RebootAnswer,
    operation_id=st.sampled_from([f"uid-claim-0-{int(NOW.timestamp())}-boot-1", "another"]),
    at=past,
    refusal=st.sampled_from(["", "no such rack"]),
)
REFUSALS = st.builds(EvictionAnswer, at=past, retry_at=instants, message=st.just("budget says no"))
ORPHANS = st.builds(OrphanSighting, instance=instances(90), first_at=past, last_at=st.just(NOW))


def _type(name: str, cpu: int, price: int) -> InstanceType:
    size = {"cpu": cpu * UNIT, "memory": 2 * cpu * GIB, "pods": 10 * UNIT}
    return InstanceType(
        name=name,
        requirements=Requirements.of(
            [
                Wanted.of(names.INSTANCE_TYPE, "In", [name]),
                Wanted.of(names.ARCH, "In", ["amd64"]),
                Wanted.of(names.OS, "In", ["linux"]),
                Wanted.of(names.ZONE, "In", ["zone-a", "zone-b"]),
                Wanted.of(names.CAPACITY_TYPE, "In", ["on-demand", "spot"]),
            ]
        ),
        capacity=size,
        allocatable=size,
        offerings=tuple(
            Offering(zone=zone, capacity_type=terms, price=price)
            for zone in ("zone-a", "zone-b")
            for terms in ("on-demand", "spot")
        ),
    )


TYPES = (_type("small", 2, 50_000), _type("large", 4, 100_000))
