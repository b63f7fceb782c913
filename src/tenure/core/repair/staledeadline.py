"""A deadline that is left on a claim that stays, and for which nothing is due: it is taken off."""

from __future__ import annotations

from tenure.core.decision import Concern, Verdict
from tenure.core.facts import Fact
from tenure.core.health.rules import Rules
from tenure.core.marks.interruption import is_interrupted
from tenure.core.marks.repaired import has_stray_marks, is_stamped_by_us
from tenure.core.marks.stamp import stale_stamp, take_off_stamp
from tenure.core.reasons import Reason
from tenure.core.repair.facts import DeadlineMarksDropped
from tenure.core.verdicts import say
from tenure.errors import shown
from tenure.model.api.nodeclaim import NodeClaim


def has_stale_stamp(claim: NodeClaim, rules: Rules) -> bool:
    """That of an interruption is written before the claim is deleted. Beside Karpenter one without our
    mark is not ours, and marks without it are of no use."""
    stamped = claim.termination_stamp is not None
    if rules.beside:
        stamped = is_stamped_by_us(claim) or has_stray_marks(claim)
    return stamped and not claim.deleting and not is_interrupted(claim)


def stale(claim: NodeClaim, rules: Rules) -> Verdict:
    action = take_off_stamp(claim, beside=rules.beside)
    said: Fact = stale_stamp(claim)
    if rules.beside and not is_stamped_by_us(claim):
        said = DeadlineMarksDropped(claim.name, shown(claim.termination_stamp or ""))
    return say(Concern.REPAIR, claim, Reason.STALE_DEADLINE, said, action=action)
