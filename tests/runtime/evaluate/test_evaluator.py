"""Only what changed or fell due is judged again, and every verdict in force is remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from tenure.core.decision import Concern, Delete, Subject, Verdict
from tenure.core.policy import deciders
from tenure.core.reasons import Reason
from tenure.model.api.meta import ObjectMeta
from tenure.model.api.pod import Pod, PodSpec
from tenure.model.api.resource import PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot, Tables
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.evaluate.results import STALE_MAX
from tests.builders import MINUTE, SECOND, a_cluster, a_deployment
from tests.runtime.stage import Tapped

NOON = datetime(2030, 6, 3, 12, tzinfo=UTC)
Decide = Callable[[Pod, datetime], Verdict]


def said(pod: Pod, reason: Reason = Reason.LEFT_ALONE, **more: object) -> Verdict:
    subject = Subject.of("Pod", pod)
    return Verdict(concern=Concern.DRAIN, subject=subject, reason=reason, facts=(), **more)  # type: ignore[arg-type]  # any field


class Opinion:
    """A decider with one key per pod, whose judgement the test provides."""

    concern = Concern.DRAIN

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        self.judged: list[str] = []

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
        self.judged.append(view.name)
        return [self._decide(view, now)]


class Court:
    """A judge with one opinion, and the tables it judges."""

    def __init__(self, decide: Decide = lambda pod, now: said(pod)) -> None:
        self.opinion = Opinion(decide)
        self.evaluator = Evaluator((self.opinion,), Settings())
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


def test_only_what_was_touched_is_judged_again() -> None:
    court = Court()
    court.put("a")
    court.put("b")
    court.turn()
    court.put("b", node="n1", version=2)
    assert court.turn() == [], "the verdict is the same, so it is no news"
    assert court.opinion.judged == ["a", "b", "b"]


def test_what_was_touched_and_looks_the_same_is_left_alone() -> None:
    court = Court()
    court.put("a")
    court.turn()
    court.put("a")
    court.turn()
    assert court.opinion.judged == ["a"]


def test_a_verdict_falls_due_exactly_at_its_recheck() -> None:
    court = Court(
        lambda pod, now: said(pod, recheck_at=NOON + MINUTE if now < NOON + MINUTE else None)
    )
    court.put("a")
    court.turn()
    assert court.evaluator.next_recheck() == NOON + MINUTE
    court.turn(after=59 * SECOND)
    assert court.opinion.judged == ["a"]
    court.turn(after=SECOND)
    assert court.opinion.judged == ["a", "a"]
    assert court.evaluator.next_recheck() is None


def test_a_verdict_that_ceases_to_hold_is_told_once() -> None:
    court = Court()
    court.put("a")
    (verdict,) = court.turn()
    court.remove("a")
    assert court.turn() == []
    assert court.evaluator.take_ended() == [verdict]
    assert court.evaluator.take_ended() == []
    assert court.reasons() == []


def sick(pod: Pod, now: datetime) -> Verdict:
    if pod.name == "a" and pod.spec.node_name == "bad":  # A stand-in of it fails, too.
        raise KeyError("zone")
    return said(pod, action=Delete(resource=PODS, name=pod.name, uid=pod.uid))


def test_a_key_that_fails_as_a_whole_leaves_the_others_alone() -> None:
    court = Court(sick)
    court.put("a", node="bad")
    court.put("b")
    court.turn()
    assert court.reasons() == [
        ("b", Reason.LEFT_ALONE),
        ("drain/a", Reason.JUDGEMENT_FAILED),
    ]
    (failed,) = court.evaluator.failing()
    assert failed.message.startswith("evaluating drain/a fails: KeyError: 'zone' (test_")
    assert not court.tables.unreadable, "it was blamed in vain"


def test_a_failed_judgement_withdraws_what_was_to_be_done() -> None:
    court = Court(sick)
    court.put("a")
    court.turn()
    assert len(court.evaluator.actionable()) == 1
    court.put("a", node="bad", version=2)
    court.turn()
    assert court.evaluator.actionable() == []


def test_a_failed_judgement_is_tried_again_after_a_minute_or_when_its_view_changes() -> None:
    court = Court(sick)
    court.put("a", node="bad")
    court.turn()
    tried = len(court.opinion.judged)
    court.turn(after=59 * SECOND)
    assert len(court.opinion.judged) == tried
    assert [v.reason for v in court.turn(after=SECOND)] == [Reason.JUDGEMENT_FAILED]
    court.put("a", version=2)
    court.turn(after=SECOND)
    assert court.reasons() == [("a", Reason.LEFT_ALONE)]
    assert court.evaluator.failing() == []


def test_what_cannot_even_be_looked_at_is_told_once_and_ends_with_its_object() -> None:
    court = Court()
    court.put("a", node="unviewable")
    (failed,) = court.turn()
    assert "ValueError: cannot be looked at (test_evaluator.py:" in failed.message
    court.put("a", node="unviewable", version=2)
    assert court.turn(after=SECOND) == []
    court.remove("a")
    court.turn(after=SECOND)
    assert court.reasons() == []


def test_a_recheck_that_is_not_in_the_future_does_not_spin() -> None:
    court = Court(lambda pod, now: said(pod, recheck_at=now))
    court.put("a")
    court.turn()
    assert court.evaluator.next_recheck() == NOON + SECOND
    court.turn(after=SECOND)
    assert court.evaluator.next_recheck() == NOON + 2 * SECOND


def test_a_thousand_pods_judged_a_hundred_times_leave_no_trail_of_rechecks() -> None:
    court = Court(lambda pod, now: said(pod, recheck_at=now + timedelta(days=1)))
    for round_ in range(100):
        for number in range(100):
            court.put(f"p{number}", version=round_)
        court.turn(after=SECOND)
        assert court.evaluator.results.rechecks <= STALE_MAX + 2 * 100 + 1
    for number in range(100):
        court.remove(f"p{number}")
    court.turn()
    assert court.evaluator.next_recheck() is None
    assert court.evaluator.results.rechecks == 0


def test_an_unchanged_recheck_is_noted_once() -> None:
    court = Court(lambda pod, now: said(pod, recheck_at=NOON + timedelta(days=1)))
    for version in range(50):
        court.put("a", version=version)
        court.turn(after=SECOND)
    assert court.evaluator.results.rechecks == 1


def test_after_a_story_the_verdicts_are_what_a_fresh_judge_would_say() -> None:
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
def test_where_a_decider_cannot_tell_what_a_change_touches_all_known_keys_are_judged(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    court = Court()
    court.put("a")
    court.turn()
    monkeypatch.setattr(court.opinion, part, broken)
    court.put("a", node="n1", version=2)
    (failed,) = court.turn_with(Subject("Pod", "a"))
    assert failed.reason is Reason.JUDGEMENT_FAILED
    assert failed.message.startswith("cannot list the keys of drain: ZeroDivisionError (test_")
    assert court.evaluator.failing() == [failed]
    assert court.opinion.judged == ["a", "a"]
    assert not court.tables.unreadable, "no object is blamed"
    assert court.turn_with(Subject("Pod", "a"), after=SECOND) == [], "said once"
    assert court.evaluator.next_recheck() == NOON + MINUTE
    monkeypatch.undo()
    court.turn(after=MINUTE)
    assert court.evaluator.failing() == []
    assert court.reasons() == [("a", Reason.LEFT_ALONE)]


def test_a_key_that_was_not_found_is_judged_when_the_decider_can_tell_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    court = Court()
    monkeypatch.setattr(court.opinion, "touched", broken)
    court.put("a")
    court.turn()
    assert court.opinion.judged == []
    court.turn(after=MINUTE)
    assert court.opinion.judged == ["a"], "its keys it can tell"


def test_keys_that_cannot_be_told_are_asked_for_again_after_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    court = Court()
    court.put("a")
    court.turn()
    monkeypatch.setattr(court.opinion, "keys", broken)
    court.evaluator.start_over()
    (failed,) = (v for v in court.turn() if v.reason is Reason.JUDGEMENT_FAILED)
    assert court.evaluator.failing() == [failed]
    assert court.opinion.judged == ["a", "a"], "those that are known"
    assert court.evaluator.next_recheck() == NOON + MINUTE
    (again,) = court.turn(after=MINUTE)
    assert again.recheck_at == NOON + 2 * MINUTE
    monkeypatch.undo()
    court.turn(after=MINUTE)
    assert court.evaluator.failing() == []
    assert court.reasons() == [("a", Reason.LEFT_ALONE)]
    assert court.evaluator.next_recheck() is None


def broken(*_: object) -> list[str]:
    raise ZeroDivisionError


# -- slices -------------------------------------------------------------------------------------------


def test_each_repeat_of_a_failing_key_is_a_slice_of_its_own() -> None:
    bad = {"a", "b"}
    court = Court(lambda pod, now: said(pod))
    tries = []

    def decide(view: Pod, settings: Settings, now: datetime) -> Sequence[Verdict]:
        tries.append(view.name)
        if view.name in bad and view.spec.scheduler_name:
            raise KeyError(view.name)
        return [said(view)]

    court.opinion.decide = decide  # type: ignore[method-assign]
    metadata = ObjectMeta(name="a", uid="u-a", resource_version="1")
    change = court.tables.put(PODS, Pod(metadata=metadata, spec=PodSpec(scheduler_name="x")))
    court.evaluator.begin(Snapshot(court.tables), [change], (), NOON)
    court.evaluator.resume(Snapshot(court.tables), NOON, lambda: True)
    assert (tries, court.evaluator.unfinished) == (["a"], 1)
    court.evaluator.resume(Snapshot(court.tables), NOON, lambda: True)
    assert tries == ["a", "a"]
    assert list(court.tables.unreadable) == [(PODS, "a")]
