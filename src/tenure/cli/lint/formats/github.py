"""A report as commands of a GitHub workflow: each finding becomes an annotation of its line in the pull request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tenure.cli.lint.formats.plain import summary
from tenure.cli.lint.remarks import Remark, Report
from tenure.schema.findings import Severity

_COMMANDS: Final = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "notice",
}
_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY: Final = str.maketrans(
    {"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"},
)


def workflow_commands(report: Report) -> Iterator[str]:
    for problem in report.problems:
        yield f"::error title=CannotBeRead::{problem.translate(_DATA)}"
    yield from map(_annotation, report.remarks)
    yield summary(report)


def _annotation(remark: Remark) -> str:
    code = remark.finding.code
    place = {"file": remark.file, "line": remark.line, "col": remark.column}
    given = {**(place if remark.in_a_file else {}), "title": code}
    properties = ",".join(
        f"{name}={str(value).translate(_PROPERTY)}" for name, value in given.items() if value
    )
    said = f"{remark.about}: {remark.message}".translate(_DATA)
    return f"::{_COMMANDS[remark.finding.severity]} {properties}::{said}"
