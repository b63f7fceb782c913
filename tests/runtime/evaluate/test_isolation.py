"""Which object a failed evaluation is about, and when it is about none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from tenure.core.policy.deciders import decide_all
from tenure.core.reasons import Reason
from tenure.core.unreadable.decider import UnreadableDecider
from tenure.errors import SpecError
from tenure.model.api.meta import ApiObject
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_POOLS, PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.runtime.evaluate.isolation import ALIKE_MAX, TRIES_MAX, Isolation
from tenure.runtime.evaluate.setaside import LEFT_OVER_PAUSE, PAUSE_MIN
from tenure.runtime.evaluate.setaside import TRIES_MAX as TRIED_AT_ONCE
from tenure.runtime.evaluate.sources import OWNERS_MAX
from tests.core.build import NOW, a_node, a_pod, a_pool
from tests.snapshots import snapshot_with

T = TypeVar("T")


class Isolated:
    """An evaluation that is repeated for as long as that makes sense."""

    def __init__(self, *objects: ApiObject) -> None:
        self.snapshot = snapshot_with(*objects)
        self.isolation = Isolation()
        self.tries = 0

    def run(self, work: Callable[[Snapshot], T], key: str = "cluster") -> T | Exception:
        while True:
            self.tries += 1
            try:
                result: T | Exception = work(self.snapshot)
            except Exception as error:  # noqa: BLE001  # that is what it is about
                if self.isolation.failed((0, key), error, self.snapshot, NOW):
                    continue
                result = error
            self.isolation.ended((0, key), lambda snapshot, _: work(snapshot), NOW)
            return result

    @property
    def aside(self) -> list[str]:
        return sorted(key for _, key in self.snapshot.unreadable())


def failing(bad: Callable[[Pod], bool]) -> Callable[[Snapshot], list[str]]:
    def look(snapshot: Snapshot) -> list[str]:
        return [look_at(pod) for pod in snapshot.pods.values()]

    def look_at(pod: Pod) -> str:
        if bad(pod):
            raise OverflowError("date value out of range")
        return pod.name

    return look


def protected(pod: Pod) -> bool:
    return bool(pod.annotations)


def test_the_object_that_the_work_fails_on_is_set_aside_and_the_work_is_done_again() -> None:
    isolated = Isolated(a_pod("good"), a_pod("bad", protected="4h"))
    assert isolated.run(failing(protected)) == ["good", "bad"], "its stand-in has no annotations"
    assert list(isolated.snapshot.unreadable()) == [(PODS, "default/bad")]
    (verdict,) = decide_all(UnreadableDecider(), isolated.snapshot, Settings(), NOW)
    assert verdict.reason is Reason.EVALUATION_FAILED
    assert str(verdict.subject) == "Pod/default/bad"
    assert "OverflowError: date value out of range (test_isolation.py:" in verdict.message


def test_what_no_object_can_be_blamed_for_fails_as_a_whole() -> None:
    isolated = Isolated(a_pod())

    def work(_: Snapshot) -> None:
        raise ZeroDivisionError

    assert isinstance(isolated.run(work), ZeroDivisionError)
    assert not isolated.aside


def test_a_collection_in_a_frame_is_no_evidence() -> None:
    isolated = Isolated(a_pod("a"), a_pod("b"))

    def work(snapshot: Snapshot) -> None:
        pods = list(snapshot.pods.values())
        raise ZeroDivisionError(len(pods))

    assert isinstance(isolated.run(work), ZeroDivisionError)
    assert (isolated.tries, isolated.aside) == (1, [])


def test_an_object_that_was_suspected_in_vain_is_put_back() -> None:
    isolated = Isolated(a_pod("a"), a_pod("b"))
    work = failing(lambda pod: pod.name == "b")  # However little its stand-in says.
    assert isinstance(isolated.run(work), OverflowError)
    assert not isolated.aside


def spread(count: int) -> list[Pod]:
    """Bad pods, each in a namespace of its own."""
    return [a_pod(f"p{n}", protected="4h", namespace=f"ns-{n}") for n in range(count)]


def test_as_many_namespaces_as_may_fail_at_one_line_are_set_aside() -> None:
    isolated = Isolated(*spread(ALIKE_MAX), a_pod("good"))
    assert isinstance(isolated.run(failing(protected)), list)
    assert len(isolated.aside) == ALIKE_MAX


def test_a_line_that_fails_in_too_many_namespaces_is_a_fault_of_ours() -> None:
    isolated = Isolated(*spread(40))
    assert isinstance(isolated.run(failing(protected)), OverflowError)
    assert isolated.aside == [], "all are put back"
    assert isolated.tries == ALIKE_MAX + 1
    assert isinstance(isolated.run(failing(protected)), OverflowError)
    assert isolated.tries == ALIKE_MAX + 2, "what is ours is not searched for again at once"


def test_one_bad_template_is_one_mistake_however_many_replicas_it_has() -> None:
    isolated = Isolated(
        *(a_pod(f"p{n}", protected="4h") for n in range(50)),
        a_pod("good", namespace="other"),
        a_pod("beside", owner="Job"),
    )
    assert isinstance(isolated.run(failing(protected)), list)
    assert len(isolated.aside) == 50
    assert isolated.tries == 3, "one, then all of its owner"
    assert not {"other/good", "default/beside"} & set(isolated.aside)


def test_owners_of_one_namespace_stop_no_other_namespace() -> None:
    """A user who may write into a namespace can create any number of owners there."""
    isolated = Isolated(
        *(a_pod(f"p{n}", owner="", protected="4h") for n in range(50)),
        a_pod("good", namespace="other"),
    )
    assert isinstance(isolated.run(failing(protected)), list)
    assert len(isolated.aside) == 50
    assert isolated.tries == OWNERS_MAX + 2
    assert "other/good" not in isolated.aside


def test_pods_that_were_set_aside_with_their_owner_are_back_soon_if_they_are_well() -> None:
    isolated = Isolated(*(a_pod(f"p{n}", protected="4h" if n < 2 else None) for n in range(4)))
    isolated.run(failing(protected))
    assert len(isolated.aside) == 4
    asides, now = isolated.isolation.asides, NOW + PAUSE_MIN
    for place in list(asides.due(isolated.snapshot, now)):
        list(asides.try_again(place, isolated.snapshot, now))
    assert isolated.aside == ["default/p0", "default/p1"]


def test_new_pods_of_an_owner_that_is_set_aside_cost_one_try() -> None:
    isolated = Isolated(
        *(a_pod(f"p{n}", protected="4h") for n in range(3)), a_pod("good", owner="")
    )
    isolated.run(failing(protected))
    for n in range(3, 9):
        isolated.snapshot = with_pod(isolated.snapshot, a_pod(f"p{n}", protected="4h"))
    isolated.tries = 0
    assert isinstance(isolated.run(failing(protected)), list)
    assert isolated.tries == 2
    assert len(isolated.aside) == 9


def test_where_pods_of_several_owners_fail_and_no_other_pod_is_left_it_is_told_at_once() -> None:
    """But it is searched for again each time: the next pod may be one that does not fail."""
    bad = [a_pod(f"p{n}", owner="", protected="4h") for n in range(8)]
    isolated = Isolated(*bad)
    assert isinstance(isolated.run(failing(protected)), OverflowError)
    assert isolated.aside == []
    isolated.snapshot = with_pod(isolated.snapshot, a_pod("good", namespace="other"))
    assert isinstance(isolated.run(failing(protected)), list)
    assert len(isolated.aside) == 8


def with_pod(snapshot: Snapshot, pod: Pod) -> Snapshot:
    snapshot._tables.put(PODS, pod)
    return snapshot


def test_a_line_that_fails_under_many_keys_is_a_fault_of_ours() -> None:
    pods = spread(ALIKE_MAX + 1)
    isolated = Isolated(*pods)

    def look_at(pod: Pod) -> str:
        if pod.annotations:
            raise OverflowError("date value out of range")
        return pod.name

    found = [
        isolated.run(lambda snapshot, key=pod.key: look_at(snapshot.pods[key]), pod.key)  # type: ignore[misc]
        for pod in pods
    ]
    assert isinstance(found[-1], OverflowError)
    assert isolated.aside == []
    back = [change for change in isolated.isolation.take_changes() if change.new in pods]
    assert len(back) == ALIKE_MAX, "others are told"


def test_a_pool_whose_nodes_fail_one_after_the_other_is_set_aside_in_their_stead() -> None:
    nodes = [a_node(f"n{n}", claim=f"c{n}") for n in range(ALIKE_MAX + 2)]
    isolated = Isolated(a_pool(limits={"cpu": "1"}), *nodes)

    def work(snapshot: Snapshot) -> None:
        for pool in snapshot.pools.values():
            for node in snapshot.nodes.values():
                look_at(pool, node)

    def look_at(pool: Any, node: Any) -> None:
        if pool.spec.limits:
            raise KeyError(node.name)

    assert isolated.run(work) is None
    assert list(isolated.snapshot.unreadable()) == [(NODE_POOLS, "general")]


@pytest.mark.parametrize("pending", [1, 2, 3])
def test_of_two_pods_in_hand_the_one_is_set_aside_without_which_it_works(pending: int) -> None:
    waiting = [a_pod(f"a{n}", node="") for n in range(pending)]
    isolated = Isolated(*waiting, a_pod("running", protected="4h", node="n1"))

    def work(snapshot: Snapshot) -> None:
        pods = snapshot.pods.values()
        for one in pods:
            for other in pods:
                if not one.spec.node_name and other.spec.node_name:
                    against(one, other)

    def against(one: Pod, other: Pod) -> None:
        if other.annotations:
            raise ZeroDivisionError(one.name)

    assert isolated.run(work) is None
    assert isolated.aside == ["default/running"]


def test_a_search_ends_and_keeps_nothing() -> None:
    isolated = Isolated(*(a_pod(f"p{n}", protected="4h") for n in range(40)))
    lines = [f"if pod.annotations and int(pod.name[1:]) == {n}: raise KeyError" for n in range(40)]
    body = "def look_at(pod):\n" + "\n".join(f"    {line}" for line in lines)
    made: dict[str, Any] = {}
    exec(body, made)  # noqa: S102  # forty lines that fail, for one pod each

    def work(snapshot: Snapshot) -> None:
        for pod in snapshot.pods.values():
            made["look_at"](pod)

    assert isinstance(isolated.run(work), KeyError)
    assert isolated.tries == TRIES_MAX + 1
    assert isolated.aside == []


def test_objects_that_are_not_tried_again_in_this_turn_wait_for_a_moment() -> None:
    isolated = Isolated(*(a_pod(f"p{n}", protected="4h") for n in range(TRIED_AT_ONCE + 2)))

    def work(snapshot: Snapshot) -> None:
        for pod in snapshot.pods.values():
            if pod.annotations:
                raise SpecError(
                    "spec", pod.name, "another one"
                )  # Its own fault, however many there are.

    isolated.run(work)
    asides, later = isolated.isolation.asides, NOW + PAUSE_MIN
    due = list(asides.due(isolated.snapshot, later))
    assert len(due) == TRIED_AT_ONCE
    for place in due:
        list(asides.try_again(place, isolated.snapshot, later))
    assert asides.next_at() == later + LEFT_OVER_PAUSE


def test_an_object_that_still_fails_is_tried_again_ever_later() -> None:
    isolated = Isolated(a_pod("bad", protected="4h"))
    isolated.run(failing(protected))
    asides, now = isolated.isolation.asides, NOW + PAUSE_MIN
    for pause in (2 * PAUSE_MIN, 4 * PAUSE_MIN):
        (place,) = asides.due(isolated.snapshot, now)
        assert list(asides.try_again(place, isolated.snapshot, now)) == []
        assert asides.next_at() == now + pause
        now += pause
    assert isolated.aside == ["default/bad"]
