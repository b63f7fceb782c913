"""Who removed a claim soon after its creation: others, Tenure, or the cloud.

Every removal of Tenure leaves a mark on the claim before the claim is deleted, so a restart, another
leader and a late watch know the same:

===============================  ==========================================================
removed by                       mark
===============================  ==========================================================
a command (empty, drifted, …)    ``karpenter.sh/disruption-reason``, ``replaced-by``
expiration without a command     condition ``Expired``
repair, forceful or graceful     ``repair-reason``; not Ready in time: its ``readinessTTL``
a reboot that failed             ``reboot-history``
a replacement that is left over  ``karpenter.sh/replaces``
an interruption                  the mark of ``marks/interruption``
garbage collection               the condition of an instance or Node that is lost
===============================  ==========================================================

None of these is a launch in vain. But a node that is empty because its pods were taken off it at once
was of no use, no matter what removes it: else pods that come and go would cost a node every few seconds.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from tenure.core.marks.candidacy import said_since
from tenure.core.marks.command import has_reason, is_replaced, is_replacement
from tenure.core.marks.interruption import is_interrupted
from tenure.core.marks.timeout import has_timed_out, lost
from tenure.model.api import names
from tenure.model.api.meta import later
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.observations import TerminationAnswer

#: A claim that existed for this long was of use, whatever happened afterwards.
OF_USE_AFTER: Final = timedelta(minutes=10)
#: A node that held pods for this long was of use to them. One that is removed as empty each minute
#: is as many in an hour as the limit of a namespace allows.
STAYED: Final = timedelta(minutes=1)


def was_wasted(claim: NodeClaim, answer: TerminationAnswer | None) -> bool:
    """Whether its instance is terminated soon after its creation, and not by Tenure's decision.

    Known once the cloud was asked to terminate it: an instance that was gone before is lost.
    """
    if answer is None or answer.lost or claim.metadata.deletion_timestamp is None or _by_us(claim):
        return False
    return claim.metadata.deletion_timestamp < later(claim.created_at, OF_USE_AFTER)


def was_left_at_once(claim: NodeClaim) -> bool:
    """Whether Tenure removes it as empty, and no pod had stayed there for a minute."""
    empty_at = said_since(claim, names.EMPTY_CONDITION)
    came_at = said_since(claim, "Initialized")
    if not (is_replaced(claim) or has_reason(claim)) or empty_at is None or came_at is None:
        return False
    return empty_at < later(came_at, STAYED)


def _by_us(claim: NodeClaim) -> bool:
    """Whether Tenure or the cloud is the cause: see the table above."""
    return (
        is_replaced(claim)
        or has_reason(claim)
        or claim.is_true(names.EXPIRED_CONDITION)
        or names.REPAIR_REASON in claim.annotations
        or has_timed_out(claim)
        or claim.rebooting
        or names.REBOOT_HISTORY in claim.annotations
        or is_replacement(claim)
        or is_interrupted(claim)
        or lost(claim) is not None
    )
