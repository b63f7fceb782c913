"""A pod that fits nowhere, and its problem, packed again with something changed.

What is changed in a pod is changed in every pod of its controller: users change the template of a
workload. Packing is asked a bounded number of times, and of very many waiting pods only the first ones
stay in the problem: the answer is for a user who waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from tenure.model.api.meta import BEGINNING, controller_of
from tenure.model.api.pod import Pod
from tenure.model.snapshot.derived import NOTHING_KEPT
from tenure.packing.demand.problem import ExistingNode, PoolTemplate, Problem
from tenure.packing.facts import Refusal
from tenure.packing.pack import pack
from tenure.packing.result import Packing, PlannedClaim

#: How often packing is asked.
PACKS_MAX: Final = 120
#: Of the other pods that wait, so many are packed with it: those that are served first.
OTHERS_MAX: Final = 500


S = TypeVar("S")


class Trial:
    def __init__(self, problem: Problem, uid: str) -> None:
        (self.pod,) = (pod for pod in problem.pods if pod.uid == uid)
        self._owner = owner_of(self.pod)
        pods = _first(problem.pods, self.pod)
        self.problem: Final = msgspec.structs.replace(problem, pods=pods, derived=NOTHING_KEPT)
        self.packs = 0
        self.base: Final = pack(self.problem)

    @property
    def spent(self) -> bool:
        return self.packs >= PACKS_MAX

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        unplaced = self.base.unplaced.get(self.pod.uid)
        return unplaced.refusals if unplaced is not None else ()

    # -- changes -------------------------------------------------------------------------------

    def with_pods(self, change: Callable[[Pod], Pod], *, running: bool = False) -> Problem:
        """Every pod of its controller changed; those that run, too, where that matters."""
        pods = tuple(change(pod) if self._is_own(pod) else pod for pod in self.problem.pods)
        problem = msgspec.structs.replace(self.problem, pods=pods)
        return with_running(problem, change, self._is_own) if running else problem

    def with_pool(self, pool: str, change: Callable[[PoolTemplate], PoolTemplate]) -> Problem:
        templates = tuple(
            change(one) if one.pool == pool else one for one in self.problem.templates
        )
        return msgspec.structs.replace(self.problem, templates=templates)

    def _is_own(self, pod: Pod) -> bool:
        return pod.uid == self.pod.uid or (bool(self._owner) and owner_of(pod) == self._owner)

    # -- answers -------------------------------------------------------------------------------

    def packed(self, problem: Problem) -> Packing | None:
        """The packing, if it places the pod."""
        if self.spent:
            return None
        self.packs += 1
        packing = pack(problem)
        uid = self.pod.uid
        placed = uid in packing.placed or any(uid in claim.pods for claim in packing.claims)
        return packing if placed else None

    def places(self, problem: Problem) -> bool:
        return self.packed(problem) is not None

    def home(self, packing: Packing) -> PlannedClaim | ExistingNode:
        """Where the pod goes."""
        uid = self.pod.uid
        if (name := packing.placed.get(uid)) is not None:
            return next(node for node in self.problem.nodes if node.name == name)
        return next(claim for claim in packing.claims if uid in claim.pods)

    def first_that_places(self, steps: Sequence[S], changed: Callable[[S], Problem]) -> S | None:
        """The first of these changes, each larger than the one before, that places the pod."""
        low, high = 0, len(steps)
        while low < high and not self.spent:
            middle = (low + high) // 2
            if self.places(changed(steps[middle])):
                high = middle
            else:
                low = middle + 1
        return steps[low] if low < len(steps) and not self.spent else None


def with_running(
    problem: Problem, change: Callable[[Pod], Pod], of: Callable[[Pod], bool]
) -> Problem:
    """The problem with running pods changed: the scheduler reads their anti-affinity, too."""

    def changed(node: ExistingNode) -> ExistingNode:
        pods = tuple(change(pod) if of(pod) else pod for pod in node.pods)
        return msgspec.structs.replace(node, pods=pods)

    return msgspec.structs.replace(problem, nodes=tuple(map(changed, problem.nodes)))


def owner_of(pod: Pod) -> str:
    """Whose pod it is; empty: no controller's."""
    controller = controller_of(pod.metadata)
    return f"{pod.namespace}/{controller.uid or controller.name}" if controller else ""


def _first(pods: Iterable[Pod], one: Pod) -> tuple[Pod, ...]:
    others: Sequence[Pod] = [pod for pod in pods if pod.uid != one.uid]
    if len(others) > OTHERS_MAX:
        others = sorted(others, key=_served)[:OTHERS_MAX]
    return (*others, one)


def _served(pod: Pod) -> tuple[int, object, str]:
    created = pod.metadata.creation_timestamp or BEGINNING
    return -(pod.spec.priority or 0), created, pod.uid
