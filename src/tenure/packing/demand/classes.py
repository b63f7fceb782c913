"""Pods that nothing tells apart are placed together.

A class is all pods with the same requests, signature (requirement alternatives and tolerations), host
ports, topology rules, groups, preferences and priority. Ten thousand pods of two hundred Deployments
are two hundred classes, and "how many of these fit here" is one division per resource, so the
cost of packing hardly depends on the number of pods.

Amounts are divided by what all requests of that resource are multiples of: exact small integers.

Classes are served by priority, then by cpu, then memory, largest first, then in the order of their
oldest pod; the pods of a class by creation, then UID.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from datetime import datetime
from math import gcd
from operator import itemgetter

import msgspec

from tenure.model.api.meta import BEGINNING
from tenure.model.api.pod import Pod
from tenure.packing.demand.asked import Asked, Demand
from tenure.packing.demand.groups import NO_GROUPS, Groups
from tenure.packing.demand.requests import Resources
from tenure.packing.demand.steps import CLASSES_A_STEP, PODS_A_STEP, Steps, at_once
from tenure.packing.demand.terms import Group, Rules, Wish

#: (index of the resource, amount in its unit), for the resources that are asked for at all.
Wants = tuple[tuple[int, int], ...]


class PodClass(msgspec.Struct, frozen=True, gc=False):
    """Pods that nothing tells apart, in the order in which they are served."""

    demand: Demand
    rules: Rules
    wants: Wants
    pods: tuple[Pod, ...]
    #: Groups that some constraint of the problem is about and that the pods belong to.
    member_of: frozenset[Group] = NO_GROUPS
    #: Groups that its pods keep away: those of required anti-affinity.
    repels: tuple[Group, ...] = ()
    priority: int = 0
    #: Preferences that are still kept, the first to be given up first.
    wishes: tuple[Wish, ...] = ()
    #: What it asks for and nothing offers: with any of these it fits nowhere.
    missing: tuple[tuple[str, int], ...] = ()
    #: A node was launched for them already: they find room on nodes, or wait.
    claimed: bool = False
    #: No node may be launched for them now: they find room on nodes, or stay out.
    no_claim: bool = False
    #: Whose pods they are, where no others may share a new claim with them.
    apart: str = ""
    #: UID of the oldest pod of the class as it was at first, before any of them found a place.
    origin: str = ""

    @property
    def key(self) -> tuple[str, str, int]:
        """Names it among all that became of the classes of a problem."""
        return self.origin, self.apart, len(self.wishes)

    @property
    def may_be_claimed_for(self) -> bool:
        return not (self.claimed or self.no_claim)


class Units(msgspec.Struct, frozen=True):
    """Every resource that some pod asks for and something offers; ``Wants`` index into it."""

    names: tuple[str, ...] = ()
    #: Nano-units in one unit of the resource: what all requests are multiples of.
    sizes: tuple[int, ...] = ()

    def wants(self, requests: Resources) -> Wants:
        """The amounts asked for; zeroes do not matter."""
        return tuple(
            (i, requests[name] // size)
            for i, (name, size) in enumerate(zip(self.names, self.sizes, strict=True))
            if requests.get(name, 0) > 0
        )

    def floor(self, amounts: Resources) -> list[int]:
        """Whole units of each resource."""
        get = amounts.get
        return [get(name, 0) // size for name, size in zip(self.names, self.sizes, strict=True)]


class Sorted(msgspec.Struct, frozen=True):
    """The pods of a problem in classes, and those that cannot be read."""

    classes: tuple[PodClass, ...]
    units: Units
    unreadable: Mapping[str, str]
    #: Classes that ask for what nothing offers: they are not served, but told why.
    apart: tuple[PodClass, ...] = ()


def sort_pods(
    asked: Mapping[Asked, Sequence[Pod]],
    groups: Groups,
    offered: Callable[[Collection[str]], Collection[str]] = lambda names: names,
    *,
    unreadable: Mapping[str, str] | None = None,
    with_wishes: bool = True,
) -> Sorted:
    """Group pods into classes and put the classes in the order of service.

    ``offered`` says which of the resources asked for some type or node has at all. Only these
    are counted with: a user may invent names by the thousand, and each would otherwise be
    looked at for every type of every pool.
    """
    return at_once(
        sorting_pods(asked, groups, offered, unreadable=unreadable, with_wishes=with_wishes)
    )


def sorting_pods(
    asked: Mapping[Asked, Sequence[Pod]],
    groups: Groups,
    offered: Callable[[Collection[str]], Collection[str]] = lambda names: names,
    *,
    unreadable: Mapping[str, str] | None = None,
    with_wishes: bool = True,
    in_order: bool = True,
) -> Steps[Sorted]:
    """The same in steps. Where pods of a class need no order, only the oldest is found."""
    members: dict[tuple[Demand, Rules, frozenset[Group], int, tuple[Wish, ...]], list[Pod]] = {}
    amounts: dict[str, int] = {}
    for number, (one, pods) in enumerate(asked.items(), start=1):
        member_of = groups.of(one.namespace, one.labels)
        wishes = one.wishes if with_wishes else ()
        key = one.demand, _modelled(one.rules, groups), member_of, one.priority, wishes
        members.setdefault(key, []).extend(pods)
        for name, nano in one.demand.requests:
            amounts[name] = gcd(amounts.get(name, 0), nano)
        if not number % CLASSES_A_STEP:
            yield
    names = tuple(sorted(offered(set(amounts))))
    units = Units(names, tuple(amounts[name] for name in names))
    known = frozenset(names)
    found: list[tuple[tuple[int, int, int, datetime, str], PodClass]] = []
    known_wants: dict[tuple[tuple[str, int], ...], Wants] = {}
    done = 0
    for (written, rules, member_of, priority, wishes), same in members.items():
        if (done := done + len(same) + 10) >= PODS_A_STEP:
            done = 0
            yield
        demand, missing = _without_missing(written, known)
        if in_order:
            oldest_first = tuple(sorted(same, key=age)) if len(same) > 1 else tuple(same)
        else:
            oldest_first = yield from _oldest_first(same)
        wants = known_wants.get(demand.requests)
        if wants is None:
            wants = known_wants[demand.requests] = units.wants(demand.resources)
        made = PodClass(
            demand,
            rules,
            wants,
            oldest_first,
            member_of,
            rules.far,
            priority,
            wishes,
            missing,
            origin=oldest_first[0].uid,
        )
        found.append((service_order(made), made))
    found.sort(key=itemgetter(0))
    classes = [one for _, one in found]
    return Sorted(
        tuple(one for one in classes if not one.missing or one.rules.not_modelled),
        units,
        unreadable or {},
        tuple(one for one in classes if one.missing and not one.rules.not_modelled),
    )


def _oldest_first(pods: list[Pod]) -> Steps[tuple[Pod, ...]]:
    """The others in any order."""
    oldest = 0
    for start in range(0, len(pods), PODS_A_STEP):
        if start:
            yield
        some = range(start, min(start + PODS_A_STEP, len(pods)))
        oldest = min((oldest, *some), key=lambda number: age(pods[number]))
    return (pods[oldest], *pods[:oldest], *pods[oldest + 1 :])


def _modelled(rules: Rules, groups: Groups) -> Rules:
    """Without the labels of namespaces, a term that asks for them cannot be modelled."""
    for group in rules.groups():
        if groups.unknown(group):
            return Rules(not_modelled=str(group.namespaces_by))
    return rules


def _without_missing(
    demand: Demand, offered: Container[str]
) -> tuple[Demand, tuple[tuple[str, int], ...]]:
    """The demand for what is offered, and what else it asks for."""
    missing = tuple(asked for asked in demand.requests if asked[0] not in offered)
    if not missing:
        return demand, ()
    kept = tuple(asked for asked in demand.requests if asked[0] in offered)
    return msgspec.structs.replace(demand, requests=kept), missing


def how_many(free: Sequence[int], wanted: Wants, most: int) -> int:
    """How many times ``wanted`` fits into ``free``, ``most`` at the most."""
    for index, amount in wanted:
        times = free[index] // amount
        if times < most:
            if times <= 0:
                return 0
            most = times
    return most


def least_wanted(classes: Sequence[PodClass], units: Units) -> tuple[int, ...]:
    """By resource, the smallest amount that any class asks for; zero where one asks for none.

    Where less than this is free, it need not be checked again.
    """
    asked = [dict(one.wants) for one in classes]
    return tuple(
        min((wants.get(index, 0) for wants in asked), default=0)
        for index in range(len(units.names))
    )


def service_order(one: PodClass) -> tuple[int, int, int, datetime, str]:
    requests = one.demand.resources
    return (-one.priority, -requests.get("cpu", 0), -requests.get("memory", 0), *age(one.pods[0]))


def age(pod: Pod) -> tuple[datetime, str]:
    """Pods of a class are served by it, the oldest first."""
    metadata = pod.metadata
    return metadata.creation_timestamp or BEGINNING, metadata.uid
