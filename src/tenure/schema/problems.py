"""What is wrong with an object, as far as no schema can say: one check for webhook and status.

The webhook refuses what has a problem; what slipped past it (an object that an older schema
let in, a webhook that was down) gets the same sentences in its status. Both ask here, so they
cannot disagree. For each kind, and where the status says it:

- NodePool            ``template`` → ``ValidationSucceeded``, part of the pool's Ready;
                      ``disruption`` → ``DisruptionValid``: a bad block disrupts nothing;
                      ``repair`` → ``RepairValid``: a bad block repairs nothing;
- NodeClaim           ``Launched`` stays Unknown: nothing is launched for it;
- MaintenanceWindow   ``Valid``: a bad one blocks;
- NodePoolPolicy      ``Valid``: a bad one is refused, and what it would set is held;
- a node class        the provider refuses to launch from it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.nodepool import NodePool
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.api.window import MaintenanceWindow
from tenure.schema.semantics.claim import claim_problems
from tenure.schema.semantics.disruption import disruption_problems
from tenure.schema.semantics.policy import pool_policy_problems
from tenure.schema.semantics.repair import repair_problems
from tenure.schema.semantics.template import template_problems
from tenure.schema.semantics.window import window_problems
from tenure.schema.structure.crd import CustomKind

Problems = tuple[SpecError, ...]

#: Where an element stands in its list.
_PLACE: Final = re.compile(r"\[[0-9]+\]")


class PoolProblems(msgspec.Struct, frozen=True):
    """Apart, because a block that cannot be read takes only itself out of use."""

    template: Problems
    disruption: Problems
    repair: Problems


def problems_of_pool(pool: NodePool, watched: Collection[str] | None = ()) -> PoolProblems:
    """``watched``: the condition types that the pool's provider states; None: unknown, so
    that what depends on it is no problem."""
    return PoolProblems(
        template=tuple(template_problems(pool)),
        disruption=tuple(disruption_problems(pool)),
        repair=tuple(repair_problems(pool, watched)),
    )


def problems_of(obj: ApiObject, watched: Collection[str] | None = ()) -> Problems:
    """Everything wrong with an object of one of our kinds; nothing with any other."""
    match obj:
        case NodePool():
            found = problems_of_pool(obj, watched)
            return (*found.template, *found.disruption, *found.repair)
        case NodeClaim():
            return tuple(claim_problems(obj))
        case MaintenanceWindow():
            return tuple(window_problems(obj))
        case NodePoolPolicy():
            return tuple(pool_policy_problems(obj, watched))
        case _:
            return ()


def problems_in(obj: ApiObject, kind: CustomKind, watched: Collection[str] | None = ()) -> Problems:
    """Everything wrong with an object of that kind, which may be a provider's."""
    if kind.problems is None:
        return problems_of(obj, watched)
    assert isinstance(obj, NodeClass), f"{kind.resource} is no node class"
    return tuple(kind.problems(obj))


def in_words(problems: Iterable[SpecError]) -> str:
    """All of them in one line, for a condition; empty when there are none."""
    return "; ".join(map(str, problems))


def brought_by(change: Problems, before: Problems) -> Problems:
    """The problems that were not there before: an old mistake must not lock its object.

    An element of a list is known by what it says, not by its place: one that is put in front
    makes none of the others new.
    """
    known = Counter(map(_identity, before))
    brought: list[SpecError] = []
    for problem in change:
        if known[_identity(problem)]:
            known[_identity(problem)] -= 1
        else:
            brought.append(problem)
    return tuple(brought)


def _identity(problem: SpecError) -> tuple[str, str, str]:
    return _PLACE.sub("[]", problem.at), repr(problem.got), problem.expected
