"""Pods that nothing tells apart are placed together.

A class is all pods with the same requests, requirement alternatives, tolerations, host
ports and topology rules. Ten thousand pods of two hundred Deployments are two hundred
classes, and "how many of these fit here" is one division per resource, so the cost of
packing hardly depends on the number of pods.

Classes are placed by cpu, then memory, largest first, then in the order of their oldest
pod; the pods of a class by creation, then UID.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.pod import Pod, Toleration
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.snapshot.derived import NOTHING_KEPT, Derivation, Derived
from tenure.packing.demand.requests import (
    HostPort,
    Resources,
    first_alternatives,
    host_ports,
    pod_requests,
)
from tenure.packing.demand.topology import Rules, Topology

#: (index of the resource, amount), for the resources that are asked for at all.
Wants = tuple[tuple[int, int], ...]


class Demand(msgspec.Struct, frozen=True, cache_hash=True):
    """What a pod's spec asks of a node."""

    requests: tuple[tuple[str, int], ...]
    alternatives: tuple[Requirements, ...]
    tolerations: tuple[Toleration, ...]
    ports: tuple[HostPort, ...]
    #: How many more alternatives the pod has: they are not looked at.
    left_out: int = 0

    @property
    def resources(self) -> Resources:
        return dict(self.requests)


class PodClass(msgspec.Struct, frozen=True):
    """Pods that nothing tells apart, in the order in which they are served."""

    demand: Demand
    rules: Rules
    wants: Wants
    pods: tuple[Pod, ...]
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


class Sorted(msgspec.Struct, frozen=True):
    """The pods of a problem in classes, and those that cannot be read."""

    classes: tuple[PodClass, ...]
    #: Every resource that some pod asks for and something offers; ``Wants`` index into it.
    resources: tuple[str, ...]
    unreadable: Mapping[str, str]
    #: Classes that ask for what nothing offers: they are not served, but told why.
    apart: tuple[PodClass, ...] = ()


def sort_pods(
    pods: Iterable[Pod],
    topology: Topology,
    offered: Callable[[Collection[str]], Collection[str]] = lambda asked: asked,
    derived: Derived = NOTHING_KEPT,
) -> Sorted:
    """Group pods into classes and put the classes in the order of service.

    ``offered`` says which of the resources asked for some type or node has at all. Only these
    are counted with: a user may invent names by the thousand, and each would otherwise be
    looked at for every type of every pool.
    """
    demands = _Demands(derived)
    members: dict[tuple[Demand, Rules], list[Pod]] = {}
    unreadable: dict[str, str] = {}
    for pod in pods:
        try:
            key = demands.of(pod), topology.rules(pod)
        except SpecError as error:
            unreadable[pod.uid] = str(error)
            continue
        members.setdefault(key, []).append(pod)
    names = tuple(sorted(offered({name for demand, _ in members for name, _ in demand.requests})))
    known = frozenset(names)
    classes: list[PodClass] = []
    for (written, rules), same in members.items():
        demand, missing = _without_missing(written, known)
        asked = wants(demand.resources, names)
        oldest_first = tuple(sorted(same, key=_age))
        classes.append(PodClass(_kept_out(demand, rules), rules, asked, oldest_first, missing))
    classes.sort(key=_service_order)
    return Sorted(
        tuple(one for one in classes if not one.missing or one.rules.not_modelled),
        names,
        unreadable,
        tuple(one for one in classes if one.missing and not one.rules.not_modelled),
    )


def _without_missing(
    demand: Demand, offered: Container[str]
) -> tuple[Demand, tuple[tuple[str, int], ...]]:
    """The demand for what is offered, and what else it asks for."""
    missing = tuple(asked for asked in demand.requests if asked[0] not in offered)
    if not missing:
        return demand, ()
    kept = tuple(asked for asked in demand.requests if asked[0] in offered)
    return msgspec.structs.replace(demand, requests=kept), missing


def _kept_out(demand: Demand, rules: Rules) -> Demand:
    """The demand without the nodes that running pods keep these pods away from."""
    if not rules.kept_out:
        return demand
    values: dict[str, list[str]] = {}
    for out in rules.kept_out:
        values.setdefault(out.key, []).append(out.value)
    elsewhere = [Requirement.of(key, "NotIn", there) for key, there in values.items()]
    alternatives = tuple(wanted.add(*elsewhere) for wanted in demand.alternatives)
    return msgspec.structs.replace(demand, alternatives=alternatives)


def wants(requests: Resources, names: Sequence[str]) -> Wants:
    """The amounts asked for, by index into ``names``; zeroes do not matter."""
    return tuple((i, requests[name]) for i, name in enumerate(names) if requests.get(name, 0) > 0)


def how_many(free: Sequence[int], wanted: Wants, most: int) -> int:
    """How many times ``wanted`` fits into ``free``, ``most`` at the most."""
    for index, amount in wanted:
        times = free[index] // amount
        if times < most:
            if times <= 0:
                return 0
            most = times
    return most


def least_wanted(classes: Sequence[PodClass]) -> tuple[int, ...]:
    """By resource, the smallest amount that any class asks for; zero where one asks for none.

    Where less than this is free, it need not be checked again.
    """
    asked = [dict(one.wants) for one in classes]
    end = 1 + max((index for wants in asked for index in wants), default=-1)
    return tuple(min(wants.get(index, 0) for wants in asked) for index in range(end))


def _service_order(one: PodClass) -> tuple[int, int, datetime, str]:
    requests = one.demand.resources
    return (-requests.get("cpu", 0), -requests.get("memory", 0), *_age(one.pods[0]))


def _age(pod: Pod) -> tuple[datetime, str]:
    return pod.created_at, pod.uid


class _Demands:
    """Reads each distinct spec once: replicas of a workload have the same bytes.

    While a pod waits, every packing asks: what was read is kept in ``derived``.
    """

    def __init__(self, derived: Derived) -> None:
        self._derived = derived
        self._by_spec: dict[bytes, Demand] = {}
        self._known: dict[Demand, Demand] = {}
        self._encoder = msgspec.msgpack.Encoder()

    def of(self, pod: Pod) -> Demand:
        kept = self._derived.known(_DEMAND, pod)
        demand = kept if kept is not None else self._read(pod)
        # One object per distinct demand: later look-ups then compare by identity.
        demand = self._known.setdefault(demand, demand)
        if demand is not kept:
            self._derived.keep(_DEMAND, pod, demand)
        return demand

    def _read(self, pod: Pod) -> Demand:
        written = self._encoder.encode(pod.spec)
        demand = self._by_spec.get(written)
        if demand is None:
            demand = self._by_spec[written] = _read(pod)
        return demand


def _read(pod: Pod) -> Demand:
    requests = pod_requests(pod)
    alternatives, left_out = first_alternatives(pod)
    return Demand(
        requests=tuple(sorted((name, nano) for name, nano in requests.items() if nano > 0)),
        alternatives=alternatives,
        tolerations=_tolerations(pod.spec.tolerations),
        ports=host_ports(pod.spec),
        left_out=left_out,
    )


_DEMAND: Final = Derivation("demand", _read)


def _tolerations(written: Iterable[Toleration]) -> tuple[Toleration, ...]:
    """For how long a taint is tolerated does not matter to where the pod may go."""
    distinct = {(t.key, t.operator or "Equal", t.value, t.effect) for t in written}
    return tuple(
        Toleration(key=key, operator=operator, value=value, effect=effect)
        for key, operator, value, effect in sorted(distinct)
    )
