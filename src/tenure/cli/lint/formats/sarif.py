"""A report in SARIF 2.1.0 (OASIS), which code scanning reads: rules, levels, places.

What a comment ignores is a result with a suppression, so that a reviewer sees it with its reason. A finding in a cluster or of
the standard input has no file: its object is its logical location.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from tenure.cli.lint.remarks import Remark, Report
from tenure.schema.findings import CODES, Code, Severity

VERSION: Final = "2.1.0"
SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "note",
}
_RULES: Final = {code: index for index, code in enumerate(Code)}


def to_sarif(report: Report, version: str) -> str:
    """``version``: of the program."""
    results = [_result(remark) for remark in report.remarks]
    for one in report.ignored:
        suppression = {"kind": "inSource", "justification": one.because}
        results.append({**_result(one.remark), "suppressions": [suppression]})
    driver = {"name": "tenure", "version": version, "rules": [_rule(code) for code in Code]}
    invocation: dict[str, Any] = {"executionSuccessful": not report.problems}
    if told := [_notification("error", text) for text in report.problems] + [
        _notification("note", text) for text in report.notes
    ]:
        invocation["toolExecutionNotifications"] = told
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    log = {"$schema": SCHEMA, "version": VERSION, "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(log), indent=2).decode()


def _rule(code: Code) -> dict[str, Any]:
    info = CODES[code]
    rule: dict[str, Any] = {
        "id": code,
        "name": code,
        "shortDescription": {"text": info.meaning},
        "defaultConfiguration": {"level": _LEVELS[info.severity]},
    }
    return {**rule, "help": {"text": info.advice}} if info.advice else rule


def _result(remark: Remark) -> dict[str, Any]:
    finding = remark.finding
    return {
        "ruleId": finding.code,
        "ruleIndex": _RULES[finding.code],
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{remark.about}: {remark.message}"},
        "locations": [_location(remark)],
    }


def _location(remark: Remark) -> dict[str, Any]:
    name = " ".join(filter(None, (remark.about, remark.finding.at)))
    location: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": name, "kind": "object"}]
    }
    if remark.in_a_file:
        region = {"startLine": remark.line, "startColumn": remark.column}
        location["physicalLocation"] = {
            "artifactLocation": {"uri": _uri(remark.file)},
            "region": region,
        }
    return location


def _uri(file: str) -> str:
    """Relative to where lint ran, unless the path is absolute."""
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _notification(level: str, text: str) -> dict[str, Any]:
    return {"level": level, "message": {"text": text}}
