"""A report as lines for people, and as one JSON object for programs. ``docs/lint.md`` has the object's fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from tenure.cli.lint.remarks import Ignored, Remark, Report
from tenure.cli.output.folded import APART, some
from tenure.schema.findings import Severity


def lines(report: Report, *, verbose: bool = False) -> Iterator[str]:
    """The verdict first. What is said of many objects alike is one line, unless ``verbose``."""
    yield summary(report)
    for same in _alike(report.remarks):
        if verbose or len(same) <= APART:
            yield from map(str, same)
        else:
            yield _together(same)


def _alike(remarks: Iterable[Remark]) -> list[list[Remark]]:
    groups: dict[object, list[Remark]] = {}
    for one in remarks:
        name = one.about.rpartition("/")[2]
        said = one.message.replace(name, "") if name else one.message
        groups.setdefault((one.finding.code, one.finding.severity, said), []).append(one)
    return list(groups.values())


def _together(same: Sequence[Remark]) -> str:
    first, *others = same
    place = f"{first.file}:{first.line}: " if first.file else ""
    where = some(
        f"{one.about} ({one.file}:{one.line})" if one.file else one.about for one in others
    )
    return (
        f"{place}{first.finding.severity} {first.finding.code}: {first.about}, "
        f"and the same of {len(others)} more: {where}: {first.message}"
    )


def summary(report: Report) -> str:
    counts = Counter(remark.finding.severity for remark in report.remarks)
    told = ", ".join(_count(counts[severity], severity) for severity in Severity)
    ignored = f"; {len(report.ignored)} ignored by comments" if report.ignored else ""
    return f"{_count(report.objects, 'object')}: {told}{ignored}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 or word == Severity.INFO else f"{number} {word}s"


def to_json(report: Report) -> str:
    shown = {
        "objects": report.objects,
        "findings": [_json(remark) for remark in report.remarks],
        "ignored": [_ignored(one) for one in report.ignored],
        "notes": list(report.notes),
        "problems": list(report.problems),
    }
    return msgspec.json.encode(shown).decode()


def _ignored(one: Ignored) -> dict[str, Any]:
    return {**_json(one.remark), "because": one.because}


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
        "column": remark.column or None,
    }
