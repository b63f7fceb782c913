"""What a pod asks for, read once for each distinct sequence of bytes of its spec and labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.pod import Pod, PodSpec, Toleration
from tenure.model.matching.requirements import Requirements, pod_preferences
from tenure.model.snapshot.derived import NOTHING_KEPT, Derivation, Derived
from tenure.packing.demand.requests import (
    ALTERNATIVES_MAX,
    HostPort,
    Resources,
    first_alternatives,
    host_ports,
    spec_requests,
)
from tenure.packing.demand.steps import PODS_A_STEP, Steps, at_once
from tenure.packing.demand.terms import FREE, Group, Rules, Wish, rules_of, wishes_of
from tenure.packing.demand.volumes import NO_ANSWERS, VolumeAnswer, VolumeNeeds

#: A pod that is not like any before takes as long to read as so many that are.
READING: Final = 15
#: So many alternatives a pod may always have; those of all pods with more of them together.
FEW_ALTERNATIVES: Final = 4
ALTERNATIVES_OF_ALL: Final = 500


class Signature(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """What a pod asks of a node's labels and taints. Volumes narrow the alternatives."""

    alternatives: tuple[Requirements, ...] = (Requirements(),)
    tolerations: tuple[Toleration, ...] = ()
    #: ``PreferNoSchedule`` taints count as ``NoSchedule``: a preference that is still kept.
    soft_taints: bool = False
    #: Where volumes or preferences narrowed the alternatives: these without them.
    required: tuple[Requirements, ...] = ()

    @property
    def counted(self) -> tuple[Requirements, ...]:
        """Nodes that satisfy one of these count for a spread, wherever volumes are."""
        return self.required or self.alternatives

    def narrowed(self, alternatives: tuple[Requirements, ...]) -> Signature:
        """By what does not say which nodes count."""
        return msgspec.structs.replace(self, alternatives=alternatives, required=self.counted)


class Demand(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """What a pod asks of a node. Volumes to be attached are requests like any other."""

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


def read_pods(
    pods: Iterable[Pod],
    derived: Derived = NOTHING_KEPT,
    volumes: Mapping[str, VolumeAnswer] = NO_ANSWERS,
) -> tuple[dict[Asked, list[Pod]], dict[str, str]]:
    """The pods by what is asked for; and by UID, why others cannot be read.

    ``volumes``: by UID; a pod whose volumes are unusable is in neither.
    """
    return at_once(reading_pods(pods, derived, volumes))


def reading_pods(
    pods: Iterable[Pod],
    derived: Derived = NOTHING_KEPT,
    volumes: Mapping[str, VolumeAnswer] = NO_ANSWERS,
) -> Steps[tuple[dict[Asked, list[Pod]], dict[str, str]]]:
    """The same in steps."""
    reader = _Reader(derived)
    read = reader.of if len(derived) else reader.read
    found: dict[Asked, list[Pod]] = {}
    unreadable: dict[str, str] = {}
    done = 0
    for pod in pods:
        if (done := done + 1) + READING * reader.distinct >= PODS_A_STEP:
            done = -READING * reader.distinct
            yield
        try:
            asked = read(pod)
        except SpecError as error:
            unreadable[pod.uid] = str(error)
            continue
        if volumes and (needs := volumes.get(pod.uid)) is not None:
            if not isinstance(needs, VolumeNeeds):
                continue
            asked = _with_volumes(asked, needs)
        try:
            found[asked].append(pod)
        except KeyError:
            found[asked] = [pod]
    return found, unreadable


def _with_volumes(asked: Asked, needs: VolumeNeeds) -> Asked:
    """Asked of a node from which all volumes of the pod can be used."""
    demand = asked.demand
    alternatives = dict.fromkeys(
        wanted.intersect(reachable)
        for wanted in demand.alternatives
        for reachable in needs.alternatives
    )
    kept = tuple(alternatives)[:ALTERNATIVES_MAX]
    demand = msgspec.structs.replace(
        demand,
        requests=tuple(sorted((*demand.requests, *needs.attached))),
        signature=demand.signature.narrowed(kept),
        left_out=demand.left_out + len(alternatives) - len(kept),
    )
    return msgspec.structs.replace(asked, demand=demand)


def within_reason(asked: Mapping[Asked, list[Pod]]) -> Mapping[Asked, list[Pod]]:
    """With fewer alternatives for each pod that has many, where all of them together are too many.

    Each alternative is tried in every pool and beside every pod that is planned, and all pods wait for it.
    """
    many = [one for one in asked if len(one.demand.alternatives) > FEW_ALTERNATIVES]
    if sum(len(one.demand.alternatives) for one in many) <= ALTERNATIVES_OF_ALL:
        return asked
    most = max(FEW_ALTERNATIVES, ALTERNATIVES_OF_ALL // len(many))
    found: dict[Asked, list[Pod]] = {}
    for one, pods in asked.items():
        found.setdefault(_with_fewer(one, most), []).extend(pods)
    return found


def _with_fewer(asked: Asked, most: int) -> Asked:
    demand = asked.demand
    if len(demand.alternatives) <= most:
        return asked
    demand = msgspec.structs.replace(
        demand,
        signature=demand.signature.narrowed(demand.alternatives[:most]),
        left_out=demand.left_out + len(demand.alternatives) - most,
    )
    return msgspec.structs.replace(asked, demand=demand)


class _Reader:
    """Reads each distinct pod once: replicas of a workload have the same bytes.

    While a pod waits, every packing asks: what was read is kept in ``derived``.
    """

    def __init__(self, derived: Derived) -> None:
        self._derived = derived
        self._by_bytes: dict[bytes, Asked] = {}
        self._placing: dict[bytes, _Placing] = {}
        self._known: dict[Asked, Asked] = {}
        self._signatures: dict[Signature, Signature] = {}
        self._rules: dict[Rules, Rules] = {}
        self._groups: dict[Group, Group] = {}
        self._encode = msgspec.msgpack.Encoder().encode

    @property
    def distinct(self) -> int:
        """How many pods were read that are not like any before."""
        return len(self._by_bytes)

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
        key = self._encode((pod.spec, metadata.labels, metadata.namespace))
        asked = self._by_bytes.get(key)
        if asked is None:
            asked = _asked(pod, self._placing_of(pod))
            known = self._known.get(asked)
            if known is None:
                known = self._shared(asked)
                self._known[known] = known
            asked = self._by_bytes[key] = known
        return asked

    def _placing_of(self, pod: Pod) -> _Placing:
        """Workloads differ in size and labels more often than in these."""
        spec = pod.spec
        labels = pod.labels if _read_with_labels(spec) else None
        key = self._encode(
            (
                spec.affinity,
                spec.topology_spread_constraints,
                spec.node_selector,
                spec.tolerations,
                pod.namespace,
                labels,
            )
        )
        placing = self._placing.get(key)
        if placing is None:
            placing = self._placing[key] = _placing(pod)
        return placing

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


class _Placing(msgspec.Struct, frozen=True):
    """What a pod asks for but for its size."""

    signature: Signature
    left_out: int
    rules: Rules
    wishes: tuple[Wish, ...]


def _placing(pod: Pod) -> _Placing:
    alternatives, left_out = first_alternatives(pod)
    rules = rules_of(pod)
    signature = Signature(alternatives, _tolerations(pod.spec.tolerations))
    return _Placing(signature, left_out, rules, () if rules is FREE else _wishes(pod))


def _read_with_labels(spec: PodSpec) -> bool:
    """Whether a constraint takes values of the pod's own labels."""
    if any(one.match_label_keys for one in spec.topology_spread_constraints):
        return True
    affinity = spec.affinity
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        if part is None:
            continue
        terms = [
            *part.required_during_scheduling_ignored_during_execution,
            *(
                one.pod_affinity_term
                for one in part.preferred_during_scheduling_ignored_during_execution
            ),
        ]
        if any(term.match_label_keys or term.mismatch_label_keys for term in terms):
            return True
    return False


def _asked(pod: Pod, placing: _Placing) -> Asked:
    # By the spec alone: a pod that is created again has nothing from a kubelet yet.
    requests = spec_requests(pod.spec)
    return Asked(
        demand=Demand(
            requests=tuple(sorted([each for each in requests.items() if each[1] > 0])),
            signature=placing.signature,
            ports=host_ports(pod.spec),
            left_out=placing.left_out,
        ),
        rules=placing.rules,
        namespace=pod.namespace,
        labels=frozenset(pod.labels.items()),
        priority=pod.spec.priority or 0,
        wishes=placing.wishes,
    )


def _read(pod: Pod) -> Asked:
    return _asked(pod, _placing(pod))


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
