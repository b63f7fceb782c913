"""The termination timestamp of a NodeClaim: the only owner of its annotation.

It is the deadline of the claim's termination. ``deadline`` interprets it; this module writes and
removes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from tenure.core.decision import Ground, Patch
from tenure.core.marks.facts import RemovingStaleDeadline
from tenure.core.marks.repaired import is_stamped_by_us, no_repair_mark
from tenure.core.writes import patch
from tenure.errors import shown
from tenure.model.api.meta import format_time
from tenure.model.api.names import TERMINATION_AT, TERMINATION_TIMESTAMP
from tenure.model.api.nodeclaim import NodeClaim


def stamp_claim(
    claim: NodeClaim,
    ground: Ground,
    ahead: timedelta = timedelta(),
    beside: Mapping[str, str] | None = None,
) -> Patch:
    """Set the deadline to the instant of the write, or ``ahead`` later.

    ``beside``: annotations for the same patch.
    """
    marks = beside or {}
    action = patch(claim, {"annotations": {TERMINATION_TIMESTAMP: "", **marks}})
    return msgspec.structs.replace(
        action,
        dated=TERMINATION_TIMESTAMP,
        dated_mark=TERMINATION_AT if TERMINATION_AT in marks else "",
        ahead=ahead,
        ground=ground,
    )


def stamp_for(
    claim: NodeClaim, deadline: datetime, ground: Ground, beside: Mapping[str, str]
) -> Patch:
    """Set the deadline to an instant that another program has named."""
    stamp = {TERMINATION_TIMESTAMP: format_time(deadline)}
    action = patch(claim, {"annotations": {**stamp, **beside}})
    return msgspec.structs.replace(action, ground=ground)


def stamp_with(claim: NodeClaim, deadline: datetime) -> Patch:
    """Set it to a known instant, so that users see the deadline."""
    return patch(claim, {"annotations": {TERMINATION_TIMESTAMP: format_time(deadline)}})


def take_off_stamp(claim: NodeClaim, *, beside: bool = False) -> Patch:
    """Remove it from a claim that is not being deleted, and so has no deadline.

    ``beside``: Karpenter is in charge, so a deadline that is not ours stays.
    """
    return patch(claim, {"annotations": no_stamp(claim, beside=beside)})


def no_stamp(claim: NodeClaim, *, beside: bool = False) -> dict[str, None]:
    """The same as annotations, for a patch that removes others, too."""
    ours = is_stamped_by_us(claim) if beside else claim.termination_stamp is not None
    return {**({TERMINATION_TIMESTAMP: None} if ours else {}), **no_repair_mark(claim)}


def with_stamp(claim: NodeClaim, at: datetime) -> NodeClaim:
    """As it will be once it is written."""
    annotations = {**claim.annotations, TERMINATION_TIMESTAMP: format_time(at)}
    metadata = msgspec.structs.replace(claim.metadata, annotations=annotations)
    return msgspec.structs.replace(claim, metadata=metadata)


def stale_stamp(claim: NodeClaim) -> RemovingStaleDeadline:
    """What is said of its removal."""
    return RemovingStaleDeadline(claim.name, shown(claim.termination_stamp or ""))
