"""As much of JSONPath as the printer columns of a CRD use.

Names after dots (a dot inside a name is written with a backslash) or in quotes, a place in a list, and a choice
from a list by one field: ``.status.conditions[?(@.type=="Ready")].status``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

_STEP: Final = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\\])+)"""
    r"""|\[(?P<index>\d+)\]"""
    r"""|\[["'](?P<quoted>[^"']+)["']\]"""
    r"""|\[\?\(@\.(?P<field>[\w/-]+)\s*==\s*["'](?P<value>[^"']*)["']\)\]"""
)


class NotUnderstood(ValueError):
    """More of JSONPath than is known here."""


class _Place(NamedTuple):
    at: int


class _Name(NamedTuple):
    name: str


class _Choice(NamedTuple):
    field: str
    value: str


@lru_cache
def _steps(path: str) -> tuple[_Name | _Place | _Choice, ...]:
    return tuple(_parsed(path))


def _parsed(path: str) -> Iterator[_Name | _Place | _Choice]:
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise NotUnderstood(path)
        at = step.end()
        if step["name"] is not None:
            yield _Name(re.sub(r"\\(.)", r"\1", step["name"]))
        elif step["quoted"] is not None:
            yield _Name(step["quoted"])
        elif step["index"] is not None:
            yield _Place(int(step["index"]))
        else:
            yield _Choice(step["field"], step["value"])


def find(path: str, obj: Any) -> Any:
    """The value there; None where there is none."""
    for step in _steps(path):
        if isinstance(step, _Name):
            obj = obj.get(step.name) if isinstance(obj, dict) else None
        elif isinstance(step, _Place):
            items = obj if isinstance(obj, list) else []
            obj = items[step.at] if step.at < len(items) else None
        else:
            items = obj if isinstance(obj, list) else []
            obj = next((i for i in items if i.get(step.field) == step.value), None)
    return obj
