"""The nodes that a packing amounts to, each with every instance that its claim may become."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from tenure.model.api.node import Taint
from tenure.model.api.pod import Container, Pod, PodSpec
from tenure.model.cloud.offering import InstanceType
from tenure.model.values.quantity import parse_quantity
from tenure.packing.demand.problem import ExistingNode, PoolTemplate, Problem
from tenure.packing.result import PlannedClaim
from tests.packing.judges.selectors import Labels, node_matches, tolerated

ZONE = "topology.kubernetes.io/zone"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
HOSTNAME = "kubernetes.io/hostname"
ATTACHABLE = "attachable-volumes-csi-"
Amounts = dict[str, int]
Port = tuple[int, str, str]


class Outcome(msgspec.Struct, frozen=True):
    """What a claim may become, or what a node is."""

    labels: Labels
    #: For pods that are not of a DaemonSet, and are not there yet.
    room: Amounts
    what: str


class Place(msgspec.Struct):
    """A node, or a planned claim."""

    name: str
    taints: tuple[Taint, ...]
    #: The first one is the one that is planned for.
    outcomes: list[Outcome]
    #: Bound already, those that terminate included.
    there: tuple[Pod, ...] = ()
    daemon_ports: tuple[Port, ...] = ()
    closed: bool = False

    @property
    def labels(self) -> Labels:
        return self.outcomes[0].labels

    def domain(self, key: str) -> str | None:
        """A node is its own hostname."""
        return self.name if key == HOSTNAME else self.labels.get(key)


def requests(spec: PodSpec) -> Amounts:
    """By the rules of the Kubernetes documentation on init containers, sidecars and pod resources."""
    main: Amounts = {}
    for container in spec.containers:
        _add(main, _asked(container))
    peak: Amounts = {}
    sidecars: Amounts = {}
    for container in spec.init_containers:
        asked = _asked(container)
        if container.restart_policy == "Always":
            _add(main, asked)
            _add(sidecars, asked)
            asked = {}
        for name in {*sidecars, *asked}:
            here = sidecars.get(name, 0) + asked.get(name, 0)
            peak[name] = max(peak.get(name, 0), here)
    needed = {name: max(main.get(name, 0), peak.get(name, 0)) for name in {*main, *peak}}
    if spec.resources is not None:
        for name, text in spec.resources.limits.items():
            needed.setdefault(name, parse_quantity(text))
        for name, text in spec.resources.requests.items():
            needed[name] = parse_quantity(text)
    _add(needed, {name: parse_quantity(text) for name, text in spec.overhead.items()})
    _add(needed, {"pods": 10**9})
    return needed


def _asked(container: Container) -> Amounts:
    written = {**container.resources.limits, **container.resources.requests}
    return {name: parse_quantity(text) for name, text in written.items()}


def _add(to: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        to[name] = to.get(name, 0) + amount


def ports_of(spec: PodSpec) -> list[Port]:
    running = [*spec.containers, *(c for c in spec.init_containers if c.restart_policy == "Always")]
    return [
        (port.host_port or port.container_port, port.protocol or "TCP", port.host_ip)
        for container in running
        for port in container.ports
        if port.host_port or (spec.host_network and port.container_port)
    ]


def clash(one: Port, other: Port) -> bool:
    wild = {"", "0.0.0.0", "::"}  # noqa: S104
    same = one[:2] == other[:2]
    return same and (one[2] == other[2] or one[2] in wild or other[2] in wild)


def existing(node: ExistingNode, problem: Problem) -> Place:
    labels = {**{k: min(v) for k, v in node.undecided.items()}, **node.labels}
    room = dict(node.available)
    # DaemonSet pods that belong here and have not come yet take the rest of what they will need.
    coming: Amounts = {}
    for daemon in problem.daemons:
        if _runs_on(daemon.spec, node.name, labels, node.taints):
            _add(coming, requests(daemon.spec))
    for name, amount in coming.items():
        missing = max(0, amount - node.daemon_requests.get(name, 0))
        room[name] = max(0, room.get(name, 0)) - missing
    return Place(
        node.name, node.taints, [Outcome(labels, room, node.name)], node.pods, (), node.closed
    )


def planned(
    claim: PlannedClaim, number: int, problem: Problem, left_out: Collection[str] = ()
) -> Place:
    """``left_out``: DaemonSets that fit no instance type together."""
    template = next(one for one in problem.templates if one.pool == claim.pool)
    by_name = {kind.name: kind for kind in template.instance_types}
    name = f"claim-{number:05d}"
    outcomes: list[Outcome] = []
    ports: list[Port] = []
    for kind in (by_name[listed] for listed in claim.instance_types):
        for labels in _labels(claim, template, kind, problem):
            room = dict(kind.allocatable)
            for driver, most in kind.volume_limits.items():
                room[ATTACHABLE + driver] = most * 10**9
            for daemon in problem.daemons:
                if daemon.name in left_out:
                    continue
                if _runs_on(daemon.spec, name, labels, template.taints):
                    for resource, amount in requests(daemon.spec).items():
                        room[resource] = room.get(resource, 0) - amount
                    ports += ports_of(daemon.spec)
            outcomes.append(Outcome(labels, room, kind.name))
    wanted = (claim.instance_type, claim.zone, claim.capacity_type)
    outcomes.sort(
        key=lambda one: (one.what, one.labels.get(ZONE), one.labels.get(CAPACITY_TYPE)) != wanted
    )
    return Place(name, template.taints, outcomes, (), tuple(ports))


def _labels(
    claim: PlannedClaim, template: PoolTemplate, kind: InstanceType, problem: Problem
) -> Iterator[dict[str, str]]:
    """Of each offering that the cloud may pick for the claim."""
    certain = {
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
    }
    for requirements in (template.requirements, kind.requirements, claim.requirements):
        certain |= {
            key: next(iter(one.listed))
            for key, one in requirements.items()
            if not one.complement and len(one.listed) == 1 and not one.allows_absent
        }
    for offering in kind.offerings:
        key = (kind.name, offering.zone, offering.capacity_type)
        if not offering.available or key in problem.dry:
            continue
        zone, term = claim.requirements.get(ZONE), claim.requirements.get(CAPACITY_TYPE)
        if (zone is None or zone.has(offering.zone)) and (
            term is None or term.has(offering.capacity_type)
        ):
            yield {
                **certain,
                "node.kubernetes.io/instance-type": kind.name,
                ZONE: offering.zone,
                CAPACITY_TYPE: offering.capacity_type,
            }


def _runs_on(spec: PodSpec, name: str, labels: Labels, taints: Iterable[Taint]) -> bool:
    return tolerated(taints, spec.tolerations) and node_matches(Pod(spec=spec), name, labels)
