"""What a pod asks of a node: resources in nano-units, labels, and host ports.

The resources are what the Kubernetes scheduler reserves, in this order:

1. the containers together, and the sidecars (init containers that restart Always) with them;
2. where an init container needs more than that while it runs beside the sidecars started
   before it, that much;
3. pod-level requests instead of the sum, for each resource that they name;
4. the overhead of the pod's runtime class on top;
5. one place among the node's ``pods``.

While a pod is resized in place, the largest of what the spec asks for, what the kubelet has allocated and
what the container has counts for each container; of a resize that is infeasible, the latter two.

A limit without a request counts as the request: the API server writes that into pods, but
not into the pod template of a DaemonSet, which we read too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from tenure.model.api.pod import Container, Pod, PodSpec, ResourceRequirements
from tenure.model.matching.requirements import Requirements, each_alternative
from tenure.model.snapshot.derived import Derivation
from tenure.model.values.quantity import UNIT, add, maximum, parse_resources

Resources = Mapping[str, int]

#: The resource that every pod takes one unit of.
PODS: Final = "pods"

#: Amounts by resource name, as they are written.
_Amounts = tuple[tuple[str, str], ...]
#: Requests and limits.
_Written = tuple[_Amounts, _Amounts]
#: More than the workloads of a cluster.
_SPECS_MAX: Final = 8192

#: The condition of a pod whose resize waits, and the reason of one that its node can never give.
_RESIZE: Final = "PodResizePending"
_INFEASIBLE: Final = "Infeasible"

_ANY_ADDRESS: Final = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, never bound


#: Of a pod's node-affinity alternatives, so many that differ are looked at: all pools and nodes
#: are asked about each, and a pod may have as many as its size allows.
ALTERNATIVES_MAX: Final = 100


class HostPort(msgspec.Struct, frozen=True, order=True):
    """A port of the node that a pod wants for itself."""

    port: int
    protocol: str = "TCP"
    address: str = ""


def pod_requests(pod: Pod) -> Resources:
    """What the scheduler reserves for the pod on its node, one place among ``pods`` included."""
    status = pod.status
    if not (status.container_statuses or status.init_container_statuses):
        return spec_requests(pod.spec)
    return spec_requests(_as_given(pod))


#: Every scrape asks for it again.
REQUESTS: Final = Derivation("requests", pod_requests)


def spec_requests(spec: PodSpec) -> Resources:
    """The same for a pod template."""
    if len(spec.containers) == 1 and not (spec.init_containers or spec.resources or spec.overhead):
        return _reserved((_written(spec.containers[0].resources),))  # Most pods.
    return _reserved(
        tuple(_written(one.resources) for one in spec.containers),
        tuple((_written(one.resources), one.restart_policy) for one in spec.init_containers),
        _written(spec.resources) if spec.resources is not None else None,
        tuple(spec.overhead.items()),
    )


def _as_given(pod: Pod) -> PodSpec:
    """The spec of a pod that is resized in place, with what the scheduler counts for each container."""
    spec, status = pod.spec, pod.status
    given = {one.name: one for one in (*status.container_statuses, *status.init_container_statuses)}
    infeasible = status.resize == _INFEASIBLE or any(
        one.type == _RESIZE and one.status == "True" and one.reason == _INFEASIBLE
        for one in status.conditions
    )

    def counted(one: Container) -> Container:
        told = given.get(one.name)
        if told is None or told.resources is None:
            return one
        amounts = [told.resources.requests, told.allocated_resources]
        if not infeasible:
            amounts.append(_requested(one))
        requests = _largest(amounts)
        return msgspec.structs.replace(one, resources=ResourceRequirements(requests=requests))

    return msgspec.structs.replace(
        spec,
        containers=tuple(map(counted, spec.containers)),
        init_containers=tuple(
            counted(one) if one.restart_policy == "Always" else one for one in spec.init_containers
        ),
    )


def _requested(one: Container) -> Mapping[str, str]:
    """A limit without a request counts as the request."""
    return {**one.resources.limits, **one.resources.requests}


def _largest(amounts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Of each resource the largest, as it is written."""
    found: dict[str, str] = {}
    for written in amounts:
        for name, amount in written.items():
            both = parse_resources({"a": found.get(name, "0"), "b": amount})
            if name not in found or both["b"] > both["a"]:
                found[name] = amount
    return found


def _written(resources: ResourceRequirements) -> _Written:
    return tuple(resources.requests.items()), tuple(resources.limits.items())


@lru_cache(maxsize=_SPECS_MAX)
def _reserved(
    containers: tuple[_Written, ...],
    init_containers: tuple[tuple[_Written, str], ...] = (),
    pod_level: _Written | None = None,
    overhead: _Amounts = (),
) -> Resources:
    """There may be a hundred thousand pods, and all pods of a workload ask for the same."""
    running: dict[str, int] = {}
    for written in containers:
        running = add(running, _requests(written))
    starting: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    for written, restart_policy in init_containers:
        own = _requests(written)
        if restart_policy == "Always":
            running, sidecars = add(running, own), add(sidecars, own)
            starting = maximum(starting, sidecars)
        else:
            starting = maximum(starting, add(own, sidecars))
    needed = maximum(running, starting)
    if pod_level is not None:
        needed |= _pod_level(pod_level, needed)
    if overhead:
        needed = add(needed, parse_resources(dict(overhead)))
    needed[PODS] = needed.get(PODS, 0) + UNIT
    return needed


def first_alternatives(pod: Pod) -> tuple[tuple[Requirements, ...], int]:
    """The requirement alternatives that count, in the order written, and how many more there are."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    found: dict[Requirements, None] = {}
    for number, alternative in enumerate(each_alternative(pod), start=1):
        found.setdefault(alternative)
        if len(found) == ALTERNATIVES_MAX:
            return tuple(found), len(required.node_selector_terms) - number if required else 0
    return tuple(found), 0


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """The ports of the node that the pod's containers want, in order and once each."""
    for container in (*spec.containers, *spec.init_containers):
        if container.ports:
            break
    else:
        return ()  # Nearly every pod.
    wanted = {
        HostPort(
            port=port.host_port or port.container_port,
            protocol=port.protocol or "TCP",
            address=port.host_ip,
        )
        for container in (*spec.containers, *_sidecars(spec))
        for port in container.ports
        # On the host's network the API server sets hostPort to containerPort; templates lack it.
        if port.host_port or (spec.host_network and port.container_port)
    }
    return tuple(sorted(wanted))


class PortUsers:
    """Who uses which host ports: each user is a bit."""

    def __init__(self) -> None:
        #: By number and protocol, and by the address that is written.
        self._users: dict[tuple[int, str], dict[str, int]] = {}
        #: By number and protocol: all of them, and those that use every address.
        self._all: dict[tuple[int, str], int] = {}
        self._everywhere: dict[tuple[int, str], int] = {}

    def add(self, ports: Iterable[HostPort], bit: int = 1) -> None:
        for port in ports:
            key = port.port, port.protocol
            self._all[key] = self._all.get(key, 0) | bit
            by_address = self._users.setdefault(key, {})
            by_address[port.address] = by_address.get(port.address, 0) | bit
            if port.address in _ANY_ADDRESS:
                self._everywhere[key] = self._everywhere.get(key, 0) | bit

    def beside(self, port: HostPort) -> int:
        """Those beside which the port cannot be had."""
        key = port.port, port.protocol
        if port.address in _ANY_ADDRESS:
            return self._all.get(key, 0)
        return self._everywhere.get(key, 0) | self._users.get(key, {}).get(port.address, 0)


def ports_conflict(left: tuple[HostPort, ...], right: tuple[HostPort, ...]) -> HostPort | None:
    """The first port of ``left`` that cannot be had beside ``right``."""
    if not left or not right:
        return None
    users = PortUsers()
    users.add(right)
    return next((port for port in left if users.beside(port)), None)


def _sidecars(spec: PodSpec) -> list[Container]:
    return [c for c in spec.init_containers if c.restart_policy == "Always"]


def _requests(written: _Written) -> dict[str, int]:
    requests, limits = written
    return parse_resources(dict((*limits, *requests)))


def _pod_level(written: _Written, summed: Resources) -> dict[str, int]:
    """A pod-level limit stands in for a request only where no container asks for anything."""
    requests, limits = written
    instead = parse_resources(dict(limits))
    unasked = {name: nano for name, nano in instead.items() if name not in summed}
    return unasked | parse_resources(dict(requests))
