"""What lint found: findings, each with its object and its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from tenure.schema.findings import Finding, Severity

#: What the standard input is called: its lines are in no file.
STDIN: Final = "stdin"
#: From the worst on.
SEVERITIES: Final = tuple(Severity)


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """A finding, and about what."""

    #: ``Kind/name`` or ``Kind/namespace/name``.
    about: str
    finding: Finding
    #: Where it is written; empty for what lives in a cluster.
    file: str = ""
    line: int = 0
    column: int = 0

    @property
    def in_a_file(self) -> bool:
        return self.file not in ("", STDIN)

    @property
    def message(self) -> str:
        """Field, what is the case, and what to do."""
        finding = self.finding
        said = f"{finding.at}: {finding.message}" if finding.at else finding.message
        said += "" if said.endswith((".", "?")) else "."
        return f"{said} {finding.advice}".rstrip()

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file else ""
        finding = self.finding
        return f"{place}{finding.severity} {finding.code}: {self.about}: {self.message}"


class Ignored(msgspec.Struct, frozen=True, kw_only=True):
    """A remark that a comment of its manifest takes back, and why."""

    remark: Remark
    because: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one run has to say."""

    remarks: Sequence[Remark]
    #: How many objects were read.
    objects: int
    ignored: Sequence[Ignored] = ()
    #: What was left out.
    notes: Sequence[str] = ()
    #: What could not be read at all.
    problems: Sequence[str] = ()

    def fails(self, least: Severity) -> bool:
        """Whether a remark is at least that bad."""
        worst = SEVERITIES[: SEVERITIES.index(least) + 1]
        return any(remark.finding.severity in worst for remark in self.remarks)

    def without(self, codes: Sequence[str]) -> Report:
        kept = [remark for remark in self.remarks if remark.finding.code not in codes]
        return msgspec.structs.replace(self, remarks=kept)
