"""Only what changed or fell due is evaluated again, and every verdict in force is remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from tenure.core.decision import Concern, Delete, Subject, Verdict
from tenure.core.policy.deciders import deciders
from tenure.core.reasons import Reason
from tenure.model.api.meta import ObjectMeta
from tenure.model.api.pod import Pod, PodSpec
from tenure.model.api.resource import PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot, Tables
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.evaluate.facts import EvaluationFails, KeysUnknown
from tenure.runtime.evaluate.results import STALE_MAX
from tests.builders import MINUTE, SECOND, a_cluster, a_deployment
from tests.runtime.worlds import Tapped

NOON = datetime(2030, 6, 3, 12, tzinfo=UTC)
Decide = Callable[[Pod, datetime], Verdict]


def said(pod: Pod, reason: Reason = Reason.LEFT_ALONE, **more: object) -> Verdict:
    subject = Subject.of("Pod", pod)
    return Verdict(concern=Concern.DRAIN, subject=subject, reason=reason, facts=(), **more)  # type: ignore[arg-type]  # any field


class OneDecider:
    """A decider with one key per pod, whose verdicts the test provides."""

    concern = Concern.DRAIN

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        self.evaluated: list[str] = []

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.pods

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        yield change.key

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> Pod | None:
        pod = snapshot.pods.get(key)
        if pod is not None and pod.spec.node_name == "unviewable":
            raise ValueError("cannot be looked at")
        return pod

    def decide(self, view: Pod, settings: Settings, now: datetime) -> Sequence[Verdict]:
        self.evaluated.append(view.name)
        return [self._decide(view, now)]


class Setup:
    """An evaluator with one decider, and the tables that it reads."""

    def __init__(self, decide: Decide = lambda pod, now: said(pod)) -> None:
        self.decider = OneDecider(decide)
        self.evaluator = Evaluator((self.decider,), Settings())
        self.tables = Tables()
        self.now = NOON
        self._changes: list[Change] = []
        self.evaluator.evaluate(Snapshot(self.tables), (), (), self.now)

    def put(self, name: str, node: str = "", version: int = 1) -> None:
        metadata = ObjectMeta(name=name, uid=f"u-{name}", resource_version=str(version))
        pod = Pod(metadata=metadata, spec=PodSpec(node_name=node))
        self._changes.append(self.tables.put(PODS, pod))

    def remove(self, name: str) -> None:
        self._changes.append(self.tables.remove(PODS, name))

    def turn(self, after: timedelta = timedelta(0)) -> list[Verdict]:
        """The verdicts that are new, that much later."""
        self.now += after
        changes, self._changes = self._changes, []
        return self.evaluator.evaluate(Snapshot(self.tables), changes, (), self.now)

    def turn_with(self, observed: Subject, after: timedelta = timedelta(0)) -> list[Verdict]:
        self.now += after
        changes, self._changes = self._changes, []
        return self.evaluator.evaluate(Snapshot(self.tables), changes, (observed,), self.now)

    def reasons(self) -> list[tuple[str, Reason]]:
        return sorted((v.subject.name, v.reason) for v in self.evaluator.in_force())


def test_only_what_was_touched_is_evaluated_again() -> None:
    setup = Setup()
    setup.put("a")
    setup.put("b")
    setup.turn()
    setup.put("b", node="n1", version=2)
    assert setup.turn() == [], "the verdict is the same, so it is no news"
    assert setup.decider.evaluated == ["a", "b", "b"]


def test_what_was_touched_and_looks_the_same_is_left_alone() -> None:
    setup = Setup()
    setup.put("a")
    setup.turn()
    setup.put("a")
    setup.turn()
    assert setup.decider.evaluated == ["a"]


def test_a_verdict_falls_due_exactly_at_its_recheck() -> None:
    setup = Setup(
        lambda pod, now: said(pod, recheck_at=NOON + MINUTE if now < NOON + MINUTE else None)
    )
    setup.put("a")
    setup.turn()
    assert setup.evaluator.next_recheck() == NOON + MINUTE
    setup.turn(after=59 * SECOND)
    assert setup.decider.evaluated == ["a"]
    setup.turn(after=SECOND)
    assert setup.decider.evaluated == ["a", "a"]
    assert setup.evaluator.next_recheck() is None


def test_a_verdict_that_ceases_to_hold_is_told_once() -> None:
    setup = Setup()
    setup.put("a")
    (verdict,) = setup.turn()
    setup.remove("a")
    assert setup.turn() == []
    assert setup.evaluator.take_ended() == [verdict]
    assert setup.evaluator.take_ended() == []
    assert setup.reasons() == []


def fails(pod: Pod, now: datetime) -> Verdict:
    if pod.name == "a" and pod.spec.node_name == "bad":  # A stand-in of it fails, too.
        raise KeyError("zone")
    return said(pod, action=Delete(resource=PODS, name=pod.name, uid=pod.uid))


def test_a_key_that_fails_as_a_whole_leaves_the_others_alone() -> None:
    setup = Setup(fails)
    setup.put("a", node="bad")
    setup.put("b")
    setup.turn()
    assert setup.reasons() == [
        ("b", Reason.LEFT_ALONE),
        ("drain/a", Reason.JUDGEMENT_FAILED),
    ]
    (failed,) = setup.evaluator.failing()
    (fact,) = failed.facts
    assert isinstance(fact, EvaluationFails)
    assert (fact.concern, fact.key) == (Concern.DRAIN, "a")
    assert fact.error.startswith("KeyError: 'zone' (test_")
    assert not setup.tables.unreadable, "it was blamed in vain"


def test_a_failed_evaluation_withdraws_what_was_to_be_done() -> None:
    setup = Setup(fails)
    setup.put("a")
    setup.turn()
    assert len(setup.evaluator.actionable()) == 1
    setup.put("a", node="bad", version=2)
    setup.turn()
    assert setup.evaluator.actionable() == []


def test_a_failed_evaluation_is_tried_again_after_a_minute_or_when_its_view_changes() -> None:
    setup = Setup(fails)
    setup.put("a", node="bad")
    setup.turn()
    tried = len(setup.decider.evaluated)
    setup.turn(after=59 * SECOND)
    assert len(setup.decider.evaluated) == tried
    assert [v.reason for v in setup.turn(after=SECOND)] == [Reason.JUDGEMENT_FAILED]
    setup.put("a", version=2)
    setup.turn(after=SECOND)
    assert setup.reasons() == [("a", Reason.LEFT_ALONE)]
    assert setup.evaluator.failing() == []


def test_what_cannot_even_be_looked_at_is_told_once_and_ends_with_its_object() -> None:
    setup = Setup()
    setup.put("a", node="unviewable")
    (failed,) = setup.turn()
    (fact,) = failed.facts
    assert isinstance(fact, EvaluationFails)
    assert fact.error.startswith("ValueError: cannot be looked at (test_evaluator.py:")
    setup.put("a", node="unviewable", version=2)
    assert setup.turn(after=SECOND) == []
    setup.remove("a")
    setup.turn(after=SECOND)
    assert setup.reasons() == []


def test_a_recheck_that_is_not_in_the_future_does_not_spin() -> None:
    setup = Setup(lambda pod, now: said(pod, recheck_at=now))
    setup.put("a")
    setup.turn()
    assert setup.evaluator.next_recheck() == NOON + SECOND
    setup.turn(after=SECOND)
    assert setup.evaluator.next_recheck() == NOON + 2 * SECOND


def test_a_hundred_pods_evaluated_a_hundred_times_leave_no_trail_of_rechecks() -> None:
    setup = Setup(lambda pod, now: said(pod, recheck_at=now + timedelta(days=1)))
    for round_ in range(100):
        for number in range(100):
            setup.put(f"p{number}", version=round_)
        setup.turn(after=SECOND)
        assert setup.evaluator.results.rechecks <= STALE_MAX + 2 * 100 + 1
    for number in range(100):
        setup.remove(f"p{number}")
    setup.turn()
    assert setup.evaluator.next_recheck() is None
    assert setup.evaluator.results.rechecks == 0


def test_an_unchanged_recheck_is_noted_once() -> None:
    setup = Setup(lambda pod, now: said(pod, recheck_at=NOON + timedelta(days=1)))
    for version in range(50):
        setup.put("a", version=version)
        setup.turn(after=SECOND)
    assert setup.evaluator.results.rechecks == 1


def test_after_a_story_the_verdicts_are_what_a_fresh_evaluator_would_say() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=6))) as story:
        for step in range(30):
            if step == 12:
                story.delete_claim()
            story.run(17 * SECOND)
            incremental = {
                (v.concern, str(v.subject)): v for v in story.controller.evaluator.in_force()
            }
            fresh = Evaluator(deciders(), Settings())
            fresh.evaluate(story.controller.snapshot(), (), (), story.now)
            assert incremental == {(v.concern, str(v.subject)): v for v in fresh.in_force()}


# -- deciders that cannot tell their keys -----------------------------------------------------------


@pytest.mark.parametrize("part", ["touched", "observed"])
def test_where_a_decider_cannot_tell_what_a_change_touches_all_known_keys_are_evaluated(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = Setup()
    setup.put("a")
    setup.turn()
    monkeypatch.setattr(setup.decider, part, broken)
    setup.put("a", node="n1", version=2)
    (failed,) = setup.turn_with(Subject("Pod", "a"))
    assert failed.reason is Reason.JUDGEMENT_FAILED
    (unknown,) = failed.facts
    assert isinstance(unknown, KeysUnknown)
    assert unknown.error.startswith("ZeroDivisionError (test_")
    assert setup.evaluator.failing() == [failed]
    assert setup.decider.evaluated == ["a", "a"]
    assert not setup.tables.unreadable, "no object is blamed"
    assert setup.turn_with(Subject("Pod", "a"), after=SECOND) == [], "said once"
    assert setup.evaluator.next_recheck() == NOON + MINUTE
    monkeypatch.undo()
    setup.turn(after=MINUTE)
    assert setup.evaluator.failing() == []
    assert setup.reasons() == [("a", Reason.LEFT_ALONE)]


def test_a_key_that_was_not_found_is_evaluated_when_the_decider_can_tell_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setup = Setup()
    monkeypatch.setattr(setup.decider, "touched", broken)
    setup.put("a")
    setup.turn()
    assert setup.decider.evaluated == []
    setup.turn(after=MINUTE)
    assert setup.decider.evaluated == ["a"], "its keys it can tell"


def test_keys_that_cannot_be_told_are_asked_for_again_after_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setup = Setup()
    setup.put("a")
    setup.turn()
    monkeypatch.setattr(setup.decider, "keys", broken)
    setup.evaluator.start_over()
    (failed,) = (v for v in setup.turn() if v.reason is Reason.JUDGEMENT_FAILED)
    assert setup.evaluator.failing() == [failed]
    assert setup.decider.evaluated == ["a", "a"], "those that are known"
    assert setup.evaluator.next_recheck() == NOON + MINUTE
    (again,) = setup.turn(after=MINUTE)
    assert again.recheck_at == NOON + 2 * MINUTE
    monkeypatch.undo()
    setup.turn(after=MINUTE)
    assert setup.evaluator.failing() == []
    assert setup.reasons() == [("a", Reason.LEFT_ALONE)]
    assert setup.evaluator.next_recheck() is None


def broken(*_: object) -> list[str]:
    raise ZeroDivisionError


# -- slices -------------------------------------------------------------------------------------------


def test_each_repeat_of_a_failing_key_is_a_slice_of_its_own() -> None:
    bad = {"a", "b"}
    setup = Setup(lambda pod, now: said(pod))
    tries = []

    def decide(view: Pod, settings: Settings, now: datetime) -> Sequence[Verdict]:
        tries.append(view.name)
        if view.name in bad and view.spec.scheduler_name:
            raise KeyError(view.name)
        return [said(view)]

    setup.decider.decide = decide  # type: ignore[method-assign]
    metadata = ObjectMeta(name="a", uid="u-a", resource_version="1")
    change = setup.tables.put(PODS, Pod(metadata=metadata, spec=PodSpec(scheduler_name="x")))
    setup.evaluator.begin(Snapshot(setup.tables), [change], (), NOON)
    setup.evaluator.resume(Snapshot(setup.tables), NOON, lambda: True)
    assert (tries, setup.evaluator.unfinished) == (["a"], 1)
    setup.evaluator.resume(Snapshot(setup.tables), NOON, lambda: True)
    assert tries == ["a", "a"]
    assert list(setup.tables.unreadable) == [(PODS, "a")]
