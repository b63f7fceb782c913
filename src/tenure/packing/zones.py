"""Spread over zones: decide beforehand how many pods of a class go to which zone.

A class that must be spread is split into one class per zone, each with that zone as a
requirement, so that the rest of packing need not know. Pods are dealt one by one to the zone
that has fewest (then by name) for as long as that keeps within ``maxSkew``, to one that is to be
avoided only where no other may take it:

- a zone is a domain if a node there, or a pool that could launch one there, accepts the pod;
- pods bound in a zone count, on nodes that take no pods, too; so do those dealt to it
  before, by this class or another;
- pods that are on no node are dealt first. One that is to move from a leaving node counts
  where it is until its turn comes: the scheduler sees it there as long as it runs;
- fewer domains than ``minDomains`` count as if one more stood empty.

A zone may turn out to take fewer pods than it was dealt, and the others would have run ahead
of it. Packing then starts over with what was learnt: where no pool sells anything in that
zone, the zone is dealt no more than it took; otherwise it was a limit of a pool, and the
class as a whole is dealt no more pods than found a place.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from tenure.model.api.names import ZONE
from tenure.model.api.pod import Pod
from tenure.model.api.taints import untolerated
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.packing.catalogue import Catalogue, Narrowing
from tenure.packing.demand.classes import PodClass, how_many
from tenure.packing.demand.queue import Waiting
from tenure.packing.demand.topology import Tally
from tenure.packing.nodes import ZonePart
from tenure.packing.opening import entrance

#: (number of the class, zone), or (number of the class, WHOLE).
Part = tuple[int, str]
#: The most pods that are dealt, where that has become known.
Caps = Mapping[Part, int]
WHOLE: Final = ""


class LeftOver(msgspec.Struct, frozen=True):
    """Pods that no zone may take."""

    one: PodClass
    pods: tuple[Pod, ...]
    #: How many pods of the group each zone has, those just dealt included.
    counts: Mapping[str, int]


class Counts(msgspec.Struct):
    """What one class sees of the zones that are domains to it."""

    of: dict[str, int]
    #: By the UID of a pod that is to move: the zone in which it counts until then.
    homes: dict[str, str] = {}


class Dealt(msgspec.Struct, frozen=True):
    """The classes after the split."""

    queue: tuple[Waiting, ...]
    #: By the position of a part in the queue: what to cap if it comes short.
    parts: Mapping[int, Part]
    left_over: tuple[LeftOver, ...]

    def came_short(self) -> dict[Part, int]:
        """What to cap at how many pods, now that packing has been tried."""
        short = {
            part
            for i, part in self.parts.items()
            if self.queue[i].left and not self.queue[i].one.claimed
        }
        served: dict[Part, int] = {}
        for position, part in self.parts.items():
            waiting = self.queue[position]
            count = len(waiting.one.pods) - waiting.left
            for capped in {part, (part[0], WHOLE)} & short:
                served[capped] = served.get(capped, 0) + count
        return served


def deal(
    classes: Iterable[PodClass],
    *,
    nodes: Sequence[ZonePart],
    catalogues: Sequence[Catalogue],
    caps: Caps,
    avoid: Container[str] = (),
) -> Dealt:
    """Split each class that must be spread over zones; leave the others alone."""
    queue: list[Waiting] = []
    parts: dict[int, Part] = {}
    left_over: list[LeftOver] = []
    history = _History(nodes)
    for number, one in enumerate(classes):
        if not one.rules.zones:
            queue.append(Waiting(one))
            continue
        for_sale = _zones_for_sale(one, catalogues) if not one.no_claim else set()
        counts = history.counts(one, for_sale)
        most = {zone: caps.get((number, zone), len(one.pods)) for zone in counts.of}
        whole = caps.get((number, WHOLE), len(one.pods))
        hands, rest = _deal_pods(one, counts, most, whole, avoid)
        for zone, pods in sorted(hands.items()):
            parts[len(queue)] = number, WHOLE if zone in for_sale else zone
            queue.append(Waiting(_in_zone(one, zone, pods)))
            history.dealt(one, zone, pods)
        if rest:
            left_over.append(LeftOver(one, rest, counts.of))
    return Dealt(tuple(queue), parts, tuple(left_over))


class _History:
    """The count of every zone as dealing goes on: pods come, and some leave another node."""

    def __init__(self, parts: Sequence[ZonePart]) -> None:
        self._parts = parts
        self._came: dict[str, Tally] = {}
        #: By the position of the part.
        self._left = [Tally() for _ in parts]
        self._homes = {uid: at for at, part in enumerate(parts) for uid in part.moving}

    def counts(self, one: PodClass, for_sale: Iterable[str]) -> Counts:
        """How many pods of the group are in each domain, and which of the class among them."""
        group = one.rules.zones[0].group
        counts = Counts(dict.fromkeys(for_sale, 0))
        for part, left in zip(self._parts, self._left, strict=True):
            if _is_domain(part, one):
                here = part.tally.count(group) - left.count(group)
                counts.of[part.zone] = counts.of.get(part.zone, 0) + here
                counts.homes.update(dict.fromkeys(part.moving, part.zone))
        for zone, tally in self._came.items():
            if zone in counts.of:
                counts.of[zone] += tally.count(group)
        return counts

    def dealt(self, one: PodClass, zone: str, pods: Sequence[Pod]) -> None:
        self._came.setdefault(zone, Tally()).add(one.rules, len(pods))
        for pod in pods:
            if (home := self._homes.get(pod.uid)) is not None:
                self._left[home].add(one.rules, 1)


def _is_domain(part: ZonePart, one: PodClass) -> bool:
    """Whether the scheduler counts these nodes, even those that take no pods."""
    spread = one.rules.zones[0]
    if spread.honor_taints and untolerated(part.taints, one.demand.tolerations) is not None:
        return False
    return not spread.honor_affinity or _accepts(part.labels, one)


def _accepts(labels: Requirements, one: PodClass) -> bool:
    return any(labels.is_compatible(wanted) for wanted in one.demand.alternatives)


def _zones_for_sale(one: PodClass, catalogues: Sequence[Catalogue]) -> set[str]:
    """Zones in which some pool could launch a node for the class."""
    zones: set[str] = set()
    for catalogue in catalogues:
        for wanted in one.demand.alternatives:
            narrowing = entrance(catalogue, one, wanted)
            if narrowing is not None:
                zones |= _zones_of(catalogue, narrowing, one)
    return zones


def _zones_of(catalogue: Catalogue, narrowing: Narrowing, one: PodClass) -> set[str]:
    return {
        place[0]
        for place in narrowing.places
        if any(
            narrowing.types >> offer.type & 1
            and how_many(catalogue.available[offer.type], one.wants, 1)
            for offer in catalogue.offers_at(place)
        )
    }


def _deal_pods(
    one: PodClass,
    counts: Counts,
    most: Mapping[str, int],
    whole: int,
    avoid: Container[str],
) -> tuple[dict[str, list[Pod]], tuple[Pod, ...]]:
    """Pods by zone, and those that no zone may take; ``counts`` goes with it."""
    own = int(one.rules.zones[0].group in one.rules.member_of)
    hands: dict[str, list[Pod]] = {}
    rest: list[Pod] = []
    room = {zone for zone, limit in most.items() if limit > 0}
    dealt = 0
    for pod in sorted(one.pods, key=lambda pod: pod.uid in counts.homes):
        home = counts.homes.get(pod.uid)
        if home is not None:
            counts.of[home] -= own
        zone = _emptiest_open(one, counts.of, room, own, avoid) if dealt < whole else None
        if zone is None:
            rest.append(pod)
            zone = home  # It stays where it is, if it is anywhere.
        else:
            hand = hands.setdefault(zone, [])
            hand.append(pod)
            dealt += 1
            if len(hand) == most[zone]:
                room.discard(zone)
        if zone is not None:
            counts.of[zone] += own
    return hands, tuple(rest)


def _emptiest_open(
    one: PodClass,
    counts: Mapping[str, int],
    room: Container[str],
    own: int,
    avoid: Container[str],
) -> str | None:
    """The zone that gets the next pod; none when each would be too far ahead of the emptiest."""
    spread = one.rules.zones[0]
    emptiest = 0 if len(counts) < spread.domains_min else min(counts.values(), default=0)
    open_zones = (
        (zone in avoid, count, zone)
        for zone, count in counts.items()
        if count + own - emptiest <= spread.skew and zone in room
    )
    return min(open_zones, default=(False, 0, None))[2]


def _in_zone(one: PodClass, zone: str, pods: Iterable[Pod]) -> PodClass:
    here = Requirement.of(ZONE, "In", (zone,))
    narrowed = (wanted.add(here) for wanted in one.demand.alternatives)
    possible = tuple(wanted for wanted in narrowed if not wanted[ZONE].impossible)
    demand = msgspec.structs.replace(one.demand, alternatives=possible)
    return msgspec.structs.replace(one, demand=demand, pods=tuple(pods))
