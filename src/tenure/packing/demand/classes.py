"""Pods that nothing tells apart are placed together.

A class is all pods with the same requests, signature (requirement alternatives and tolerations), host
ports, topology rules, groups, preferences and priority. Ten thousand pods of two hundred Deployments
are two hundred classes, and "how many of these fit here" is one division per resource, so the
cost of packing hardly depends on the number of pods.

A pod's spec, namespace and labels are read once for each distinct sequence of bytes. Amounts are
divided by what all requests of that resource are multiples of: exact small integers.

Classes are served by priority, then by cpu, then memory, largest first, then in the order of their
oldest pod; the pods of a class by creation, then UID.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from datetime import datetime
from math import gcd
from typing import Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.meta import BEGINNING
from tenure.model.api.pod import Pod, Toleration
from tenure.model.matching.requirements import Requirements, pod_preferences
from tenure.model.snapshot.derived import NOTHING_KEPT, Derivation, Derived
from tenure.packing.demand.groups import NO_GROUPS, Groups
from tenure.packing.demand.requests import (
    HostPort,
    Resources,
    first_alternatives,
    host_ports,
    pod_requests,
)
from tenure.packing.demand.terms import FREE, Group, Rules, Wish, rules_of, wishes_of

#: (index of the resource, amount in its unit), for the resources that are asked for at all.
Wants = tuple[tuple[int, int], ...]


class Signature(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """What a pod asks of a node's labels and taints. Volumes will narrow the alternatives."""

    alternatives: tuple[Requirements, ...] = (Requirements(),)
    tolerations: tuple[Toleration, ...] = ()
    #: ``PreferNoSchedule`` taints count as ``NoSchedule``: a preference that is still kept.
    soft_taints: bool = False


class Demand(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """What a pod's spec asks of a node. Attachable volumes will be requests like any other."""

    requests: tuple[tuple[str, int], ...]
    signature: Signature = Signature()
    ports: tuple[HostPort, ...] = ()
    #: How many more alternatives the pod has: they are not looked at.
    left_out: int = 0

    @property
    def resources(self) -> Resources:
        return dict(self.requests)

    @property
    def alternatives(self) -> tuple[Requirements, ...]:
        return self.signature.alternatives

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        return self.signature.tolerations


class Asked(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """All that packing reads of one pod."""

    demand: Demand
    rules: Rules
    namespace: str
    labels: frozenset[tuple[str, str]]
    priority: int
    wishes: tuple[Wish, ...] = ()


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


def read_pods(
    pods: Iterable[Pod], derived: Derived = NOTHING_KEPT
) -> tuple[dict[Asked, list[Pod]], dict[str, str]]:
    """The pods by what is asked for; and by UID, why others cannot be read."""
    reader = _Reader(derived)
    read = reader.of if len(derived) else reader.read
    found: dict[Asked, list[Pod]] = {}
    unreadable: dict[str, str] = {}
    for pod in pods:
        try:
            asked = read(pod)
        except SpecError as error:
            unreadable[pod.uid] = str(error)
            continue
        try:
            found[asked].append(pod)
        except KeyError:
            found[asked] = [pod]
    return found, unreadable


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
    members: dict[tuple[Demand, Rules, frozenset[Group], int, tuple[Wish, ...]], list[Pod]] = {}
    for one, pods in asked.items():
        member_of = groups.of(one.namespace, one.labels)
        wishes = one.wishes if with_wishes else ()
        key = one.demand, _modelled(one.rules, groups), member_of, one.priority, wishes
        members.setdefault(key, []).extend(pods)
    amounts: dict[str, int] = {}
    for demand, *_ in members:
        for name, nano in demand.requests:
            amounts[name] = gcd(amounts.get(name, 0), nano)
    names = tuple(sorted(offered(set(amounts))))
    units = Units(names, tuple(amounts[name] for name in names))
    known = frozenset(names)
    classes: list[PodClass] = []
    known_wants: dict[tuple[tuple[str, int], ...], Wants] = {}
    for (written, rules, member_of, priority, wishes), same in members.items():
        demand, missing = _without_missing(written, known)
        oldest_first = tuple(sorted(same, key=_age)) if len(same) > 1 else tuple(same)
        wants = known_wants.get(demand.requests)
        if wants is None:
            wants = known_wants[demand.requests] = units.wants(demand.resources)
        classes.append(
            PodClass(
                demand, rules, wants, oldest_first, member_of, rules.far, priority, wishes, missing
            )
        )
    classes.sort(key=service_order)
    return Sorted(
        tuple(one for one in classes if not one.missing or one.rules.not_modelled),
        units,
        unreadable or {},
        tuple(one for one in classes if one.missing and not one.rules.not_modelled),
    )


def _modelled(rules: Rules, groups: Groups) -> Rules:
    """Without the labels of namespaces, a term that asks for them cannot be modelled."""
    for group in rules.groups():
        if groups.unknown(group):
            return Rules(not_modelled=f"namespaceSelector {group.namespaces_by}")
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
    return (-one.priority, -requests.get("cpu", 0), -requests.get("memory", 0), *_age(one.pods[0]))


def _age(pod: Pod) -> tuple[datetime, str]:
    metadata = pod.metadata
    return metadata.creation_timestamp or BEGINNING, metadata.uid


class _Reader:
    """Reads each distinct pod once: replicas of a workload have the same bytes.

    While a pod waits, every packing asks: what was read is kept in ``derived``.
    """

    def __init__(self, derived: Derived) -> None:
        self._derived = derived
        self._by_bytes: dict[tuple[bytes, bytes, str], Asked] = {}
        self._known: dict[Asked, Asked] = {}
        self._signatures: dict[Signature, Signature] = {}
        self._rules: dict[Rules, Rules] = {}
        self._groups: dict[Group, Group] = {}
        self._encode = msgspec.msgpack.Encoder().encode

    def of(self, pod: Pod) -> Asked:
        """As it was kept, or as it is read."""
        kept = self._derived.known(_ASKED, pod)
        asked = kept if kept is not None else self.read(pod)
        # One object per distinct value: later look-ups then compare by identity.
        asked = self._known.setdefault(asked, asked)
        if asked is not kept:
            self._derived.keep(_ASKED, pod, asked)
        return asked

    def read(self, pod: Pod) -> Asked:
        metadata = pod.metadata
        key = self._encode(pod.spec), self._encode(metadata.labels), metadata.namespace
        asked = self._by_bytes.get(key)
        if asked is None:
            asked = _read(pod)
            known = self._known.get(asked)
            if known is None:
                known = self._shared(asked)
                self._known[known] = known
            asked = self._by_bytes[key] = known
        return asked

    def _shared(self, asked: Asked) -> Asked:
        """With one object for equal signatures, rules and groups: they are looked up all the time."""
        signature = asked.demand.signature
        signature = self._signatures.setdefault(signature, signature)
        rules = self._rules.get(asked.rules)
        if rules is None:
            rules = asked.rules
            share = self._groups.setdefault
            if rules.spreads or rules.near or rules.far:
                rules = msgspec.structs.replace(
                    rules,
                    spreads=tuple(
                        msgspec.structs.replace(one, group=share(one.group, one.group))
                        for one in rules.spreads
                    ),
                    near=tuple(share(group, group) for group in rules.near),
                    far=tuple(share(group, group) for group in rules.far),
                )
            self._rules[rules] = rules
        demand = msgspec.structs.replace(asked.demand, signature=signature)
        return msgspec.structs.replace(asked, demand=demand, rules=rules)


def _read(pod: Pod) -> Asked:
    requests = pod_requests(pod)
    alternatives, left_out = first_alternatives(pod)
    rules = rules_of(pod)
    plain = rules is FREE
    return Asked(
        demand=Demand(
            requests=tuple(sorted((name, nano) for name, nano in requests.items() if nano > 0)),
            signature=Signature(alternatives, _tolerations(pod.spec.tolerations)),
            ports=host_ports(pod.spec),
            left_out=left_out,
        ),
        rules=rules,
        namespace=pod.namespace,
        labels=frozenset(pod.labels.items()),
        priority=pod.spec.priority or 0,
        wishes=() if plain else _wishes(pod),
    )


def _wishes(pod: Pod) -> tuple[Wish, ...]:
    """A preference that cannot be read is none."""
    try:
        return wishes_of(pod, pod_preferences(pod))
    except SpecError:
        return ()


_ASKED: Final = Derivation("what a pod asks for", _read)


def _tolerations(written: Iterable[Toleration]) -> tuple[Toleration, ...]:
    """For how long a taint is tolerated does not matter to where the pod may go."""
    distinct = {(t.key, t.operator or "Equal", t.value, t.effect) for t in written}
    return tuple(
        Toleration(key=key, operator=operator, value=value, effect=effect)
        for key, operator, value, effect in sorted(distinct)
    )
