"""The lever on a Node: ``karpenter.sh/do-not-disrupt: "true"``, and our marks beside it.

All of them are set in one patch and removed in one patch, on the version that was evaluated. So
there is no moment in which one stands without the other, whichever process dies. Without the mark
``tenure.dev/do-not-disrupt-by`` the annotation is a user's.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from tenure.core.decision import Patch
from tenure.core.writes import patch
from tenure.model.api.meta import FOR_EVER, format_time, read_instant
from tenure.model.api.names import (
    CREATED_BY,
    DO_NOT_DISRUPT,
    DO_NOT_DISRUPT_BECAUSE,
    DO_NOT_DISRUPT_BY,
    DO_NOT_DISRUPT_UNTIL,
    REPLACES,
    SET_BY_TENURE,
)
from tenure.model.api.node import Node

#: The one value that Karpenter understands on a Node.
ON: Final = "true"
#: Stands for an end that is not known: a window that cannot be read has none.
UNKNOWN_END: Final = "unknown"
MARKS: Final = (DO_NOT_DISRUPT_BY, DO_NOT_DISRUPT_BECAUSE, DO_NOT_DISRUPT_UNTIL)
#: Marks of a replacement, on its Node.
COPIED: Final = (CREATED_BY, REPLACES)
#: An annotation may be longer, but a reader is not patient.
_BECAUSE_MAX: Final = 256


class Lever(msgspec.Struct, frozen=True):
    """What the annotations say, or are to say."""

    because: str
    #: ``FOR_EVER`` where the end is not known.
    until: datetime = FOR_EVER

    def written(self) -> dict[str, str]:
        end = UNKNOWN_END if self.until == FOR_EVER else format_time(self.until)
        return {
            DO_NOT_DISRUPT: ON,
            DO_NOT_DISRUPT_BY: SET_BY_TENURE,
            DO_NOT_DISRUPT_BECAUSE: self.because[:_BECAUSE_MAX],
            DO_NOT_DISRUPT_UNTIL: end,
        }


def is_marked(node: Node) -> bool:
    return node.annotations.get(DO_NOT_DISRUPT_BY) == SET_BY_TENURE


def is_on(node: Node) -> bool:
    """Whether the annotation is there because of us."""
    return is_marked(node) and node.annotations.get(DO_NOT_DISRUPT) == ON


def is_torn(node: Node) -> bool:
    """Marks are left, but the one that makes the lever ours was removed: the annotation is a user's."""
    left = any(key in node.annotations for key in MARKS)
    return left and DO_NOT_DISRUPT_BY not in node.annotations


def until_of(node: Node) -> datetime | None:
    """When the lever ends by its own word; None: it has no end that is known."""
    return read_instant(node.annotations.get(DO_NOT_DISRUPT_UNTIL, ""))


def says(node: Node, lever: Lever) -> bool:
    """Whether the annotations are as they are to be."""
    wanted = lever.written()
    return wanted == {key: node.annotations.get(key) for key in wanted}


def set_lever(node: Node, lever: Lever) -> Patch:
    return patch(node, {"annotations": lever.written()})


def take_back(node: Node) -> Patch:
    """The annotation with the marks; the marks alone where the value is not, or no longer, ours.

    Karpenter copies the annotations of a claim to its Node: those of a replacement go with it.
    """
    gone = (DO_NOT_DISRUPT, *MARKS) if is_on(node) else MARKS
    copies = tuple(key for key in COPIED if key in node.annotations)
    return patch(node, {"annotations": dict.fromkeys((*gone, *copies))})
