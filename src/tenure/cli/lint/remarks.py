"""What lint found, as lines and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from tenure.schema.findings import Finding, Severity


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """A finding, and about what."""

    #: ``Kind/name`` or ``Kind/namespace/name``.
    about: str
    finding: Finding
    #: Where it is written; empty for what lives in a cluster.
    file: str = ""
    line: int = 0

    @property
    def serious(self) -> bool:
        return self.finding.severity is not Severity.INFO

    def __str__(self) -> str:
        finding = self.finding
        place = f"{self.file}:{self.line}: " if self.file else ""
        said = f"{finding.at}: {finding.message}" if finding.at else finding.message
        said += "" if said.endswith((".", "?")) else "."
        said = f"{said} {finding.advice}".rstrip()
        return f"{place}{finding.severity} {finding.code}: {self.about}: {said}"


def lines(remarks: Sequence[Remark], objects: int) -> Iterator[str]:
    yield from map(str, remarks)
    counts = Counter(remark.finding.severity for remark in remarks)
    told = ", ".join(_count(counts[severity], severity) for severity in Severity)
    yield f"{_count(objects, 'object')}: {told}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 or word == Severity.INFO else f"{number} {word}s"


def to_json(remarks: Sequence[Remark], objects: int, notes: Sequence[str]) -> str:
    shown = {
        "objects": objects,
        "findings": [_json(remark) for remark in remarks],
        "notes": list(notes),
    }
    return msgspec.json.encode(shown).decode()


def _json(remark: Remark) -> dict[str, Any]:
    finding = remark.finding
    return {
        "severity": finding.severity,
        "code": finding.code,
        "object": remark.about,
        "field": finding.at,
        "message": finding.message,
        "advice": finding.advice,
        "file": remark.file or None,
        "line": remark.line or None,
    }
