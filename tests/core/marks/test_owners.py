"""Every mark has one module that writes it, or a few that are named; and every reason one that knows it."""

from __future__ import annotations

import ast
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
    "REBOOT_PRE_BOOT_ID": "core/marks/reboot.py",
    "REBOOT_GRACE_PERIOD": "core/marks/reboot.py",
    "REBOOT_HISTORY": "core/marks/reboot.py",
    "TERMINATION_TIMESTAMP": "core/marks/stamp.py",
    "REPAIR_REASON": "core/marks/repaired.py",
    "TERMINATION_BY": "core/marks/repaired.py",
    "TERMINATION_BECAUSE": "core/marks/repaired.py",
    "TERMINATION_AT": "core/marks/repaired.py",
    "READY_ONCE_AT": "core/marks/timeout.py",
    "NODE_LOST_AT": "core/marks/timeout.py",
    "INTERRUPTION": "core/marks/interruption.py",
    "REBALANCE_CONDITION": "core/marks/candidacy.py",
    "DISRUPTED_TAINT": "core/marks/taints.py",
    "REBOOTING_TAINT": "core/marks/taints.py",
    "EXCLUDE_BALANCERS": "core/marks/taints.py",
    "DISRUPTION_STARTS": "core/marks/starts.py",
    "STARTED_AT": "core/marks/starts.py",
    "DISRUPTED_BY": "core/marks/command.py",
    "DISRUPTED_SINCE": "core/marks/command.py",
    "CREATED_BY": "core/marks/command.py",
    "EXPIRED_AT": "core/marks/candidacy.py",
    # A room that alone reads or writes a mark keeps it.
    "REPLACEMENT_FAILED": "core/disrupt/replacements.py",
    "REPAIR_PROBE": "core/repair/force.py",
    "PROBE_BESIDE": "core/repair/force.py",
    "LAUNCHED_FOR": "core/provision/newclaim.py",
    "NOMINATED_PODS": "core/provision/newclaim.py",
    "NODEPOOL_HASH_FIELDS": "core/marks/templatehash.py",
    "MIN_VALUES_RELAXED": "core/provision/newclaim.py",
    "LAUNCH_BREAKER": "core/launchbreaker/poolrecord.py",
    "LAUNCH_TIMEOUTS": "core/pool/status.py",
    "REGISTERED": "core/claim/register.py",
}

#: Written by several, each for its own step.
SHARED = {
    # The pool's own; of a claim.
    "NODEPOOL_HASH": {"core/pool/status.py", "core/marks/templatehash.py"},
    # Set when the Node is initialized, taken off when it reboots.
    "INITIALIZED": {"core/claim/initialize.py", "core/reboot/steps.py"},
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

#: Who else may name the reason of the shipped method.
ALLOWED = {
    # The list of reasons, with and without a method.
    "core/gates/reasons.py",
    # Words of the API: the reasons that a budget may list.
    "model/api/nodepool.py",
    # The guard and the checkers read budgets and windows by themselves.
    "safety/reasons.py",
    "safety/beside.py",
    "safety/departure.py",
    "sim/check/beside/deadline.py",
    "sim/check/checkers.py",
    "sim/check/departures.py",
    # Another word: the verdict ``NodeUnhealthy``, and the heading of a table.
    "core/reasons.py",
    "cli/explain/repairtext.py",
    # A tone of the board and the page.
    "dashboard/fleet/values.py",
    "dashboard/fleet/tones.py",
    "dashboard/board/tones.py",
    # A column of kubectl get componentstatuses.
    "sim/serve/table/storedcells.py",
}

#: Rooms that serve every reason, and what of them may say the shipped one in a sentence: verdicts of
#: repair and their colour, the demo's story, an example.
FOR_EVERY_REASON = ("cli/view/", "core/disrupt/", "core/marks/", "dashboard/fleet/")
IN_WORDS = {
    "cli/view/screen.py",
    "cli/view/story.py",
    "core/disrupt/facts/planning.py",
    "dashboard/fleet/phases.py",
    "dashboard/fleet/tones.py",
    "dashboard/fleet/values.py",
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


@pytest.mark.parametrize("name", SHARED)
def test_a_mark_with_several_writers_has_no_others(name: str) -> None:
    assert writers(name) == SHARED[name]


def test_only_methods_name_a_reason_to_disrupt() -> None:
    named = re.compile(r"(?<!\bReason\.)\b(Unhealthy|UNHEALTHY)\b")
    found = {path for path, text in sources().items() if named.search(text)}
    outside = {path for path in found if not path.startswith("core/disrupt/methods/")}
    assert outside == ALLOWED


def test_rooms_for_every_reason_say_none_in_their_sentences() -> None:
    found = {
        path
        for path, text in sources().items()
        if path.startswith(FOR_EVERY_REASON)
        and not path.startswith("core/disrupt/methods/")
        and any("unhealthy" in sentence.lower() for sentence in strings(text))
    }
    assert found == IN_WORDS


def strings(source: str) -> list[str]:
    """The text constants, but not docstrings, which stand alone."""
    tree = ast.parse(source)
    alone = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    constants = (one for one in ast.walk(tree) if isinstance(one, ast.Constant))
    return [o.value for o in constants if isinstance(o.value, str) and id(o) not in alone]
