"""What DaemonSets will put on a node, so that pods are not promised that room.

A daemon pod comes to a node if it tolerates the node's taints and the node can satisfy one
of its requirement alternatives; its preferences do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tenure.errors import SpecError
from tenure.model.api.node import Taint
from tenure.model.api.pod import Pod, Toleration
from tenure.model.values.quantity import fits, total
from tenure.model.values.requirements import Requirements
from tenure.model.values.taints import untolerated
from tenure.packing.demand.problem import Daemon
from tenure.packing.demand.requests import (
    HostPort,
    Resources,
    first_alternatives,
    host_ports,
    spec_requests,
)


class DaemonPod(msgspec.Struct, frozen=True):
    """A daemon's pod, read once."""

    requests: Resources
    alternatives: tuple[Requirements, ...]
    tolerations: tuple[Toleration, ...]
    ports: tuple[HostPort, ...]

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
