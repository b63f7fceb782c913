"""What a pod asks of a node: resources in nano-units, labels, and host ports.

The resources are what the Kubernetes scheduler reserves, in this order:

1. the containers together, and the sidecars (init containers that restart Always) with them;
2. where an init container needs more than that while it runs beside the sidecars started
   before it, that much;
3. pod-level requests instead of the sum, for each resource that they name;
4. the overhead of the pod's runtime class on top;
5. one place among the node's ``pods``.

A limit without a request counts as the request: the API server writes that into pods, but
not into the pod template of a DaemonSet, which we read too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from tenure.model.api.pod import Container, Pod, PodSpec, ResourceRequirements
from tenure.model.matching.requirements import Requirements, pod_alternatives
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

_ANY_ADDRESS: Final = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, never bound


#: Of a pod's node-affinity alternatives, so many that differ are looked at: all pools and nodes
#: are asked about each, and a pod may have as many as its size allows.
ALTERNATIVES_MAX: Final = 100


class HostPort(msgspec.Struct, frozen=True, order=True):
    """A port of the node that a pod wants for itself."""

    port: int
    protocol: str = "TCP"
    address: str = ""

    def conflicts(self, other: HostPort) -> bool:
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return (
            self.address == other.address
            or self.address in _ANY_ADDRESS
            or other.address in _ANY_ADDRESS
        )


def pod_requests(pod: Pod) -> Resources:
    """What the scheduler reserves for the pod, one place among ``pods`` included."""
    return spec_requests(pod.spec)


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
    """The requirement alternatives that count, in the order written, and how many more differ."""
    distinct = tuple(dict.fromkeys(pod_alternatives(pod)))
    return distinct[:ALTERNATIVES_MAX], max(0, len(distinct) - ALTERNATIVES_MAX)


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


def ports_conflict(left: tuple[HostPort, ...], right: tuple[HostPort, ...]) -> HostPort | None:
    """The first port of ``left`` that cannot be had beside ``right``."""
    for port in left:
        if any(port.conflicts(other) for other in right):
            return port
    return None


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
