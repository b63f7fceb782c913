"""Changes that may wait are evaluated together, and what falls due is punctual unless more of them come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from tenure.core.decider import Patience
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.reasons import Reason
from tenure.model.api.meta import ObjectMeta
from tenure.model.api.pod import Pod, PodSpec
from tenure.model.api.resource import PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot, Tables
from tenure.runtime.evaluate.evaluator import Evaluator

NOON = datetime(2030, 6, 3, 12, tzinfo=UTC)
CLAIM = Subject("NodeClaim", "a")
RECHECK = timedelta(seconds=1.5)


class AllPods:
    """One key for all pods; its verdict may change after a second and a half."""

    concern = Concern.PROVISIONING

    def __init__(self) -> None:
        self.decided: list[float] = []

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return ("cluster",)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        return ("cluster",)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ("cluster",)

    def view(self, snapshot: Snapshot, key: str) -> tuple[str, ...] | None:
        return tuple(pod.metadata.resource_version for pod in snapshot.pods.values()) or None

    def decide(self, view: tuple[str, ...], settings: Settings, now: datetime) -> Sequence[Verdict]:
        self.decided.append((now - NOON).total_seconds())
        return [
            Verdict(
                concern=self.concern,
                subject=Subject("Pod", "all"),
                reason=Reason.BATCHING,
                facts=(),
                recheck_at=now + RECHECK,
            )
        ]


class Setup:
    def __init__(self) -> None:
        self.decider, self.tables = AllPods(), Tables()
        patience = Patience(
            may_wait=lambda change: True,
            gaps=2,
            gaps_at_rest=1,
            observed=frozenset({CLAIM.kind}),
            prolongs=lambda change: change.old is None,
        )
        self.evaluator = Evaluator(
            (self.decider,), Settings(), patience={Concern.PROVISIONING: patience}
        )
        self._turn(0)

    def at(self, second: float, *names: str, observed: Iterable[Subject] = ()) -> None:
        """A turn; the pods with these names came, or changed."""
        changes = []
        for name in names:
            version = f"{second}"
            pod = Pod(metadata=ObjectMeta(name=name, resource_version=version), spec=PodSpec())
            changes.append(self.tables.put(PODS, pod))
        self._turn(second, changes, observed)

    def _turn(
        self, second: float, changes: Iterable[Change] = (), observed: Iterable[Subject] = ()
    ) -> None:
        now = NOON + timedelta(seconds=second)
        self.evaluator.evaluate(Snapshot(self.tables), changes, observed, now)


def test_what_had_nothing_to_decide_looks_again_sooner() -> None:
    setup = Setup()
    setup.at(0.1, "a")
    setup.at(0.9)
    assert setup.decider.decided == []
    setup.at(1.0)
    assert setup.decider.decided == [1.0]


def test_what_falls_due_is_punctual_although_other_changes_wait() -> None:
    setup = Setup()
    setup.at(10, "a")
    setup.at(10.5, "a")
    assert setup.evaluator.next_recheck() == NOON + timedelta(seconds=11.5)
    setup.at(11.5)
    assert setup.decider.decided == [10, 11.5]


def test_while_more_come_it_waits_with_them() -> None:
    setup = Setup()
    setup.at(10, "a")
    setup.at(10.5, "b")
    setup.at(11.5)
    assert setup.decider.decided == [10]
    assert setup.evaluator.next_recheck() == NOON + timedelta(seconds=12)
    setup.at(12)
    setup.at(13.5)
    assert setup.decider.decided == [10, 12, 13.5]


def test_observations_of_some_kinds_wait_and_others_do_not() -> None:
    setup = Setup()
    setup.at(10, "a")
    setup.at(10.1, "a")
    setup.at(10.2, observed=[CLAIM])
    assert setup.decider.decided == [10]
    setup.at(10.3, observed=[Subject("Batch", "cluster")])
    assert setup.decider.decided == [10, 10.3]
