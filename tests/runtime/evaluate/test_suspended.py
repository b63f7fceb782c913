"""A key that takes long is suspended, and goes on in later turns: no other key waits for its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
import pytest

from tenure.core.decider import Patience, Progress
from tenure.core.decision import Concern, Delete, Subject, Verdict
from tenure.core.reasons import Reason
from tenure.model.api.meta import ObjectMeta
from tenure.model.api.pod import Pod, PodSpec
from tenure.model.api.resource import PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot, Tables
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.evaluate.suspended import AGE_MAX
from tests.builders import SECOND
from tests.runtime.evaluate.test_evaluator import NOON, OneDecider

Pods = Mapping[str, Pod]
LONG = AGE_MAX + SECOND


def about(pod: Pod, reason: Reason = Reason.LEFT_ALONE) -> Verdict:
    """An action that depends on the version of the pod."""
    action = None
    if reason is Reason.REPLACING:
        action = Delete(
            resource=PODS,
            name=pod.name,
            uid=pod.uid,
            resource_version=pod.metadata.resource_version,
        )
    subject = Subject.of("Pod", pod)
    return Verdict(
        concern=Concern.DISRUPTION, subject=subject, reason=reason, facts=(), action=action
    )


class PassDecider:
    """All pods under one key, a step each: a pod on the node "full" is refused, every other one acted upon."""

    concern = Concern.DISRUPTION

    def __init__(self) -> None:
        #: The pods that it asked about, and "|" whenever it began.
        self.asked: list[str] = []
        #: By pod: until when what it says holds.
        self.until: dict[str, datetime] = {}
        #: It says so even after that.
        self.is_dishonest = False

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return ("cluster",)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        return ("cluster",)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> Pods | None:
        return dict(sorted(snapshot.pods.items())) or None

    def decide(self, view: Pods, settings: Settings, now: datetime) -> Sequence[Verdict]:
        *_, found = self.deciding(view, settings, now, Progress())
        assert found is not None
        return found

    def deciding(
        self, view: Pods, settings: Settings, now: datetime, progress: Progress
    ) -> Iterator[Sequence[Verdict] | None]:
        self.asked.append("|")
        for pod in view.values():
            at = self.until.get(pod.name)
            verdict = self._decided(pod, progress)
            if at is not None and (now < at or self.is_dishonest):
                verdict = msgspec.structs.replace(verdict, recheck_at=at)
            progress.said.append(verdict)
            yield None
        yield progress.said

    def _decided(self, pod: Pod, progress: Progress) -> Verdict:
        if (known := progress.refused.get(pod.uid)) is not None:
            progress.remembers = True
            assert isinstance(known, Verdict)
            return known
        self.asked.append(pod.name)
        if pod.spec.scheduler_name:
            raise KeyError(pod.name)
        if pod.spec.node_name != "full":
            return about(pod, Reason.REPLACING)
        progress.refused[pod.uid] = refused = about(pod)
        return refused


class Turns:
    """Turns of which each has time for one question of a key that takes long."""

    def __init__(self, *names: str, patience: Patience | None = None, node: str = "full") -> None:
        self.long, self.other = PassDecider(), OneDecider(lambda pod, now: drained(pod))
        known = {Concern.DISRUPTION: patience} if patience is not None else {}
        self.evaluator = Evaluator((self.long, self.other), Settings(), known)
        self.tables, self.now = Tables(), NOON
        self._changes: list[Change] = []
        self._version = 0
        for name in names:
            self.put(name, node)

    def put(self, name: str, node: str = "full", scheduler: str = "") -> None:
        self._version += 1
        metadata = ObjectMeta(name=name, uid=f"u-{name}", resource_version=str(self._version))
        spec = PodSpec(node_name=node, scheduler_name=scheduler)
        self._changes.append(self.tables.put(PODS, Pod(metadata=metadata, spec=spec)))

    def remove(self, name: str) -> None:
        self._changes.append(self.tables.remove(PODS, name))

    def turn(
        self, after: timedelta = timedelta(0), leave_out: Iterable[Concern] = ()
    ) -> list[Verdict]:
        self.now += after
        changes, self._changes = self._changes, []
        asked = len(self.long.asked)

        def enough() -> bool:
            return self.long.asked[asked:] not in ([], ["|"])

        left_out = frozenset(leave_out)
        self.evaluator.begin(Snapshot(self.tables), changes, (), self.now, left_out)
        found = self.evaluator.resume(Snapshot(self.tables), self.now, enough)
        while self.evaluator.unfinished:
            found += self.evaluator.resume(Snapshot(self.tables), self.now, enough)
        return found

    def asked(self) -> str:
        """What the long key has asked since the last time."""
        asked, self.long.asked = "".join(self.long.asked), []
        return asked

    def acting(self) -> list[str]:
        found = self.evaluator.actionable()
        return [one.subject.name for one in found if one.concern is Concern.DISRUPTION]

    def said(self, concern: Concern = Concern.DISRUPTION) -> dict[str, Reason]:
        found = (one for one in self.evaluator.in_force() if one.concern is concern)
        return {one.subject.name: one.reason for one in found}


def drained(pod: Pod) -> Verdict:
    subject = Subject.of("Pod", pod)
    reason = Reason.REPLACING if pod.spec.node_name == "urgent" else Reason.LEFT_ALONE
    return Verdict(concern=Concern.DRAIN, subject=subject, reason=reason, facts=())


def of_drain(found: Iterable[Verdict]) -> list[str]:
    return [one.subject.name for one in found if one.concern is Concern.DRAIN]


def test_a_key_that_takes_long_goes_on_in_the_next_turn_where_it_was() -> None:
    turns = Turns("a", "b", "c")
    assert of_drain(turns.turn()) == ["a", "b", "c"], "all other keys"
    assert (turns.asked(), turns.evaluator.goes_on) == ("|a", True)
    for expected in ("b", "c"):
        turns.turn()
        assert (turns.asked(), turns.evaluator.goes_on) == (expected, True)
    turns.turn()
    assert (turns.asked(), turns.evaluator.goes_on) == ("", False)
    assert turns.said() == dict.fromkeys("abc", Reason.LEFT_ALONE)
    turns.turn()
    assert turns.asked() == "", "nothing has changed"


def test_where_there_is_time_a_key_is_evaluated_at_once() -> None:
    turns = Turns("a", "b")
    turns.evaluator.evaluate(Snapshot(turns.tables), (), (), NOON)
    assert (turns.asked(), turns.evaluator.goes_on) == ("|ab", False)


def test_a_key_that_changes_meanwhile_is_evaluated_before_the_long_one_ends() -> None:
    turns = Turns(*"abcdef")
    turns.turn()
    turns.put("x", node="urgent")
    (found,) = turns.turn()[:1]
    assert (found.subject.name, found.reason) == ("x", Reason.REPLACING)
    assert turns.evaluator.goes_on
    assert "x" not in turns.said(), "of that the long one does not know"


def test_what_is_said_is_in_force_and_acted_upon_in_that_turn_alone() -> None:
    turns = Turns("a", "b", "c", node="")
    (told, *_) = (one for one in turns.turn() if one.concern is Concern.DISRUPTION)
    assert (told.subject.name, turns.acting()) == ("a", ["a"])
    turns.turn()
    assert (turns.acting(), list(turns.said())) == (["b"], ["a", "b"])
    turns.turn()
    turns.turn()
    assert turns.acting() == ["a", "b", "c"], "it has ended, and nothing has changed"


def test_what_the_last_evaluation_said_stays_and_is_not_acted_upon() -> None:
    turns = Turns("a", "b", node="")
    turns.evaluator.evaluate(Snapshot(turns.tables), (), (), NOON)
    assert turns.acting() == ["a", "b"]
    turns.put("b", node="other")
    turns.turn()
    assert (turns.acting(), list(turns.said())) == (["a"], ["a", "b"])


def test_a_pass_whose_view_changes_is_begun_anew_and_does_not_act_on_what_is_gone() -> None:
    turns = Turns("a", "b", "c", "d")
    turns.put("d", node="")
    turns.turn()
    turns.remove("d")
    turns.turn()
    turns.turn(LONG)
    assert turns.asked() == "|ab|c", "of what was refused the answer is known"
    assert turns.acting() == []
    while turns.evaluator.goes_on:
        turns.turn()
        assert turns.acting() == []
    assert "d" not in turns.said()


def test_one_that_ends_on_an_older_view_is_evaluated_again() -> None:
    turns = Turns("a", "b")
    turns.turn()
    turns.put("b", node="")
    turns.turn()
    turns.turn()
    assert turns.said() == {"a": Reason.LEFT_ALONE, "b": Reason.LEFT_ALONE}
    assert (turns.asked(), turns.evaluator.goes_on) == ("|ab", True)
    for _ in range(3):
        turns.turn()
    assert (turns.asked(), turns.acting()) == ("|ab", ["b"])
    assert not turns.evaluator.goes_on


def test_however_often_the_cluster_changes_a_pass_ends() -> None:
    """Each time it is begun anew, it goes on behind what was refused before."""
    turns = Turns(*"abcdef", "z")
    turns.put("z", node="")
    acted = []
    while "z" not in acted:
        turns.put("0")
        turns.turn(LONG)
        acted += turns.acting()
        assert turns.asked().count("a") <= 1
    assert set(turns.said()) == set("0abcdefz")
    assert turns.evaluator.goes_on, "and begins again"


def test_what_is_remembered_counts_for_one_pass_alone() -> None:
    """At rest, all verdicts are of one view: those of an evaluation from nothing."""
    turns = Turns("a", "b", "c")
    turns.turn()
    turns.put("a", node="")
    turns.turn(LONG)
    assert turns.asked() == "|a|b", "refused before it changed"
    while turns.evaluator.goes_on:
        turns.turn()
    fresh = Evaluator((PassDecider(), OneDecider(lambda pod, now: drained(pod))), Settings())
    fresh.evaluate(Snapshot(turns.tables), (), (), turns.now)
    assert set(turns.evaluator.in_force()) == set(fresh.in_force())
    assert turns.acting() == ["a"]


def test_a_burst_of_changes_waits_until_the_pass_is_over() -> None:
    turns = Turns("a", "b", patience=Patience(lambda _: True, gaps=3))
    turns.turn()
    turns.put("b", node="")
    while turns.evaluator.goes_on:
        turns.turn()
    assert turns.asked() == "|ab"
    assert turns.evaluator.next_recheck() == NOON + 3 * SECOND
    turns.turn(3 * SECOND)
    turns.turn()
    assert turns.asked() == "|ab"
    assert turns.acting() == ["b"]


def test_while_something_is_created_a_pass_does_not_go_on() -> None:
    """It was begun before, and cannot see what is created: it is begun anew."""
    turns = Turns("a", "b", node="")
    turns.turn()
    turns.turn(leave_out=[Concern.DISRUPTION])
    assert (turns.asked(), turns.acting(), turns.evaluator.goes_on) == ("|a", [], False)
    turns.turn()
    assert turns.asked() == "|a"


def test_an_object_that_a_later_step_fails_on_is_set_aside() -> None:
    turns = Turns("a", "b", "c")
    turns.put("c", scheduler="x")
    turns.turn()
    while turns.evaluator.goes_on:
        turns.turn()
    assert list(turns.tables.unreadable) == [(PODS, "c")]
    assert turns.said()["a"] is Reason.LEFT_ALONE
    assert {"a", "b"} <= set(turns.said(Concern.DRAIN))


def test_when_the_clock_was_set_a_pass_begins_from_nothing() -> None:
    turns = Turns("a", "b")
    turns.turn()
    turns.evaluator.start_over()
    turns.turn()
    assert turns.asked() == "|a|a"


def test_a_view_that_takes_long_is_all_that_one_turn_does() -> None:
    turns = Turns("a")
    turns.evaluator.begin(Snapshot(turns.tables), (), (), NOON)
    turns.evaluator.resume(Snapshot(turns.tables), NOON, lambda: True)
    assert (turns.asked(), turns.evaluator.goes_on) == ("", True)


# -- moments that pass meanwhile -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_moment_that_passes_during_a_pass_is_evaluated_at_once_after_it(name: str) -> None:
    """Of what it had evaluated before, and of what it evaluates later, for the instant at which it began."""
    turns = Turns("a", "b", node="")
    turns.long.until[name] = NOON + SECOND
    turns.turn()
    turns.turn(2 * SECOND)
    turns.turn()
    assert turns.asked() == "|ab"
    assert turns.evaluator.goes_on or turns.evaluator.next_recheck() == NOON + SECOND
    turns.turn()
    assert turns.asked() == "|a"


def test_a_pass_in_which_a_moment_has_passed_is_begun_anew_after_a_while() -> None:
    """What fell due does not wait for the end of a pass over very many."""
    turns = Turns(*"abcdef")
    turns.put("0", node="")
    turns.long.until["0"] = NOON + SECOND
    for _ in range(3):
        turns.turn()
    turns.turn(LONG)
    assert turns.asked() == "|0ab|0"


def test_the_moments_of_the_pass_before_count_until_another_is_said() -> None:
    turns = Turns("a", "b", "c", node="")
    turns.long.until["c"] = NOON + SECOND
    turns.evaluator.evaluate(Snapshot(turns.tables), (), (), NOON)
    turns.put("a", node="other")
    turns.turn()
    assert turns.evaluator.next_recheck() == NOON + SECOND
    turns.long.until.clear()
    for _ in range(3):
        turns.turn()
    assert (turns.evaluator.next_recheck(), turns.evaluator.goes_on) == (None, False)


def test_a_moment_that_was_past_when_a_pass_began_does_not_make_it_spin() -> None:
    turns = Turns("a", "b", node="")
    turns.long.until["a"] = NOON + SECOND
    turns.now += 2 * SECOND
    turns.long.is_dishonest = True
    for _ in range(3):
        turns.turn()
    assert turns.evaluator.next_recheck() == turns.now + SECOND
    assert not turns.evaluator.goes_on


# -- what fails meanwhile ------------------------------------------------------------------------


def test_an_object_that_is_gone_by_the_time_that_a_step_fails_on_it_stops_no_other() -> None:
    turns = Turns("a", "b")
    turns.put("c", scheduler="x")
    turns.turn()
    turns.remove("c")
    for _ in range(12):
        turns.turn()
        assert not turns.evaluator.failing()
    assert turns.said() == {"a": Reason.LEFT_ALONE, "b": Reason.LEFT_ALONE}
    assert not turns.evaluator.goes_on


def test_an_object_that_is_well_by_the_time_that_a_step_fails_on_it_is_not_set_aside() -> None:
    turns = Turns("a", "b")
    turns.put("c", scheduler="x")
    turns.turn()
    turns.put("c")
    for _ in range(12):
        turns.turn()
        assert not turns.tables.unreadable
    assert turns.said()["c"] is Reason.LEFT_ALONE
