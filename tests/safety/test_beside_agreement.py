"""Beside Karpenter the guard and the simulator's checker say the same of marks on commands, ours and others'.

They share no code. Each mark of a command stands there or not, is written, removed or left: all of that is tried.
What the guard lets pass, the checker does; the other way round, but for what only the guard asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

from tenure.core.writes import patch
from tenure.model.api import names
from tenure.model.api.meta import format_time
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import EVERY_CLASS
from tenure.safety.beside import beyond_levers
from tenure.sim.check.promises import _on_claim
from tests.core.beside.test_repair import KARPENTER, POOL
from tests.core.build import FOREIGN, NOW, a_claim, a_node, ago
from tests.snapshots import snapshot_with

SETTINGS: Final = Settings(beside_karpenter=True)
STAMP: Final = names.TERMINATION_TIMESTAMP
AT: Final = format_time(ago(1))
MARKS: Final = {
    names.TERMINATION_BY: "tenure",
    names.TERMINATION_BECAUSE: "x",
    names.TERMINATION_AT: AT,
}
#: Of a deadline: none, one of ours, one of another program.
DEADLINES: Final[tuple[dict[str, str], ...]] = ({}, {STAMP: AT, **MARKS}, {STAMP: AT})
#: To remove what is not there changes nothing, and to delete our marks alone is said by the guard alone.
GUARD_ALONE: Final = ("the deadline of a command of ours", "together with its deadline alone")


def claims() -> Iterator[dict[str, str]]:
    says = product((None, "b"), (None, "Drifted", "Unhealthy"), (None, "tenure"), (None, "r"))
    keys = (names.REPLACED_BY, names.DISRUPTION_REASON, names.DISRUPTED_BY, names.REPAIR_REASON)
    for values in says:
        there = {key: one for key, one in zip(keys, values, strict=True) if one is not None}
        yield from ({**there, **deadline} for deadline in DEADLINES)


def patches() -> Iterator[dict[str, Any]]:
    """``-``: left as it is."""
    options = {
        names.REPLACED_BY: ("-", "b", None),
        names.DISRUPTION_REASON: ("-", "Drifted", "Unhealthy", None),
        names.DISRUPTED_BY: ("-", "tenure", None),
        STAMP: ("-", None),
        names.TERMINATION_BY: ("-", None),
    }
    for values in product(*options.values()):
        written = {k: one for k, one in zip(options, values, strict=True) if one != "-"}
        if names.TERMINATION_BY in written:
            written |= dict.fromkeys(MARKS)
        if written:
            yield written


def test_guard_and_checker_agree_on_marks_of_commands() -> None:
    looser, laxer = list[str](), list[str]()
    for there in claims():
        claim = a_claim(ref=FOREIGN, annotations=there)
        snapshot = snapshot_with(claim, a_node(), POOL, KARPENTER, ours=EVERY_CLASS)
        stored = {"metadata": {"name": claim.name, "annotations": there}}
        for written in patches():
            action = patch(claim, {"annotations": written})
            guard = beyond_levers(action, snapshot, NOW, SETTINGS) or ""
            checker = _on_claim("PATCH", written, stored)
            if checker and not guard:
                looser.append(f"{there} {written}: {checker}")
            elif guard and not checker and not guard.endswith(GUARD_ALONE):
                laxer.append(f"{there} {written}: {guard}")
    assert (looser[:3], laxer[:3]) == ([], [])
