"""The launch breaker: honest about when to look again, whatever was launched and remembered."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.decision import Create
from tenure.core.launchbreaker.ledger import Entry, Kept, launched_for, read_launched_for, written
from tenure.core.pool.status import PoolDecider
from tenure.core.provision.decider import ProvisionDecider
from tenure.core.reasons import Reason
from tenure.model.api import names
from tenure.model.api.meta import ApiObject, OwnerReference
from tenure.model.api.node import Taint
from tenure.model.api.pod import Pod
from tenure.model.snapshot.observations import DepartedClaim, Observations
from tenure.model.snapshot.snapshot import Snapshot
from tests.core.build import (
    NOW,
    a_claim,
    a_class,
    a_node,
    a_pending_pod,
    a_pod,
    a_pool,
    types,
)
from tests.properties.deciderchecks import (
    check_honest_recheck,
    check_one_verdict_per_subject,
    check_order_does_not_matter,
    verdicts_of,
)
from tests.properties.thoroughness import tried
from tests.snapshots import snapshot_with

OWNERS = ("web", "db-bbbbb", "db-ccccc")
AGENT = Taint(key="example.com/agent", effect="NoExecute")
THOROUGH = tried(60)
LATER = [timedelta(seconds=s) for s in (1, 30, 60, 121, 600, 1800, 3600)]

#: Coarse, so that launches fall together and boundaries are met.
instants = st.sampled_from(
    [0, 1, 30, 59, 60, 61, 120, 300, 599, 600, 601, 1800, 3599, 3600, 3601, 10800]
).map(lambda seconds: NOW - timedelta(seconds=seconds))


def of(pod: Pod, owner: str) -> Pod:
    owners = (OwnerReference(kind="StatefulSet", name=owner, uid=owner, controller=True),)
    return msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=owners)
    )


@st.composite
def launches(draw: st.DrawFn, number: int) -> list[ApiObject]:
    """A claim for some owners, its Node, and perhaps a pod there."""
    name, at = f"n{number}", draw(instants)
    owners = draw(st.lists(st.sampled_from(OWNERS), min_size=1, unique=True))
    said = launched_for([of(a_pod(f"{owner}-0"), owner) for owner in owners])
    claim = a_claim(name, creation_timestamp=at, annotations={names.LAUNCHED_FOR: said})
    found: list[ApiObject] = [claim]
    if draw(st.booleans()):
        taints = draw(st.sampled_from([(AGENT,), (AGENT,), ()]))
        found.append(a_node(f"node-{name}", claim=name, taints=taints, creation_timestamp=at))
        if draw(st.integers(0, 3)) == 0:
            pod = of(a_pod(f"{owners[0]}-{number + 10}", node=f"node-{name}"), owners[0])
            status = msgspec.structs.replace(pod.status, start_time=draw(instants))
            found.append(msgspec.structs.replace(pod, status=status))
    return found


entries = st.builds(
    Entry,
    st.lists(
        st.builds(Kept, st.sampled_from(["n0", "n1", "g0", "g1", "g2"]), instants, instants),
        max_size=4,
        unique_by=lambda kept: kept.claim,
    ).map(tuple),
    st.none() | instants,
    st.none() | instants,
)
ledgers = st.dictionaries(
    st.sampled_from([f"StatefulSet/default/{owner}" for owner in OWNERS]), entries, max_size=2
)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[ApiObject], Observations]:
    text = written(draw(ledgers))
    annotations = {names.LAUNCH_BREAKER: text} if text else {}
    objects: list[ApiObject] = [a_class(), a_pool(annotations=annotations)]
    for number in range(draw(st.integers(0, 6))):
        objects += draw(launches(number))
    for owner in draw(st.lists(st.sampled_from(OWNERS), unique=True)):
        objects.append(of(a_pending_pod(f"{owner}-0"), owner))
    gone = {
        f"uid-{number}": DepartedClaim(
            name=f"gone-{number}",
            pool="general",
            created_at=draw(instants),
            launched_for='[{"owner":"StatefulSet/default/db-fffff"}]',
        )
        for number in range(draw(st.sampled_from([0, 0, 3, 62, 66])))
    }
    return objects, Observations(instance_types=types(), departed_claims=gone)


def snapshot_of(objects: list[ApiObject], observations: Observations) -> Snapshot:
    return snapshot_with(*objects, observations=observations)


@THOROUGH
@given(cluster=clusters(), later=st.sampled_from(LATER))
def test_nothing_about_launches_changes_before_it_said_it_might(
    cluster: Any, later: timedelta
) -> None:
    for decider in (ProvisionDecider(), PoolDecider()):
        check_one_verdict_per_subject(decider, snapshot_of(*cluster), NOW)
        check_honest_recheck(decider, snapshot_of(*cluster), NOW, later)


@THOROUGH
@given(cluster=clusters(), random=st.randoms())
def test_the_order_of_objects_does_not_matter(cluster: Any, random: Any) -> None:
    objects, observations = cluster
    shuffled = list(objects)
    random.shuffle(shuffled)
    check_order_does_not_matter(
        ProvisionDecider(),
        snapshot_of(objects, observations),
        snapshot_of(shuffled, observations),
        NOW,
    )


@THOROUGH
@given(cluster=clusters())
def test_nothing_is_launched_for_an_owner_whose_pods_are_held(cluster: Any) -> None:
    verdicts = verdicts_of(ProvisionDecider(), snapshot_of(*cluster), NOW)
    held = {
        v.subject.name
        for v in verdicts
        if v.subject.kind == "Pod" and v.reason is Reason.LAUNCH_BREAKER_OPEN
    }
    for verdict in verdicts:
        if isinstance(verdict.action, Create):
            said = verdict.action.body["metadata"]["annotations"][names.LAUNCHED_FOR]
            assert not held & {n for one in read_launched_for(said) for n in one.names}


@THOROUGH
@given(cluster=clusters(), span=st.sampled_from(LATER))
def test_what_is_remembered_says_the_same_when_it_is_read_again(
    cluster: Any, span: timedelta
) -> None:
    """Once written, the ledger asks for no other write, now or when nothing has happened since."""
    objects, observations = cluster
    first = verdicts_of(ProvisionDecider(), snapshot_of(objects, observations), NOW)
    wrote = _written(first)
    if wrote is None:
        return
    pool = a_pool(annotations={names.LAUNCH_BREAKER: wrote} if wrote else {})
    again = [pool if one.name == "general" else one for one in objects]
    second = verdicts_of(ProvisionDecider(), snapshot_of(again, observations), NOW)
    assert _written(second) is None
    assert [v.reason for v in first if v.subject.kind == "Pod"] == [
        v.reason for v in second if v.subject.kind == "Pod"
    ]


def _written(verdicts: Any) -> str | None:
    """What would be written to the pool: a text, empty for taking it away, None for nothing."""
    for verdict in verdicts:
        if verdict.subject.kind == "NodePool" and verdict.action is not None:
            body = verdict.action.body["metadata"]["annotations"]
            return body[names.LAUNCH_BREAKER] or ""
    return None
