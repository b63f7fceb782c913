"""Notices: what the cloud announced about instances, by claim UID, for as long as the claim is there."""

from __future__ import annotations

from tenure.core.decision import Subject
from tenure.model.cloud.notice import NoticeKind
from tenure.model.snapshot.observations import Announcement
from tenure.runtime.observe.noted import Noted


class NoticeObservations:
    def __init__(self, noted: Noted) -> None:
        self._noted = noted
        self.interruptions: dict[str, Announcement] = {}
        self.recommendations: dict[str, Announcement] = {}

    def announced(self, kind: NoticeKind, claim: Subject, said: Announcement) -> bool:
        """Whether it is new: the first counts, and of interruptions one that is earlier."""
        known = self._of(kind).get(claim.uid)
        if known is not None and not _is_earlier(said, known):
            return False
        self._of(kind)[claim.uid] = said
        self._noted.note(claim)
        return True

    def forget_claim(self, uid: str) -> None:
        self.interruptions.pop(uid, None)
        self.recommendations.pop(uid, None)

    def _of(self, kind: NoticeKind) -> dict[str, Announcement]:
        return self.interruptions if kind is NoticeKind.INTERRUPTION else self.recommendations


def _is_earlier(said: Announcement, known: Announcement) -> bool:
    if said.deadline is None:
        return False
    return known.deadline is None or said.deadline < known.deadline
