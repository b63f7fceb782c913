"""What holds for every decider while nodes of several pools become unhealthy and recover together."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tenure.core.decider import AnyDecider
from tenure.core.decision import Create
from tenure.core.disrupt.pipeline import DisruptionDecider
from tenure.core.health.facts import Outage, ProbeUnderWay
from tenure.core.policy.deciders import decide_all
from tenure.core.provision.decider import ProvisionDecider
from tenure.core.reasons import Reason
from tenure.core.repair.decider import RepairDecider
from tenure.core.repair.facts import RepairedAsProbe
from tenure.model.api import names
from tenure.model.api.meta import ApiObject
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Snapshot, Tables
from tenure.providers.kwok.repairs import kwok_statements
from tenure.runtime.evaluate.evaluator import Evaluator
from tests.core.build import (
    NOW,
    REGISTERED,
    a_claim,
    a_class,
    a_node,
    a_pending_pod,
    a_pool,
    a_type,
    ago,
    condition,
    types,
)
from tests.properties.deciderchecks import (
    SETTINGS,
    check_honest_recheck,
    check_one_verdict_per_subject,
    check_order_does_not_matter,
)
from tests.properties.thoroughness import reached, tried
from tests.snapshots import RESOURCE_OF, snapshot_with

THOROUGH = tried(100)
LATER = st.sampled_from([1, 5, 10, 21, 120, 590, 1200, 1800]).map(lambda s: timedelta(seconds=s))
KNOWN = Observations(repair_statements=kwok_statements(), instance_types=types(a_type(cpu="8")))
OURS = snapshot_with().ours

#: Seconds ago; the interesting ones are around ten and thirty minutes.
instants = st.sampled_from([-30, 0, 5, 590, 595, 600, 605, 900, 1790, 1800, 4000])

REPAIRS: list[dict[str, Any] | None] = [
    None,
    {"defaultTolerationDuration": "5m", "maxUnhealthy": "100%"},
    {"defaultTolerationDuration": "5m", "maxUnhealthy": "100%"},
    {"defaultTolerationDuration": "10m", "maxUnhealthy": 2},
    {"defaultTolerationDuration": "5m", "maxUnhealthy": "100%", "terminationMode": "Graceful"},
    {"policies": [{"conditionType": "Ready", "toleration": "Never"}]},
]
PERMITS = (
    *("", "", ""),
    *("zone=zone-a red-0 2026-03-02T11:50:05Z", "zone=zone-a blue-1 2026-03-02T11:30:05Z"),
    *("zone=zone-b,image=x red-1 2026-03-02T11:59:00Z", "nonsense"),
)


@st.composite
def pools(draw: st.DrawFn, name: str) -> ApiObject:
    spec: dict[str, Any] = {}
    if (repair := draw(st.sampled_from(REPAIRS))) is not None:
        spec["repair"] = repair
    probe = draw(st.sampled_from(PERMITS))
    return a_pool(name, annotations={names.REPAIR_PROBE: probe} if probe else None, **spec)


@st.composite
def members(draw: st.DrawFn, index: int) -> list[ApiObject]:
    pool = draw(st.sampled_from(["red", "blue"]))
    name, zone = f"{pool}-{index}", draw(st.sampled_from(["zone-a"] * 3 + ["zone-b"]))
    labels = {names.NODEPOOL: pool, names.ZONE: zone, names.INSTANCE_TYPE: "small"}
    vetoed = draw(st.sampled_from([{}, {}, {}, {names.DO_NOT_REPAIR: "true"}]))
    stage = draw(st.sampled_from([3, 3, 3, 3, REGISTERED]))
    leaving = draw(st.sampled_from([None, None, None, None, ago(30)]))
    born = draw(st.sampled_from([7200, 905, 890, 600, 20]))
    up = (
        [condition("Initialized", at=ago(draw(st.sampled_from([7000, 580]))))] if stage == 3 else []
    )
    claim = a_claim(
        name,
        stage=stage,
        labels=labels,
        conditions=up,
        annotations=vetoed,
        deletion_timestamp=leaving,
        creation_timestamp=ago(born),
        status={"image_id": draw(st.sampled_from(["", "x"]))},
    )
    ready = draw(st.sampled_from(["True", "False", "Unknown", "Unknown"]))
    told = condition("Ready", ready, "Told", at=ago(draw(instants)))
    node = a_node(
        f"node-{name}",
        claim=name,
        labels=labels,
        deletion_timestamp=leaving,
        creation_timestamp=ago(born),
        status={"conditions": (told,)},
    )
    return [claim, node]


@st.composite
def outages(draw: st.DrawFn) -> tuple[ApiObject, ...]:
    count = draw(st.integers(3, 8))
    found = [item for index in range(count) for item in draw(members(index))]
    waiting = [a_pending_pod(since=ago(60), requests={"cpu": "6"})] if draw(st.booleans()) else []
    return (a_class(), draw(pools("red")), draw(pools("blue")), *found, *waiting)


def deciders() -> tuple[AnyDecider, ...]:
    return RepairDecider(), ProvisionDecider(), DisruptionDecider()


def snapshot_of(objects: tuple[ApiObject, ...]) -> Snapshot:
    return snapshot_with(*objects, observations=KNOWN)


@THOROUGH
@given(objects=outages(), seed=st.integers(0, 2**16))
def test_one_verdict_per_subject_in_whatever_order_the_api_lists_them(
    objects: tuple[ApiObject, ...], seed: int
) -> None:
    shuffled = list(objects)
    random.Random(seed).shuffle(shuffled)
    for decider in deciders():
        check_one_verdict_per_subject(decider, snapshot_of(objects), NOW)
        one, other = snapshot_of(objects), snapshot_of(tuple(shuffled))
        check_order_does_not_matter(decider, one, other, NOW)


@tried(300)
@given(objects=outages(), later=LATER)
def test_no_verdict_changes_before_it_said_it_might(
    objects: tuple[ApiObject, ...], later: timedelta
) -> None:
    for decider in deciders():
        check_honest_recheck(decider, snapshot_of(objects), NOW, later)


@tried(150)
@given(before=outages(), after=outages(), picked=st.integers(0, 2**30), later=LATER)
def test_evaluating_only_what_changed_equals_evaluating_everything(
    before: tuple[ApiObject, ...], after: tuple[ApiObject, ...], picked: int, later: timedelta
) -> None:
    """Only some of the changes come, so that most of the outage is as it was."""
    tables, evaluator = Tables(), Evaluator(deciders(), SETTINGS)
    first = [tables.put(RESOURCE_OF[type(item)], item) for item in before]
    evaluator.evaluate(Snapshot(tables, KNOWN, ours=OURS), first, (), NOW)
    some = [item for index, item in enumerate(after) if picked >> index & 3 == 3]
    changes = [tables.put(RESOURCE_OF[type(item)], item) for item in some]
    snapshot = Snapshot(tables, KNOWN, ours=OURS)
    evaluator.evaluate(snapshot, changes, (), NOW + later)
    full = [v for d in deciders() for v in decide_all(d, snapshot, SETTINGS, NOW + later)]
    assert sorted(map(repr, evaluator.in_force())) == sorted(map(repr, full))


def test_the_random_outages_reach_what_there_is_to_reach() -> None:
    """Otherwise the properties above would hold because nothing was tried."""
    wanted = {
        Reason.REPAIR_BLOCKED,
        Reason.REPAIR_PROBE,
        "recovered",
        "avoiding",
        ProbeUnderWay.__name__,
        RepairedAsProbe.__name__,
    }

    def look(objects: tuple[ApiObject, ...]) -> set[str]:
        seen: set[str] = set()
        for decider in deciders():
            for verdict in decide_all(decider, snapshot_of(objects), SETTINGS, NOW):
                seen.add(verdict.reason)
                seen |= {type(fact).__name__ for fact in verdict.facts}
                if any(isinstance(one, Outage) and one.recovered for one in verdict.facts):
                    seen.add("recovered")
                if isinstance(verdict.action, Create) and "avoiding" in verdict.message:
                    seen.add("avoiding")
        return seen

    assert wanted - reached(outages(), look, wanted, within=2000) == set()
