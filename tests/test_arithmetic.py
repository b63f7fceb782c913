"""Instants are added to in one place: what an object says may lie at the end of all calendars."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.folders import ROOT

SOURCE = ROOT / "src" / "tenure"
PURE = ("core", "packing", "model", "schema")
#: The one place; and the calendar, which is asked about instants of the clock only.
EXEMPT = frozenset({"model/api/meta.py", "model/values/cron.py"})

INSTANTS = ("_at", "_timestamp", "_time", "now", "since", "until", "instant", "deletion", "hit")
#: Too short to be looked for at the end of longer names.
NAMES = frozenset({"at", "closed", "opened", "first", "last", "newest"})
CONSTANTS = ("BEGINNING", "FOR_EVER", "LONG_AGO")


def test_the_core_adds_to_instants_in_one_place_only() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}"
        for room in PURE
        for path in sorted((SOURCE / room).rglob("*.py"))
        if str(path.relative_to(SOURCE)) not in EXEMPT
        for line in raw_arithmetic(path.read_text())
    ]
    assert not found, "use later() or earlier() of tenure.model.api.meta"


@pytest.mark.parametrize(
    "code",
    [
        "due_at = since + span",
        "x = condition.last_transition_time + settings.drain_min",
        "x = self._now - DAY",
        "x = answer.asked_at + settings.poll",
        "x = max(came) + timedelta(seconds=1)",
        "x = timedelta(seconds=pod.spec.termination_grace_period_seconds)",
        "due_at += span",
        "x = one.at + HOUR",
        "x = known.closed + REMEMBERED",
        "x = entry.opened - HOUR",
        "x = first + WITHIN",
    ],
)
def test_raw_arithmetic_is_seen(code: str) -> None:
    assert list(raw_arithmetic(code)) == [1]


@pytest.mark.parametrize(
    "code",
    [
        "x = now - since",
        "x = deadline.at - requested_at(pod)",
        "x = later(since, span)",
        "x = DAY + HOUR",
        "x = timedelta(seconds=30)",
        "x = -timedelta(1)",
        "message = text + until_words",
    ],
)
def test_what_cannot_overflow_is_left_alone(code: str) -> None:
    assert list(raw_arithmetic(code)) == []


def raw_arithmetic(source: str) -> Iterator[int]:
    """The lines that add a span to an instant, or make one of a number that an object may say."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            sides = [_is_instant(node.left), _is_instant(node.right)]
            difference = isinstance(node.op, ast.Sub) and all(sides)
            if (any(sides) and not difference) or _adds_timedelta(node):
                yield node.lineno
        elif isinstance(node, ast.AugAssign) and _is_instant(node.target):
            if isinstance(node.op, ast.Add | ast.Sub):
                yield node.lineno
        elif _is_timedelta(node):
            assert isinstance(node, ast.Call)
            if any(not isinstance(k.value, ast.Constant) for k in node.keywords):
                yield node.lineno


def _adds_timedelta(node: ast.BinOp) -> bool:
    return _is_timedelta(node.right) or _is_timedelta(node.left)


def _is_timedelta(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "timedelta"


def _is_instant(node: ast.AST) -> bool:
    node = node.func if isinstance(node, ast.Call) else node
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name in CONSTANTS or name in NAMES or name.endswith(INSTANTS)
