"""Selectors, windows and node classes."""

from __future__ import annotations

from typing import Any

from tests.schema.cases.case import NO_DAYS, Case, requirement
from tests.schema.cases.pool import BUDGETS_AT
from tests.schema.objects import Json


def _selectors(kind: str, says: str, path: str, wrap: Any, at: str) -> list[Case]:
    def case(text: str, expression: Json, field: str = "", message: str = "") -> Case:
        value = wrap({"matchExpressions": [expression]})
        there = f"{at}.matchExpressions{field}" if message else ""
        return Case(f"{says} with {text}", kind, {path: value}, there, message)

    return [
        case("In and a value", requirement("a", "In", "b")),
        case("NotIn and a value", requirement("a", "NotIn", "b")),
        case("Exists", {"key": "a", "operator": "Exists"}),
        case("Gt and a number", requirement("a", "Gt", "5")),
        case("In alone", requirement("a", "In"), "", "at least one value"),
        case("NotIn alone", {"key": "a", "operator": "NotIn"}, "", "at least one value"),
        case("Exists and a value", requirement("a", "Exists", "b"), "", "no values"),
        case("Lt and a word", requirement("a", "Lt", "few"), "", "exactly one whole number"),
        case("no such operator", requirement("a", "Like", "b"), "[0].operator", "supported"),
        case("a key that is no name", requirement("a b", "Exists"), "[0].key", "match"),
        case("no key", {"operator": "Exists"}, "[0].key", "Required"),
        Case(
            f"{says} with matchLabels",
            kind,
            {path: wrap({"matchLabels": {"team": "db"}})},
            f"{at}.matchLabels",
            "use matchExpressions",
        ),
    ]


SELECTORS = [
    *_selectors(
        "MaintenanceWindow", "a window", "spec.selector", lambda selector: selector, "spec.selector"
    ),
    *_selectors(
        "NodePool",
        "a budget",
        BUDGETS_AT,
        lambda selector: [{"nodes": "1", "selector": selector}],
        f"{BUDGETS_AT}[0].selector",
    ),
]


def _window(says: str, path: str, value: Any, field: str = "", message: str = "") -> Case:
    return Case(says, "MaintenanceWindow", {f"spec.{path}": value}, field, message)


def _dates(begin: str, end: str) -> list[Json]:
    return [{"from": begin, "until": end}]


_NIGHTLY = {"cron": "0 22 * * 1-5", "duration": "8h"}
_CHRISTMAS = ("2026-12-24T00:00:00Z", "2026-12-27T00:00:00+01:00")
WINDOWS = [
    _window("a window without a time", "schedules", []),
    _window("a schedule", "schedules", [_NIGHTLY]),
    _window("a schedule by name", "schedules", [{**_NIGHTLY, "cron": "@weekly"}]),
    _window("a schedule in a zone", "schedules", [{**_NIGHTLY, "timeZone": "Asia/Tokyo"}]),
    _window("day seven", "schedules", [{**_NIGHTLY, "cron": "0 0 * * 6-7"}]),
    _window(
        "a schedule without a cron",
        "schedules",
        [{"duration": "8h"}],
        "spec.schedules[0].cron",
        "Required",
    ),
    _window(
        "a schedule without an end",
        "schedules",
        [{"cron": "@daily"}],
        "spec.schedules[0].duration",
        "Required",
    ),
    _window(
        "a schedule for a day",
        "schedules",
        [{**_NIGHTLY, "duration": "1d"}],
        "spec.schedules[0].duration",
        NO_DAYS,
    ),
    _window(
        "a schedule for no time",
        "schedules",
        [{**_NIGHTLY, "duration": "0s"}],
        "spec.schedules[0].duration",
        "above zero",
    ),
    _window(
        "a cron of one field",
        "schedules",
        [{**_NIGHTLY, "cron": "*"}],
        "spec.schedules[0].cron",
        "match",
    ),
    _window(
        "a zone in words",
        "schedules",
        [{**_NIGHTLY, "timeZone": "my time"}],
        "spec.schedules[0].timeZone",
        "match",
    ),
    _window("too many schedules", "schedules", [_NIGHTLY] * 51, "spec.schedules", "at most 50"),
    _window("a holiday", "dates", _dates(*_CHRISTMAS)),
    _window("a holiday backwards", "dates", _dates(*_CHRISTMAS[::-1]), "spec.dates[0]", "later"),
    _window(
        "a holiday by day", "dates", _dates("2026-12-24", "x"), "spec.dates[0].from", "date-time"
    ),
    _window("every action", "actions", ["Expiration", "Consolidation", "Drift", "Repair"]),
    _window("the halves of an action", "actions", ["EmptyConsolidation", "NonEmptyConsolidation"]),
    _window("no action", "actions", [], "spec.actions", "at least 1 items"),
    _window("actions left out", "actions", None, "spec.actions", "Required value"),
    _window("no such action", "actions", ["Sleep"], "spec.actions[0]", "supported values"),
    _window("an action twice", "actions", ["Drift", "Drift"], "spec.actions[1]", "Duplicate"),
    _window("a window that allows", "type", "Allow"),
    _window("no such type", "type", "Maybe", "spec.type", 'supported values: "Block", "Allow"'),
]

NODE_CLASSES = [
    Case("a class with an image", "KWOKNodeClass", {"spec.image": "v1"}),
    Case("a class without a spec", "KWOKNodeClass", {"spec": None}),
    Case("an empty image", "KWOKNodeClass", {"spec.image": ""}, "spec.image", "at least 1"),
]
