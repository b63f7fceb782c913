"""Take over a command that was begun for another reason.

Its command waits for what other reasons do not: repair, and expiration that waits for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

import msgspec

from tenure.core.decision import Concern, Verdict
from tenure.core.disrupt.candidates import Wanted
from tenure.core.disrupt.facts.commands import CommandTakenOver
from tenure.core.disrupt.passes import Pass
from tenure.core.disrupt.planning.gating import Gating
from tenure.core.disrupt.planning.withoutreplacement import expire
from tenure.core.gates.gates import changes_at, first_blocked
from tenure.core.gates.operations import BEFORE_PLAN, Operation
from tenure.core.marks.command import reason_of, take_over
from tenure.core.reasons import Reason
from tenure.core.verdicts import also_of, say

#: What takes over a command that was begun for another reason.
_TAKE_OVER: Final = frozenset(
    {Operation.EXPIRATION, Operation.GRACEFUL_REPAIR, Operation.GRACEFUL_TIMEOUT}
)

_say = partial(say, Concern.DISRUPTION)


def taken_over(
    begun: Iterable[Wanted], gating: Gating, shared: Pass
) -> dict[str, Sequence[Verdict]]:
    """By claim, of nodes with a command under way."""
    found: dict[str, Sequence[Verdict]] = {}
    for one in sorted(begun, key=lambda one: one.sort_key):
        for way in (one, *one.others):
            if (verdict := _taken_over(way, gating, shared)) is not None:
                found[one.claim.name] = verdict, also_of(way.candidate.node, verdict)
                break
    return found


def _taken_over(one: Wanted, gating: Gating, shared: Pass) -> Verdict | None:
    claim, candidate, reason = one.claim, one.candidate, one.method.traits.reason
    operation = candidate.operation
    if operation not in _TAKE_OVER:
        return None
    fleet = one.pool.fleet.before_terminating(candidate.node.name)
    facts = msgspec.structs.replace(gating.facts(one), fleet=fleet)
    blocked = first_blocked(operation, facts, shared.settings, shared.now, only=BEFORE_PLAN)
    if blocked is not None:
        gating.ask_again(one.pool.pool.name, blocked.recheck_at)
        return None
    if operation is Operation.EXPIRATION:
        return expire(one, gating)
    refusal = one.pool.refused.get(claim.uid)
    if refusal is not None and shared.now < refusal.retry_at:
        gating.ask_again(one.pool.pool.name, refusal.retry_at)
        return None  # The command goes on as it is.
    why = (*candidate.why, CommandTakenOver(reason_of(claim)))
    action = take_over(claim, reason, candidate.marks)
    at = changes_at(operation, facts, shared.now)
    return _say(claim, Reason.REPLACING, *why, action=action, recheck_at=at)
