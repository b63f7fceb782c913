"""What DaemonSets will put on a node, so that pods are not promised that room.

A daemon pod comes to a node if it tolerates the node's taints and the node can satisfy one
of its requirement alternatives; its preferences do not count.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.node import Taint
from tenure.model.api.pod import CRITICAL_PRIORITY_CLASSES, Pod, PodSpec, Toleration
from tenure.model.api.taints import untolerated
from tenure.model.matching.requirements import Requirements
from tenure.model.values.quantity import add, fits, maximum, total
from tenure.packing.demand.problem import Daemon
from tenure.packing.demand.requests import (
    HostPort,
    Resources,
    first_alternatives,
    host_ports,
    spec_requests,
)

#: Of system-node-critical and system-cluster-critical; higher than any other class may have.
CRITICAL: Final = 2_000_000_000
#: Daemons that leave less than this part of the largest type leave nothing to speak of.
HEADROOM: Final = 16


class DaemonPod(msgspec.Struct, frozen=True):
    """A daemon's pod, read once."""

    requests: Resources
    alternatives: tuple[Requirements, ...]
    tolerations: tuple[Toleration, ...]
    ports: tuple[HostPort, ...]
    #: Of the DaemonSet, ``namespace/name``.
    name: str = ""
    #: As far as the spec tells.
    priority: int = 0

    def tolerates(self, taints: Iterable[Taint]) -> bool:
        return untolerated(taints, self.tolerations) is None


class Load(msgspec.Struct, frozen=True):
    """What some daemons take together."""

    requests: Resources = {}
    ports: tuple[HostPort, ...] = ()

    @classmethod
    def of(cls, pods: Iterable[DaemonPod]) -> Load:
        pods = tuple(pods)
        return cls(total(p.requests for p in pods), tuple(port for p in pods for port in p.ports))


def read_daemons(daemons: Iterable[Daemon]) -> tuple[DaemonPod, ...]:
    """The daemons' pods in the order of their names; one that cannot be read never starts."""
    found = []
    for daemon in sorted(daemons, key=lambda daemon: daemon.name):
        try:
            found.append(
                DaemonPod(
                    spec_requests(daemon.spec),
                    first_alternatives(Pod(spec=daemon.spec))[0],
                    daemon.spec.tolerations,
                    host_ports(daemon.spec),
                    daemon.name,
                    _priority(daemon.spec),
                )
            )
        except SpecError:
            continue
    return tuple(found)


def that_fit(pods: Iterable[DaemonPod], sizes: Sequence[Resources]) -> tuple[DaemonPod, ...]:
    """Those that a node of one of these sizes can hold.

    A pod that is larger than every node runs nowhere. To keep room for it would keep every other
    pod off every node, which the scheduler does not do either.
    """
    return tuple(pod for pod in pods if any(fits(pod.requests, size) for size in sizes))


def _priority(spec: PodSpec) -> int:
    """A template names the class and has no number yet; of the classes only these two are known."""
    if spec.priority is not None:
        return spec.priority
    return CRITICAL if spec.priority_class_name in CRITICAL_PRIORITY_CLASSES else 0


def that_fit_together(
    accepting: Mapping[int, int],
    pods: tuple[DaemonPod, ...],
    sizes: Sequence[Resources],
    types: int,
    least: Resources,
) -> tuple[dict[int, int], tuple[DaemonPod, ...]]:
    """``accepting`` without the daemons because of which no type would have room, and these.

    Where not one of ``types`` holds all daemons that come to it and a little more, nothing at all
    would be launched, for daemons that could not run there together either. Left out are those of
    the lowest priority, of these the largest, until a type holds the rest. A little more is the
    ``least`` that a waiting pod asks for, of the largest type no more than 1/``HEADROOM``: what a
    large pod cannot have beside ordinary daemons, it cannot have.
    """
    bits = [bit for bit in range(len(sizes)) if types >> bit & 1]
    largest: dict[str, int] = {}
    for bit in bits:
        largest = maximum(largest, sizes[bit])
    least = {name: min(nano, largest.get(name, 0) // HEADROOM) for name, nano in least.items()}

    def any_fits(kept: Mapping[int, int]) -> bool:
        loads = loads_by_type(kept, pods, len(sizes))
        return any(fits(add(loads[bit].requests, least), sizes[bit]) for bit in bits)

    if not bits or any_fits(accepting):
        return dict(accepting), ()
    order = sorted(accepting, key=lambda index: _worth(pods[index], largest))
    # The more are left out, the more room there is.
    out = bisect_left(range(len(order)), True, key=lambda n: any_fits(_only(accepting, order[n:])))
    return _only(accepting, order[out:]), tuple(pods[index] for index in order[:out])


def _only(accepting: Mapping[int, int], kept: Iterable[int]) -> dict[int, int]:
    """In the order of the daemons, as ever."""
    return {index: accepting[index] for index in sorted(kept)}


def _worth(pod: DaemonPod, largest: Resources) -> tuple[int, float, str]:
    shares = [nano / largest[name] for name, nano in pod.requests.items() if largest.get(name)]
    return pod.priority, -max(shares, default=0.0), pod.name


def load_on_node(
    pods: Iterable[DaemonPod], taints: tuple[Taint, ...], labels: Requirements
) -> Load:
    """What the daemons take of a node that exists."""
    return Load.of(
        pod
        for pod in pods
        if pod.tolerates(taints) and any(labels.is_compatible(a) for a in pod.alternatives)
    )


def loads_by_type(
    accepting: Mapping[int, int], pods: tuple[DaemonPod, ...], count: int
) -> list[Load]:
    """What the daemons take of each of ``count`` types.

    ``accepting`` maps a daemon's index to the bit mask of the types it comes to. Few sets of
    daemons differ between types, so each set is summed up once.
    """
    sums: dict[tuple[int, ...], Load] = {}
    loads = []
    for bit in range(count):
        present = tuple(i for i, types in accepting.items() if types >> bit & 1)
        if present not in sums:
            sums[present] = Load.of(pods[i] for i in present)
        loads.append(sums[present])
    return loads
