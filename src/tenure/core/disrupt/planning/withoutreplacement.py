"""Start what needs no replacement: a reboot, and expiration with ``expirationPolicy: Always``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import msgspec

from tenure.core.decision import CommandCount, Concern, Decision, Ground, Patch, Verdict
from tenure.core.disrupt.candidates import Wanted
from tenure.core.disrupt.facts.commands import TerminatingWithin
from tenure.core.disrupt.facts.planning import RebootCommitted
from tenure.core.disrupt.planning.gating import Gating
from tenure.core.facts import sentence
from tenure.core.gates.operations import Operation
from tenure.core.gates.velocity import fresh_until
from tenure.core.marks.deadline import grace_period
from tenure.core.marks.reboot import commit
from tenure.core.reasons import Reason
from tenure.core.verdicts import no_later, say
from tenure.core.writes import as_evaluated, delete_claim

_say = partial(say, Concern.DISRUPTION)


def reboot(
    one: Wanted, gating: Gating, record: Callable[[Wanted], Verdict | None], now: datetime
) -> Verdict:
    """Committed on the claim; ``core/reboot`` carries it out.

    ``record``: records its start where it has to be; None: it need not, or is.
    """
    claim, candidate = one.claim, one.candidate
    gating.count(one)
    gating.give_up(one)
    if (verdict := record(one)) is not None:
        return msgspec.structs.replace(verdict, reason=Reason.REBOOT_DUE)
    bounds = [span for span in (candidate.bound, grace_period(claim)) if span is not None]
    forceful = candidate.operation is Operation.FORCEFUL_REBOOT
    bound = timedelta() if forceful else min(bounds, default=None)
    why = sentence(candidate.why)
    action = commit(claim, bound, one.method.traits.reason, why, now)
    if isinstance(action, Patch):
        action = msgspec.structs.replace(action, begins=True)
    facts = (*candidate.why, RebootCommitted(candidate.node.name))
    fresh = fresh_until(one.pool.pool, claim, now)
    verdict = _say(claim, Reason.REBOOT_DUE, *facts, action=action, recheck_at=fresh)
    if not isinstance(action, Patch) or not action.subresource or candidate.commits is None:
        return verdict
    commits = msgspec.structs.replace(candidate.commits, bound=bound)
    command = CommandCount(reason=one.method.traits.reason, decision=Decision.REBOOT)
    return msgspec.structs.replace(verdict, commits=commits, command=command)


def expire(one: Wanted, gating: Gating) -> Verdict:
    """The claim is deleted."""
    claim, candidate = one.claim, one.candidate
    gating.count(one)
    gating.give_up(one)
    action = delete_claim(claim, Ground.EXPIRED)
    action = msgspec.structs.replace(action, precondition=as_evaluated(candidate.node))
    facts = (*candidate.why, TerminatingWithin(grace_period(claim)))
    verdict = _say(claim, Reason.EXPIRATION_FORCED, *facts, action=action)
    verdict = msgspec.structs.replace(verdict, commits=candidate.commits)
    return no_later(verdict, gating.changes_at(one))
