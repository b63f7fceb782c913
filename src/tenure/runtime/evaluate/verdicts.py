"""The verdicts in force: what holds now, what of it asks for an action, what ceased to hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tenure.core.decision import Concern, Verdict
from tenure.core.reasons import Reason
from tenure.model.snapshot.touched import Touched

VerdictId = tuple[Concern, str]


class VerdictsInForce:
    def __init__(self) -> None:
        self._by_id: dict[VerdictId, Verdict] = {}
        self._actionable: dict[VerdictId, Verdict] = {}
        self._ended: list[Verdict] = []
        #: Subjects with a verdict that is new, different or gone: ``Kind/namespace/name``.
        self.touched = Touched()

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def aside(self) -> VerdictsInForce:
        """As they are now, for a thread beside the loop."""
        twin = VerdictsInForce()
        twin._by_id = dict(self._by_id)
        return twin

    def in_force(self) -> Iterator[Verdict]:
        return iter(self)

    def replace(self, old: tuple[Verdict, ...], new: tuple[Verdict, ...]) -> list[Verdict]:
        """Put the new verdicts of a key in the place of its old ones; return what changed."""
        kept = {verdict_id(verdict) for verdict in new}
        for verdict in old:
            gone = verdict_id(verdict)
            # Another key may have taken the subject over: a Node whose claim was deleted.
            if gone not in kept and self._by_id.get(gone) is verdict:
                self._ended.append(self._by_id.pop(gone))
                self._actionable.pop(gone, None)
                self.touched.touch(gone[1])
        changed = []
        for verdict in new:
            name = verdict_id(verdict)
            if self._by_id.get(name) != verdict:
                changed.append(verdict)
                self.touched.touch(name[1])
            self._by_id[name] = verdict
            if verdict.action is not None:
                self._actionable[name] = verdict
            else:
                self._actionable.pop(name, None)
        self.touched.tidy(len(self._by_id))
        return changed

    def latest(self, verdicts: Iterable[Verdict]) -> list[Verdict]:
        """Those that no other verdict has replaced since."""
        return [one for one in verdicts if self._by_id.get(verdict_id(one)) is one]

    def without_any(self, verdicts: Iterable[Verdict]) -> list[Verdict]:
        """Those about a subject on which this concern has no verdict yet."""
        return [one for one in verdicts if verdict_id(one) not in self._by_id]

    def take_ended(self) -> list[Verdict]:
        """Verdicts that ceased to hold since the last call, with no other in their place."""
        ended, self._ended = self._ended, []
        return ended

    def about(self, kind: str, name: str, namespace: str = "") -> list[Verdict]:
        """The verdicts on one subject, the governing one first."""
        subject = _subject_id(kind, namespace, name)
        found = [
            verdict
            for concern in Concern
            if (verdict := self._by_id.get((concern, subject))) is not None
        ]
        # What a booting node lacks says more than that it may still boot.
        return sorted(found, key=lambda v: (v.action is None, v.reason is Reason.BOOTING))

    def actionable(self) -> list[Verdict]:
        """Verdicts that ask for an action, the urgent ones first."""
        return sorted(self._actionable.values(), key=_is_patient)


def _is_patient(verdict: Verdict) -> bool:
    return not verdict.urgent


def verdict_id(verdict: Verdict) -> VerdictId:
    subject = verdict.subject
    return verdict.concern, _subject_id(subject.kind, subject.namespace, subject.name)


def _subject_id(kind: str, namespace: str, name: str) -> str:
    return f"{kind}/{namespace}/{name}"
