"""Looks for moves: nodes that can go because their pods fit elsewhere, or on something cheaper.

1. *Delete*: candidates by price per disruption cost, the highest first. The node is taken out of the
   index and its pods are put onto others; where not all fit, that is undone. Room only shrinks while
   moves are kept, so no candidate is asked twice. A preference is given up only where no new node
   could keep it, as in a packing: else the packing that checks the move would launch that node.
2. *Replace*: what is left, in groups by what is wasted: the price of a node per worth of its pods. Each
   node by itself, by one node and else by several, and the group together (m → n); what saves more is kept.

Every move satisfies the price rules (``rules``) and the policy of its pools (``balanced``). The fee
only orders moves. First the nodes are read. Moves are given out as they are found. Reading and tries are both in steps of a
few milliseconds, so that the caller can do something else meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Final

import msgspec

from tenure.model.values.fact import Fact
from tenure.packing.consolidate.balanced import rejected
from tenure.packing.consolidate.drafted import DraftPrices
from tenure.packing.consolidate.facts import (
    MoreNodesSaveTooLittle,
    NoCheaperReplacement,
    NodeTakesNoPods,
    PodRequestsUnknown,
    PodsFitNoOneNode,
    PreferenceKept,
    WellUsed,
)
from tenure.packing.consolidate.pools import Opened, Pools
from tenure.packing.consolidate.question import Candidate, Move, Question
from tenure.packing.consolidate.rules import PriceRules, fee_of, price_of
from tenure.packing.demand.requests import Resources
from tenure.packing.demand.steps import NODES_A_STEP, Steps
from tenure.packing.finished import finished
from tenure.packing.index.whatif import Trial, WhatIf
from tenure.packing.offers.daemons import DaemonPod, read_daemons, that_fit
from tenure.packing.opening.drafts import Draft
from tenure.packing.question import any_soft_taint

#: Nodes that cost no more than this times what nodes for their pods cost at the least are not replaced:
#: whatever is launched would save too little.
WASTE_MIN: Final = 1.05
#: Pods that are given new nodes in one try, so that none takes longer than some 10 ms.
PODS_MAX: Final = 400
#: The most candidates that one move replaces together.
TOGETHER_MAX: Final = 8
#: How often a group is tried together, each time without the node that wastes least: often it is one
#: that is as good as what would replace it.
TRIES: Final = 3


#: Smaller differences of prices, which are millionths of a dollar, come of rounding.
TINY: Final = 1e-3


class _Found(msgspec.Struct):
    """A move that is tried, and not kept yet."""

    trial: Trial
    move: Move
    opened: Opened | None = None
    drafts: list[Draft] = []


class Tried(msgspec.Struct, frozen=True, gc=False):
    """A try that has come to its end: nothing is left of it but the move."""

    #: None: it came to nothing.
    move: Move | None = None


NOTHING: Final = Tried()


class Search:
    """One question, read. Moves that are given out are kept in the index."""

    def __init__(self, question: Question) -> None:
        self._question = question
        daemons = that_fit(read_daemons(question.daemons), _sizes(question))
        ordered = sorted(question.candidates, key=lambda one: (one.price / one.cost, one.name))
        self._candidates: Final = ordered[::-1]
        #: By name of a candidate that stays: why, as far as it is known by now.
        self.why: Final[dict[str, Fact]] = {}
        self.index: Final = WhatIf(
            question.nodes,
            daemons,
            question.namespaces,
            volumes=question.volumes,
            derived=question.derived,
            last=[*(one.name for one in ordered), *question.last],
            preferences=question.preferences,
            soft_taints=any_soft_taint(question.templates),
            in_steps=True,
        )
        #: All nodes, in steps; ``moves`` begins with those that are left.
        self.reading: Final = self._read(daemons)

    def _read(self, daemons: tuple[DaemonPod, ...]) -> Iterator[None]:
        question = self._question
        yield from self.index.reading
        yield
        self._pools = Pools(question, self.index, daemons)
        yield from self._pools.reading
        rules = PriceRules(spot_to_spot=question.spot_to_spot, fee_cpus=question.node_fee_cpus)
        self._prices = DraftPrices(rules)
        yield

    def moves(self) -> Iterator[Move | None]:
        """The plan. None: a try came to nothing."""
        return (tried.move for tried in self.steps() if tried is not None)

    def steps(self) -> Iterator[Tried | None]:
        """The plan in steps: the search may be suspended after each. None: a try is not at its end."""
        yield from self.reading
        left: list[Candidate] = []
        for one in self._candidates:
            move = yield from self._delete(one)
            if move is None:
                left.append(one)
            yield Tried(move)
        wasteful = yield from self._wasteful(left)
        for pool, ranked in wasteful:
            for group in self._groups(pool, ranked):
                yield from self._replace(group)

    def letting_go(self) -> Iterator[None]:
        """In steps: the search is over."""
        yield from self._pools.letting_go()
        yield from self.index.letting_go()

    # -- delete ----------------------------------------------------------------------------------

    def _delete(self, one: Candidate) -> Steps[Move | None]:
        trial = yield from self._taken_out((one,), all_or_none=True)
        if isinstance(trial, Fact):
            self.why[one.name] = trial
            return None
        if trial.left and not (yield from self._fits_relaxed(trial, one)):
            yield from self._note_preference(trial, one)
            self.index.undo(trial)
            return None
        move = Move(candidates=(one,), placed=self.index.where(trial))
        why = rejected(move, self._question.balanced)
        if why is not None:
            self.why[one.name] = why
            self.index.undo(trial)
            return None
        return self._keep(_Found(trial, move))

    def _fits_relaxed(self, trial: Trial, one: Candidate) -> Steps[bool]:
        """Whether pods give up preferences that no new node can keep, and all fit on nodes then."""
        pools, relaxed = self._pools, self.index.relaxed
        if any(len(relaxed[index]) == 1 for index in trial.left) or pools.surely(trial):
            return False
        opened = yield from pools.opening(trial, (one,))
        if opened is not None and opened.drafts:
            pools.undo(opened)
        return opened is not None and not opened.drafts

    def _note_preference(self, trial: Trial, one: Candidate) -> Steps[None]:
        """Say so where the node stays because of a preference alone."""
        index = self.index
        wanted, pods = next(iter(trial.left.items()))
        while trial.left:
            if not (yield from index.relaxing(trial)):
                return
        given_up = index.classes[wanted].wishes[trial.given_up[wanted] - 1]
        self.why[one.name] = PreferenceKept(pods[0].key, str(given_up))

    def _taken_out(
        self, group: Sequence[Candidate], *, all_or_none: bool = False
    ) -> Steps[Trial | Fact]:
        """Without these nodes; or why they may not go."""
        for one in group:
            stuck = self.index.stuck(one.name)
            if stuck is not None:
                return PodRequestsUnknown(stuck.key)
        names = (one.name for one in group)
        trial = yield from self.index.taking_out(names, all_or_none=all_or_none)
        return trial if trial is not None else NodeTakesNoPods()

    # -- replace ---------------------------------------------------------------------------------

    def _wasteful(self, left: Sequence[Candidate]) -> Steps[list[tuple[str, list[Candidate]]]]:
        """By pool, the most wasteful first; without those that waste hardly anything."""
        wasteful: dict[str, list[tuple[float, Candidate]]] = {}
        for number, one in enumerate(left):
            if not number % NODES_A_STEP:
                yield
            load = self.index.load(one.name)
            least = self._pools.price(load)
            if one.price <= WASTE_MIN * least and not self._pools.reserves:
                self.why.setdefault(one.name, WellUsed(one.price, round(least)))
                continue
            worth = self._pools.worth(load)
            waste = (one.price + self._pools.fee) / worth if worth > 0 else inf
            wasteful.setdefault(one.pool, []).append((waste, one))
        for ranked in wasteful.values():
            ranked.sort(key=lambda each: (-each[0], each[1].name))
        return [(pool, [one for _, one in wasteful[pool]]) for pool in sorted(wasteful)]

    def _groups(self, pool: str, ranked: Sequence[Candidate]) -> Iterator[list[Candidate]]:
        """In this order, as many as may be replaced in one move: with the pods that they have by then."""
        most = min(TOGETHER_MAX, self._question.allowed.get(pool, TOGETHER_MAX))
        group: list[Candidate] = []
        pods = 0
        for one in ranked:
            more = sum(map(len, self.index.load(one.name).values()))
            if one.name in self._question.alone:
                yield [one]
                continue
            if group and (len(group) >= most or pods + more > PODS_MAX):
                yield group
                group, pods = [], 0
            group.append(one)
            pods += more
        if group:
            yield group

    def _replace(self, group: Sequence[Candidate]) -> Iterator[Tried | None]:
        """The moves of a group: the nodes each by itself, or as many as possible together."""
        alone: dict[str, float] = {}
        for one in group:
            found = yield from self._try((one,))
            if found is not None:
                alone[one.name] = self._value(found.move)
                self._undo(found)
            yield NOTHING
        gone: frozenset[str] = frozenset()
        for count in range(len(group), max(1, len(group) - TRIES), -1):
            some = group[:count]
            least = sum(alone.get(one.name, 0.0) for one in some)
            found = yield from self._try(some, least)
            if found is not None and self._value(found.move) <= least:
                self._undo(found)
                found = None
            if found is not None:
                yield Tried(self._keep(found))
                gone = frozenset(found.move.names)
                break
            yield NOTHING
        for one in group:
            if one.name in alone and one.name not in gone:
                found = yield from self._try((one,))
                yield Tried(self._keep(found)) if found is not None else NOTHING

    def _value(self, move: Move) -> float:
        """What orders moves: the saving, and the fee for each node that there is less."""
        return move.saves + self._pools.fee * (len(move.candidates) - len(move.claims))

    def _try(self, group: Sequence[Candidate], least: float = 0.0) -> Steps[_Found | None]:
        """``least``: what a move of several nodes must be worth more than."""
        trial = yield from self._taken_out(group)
        yield
        if isinstance(trial, Trial) and trial.left:
            if not (yield from self._may_gain(trial, group, least)):
                self.index.undo(trial)
                return None
            yield
        found = trial if isinstance(trial, Fact) else (yield from self._found(trial, tuple(group)))
        if not isinstance(found, Fact):
            return found
        if isinstance(trial, Trial):
            self.index.undo(trial)
        name = group[0].name
        # What is said of a group says nothing of its nodes; and one that only a preference keeps could be
        # deleted, which is more than a cheaper one instead.
        if len(group) == 1 and not isinstance(self.why.get(name), PreferenceKept):
            self.why[name] = found
        return None

    def _may_gain(self, trial: Trial, group: Sequence[Candidate], least: float) -> Steps[bool]:
        """Whether new nodes for the pods that are left could be cheap enough; only where that is all to say."""
        pools, total = self._pools, price_of(group)
        if len(group) > 1:
            most = total + pools.fee * len(group) - (yield from pools.least(trial, pools.fee))
            return most > least - TINY
        if not isinstance(self.why.get(group[0].name), PreferenceKept):
            return True
        # More nodes save more than the fee of each, as many or fewer save something: see ``rules``.
        fee = fee_of(group, self._question.node_fee_cpus)
        return (yield from pools.least(trial, fee)) < total + fee + TINY

    def _found(self, trial: Trial, group: tuple[Candidate, ...]) -> Steps[_Found | Fact]:
        if not trial.left:
            return self._deleting(trial, group)
        pools = self._pools
        if len(group) > 1 or not pools.are_plain(trial.left):
            opened = yield from pools.opening(trial, group)
            return (yield from self._launching(trial, group, opened))
        found = yield from self._launching(trial, group, pools.one(trial, group))
        dear = isinstance(found, NoCheaperReplacement | PodsFitNoOneNode)
        if dear and self._may_be_several(trial, group):
            opened = yield from pools.opening(trial, group)
            several = yield from self._launching(trial, group, opened)
            return several if isinstance(several, _Found | MoreNodesSaveTooLittle) else found
        return found

    def _deleting(self, trial: Trial, group: tuple[Candidate, ...]) -> _Found | Fact:
        move = Move(candidates=group, placed=self.index.where(trial))
        return rejected(move, self._question.balanced) or _Found(trial, move)

    def _may_be_several(self, trial: Trial, group: tuple[Candidate, ...]) -> bool:
        """Whether two nodes for the pods of one could be cheaper by more than the fee."""
        fee = fee_of(group, self._question.node_fee_cpus)
        pods = sum(map(len, trial.left.values()))
        return pods > 1 and self._pools.price(trial.left) + fee < price_of(group)

    def _launching(
        self, trial: Trial, group: tuple[Candidate, ...], opened: Opened | None
    ) -> Steps[_Found | Fact]:
        pools = self._pools
        if opened is None:
            # What is said of a group says nothing of its nodes, and takes long to find out.
            if len(group) > 1:
                return PodsFitNoOneNode(len(group))
            return (yield from pools.refused(trial.left, group))
        if not opened.drafts:
            return self._deleting(trial, group)
        yield
        accepted = self._prices.accepted(opened.drafts, group)
        why: Fact | None
        if isinstance(accepted, Fact):
            why = accepted
        else:
            claims = finished(accepted.drafts)
            placed = self.index.where(trial)
            move = Move(candidates=group, placed=placed, claims=claims, worst=accepted.worst)
            why = rejected(move, self._question.balanced)
            if why is None:
                return _Found(trial, move, opened, accepted.drafts)
        pools.undo(opened)
        return why

    def _undo(self, found: _Found) -> None:
        if found.opened is not None:
            self._pools.undo(found.opened)
        self.index.undo(found.trial)

    def _keep(self, found: _Found) -> Move:
        self._pools.take(found.drafts, found.move.candidates)
        self.index.keep(found.trial)
        for name in found.move.names:
            self.why.pop(name, None)
        return found.move


def _sizes(question: Question) -> list[Resources]:
    """What nodes have for pods: of the types that can be had, else of the nodes that there are."""
    types = [one.allocatable for each in question.templates for one in each.instance_types]
    return types or [node.available for node in question.nodes]
