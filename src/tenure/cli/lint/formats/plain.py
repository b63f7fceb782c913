"""A report as lines for people, and as one JSON object for programs. ``docs/lint.md`` has the object's fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from tenure.cli.lint.remarks import Ignored, Remark, Report
from tenure.schema.findings import Severity


def lines(report: Report) -> Iterator[str]:
    yield from map(str, report.remarks)
    yield summary(report)


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
