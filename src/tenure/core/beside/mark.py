"""A lever on a Node: the annotation that Karpenter honours, and our marks beside it.

All of them are set in one patch and removed in one patch, on the version that was evaluated. So
there is no moment in which one stands without the other, whichever process dies. Without the mark
``tenure.dev/…-by`` the annotation is a user's.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from tenure.core.beside.kinds import DISRUPTION, LEVERS, LeverKind
from tenure.core.decision import Patch
from tenure.core.writes import patch
from tenure.model.api.meta import FOR_EVER, format_time, read_instant
from tenure.model.api.names import CREATED_BY, REPLACES, SET_BY_TENURE
from tenure.model.api.node import Node

#: The one value that Karpenter understands on a Node.
ON: Final = "true"
#: Stands for an end that is not known: a window that cannot be read has none.
UNKNOWN_END: Final = "unknown"
#: Marks of a replacement, on its Node: Karpenter copies the annotations of a claim.
COPIED: Final = (CREATED_BY, REPLACES)
#: An annotation may be longer, but a reader is not patient.
_BECAUSE_MAX: Final = 256


class Lever(msgspec.Struct, frozen=True):
    """What the annotations say, or are to say."""

    kind: LeverKind
    because: str
    #: ``FOR_EVER`` where the end is not known.
    until: datetime = FOR_EVER

    def written(self) -> dict[str, str]:
        end = UNKNOWN_END if self.until == FOR_EVER else format_time(self.until)
        return {
            self.kind.annotation: ON,
            self.kind.by: SET_BY_TENURE,
            self.kind.because: self.because[:_BECAUSE_MAX],
            self.kind.until: end,
        }


def is_marked(node: Node, kind: LeverKind) -> bool:
    return node.annotations.get(kind.by) == SET_BY_TENURE


def is_on(node: Node, kind: LeverKind) -> bool:
    """Whether the annotation is there because of us."""
    return is_marked(node, kind) and node.annotations.get(kind.annotation) == ON


def is_torn(node: Node, kind: LeverKind) -> bool:
    """Marks are left, but the one that makes the lever ours was removed: the annotation is a user's."""
    left = any(key in node.annotations for key in kind.marks)
    return left and kind.by not in node.annotations


def until_of(node: Node, kind: LeverKind) -> datetime | None:
    """When the lever ends by its own word; None: it has no end that is known."""
    return read_instant(node.annotations.get(kind.until, ""))


def says(node: Node, lever: Lever) -> bool:
    """Whether the annotations are as they are to be."""
    wanted = lever.written()
    return wanted == {key: node.annotations.get(key) for key in wanted}


def set_lever(node: Node, lever: Lever) -> Patch:
    return patch(node, {"annotations": lever.written()})


def take_back(node: Node, *kinds: LeverKind) -> Patch:
    """The annotation with the marks; the marks alone where the value is not, or no longer, ours.

    What Karpenter has copied from the claim of a replacement goes with the lever that it came with.
    """
    gone = [key for kind in kinds for key in _gone(node, kind)]
    copies = [key for key in COPIED if key in node.annotations and DISRUPTION in kinds]
    return patch(node, {"annotations": dict.fromkeys((*gone, *copies))})


def take_back_alone(node: Node, *kinds: LeverKind) -> Patch:
    """Without the copies: those on the Node of a replacement are Tenure's own where it is in charge."""
    return patch(node, {"annotations": dict.fromkeys(key for k in kinds for key in _gone(node, k))})


def levers_on(node: Node) -> tuple[LeverKind, ...]:
    """Those that are marked, or were."""
    return tuple(kind for kind in LEVERS if is_marked(node, kind) or is_torn(node, kind))


def left_on(node: Node) -> tuple[LeverKind, ...]:
    """The levers of which something of ours is on the Node."""
    return tuple(kind for kind in LEVERS if _is_left(node, kind))


def _is_left(node: Node, kind: LeverKind) -> bool:
    copied = kind == DISRUPTION and any(key in node.annotations for key in COPIED)
    return copied or is_marked(node, kind) or is_torn(node, kind)


def _gone(node: Node, kind: LeverKind) -> tuple[str, ...]:
    return (kind.annotation, *kind.marks) if is_on(node, kind) else kind.marks
