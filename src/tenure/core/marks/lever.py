"""``karpenter.sh/do-not-disrupt: "true"`` with our mark beside it: a word to Karpenter, no user's wish. So is
``karpenter.sh/do-not-repair``.

``core.beside.mark`` writes it on Nodes, ``core.beside.replacing.newclaim`` on the claims of replacements.
"""

from __future__ import annotations

from typing import Final

from tenure.model.api import names
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim

#: What stands beside the annotation: by which program, why, and until when.
LEVER_MARKS: Final = (
    names.DO_NOT_DISRUPT_BY,
    names.DO_NOT_DISRUPT_BECAUSE,
    names.DO_NOT_DISRUPT_UNTIL,
)


#: By annotation: the mark that makes it ours.
_BY: Final = {
    names.DO_NOT_DISRUPT: names.DO_NOT_DISRUPT_BY,
    names.DO_NOT_REPAIR: names.DO_NOT_REPAIR_BY,
}


def is_lever(thing: Node | NodeClaim, annotation: str = names.DO_NOT_DISRUPT) -> bool:
    """Whether the annotation is there because of us."""
    ours = thing.annotations.get(_BY[annotation]) == names.SET_BY_TENURE
    return ours and thing.annotations.get(annotation) == "true"


def no_lever(thing: Node | NodeClaim) -> dict[str, None]:
    """As annotations to remove: the marks that are there, and the annotation where it is ours."""
    gone = [names.DO_NOT_DISRUPT] if is_lever(thing) else []
    return dict.fromkeys((*gone, *(mark for mark in LEVER_MARKS if mark in thing.annotations)))
