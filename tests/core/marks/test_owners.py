"""Every mark of a command has one module that writes it, and every reason one that knows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tenure

SRC = Path(tenure.__file__).parent

#: What is written, and by which module alone.
OWNERS = {
    "REPLACES": "core/marks/command.py",
    "REPLACED_BY": "core/marks/command.py",
    "DISRUPTION_REASON": "core/marks/command.py",
    "REASON_CONDITION": "core/marks/command.py",
    "REPLACEMENT_FAILED": "core/disrupt/replacements.py",
    "TERMINATION_TIMESTAMP": "core/marks/stamp.py",
    "DISRUPTED_TAINT": "core/marks/taints.py",
    "REBOOTING_TAINT": "core/marks/taints.py",
}

#: How a name is written: as a key of a body, as the dated annotation, as a taint or a condition.
WRITES = (
    r"\{{[^}}]*\b(?<!Reason\.){name}\s*:",
    r"dated=(names\.)?{name}\b",
    r"annotations\[(names\.)?{name}\]\s*=(?!=)",
    r"_taints\([^)]*\b{name}\b",
    r"Taint\(key=(names\.)?{name}\b",
    r"Wanted\({name}\b",
)

#: Words of the API, which name the reasons that a budget may list.
API_WORDS = {
    "model/api/nodepool.py",
    "schema/advice.py",
    # The guard and the checkers read budgets and windows by themselves.
    "safety/budgets.py",
    "safety/windows.py",
    "sim/check/checkers.py",
    "sim/check/departures.py",
}


def sources() -> dict[str, str]:
    return {str(path.relative_to(SRC)): path.read_text() for path in sorted(SRC.rglob("*.py"))}


def writers(name: str) -> set[str]:
    patterns = [re.compile(pattern.format(name=name)) for pattern in WRITES]
    return {
        path
        for path, text in sources().items()
        if path.startswith("core/") and any(pattern.search(text) for pattern in patterns)
    }


@pytest.mark.parametrize("name", OWNERS)
def test_a_mark_is_written_by_one_module(name: str) -> None:
    assert writers(name) == {OWNERS[name]}


def test_only_methods_name_a_reason_to_disrupt() -> None:
    named = re.compile(r"\bUnhealthy\b|Disruption\.UNHEALTHY")
    found = {path for path, text in sources().items() if named.search(text)}
    outside = {path for path in found if not path.startswith("core/disrupt/methods/")}
    assert outside == API_WORDS
