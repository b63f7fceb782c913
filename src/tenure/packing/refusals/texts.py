"""Amounts, taints and requirements as users read them."""

from __future__ import annotations

from typing import Final

from tenure.model.api.names import CAPACITY_TYPE, ZONE
from tenure.model.api.node import Taint
from tenure.model.matching.requirements import Requirement
from tenure.model.values.quantity import UNIT

_BINARY: Final = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))
#: Of very many values, so many are named.
_NAMED_MAX: Final = 8
_WORDS: Final = {ZONE: "zone", CAPACITY_TYPE: "capacity type"}


def taint_text(taint: Taint) -> str:
    """``key=value:Effect``, as kubectl writes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def amount_text(name: str, nano: int) -> str:
    """A readable amount: ``1.5Gi`` of memory, ``0.25`` of a cpu."""
    if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        for size, suffix in _BINARY:
            if abs(nano) >= size * UNIT:
                return f"{_short(nano / (size * UNIT))}{suffix}"
    return _short(nano / UNIT)


def _short(number: float) -> str:
    return f"{number:.3f}".rstrip("0").rstrip(".")


def label_text(requirement: Requirement) -> str:
    """``zone a or b``; of other keys, the requirement as it is written."""
    word = _WORDS.get(requirement.key)
    if word is None or requirement.operator != "In":
        return str(requirement)
    values = sorted(requirement.listed)
    more = len(values) - _NAMED_MAX
    others = [f"{more:,} others"] if more > 0 else []
    return f"{word} {' or '.join([*values[:_NAMED_MAX], *others])}"
