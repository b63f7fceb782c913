"""What a conversion has to say: codes, how bad, and what is left to do by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from tenure.schema.findings import Severity


class Code(StrEnum):
    """Stable: write scripts against them."""

    #: It cannot be read, or the NodePool would be refused: nothing is written.
    INVALID = "Invalid"
    #: Nothing takes its place.
    NO_SUCCESSOR = "NoSuccessor"
    #: Its successor stands in another object.
    ELSEWHERE = "Elsewhere"
    #: The object is no Provisioner.
    LEFT_OUT = "LeftOut"
    #: The NodePool says the same in another way.
    CHANGED = "Changed"
    #: The input does not say so; the NodePool does.
    WRITTEN_OUT = "WrittenOut"
    #: It belongs to the old object; the API server writes it.
    NOT_COPIED = "NotCopied"


SEVERITY: Final = {
    Code.INVALID: Severity.ERROR,
    Code.NO_SUCCESSOR: Severity.WARNING,
    Code.ELSEWHERE: Severity.WARNING,
    Code.LEFT_OUT: Severity.WARNING,
    Code.CHANGED: Severity.INFO,
    Code.WRITTEN_OUT: Severity.INFO,
    Code.NOT_COPIED: Severity.INFO,
}


class Note(msgspec.Struct, frozen=True):
    """Something about one object of the input."""

    code: Code
    #: The fields of the input that it is about; none: the object.
    fields: tuple[str, ...]
    message: str

    @property
    def severity(self) -> Severity:
        return SEVERITY[self.code]


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A note, and where its subject stands."""

    about: str
    note: Note
    file: str
    line: int

    def __str__(self) -> str:
        note = self.note
        fields = f"{', '.join(note.fields)}: " if note.fields else ""
        said = f"{fields}{note.message}".removesuffix(".")
        return f"{self.file}:{self.line}: {note.severity} {note.code}: {self.about}: {said}."


def lines(report: Sequence[Line], provisioners: int, pools: int) -> Iterator[str]:
    """The verdict first."""
    counts = Counter(one.note.severity for one in report)
    told = ", ".join(_count(counts[severity], severity) for severity in Severity)
    yield f"{_count(provisioners, 'Provisioner')}, {_count(pools, 'NodePool')}: {told}"
    yield from map(str, report)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 or word == Severity.INFO else f"{number} {word}s"
