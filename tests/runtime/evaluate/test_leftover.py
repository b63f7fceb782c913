"""No turn is long: keys that it has no time for are left over for the next one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from tenure.core.decision import Concern, Delete, Verdict
from tenure.core.reasons import Reason
from tenure.model.api.meta import ObjectMeta
from tenure.model.api.pod import Pod, PodSpec
from tenure.model.api.resource import PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot, Tables
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.evaluate.leftover import LEFT_OVER_MAX, TURN
from tests.builders import SECOND
from tests.runtime.evaluate.test_evaluator import NOON, OneDecider, said
from tests.runtime.evaluate.test_suspended import PassDecider

#: Keys that one turn has time for.
IN_TIME = 3
MOMENT = timedelta(milliseconds=50)


class Crowd:
    """Every decision takes a third of a turn, by the stopwatch."""

    def __init__(self, *names: str) -> None:
        self.seconds = 0.0
        self.first = OneDecider(self._decided)
        self.second = OneDecider(lambda pod, now: repairs(self._decided(pod, now)))
        self.second.concern = Concern.REPAIR
        self.evaluator = Evaluator(
            (self.first, self.second), Settings(), stopwatch=lambda: self.seconds
        )
        self.tables, self.now = Tables(), NOON
        self._changes: list[Change] = []
        self.evaluator.evaluate(Snapshot(self.tables), (), (), self.now)
        self.put(*names)

    def _decided(self, pod: Pod, now: datetime) -> Verdict:
        self.seconds += TURN / IN_TIME + 1e-9
        version = pod.metadata.resource_version
        action = Delete(resource=PODS, name=pod.name, uid=pod.uid, resource_version=version)
        return said(pod, Reason.REPLACING, action=action)

    def put(self, *names: str, version: int = 1) -> None:
        for name in names:
            metadata = ObjectMeta(name=name, uid=f"u-{name}", resource_version=str(version))
            pod = Pod(metadata=metadata, spec=PodSpec(node_name=f"n{version}"))
            self._changes.append(self.tables.put(PODS, pod))

    def turn(self, after: timedelta = MOMENT) -> str:
        """What was evaluated: by the second decider, in capitals."""
        self.now += after
        changes, self._changes = self._changes, []
        self.evaluator.begin(Snapshot(self.tables), changes, (), self.now)
        self.evaluator.resume(Snapshot(self.tables), self.now)
        assert not self.evaluator.unfinished, "the turn has ended"
        found = "".join(self.first.evaluated) + "".join(self.second.evaluated).upper()
        self.first.evaluated.clear()
        self.second.evaluated.clear()
        return found

    def acting(self) -> str:
        return "".join(sorted({one.subject.name for one in self.evaluator.actionable()}))


def repairs(verdict: Verdict) -> Verdict:
    return msgspec.structs.replace(verdict, concern=Concern.REPAIR)


def test_a_turn_ends_after_a_while_and_the_next_one_goes_on_in_the_same_order() -> None:
    crowd = Crowd("a", "b", "c", "d")
    turns: list[str] = []
    while not turns or crowd.evaluator.goes_on:
        turns.append(crowd.turn())
    assert turns == ["abc", "dAB", "CD"]
    assert crowd.turn() == ""


def test_what_comes_meanwhile_is_evaluated_before_what_less_urgent_deciders_have_left_over() -> (
    None
):
    crowd = Crowd("a", "b", "c", "d")
    assert crowd.turn() == "abc"
    assert crowd.turn() == "dAB"
    crowd.put("e")
    assert crowd.turn() == "eCD", "of the second decider, what has waited first"
    assert crowd.turn() == "E"


def test_nothing_is_done_on_a_verdict_of_before_while_its_key_is_left_over() -> None:
    crowd = Crowd("a", "b")
    crowd.turn()
    crowd.turn()
    assert (crowd.acting(), crowd.evaluator.goes_on) == ("ab", False)
    crowd.put("a", "b", version=2)
    crowd.put("c", "d")
    assert crowd.turn() == "abc"
    held = {
        one.subject.name for one in crowd.evaluator.actionable() if one.concern is Concern.REPAIR
    }
    assert held == set(), "their pods have changed since"
    assert len(list(crowd.evaluator.in_force())) == 5, "for readers"
    assert crowd.turn() == "dAB"
    assert crowd.acting() == "abcd"


def test_what_is_left_over_for_too_long_is_evaluated_to_the_end() -> None:
    crowd = Crowd(*"abcdefgh")
    names = iter("ijklmnopqrstuvwxyz")
    turns = [crowd.turn()]
    while "H" not in turns[-1]:
        crowd.put(next(names))
        turns.append(crowd.turn(LEFT_OVER_MAX / 5))
    assert len(turns) == 6
    assert all(len(one) == IN_TIME for one in turns[:-1])
    assert not crowd.evaluator.goes_on


def test_a_clock_that_is_set_back_does_not_prolong_that() -> None:
    crowd = Crowd(*"abcdefgh")
    assert crowd.turn() == "abc"
    assert crowd.turn(-SECOND) == "defghABCDEFGH"


def test_what_is_evaluated_anew_after_the_clock_was_set_may_be_left_over_as_well() -> None:
    crowd = Crowd("a", "b", "c")
    crowd.turn()
    crowd.turn()
    crowd.evaluator.start_over()
    assert [crowd.turn(), crowd.turn(), crowd.turn()] == ["abc", "ABC", ""]


def test_a_key_that_is_due_is_not_forgotten_where_it_is_left_over() -> None:
    crowd = Crowd("a", "b", "c", "d")
    due = NOON + 10 * SECOND
    decided = crowd._decided

    def until_due(pod: Pod, now: datetime) -> Verdict:
        return said(pod, recheck_at=due) if now < due else decided(pod, now)

    crowd.first._decide = until_due
    crowd.second._decide = lambda pod, now: repairs(until_due(pod, now))
    assert crowd.turn() == "abcdABCD", "none of them takes any time"
    assert crowd.evaluator.next_recheck() == due
    assert [crowd.turn(10 * SECOND), crowd.turn(), crowd.turn()] == ["abc", "dAB", "CD"]


class Prepared(PassDecider):
    """Its view takes three steps of preparing, of which each takes as long as a turn has."""

    def __init__(self, crowd: Crowd) -> None:
        super().__init__()
        self._crowd = crowd

    def preparing(self, snapshot: Snapshot, key: str) -> Iterator[None]:
        for number in "123":
            self.asked.append(number)
            self._crowd.seconds += TURN
            yield


def test_a_view_that_takes_long_is_prepared_in_turns_and_no_other_key_waits() -> None:
    crowd = Crowd()
    long = Prepared(crowd)
    crowd.evaluator = Evaluator(
        (crowd.first, crowd.second, long), Settings(), stopwatch=lambda: crowd.seconds
    )
    turns = []
    for name in ("a", "b", "c", "d"):
        crowd.put(name)
        turns.append((crowd.turn(), "".join(long.asked)))
        long.asked.clear()
    assert turns == [("aA", "1"), ("bB", "2"), ("cC", "3"), ("dD", "|abcd")]
    assert not crowd.evaluator.goes_on


def test_what_is_being_prepared_waits_while_its_concern_is_left_out() -> None:
    crowd = Crowd()
    long = Prepared(crowd)
    crowd.evaluator = Evaluator((long,), Settings(), stopwatch=lambda: crowd.seconds)
    crowd.put("a")
    crowd.turn()
    snapshot = Snapshot(crowd.tables)
    crowd.evaluator.evaluate(snapshot, (), (), crowd.now, leave_out=(Concern.DISRUPTION,))
    assert "".join(long.asked) == "1"
    for _ in range(4):
        crowd.turn()
    assert "".join(long.asked) == "1123|a", "from the beginning"
