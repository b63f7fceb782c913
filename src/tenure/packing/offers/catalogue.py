"""What one pool can buy: instance types by what they match, hold and cost.

A pool's types are put into an index once per packing: for each label key, which types have
which requirement on it, as bit masks. Narrowing a claim by one more pod is then a few ``and``
operations instead of a walk over all types, and the result is kept: the same pods narrow
the same claim again and again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from tenure.model.api.names import CAPACITY_TYPE, WELL_KNOWN_LABELS, ZONE
from tenure.model.api.node import Taint
from tenure.model.api.taints import HARD_EFFECTS, untolerated
from tenure.model.cloud.offering import OfferingKey
from tenure.model.matching.requirements import Requirements
from tenure.model.values.quantity import UNIT
from tenure.model.values.same import Same
from tenure.packing.demand.asked import Signature
from tenure.packing.demand.classes import Units
from tenure.packing.demand.problem import NODES, PoolTemplate
from tenure.packing.demand.requests import HostPort, Resources, ports_conflict
from tenure.packing.offers.claimable import NEW_NODE, refusal_of, said_in_claim
from tenure.packing.offers.daemons import DaemonPod, loads_by_type, that_fit_together
from tenure.packing.offers.narrowing import Narrowing, Offer, Place, levels
from tenure.packing.offers.provided import (
    allocatable,
    counted,
    in_units,
    indexed,
    offers_by_place,
    rankings,
)

#: What keeps a pod away that prefers nodes without such taints.
SOFT_EFFECTS: Final = (*HARD_EFFECTS, "PreferNoSchedule")


class Catalogue:
    """One pool, ready to be asked."""

    def __init__(
        self,
        template: PoolTemplate,
        *,
        daemons: tuple[DaemonPod, ...],
        units: Units,
        dry: frozenset[OfferingKey],
        least: Resources,
    ) -> None:
        """``least``: of each resource, what every pod that waits asks for at least."""
        self.template: Final = template
        #: What every node of the pool will be labelled with.
        self.defined: Final = template.requirements.intersect(NEW_NODE)
        self.units: Final = units
        given = Same(template.instance_types)
        self.types, self._index = indexed(given)
        #: Keys that some type speaks about: its provider will label nodes with them.
        self.known_keys: Final = WELL_KNOWN_LABELS.union(self._index)
        accepting, self.left_out = that_fit_together(
            {i: self._accepting(pod) for i, pod in enumerate(daemons)},
            daemons,
            [kind.allocatable for kind in self.types],
            self.matching(self.defined),
            least,
        )
        self._daemons = [(daemons[i], types) for i, types in accepting.items()]
        loads = loads_by_type(accepting, daemons, len(self.types))
        #: What daemons take of each type.
        self.overhead: Final = [load.requests for load in loads]
        self.daemon_ports = [load.ports for load in loads]
        #: What each type leaves to pods, in ``units``.
        self.available: Final = [
            whole
            if not over
            else tuple(
                (allocatable(t, name) - over.get(name, 0)) // size
                for name, size in zip(units.names, units.sizes, strict=True)
            )
            for t, over, whole in zip(
                self.types,
                self.overhead,
                in_units(given, units.names, units.sizes),
                strict=True,
            )
        ]
        self._levels: Final = [levels(column) for column in zip(*self.available, strict=True)]
        self._offers = offers_by_place(given, dry)
        #: Reserved capacity: how many instances can be had, by type, zone and capacity type.
        self.counted: Final = counted(given)
        self._ranked = rankings(given, dry)
        self._fronts: dict[tuple[frozenset[Place], int], tuple[Offer, ...]] = {}
        self._clear_of: dict[tuple[HostPort, ...], int] = {(): (1 << len(self.types)) - 1}
        #: Equal requirements make one narrowing, in whichever order pods came.
        self._values: dict[str, frozenset[str] | None] = {}
        self._narrowings: dict[Requirements, Narrowing] = {}
        self.whole: Final = self._narrowing(self.defined)

    def narrow(self, so_far: Narrowing, by: Requirements) -> Narrowing | None:
        """``so_far`` with more requirements; None when no node can satisfy them together, or no
        claim can say so."""
        try:
            return so_far._next[by]
        except KeyError:
            narrowed = so_far._next[by] = self._narrow(so_far, by)
            return narrowed

    def _narrow(self, so_far: Narrowing, by: Requirements) -> Narrowing | None:
        if not so_far.requirements.is_compatible(by, self.known_keys):
            return None
        requirements = so_far.requirements.intersect(by)
        if self.refusal(requirements) is not None:
            return None
        return self._narrowing(requirements)

    def _narrowing(self, requirements: Requirements) -> Narrowing:
        known = self._narrowings.get(requirements)
        if known is None:
            types, places = self.matching(requirements), self._places(requirements)
            known = self._narrowings[requirements] = Narrowing(requirements, types, places)
            known.sold = types & self._ranked.at(places).types
        return known

    def holding(self, used: Sequence[int]) -> int:
        """Bit mask of the types that have room for all that is used; the rest may be overdrawn."""
        types = (1 << len(self.types)) - 1
        if not types:
            return 0
        for (amounts, masks), wanted in zip(self._levels, used, strict=True):
            if wanted > 0:
                types &= masks[bisect_left(amounts, wanted)]
        return types

    def listing(self, narrowing: Narrowing, types: int) -> tuple[Offer, ...]:
        """The cheapest offer of each of these types, in order."""
        types &= narrowing.types
        listing = narrowing._listings.get(types)
        if listing is None:
            listing = narrowing._listings[types] = tuple(
                offer for offer in self.ranking(narrowing.places) if types >> offer.type & 1
            )
        return listing

    def entrance(self, signature: Signature, wanted: Requirements) -> Narrowing | None:
        """The pool as such pods see it; None when they cannot come at all.

        ``wanted``: one of their alternatives. Asked before a class joins a claim, too: another
        pod's ``NotIn`` on the claim mentions a label but does not define it.
        """
        if self.refused_taint(signature) is not None:
            return None
        return self.narrow(self.whole, wanted)

    def refused_taint(self, signature: Signature) -> Taint | None:
        """A taint of the pool's nodes that keeps these pods away."""
        effects = SOFT_EFFECTS if signature.soft_taints else HARD_EFFECTS
        return untolerated(self.template.taints, signature.tolerations, effects)

    def said(self, requirements: Requirements) -> Requirements:
        """Those of them that a claim of this pool says."""
        ours = self.template.requirements
        return said_in_claim(requirements, ours, self.known_keys, self.values_of)

    def refusal(self, requirements: Requirements) -> str | None:
        """Why the API server would refuse a claim of this pool with them; None when it would not."""
        return refusal_of(self.said(requirements), self.template.requirements)

    def _accepting(self, daemon: DaemonPod) -> int:
        """Bit mask of the types on whose nodes the daemon's pod will run."""
        types = 0
        if daemon.tolerates(self.template.taints):
            for wanted in daemon.alternatives:
                if self.defined.is_compatible(wanted, self.known_keys):
                    types |= self.matching(self.defined.intersect(wanted))
        return types

    def matching(self, requirements: Requirements) -> int:
        """Bit mask of the types whose own requirements leave room for these."""
        types = (1 << len(self.types)) - 1
        defined = self.defined
        for key, requirement in requirements.items():
            if requirement.impossible:
                return 0
            having = 0
            for theirs, bits in self._index.get(key, ()):
                having |= bits
                if bits & types and not theirs.intersects(requirement):
                    types &= ~bits
            if (
                key not in defined
                and key not in WELL_KNOWN_LABELS
                and not requirement.allows_absent
            ):
                types &= having
        return types

    def values_of(self, key: str) -> frozenset[str] | None:
        """Every value that the key may have on a type; None where that is not known."""
        if key not in self._values:
            known = [theirs for theirs, _ in self._index.get(key, ())]
            unknown = not known or any(theirs.complement for theirs in known)
            listed = (value for theirs in known for value in theirs.listed)
            self._values[key] = None if unknown else frozenset(listed)
        return self._values[key]

    def daemons_on(self, type_: int) -> list[DaemonPod]:
        """Those for which capacity is reserved on nodes of the type."""
        return [daemon for daemon, types in self._daemons if types >> type_ & 1]

    def clear_of(self, ports: tuple[HostPort, ...]) -> int:
        """Bit mask of the types whose daemons leave these host ports alone."""
        types = self._clear_of.get(ports)
        if types is None:
            taken = enumerate(self.daemon_ports)
            types = sum(1 << i for i, theirs in taken if ports_conflict(ports, theirs) is None)
            self._clear_of[ports] = types
        return types

    def offers_at(self, place: Place) -> tuple[Offer, ...]:
        """Every type that can be had there now."""
        return tuple(self._offers.get(place, ()))

    def ranking(self, places: frozenset[Place]) -> tuple[Offer, ...]:
        """The cheapest offer of each type that can be had at these places, cheapest first."""
        return self._ranked.at(places).offers

    def front(self, places: frozenset[Place], types: int) -> tuple[Offer, ...]:
        """The ranking without the types that another one beats: no dearer and no smaller."""
        front = self._fronts.get((places, types))
        if front is None:
            best: list[Offer] = []
            cheaper = 0
            for offer in self.ranking(places):
                if not types >> offer.type & 1:
                    continue
                if not self.holding(self.available[offer.type]) & cheaper:
                    best.append(offer)
                    cheaper |= 1 << offer.type
            front = self._fronts[places, types] = tuple(best)
        return front

    def uncounted(self, places: frozenset[Place]) -> frozenset[Place]:
        """Without the places of reserved capacity, if there are others: what there is little of sets no price."""
        if not self.counted:
            return places
        reserved = {(zone, term) for _, zone, term in self.counted}
        return places - reserved or places

    def cpu_price(self) -> int:
        """The lowest price of a cpu, in micro-dollars per hour; 0 where nothing is for sale."""
        prices = (
            offer.price * UNIT // cpus
            for offer in self.ranking(self.uncounted(self.whole.places))
            if (cpus := self.types[offer.type].capacity.get("cpu", 0)) > 0
        )
        return min(prices, default=0)

    def _places(self, requirements: Requirements) -> frozenset[Place]:
        zones, terms = requirements.allowed(ZONE), requirements.allowed(CAPACITY_TYPE)
        return frozenset(p for p in self._offers if zones.has(p[0]) and terms.has(p[1]))

    def number(self, name: str) -> int | None:
        """The index of the type of that name."""
        return self._numbers.get(name)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """Made when it is first asked for: a packing asks for none, a search for thousands."""
        return {kind.name: number for number, kind in enumerate(self.types)}

    def capacity(self, type_: int, name: str) -> int:
        """What one node of the type counts against a limit."""
        return UNIT if name == NODES else self.types[type_].capacity.get(name, 0)
