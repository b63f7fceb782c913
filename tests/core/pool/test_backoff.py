"""When a pool whose new nodes time out launches the next one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.pool.backoff import RECORDED_MAX, BackOff, back_off_of
from tenure.model.api import names
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tests.core.build import NOW, a_claim, a_class, a_pool, condition

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
TTL = "1m"


def the_pool(ttl: str = TTL, hash_: str = "1", record: str | None = None, **spec: Any) -> NodePool:
    annotations = {names.NODEPOOL_HASH: hash_}
    if record is not None:
        annotations[names.LAUNCH_TIMEOUTS] = record
    return a_pool(annotations=annotations, template={"readinessTTL": ttl, **spec})


def a_new_claim(name: str, created: datetime, ttl: str = TTL, **fields: Any) -> NodeClaim:
    """The cloud has not answered yet."""
    fields = {"annotations": {names.NODEPOOL_HASH: "1"}, **fields}
    spec = {"readiness_ttl": ttl}
    return a_claim(name, stage=0, spec=spec, creation_timestamp=created, **fields)


def timed_out(name: str, ago: timedelta, **fields: Any) -> NodeClaim:
    """Deleted that long ago, when its TTL was over."""
    at = NOW - ago
    return a_new_claim(name, at - MINUTE, **{"deletion_timestamp": at, **fields})


def back_off(*claims: NodeClaim, pool: NodePool | None = None) -> BackOff:
    return back_off_of(pool or the_pool(), claims, a_class())


def repaired(name: str, ago: timedelta, *, initialized: bool = True, **fields: Any) -> NodeClaim:
    """Deleted that long ago, three minutes after its creation, because it was unhealthy."""
    at = NOW - ago
    marks = {names.NODEPOOL_HASH: "1", names.REPAIR_REASON: "NodeRepairDue"}
    types = ("ReadyOnce", "Initialized") if initialized else ("ReadyOnce",)
    usual: Any = {
        "annotations": marks,
        "conditions": tuple(condition(one, at=at - 2 * MINUTE) for one in types),
        "deletion_timestamp": at,
    }
    return a_new_claim(name, at - 3 * MINUTE, **usual | fields)


def of_use(name: str, since: timedelta, **fields: Any) -> NodeClaim:
    """A node that was initialized that long ago."""
    at = NOW - since
    up = tuple(condition(one, at=at) for one in ("ReadyOnce", "Initialized"))
    return a_new_claim(name, at - MINUTE, conditions=up, **fields)


REPAIRED = [repaired(f"r{n}", n * MINUTE) for n in (50, 40, 30)]
THREE = [timed_out(f"n{n}", n * MINUTE) for n in (5, 4, 3)]


def test_the_third_in_a_row_begins_it() -> None:
    assert not back_off(*THREE[:2]).is_open
    known = back_off(*THREE)
    assert known.is_open
    assert known.next_at == NOW - 2 * MINUTE, "1m after the last"


def test_it_doubles_with_each_node_that_is_tried_up_to_half_an_hour() -> None:
    at, record, pauses = NOW, back_off(*THREE).annotation, []
    for number in range(8):
        tried = a_new_claim(f"t{number}", at, deletion_timestamp=at + MINUTE)
        known = back_off(tried, pool=the_pool(record=record))
        pauses.append((known.next_at - (at + MINUTE)) / MINUTE)
        at, record = known.next_at, known.annotation
    assert pauses == [2, 4, 8, 16, 30, 30, 30, 30]


def test_nodes_that_were_launched_together_do_not_double_it() -> None:
    many = [timed_out(f"n{n}", 2 * MINUTE) for n in range(15)]
    assert back_off(*many).next_at == NOW - MINUTE


def test_it_is_read_from_the_pool_once_the_claims_are_gone() -> None:
    known = back_off(*THREE)
    again = back_off(pool=the_pool(record=known.annotation))
    assert again == known
    assert back_off(*THREE, pool=the_pool(record=known.annotation)) == known, "each counts once"


def test_a_node_that_comes_up_ends_it() -> None:
    pool = the_pool(record=back_off(*THREE).annotation)
    ready = condition("ReadyOnce", at=NOW - MINUTE)
    came_up = back_off(a_new_claim("up", NOW - 2 * MINUTE, conditions=(ready,)), pool=pool)
    assert (came_up.is_open, came_up.annotation) == (False, None)
    long_ago = condition("ReadyOnce", at=NOW - 60 * MINUTE)
    assert back_off(
        a_new_claim("old", NOW - 61 * MINUTE, conditions=(long_ago,)), pool=pool
    ).is_open


CHANGED = [
    pytest.param({"ttl": "10m"}, id="readinessTTL"),
    pytest.param({"initializationTTL": "10m"}, id="initializationTTL"),
    pytest.param({"hash_": "2"}, id="template"),
]


@pytest.mark.parametrize("changed", CHANGED)
def test_another_template_ends_it(changed: Any) -> None:
    record = back_off(*THREE).annotation
    known = back_off(*THREE, pool=the_pool(**changed, record=record))
    assert known.annotation is None


def test_other_requirements_end_it() -> None:
    others = [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]
    record = back_off(*THREE).annotation
    assert back_off(pool=the_pool(record=record)).is_open
    assert not back_off(pool=the_pool(record=record, requirements=others)).is_open


def test_another_version_of_the_node_class_ends_it() -> None:
    pool, node_class = the_pool(record=back_off(*THREE).annotation), a_class()
    meta = msgspec.structs.replace(node_class.metadata, generation=99)
    newer = msgspec.structs.replace(node_class, metadata=meta)
    assert back_off_of(pool, (), newer).annotation is None


NOT_COUNTED = [
    pytest.param({"deletion_timestamp": None}, id="it is there"),
    pytest.param({"deletion_timestamp": NOW - 5 * MINUTE - SECOND}, id="deleted before its TTL"),
    pytest.param({"conditions": (condition("ReadyOnce"),)}, id="it was Ready"),
    pytest.param({"annotations": {}}, id="made by hand"),
]


@pytest.mark.parametrize("fields", NOT_COUNTED)
def test_other_claims_do_not_count(fields: Any) -> None:
    assert back_off(timed_out("n", 5 * MINUTE, **fields)).annotation is None


def test_while_a_node_is_tried_no_other_is_launched() -> None:
    known = back_off(*THREE, a_new_claim("tried", NOW - SECOND))
    assert (known.tried, known.holds(NOW)) == ("tried", True)
    assert not back_off(*THREE).holds(NOW)


def test_what_is_recorded_stays_short() -> None:
    many = back_off(*(timed_out(f"n{n}", n * SECOND) for n in range(100)))
    assert len(many.record.claims) == RECORDED_MAX
    assert back_off(pool=the_pool(record=many.annotation)) == many


NONSENSE = ["", "{", "[]", '{"claims": 1}', "x" * 100_000, "[" * 10_000]


@pytest.mark.parametrize("text", NONSENSE)
def test_an_annotation_that_cannot_be_read_counts_as_nothing(text: str) -> None:
    assert back_off(pool=the_pool(record=text)).annotation is None


def test_a_record_of_the_far_future_holds_nothing() -> None:
    record = back_off(*THREE).annotation
    assert record is not None
    for year in ("9999", "2199"):
        known = back_off(pool=the_pool(record=record.replace("2026-", f"{year}-")))
        assert not known.holds(NOW)


def test_nodes_that_are_repaired_soon_count_too() -> None:
    known = back_off(*REPAIRED)
    assert known.at(NOW).is_open
    assert known.next_at == NOW - 29 * MINUTE
    assert "repaired within 10m of launch" in str(known.fact(the_pool()))
    assert back_off(*(repaired(c.name, MINUTE, initialized=False) for c in REPAIRED)).is_open
    assert back_off(*REPAIRED[:2], timed_out("t", MINUTE)).is_open


NOT_SOON = [
    pytest.param({"deletion_timestamp": None}, id="it is there"),
    pytest.param({"annotations": {names.NODEPOOL_HASH: "1"}}, id="deleted by a user"),
]


@pytest.mark.parametrize("fields", NOT_SOON)
def test_other_claims_that_were_initialized_do_not_count(fields: Any) -> None:
    assert back_off(repaired("n", MINUTE, **fields)).annotation is None


def test_a_node_that_was_of_use_is_repaired_without_a_record() -> None:
    old = of_use("old", 60 * MINUTE, deletion_timestamp=NOW)
    marked = {**old.annotations, names.REPAIR_REASON: "NodeRepairDue"}
    meta = msgspec.structs.replace(old.metadata, annotations=marked)
    assert back_off(msgspec.structs.replace(old, metadata=meta)).annotation is None


def test_a_node_that_becomes_ready_does_not_end_it_and_one_that_is_of_use_does() -> None:
    pool = the_pool(record=back_off(*REPAIRED).annotation)
    new = back_off(of_use("new", 4 * MINUTE), pool=pool)
    assert new.at(NOW).is_open
    assert (new.tried, new.holds(NOW)) == ("new", True), "one node at a time"
    assert new.of_use_at == NOW + 6 * MINUTE
    assert NOW + 6 * MINUTE in set(new.instants())
    assert new.at(NOW + 6 * MINUTE).annotation is None
    failed = back_off(of_use("new", 4 * MINUTE, deletion_timestamp=NOW), pool=pool)
    assert failed.of_use_at is None


def test_repaired_nodes_are_read_from_the_pool_too() -> None:
    known = back_off(*REPAIRED)
    assert back_off(pool=the_pool(record=known.annotation)) == known
