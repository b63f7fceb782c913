"""Whom a pod that fits nowhere may take a node's room from, as kube-scheduler's preemption does.

For every node where only room, ports or other pods are in the way:

1. all pods of lower priority are thought away; if the pod does not fit even then, the node is out;
2. they are thought back one by one as long as the pod still fits, the important ones first: those
   whose disruption budget would be broken, then by priority, then by age. Who does not fit any more
   is a victim.

Of the nodes that are left the one is taken with the fewest broken budgets, then whose most
important victim is least important, then the least important victims in sum, then the fewest, then
the youngest. Budgets are respected where there is a choice, and broken where there is none.

Not modelled: what the victims' leaving would do to spread, affinity and attached volumes. A node that
is refused for such a reason is out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from tenure.sim.actors.scheduling.classes import PodClass
from tenure.sim.actors.scheduling.demand import ports_collide
from tenure.sim.actors.scheduling.fit import static_refusals
from tenure.sim.actors.scheduling.matching import matches_node
from tenure.sim.actors.scheduling.placement import NodeState, Placement
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.selection import covers

#: What kube-scheduler adds to every priority, so that many victims weigh more than few.
_OFFSET: Final = 1 << 31


class Victim(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    cls: PodClass
    priority: int
    started: str
    #: Whether its disruption budget allows no more.
    breaks_budget: bool = False


class Choice(msgspec.Struct, frozen=True):
    node: str
    victims: tuple[Victim, ...]


class Preemption:
    def __init__(
        self,
        placement: Placement,
        pod: Callable[[str], Obj | None],
        budgets: Callable[[], Sequence[Obj]],
    ) -> None:
        self._placement = placement
        self._pod = pod
        self._budgets = budgets

    def choose(self, cls: PodClass, crowded: Callable[[NodeState], bool]) -> Choice | None:
        """``crowded``: whether other pods refuse a node that is otherwise fine."""
        nodes = self._placement.nodes.values()
        if cls.only_node is not None:
            nodes = [n for n in nodes if n.name == cls.only_node]  # type: ignore[assignment]
        found = [c for n in nodes if not crowded(n) and (c := self._on(cls, n)) is not None]
        return min(found, key=_cost, default=None)

    def waits(self, cls: PodClass, node: str) -> bool:
        """Whether pods of lower priority are leaving the node already: it is worth waiting."""
        return any(
            place.leaving and place.cls.priority < cls.priority
            for place in self._placement.on(node).values()
        )

    def _on(self, cls: PodClass, node: NodeState) -> Choice | None:
        eligible = matches_node(cls.spec, node.name, node.labels)
        if static_refusals(cls, node, eligible=eligible):
            return None
        lower = self._lower(cls, node)
        if not lower:
            return None
        room = _Room(node)
        for victim in lower:
            room.take(victim.cls, -1)
        if not room.fits(cls):
            return None
        victims: list[Victim] = []
        for one in sorted(lower, key=lambda v: (not v.breaks_budget, -v.priority, v.started)):
            room.take(one.cls, +1)
            if not room.fits(cls):
                room.take(one.cls, -1)
                victims.append(one)
        return Choice(node.name, tuple(victims)) if victims else None

    def _lower(self, cls: PodClass, node: NodeState) -> list[Victim]:
        there = self._placement.on(node.name).items()
        below = [each for each in there if each[1].cls.priority < cls.priority]
        if not below:
            return []  # Nearly always.
        found: list[Victim] = []
        allowed: dict[str, int] = {}
        budgets = self._budgets()
        for key, place in below:
            pod = self._pod(key)
            if pod is None:
                continue
            found.append(
                Victim(
                    key=key,
                    cls=place.cls,
                    priority=place.cls.priority,
                    started=dig(pod, "status", "startTime") or "~",
                    breaks_budget=_breaks(pod, budgets, allowed),
                )
            )
        return found


class _Room:
    """What is left of a node, in thought."""

    def __init__(self, node: NodeState) -> None:
        self._free = dict(node.free)
        self._ports = dict(node.ports)

    def take(self, cls: PodClass, sign: int) -> None:
        for name, amount in cls.requests:
            self._free[name] = self._free.get(name, 0) - sign * amount
        for port in cls.ports:
            self._ports[port] = self._ports.get(port, 0) + sign

    def fits(self, cls: PodClass) -> bool:
        taken = [port for port, count in self._ports.items() if count > 0]
        if any(ports_collide(mine, other) for mine in cls.ports for other in taken):
            return False
        return all(amount <= self._free.get(name, 0) for name, amount in cls.requests)


def _breaks(pod: Obj, budgets: Iterable[Obj], allowed: dict[str, int]) -> bool:
    """Whether a budget has no disruption left for it; each pod uses one up."""
    broken = False
    for budget in budgets:
        meta = budget["metadata"]
        if meta["namespace"] != pod["metadata"]["namespace"] or not covers(
            dig(budget, "spec", "selector"), pod
        ):
            continue
        key = f"{meta['namespace']}/{meta['name']}"
        left = allowed.get(key, dig(budget, "status", "disruptionsAllowed") or 0) - 1
        allowed[key] = left
        broken = broken or left < 0
    return broken


def _cost(choice: Choice) -> tuple[int, int, int, int, list[int], str]:
    victims = choice.victims
    highest = max(victim.priority for victim in victims)
    eldest = min(victim.started for victim in victims if victim.priority == highest)
    return (
        sum(victim.breaks_budget for victim in victims),
        highest,
        sum(victim.priority + _OFFSET for victim in victims),
        len(victims),
        [-ord(sign) for sign in eldest],  # The later, the better.
        choice.node,
    )
