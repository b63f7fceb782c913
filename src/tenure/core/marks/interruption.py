"""The mark of a claim whose instance the cloud takes back: who announced that, and when.

It is written with the deadline, in one patch (``stamp``). From then on the cluster holds what the
notice said: the notice is acknowledged, and another leader goes on without it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from tenure.model.api.meta import format_time, read_instant
from tenure.model.api.names import INTERRUPTION
from tenure.model.api.nodeclaim import NodeClaim

#: Why such a claim is disrupted. No method has this reason: nothing blocks it, and no budget names it.
INTERRUPTED: Final = "Interrupted"


class Interruption(msgspec.Struct, frozen=True):
    #: The provider.
    by: str
    #: When it was announced; None: that cannot be read.
    at: datetime | None = None


def is_interrupted(claim: NodeClaim) -> bool:
    return INTERRUPTION in claim.annotations


def interruption_of(claim: NodeClaim) -> Interruption | None:
    """A mark that cannot be read is one all the same: it was written with a deadline."""
    said = claim.annotations.get(INTERRUPTION)
    if said is None:
        return None
    by, _, at = said.rpartition(" ")
    instant = read_instant(at)
    return Interruption(by, instant) if instant is not None else Interruption(said)


def interruption_mark(by: str, at: datetime) -> dict[str, str]:
    return {INTERRUPTION: f"{by} {format_time(at)}"}
