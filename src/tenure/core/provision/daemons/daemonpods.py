"""What DaemonSet pods will use on a new node: requests and host ports.

In this order:

1. from the DaemonSet's newest existing pod: admission has already filled in what LimitRanges
   and webhooks add to the template. A pod of an older template is not used;
2. without such a pod, from the template, with the namespace's LimitRanges applied as admission
   would;
3. no capacity is reserved for a DaemonSet whose pods admission would refuse;
4. nor for one whose pods do not run on the existing nodes, although they should: it has no
   pods there (a ResourceQuota refuses them), or none of them runs and the newest is gated, or is
   larger than every Node. If there is no node for its pods yet, the template is used.

Without rules 3 and 4 a user who may create a DaemonSet could make all new nodes larger without
running a single pod.

Which nodes the pods run on comes from the template: an existing pod is bound to its node. Where the
DaemonSet cannot be read, its newest pod counts, on every node that fits the pod's ``nodeSelector``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tenure.core.provision.daemons.limitranges import admitted
from tenure.errors import SpecError
from tenure.model.api.pod import Pod, PodSpec
from tenure.model.api.workload import DaemonSet
from tenure.model.snapshot.amounts import ALLOCATABLE
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.model.values.quantity import fits
from tenure.packing.demand.problem import Daemon
from tenure.packing.demand.requests import spec_requests

#: The DaemonSet controller counts templates here, and writes the number on each pod.
_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_POD_GENERATION: Final = "pod-template-generation"


def daemons(snapshot: Snapshot) -> list[Daemon]:
    found = []
    for key, daemon_set in sorted(snapshot.daemon_sets.items()):
        if daemon_set.deleting:
            continue
        if is_unreadable(daemon_set):
            spec = _of_pods(key, snapshot)
        else:
            spec = _spec(daemon_set, key, snapshot)
            if spec is not None and not _comes(daemon_set, key, spec, snapshot):
                continue
        if spec is not None:
            found.append(Daemon(name=key, spec=spec))
    return found


def _of_pods(key: str, snapshot: Snapshot) -> PodSpec | None:
    """Of a DaemonSet that cannot be read, whose pods run all the same."""
    pod = snapshot.daemon_pod(key)
    if pod is None or is_unreadable(pod) or not _pod_comes(pod, pod.spec, snapshot):
        return None
    # The controller binds a pod to its node by affinity, in place of what the template says.
    return msgspec.structs.replace(pod.spec, node_name="", affinity=None)


def _spec(daemon_set: DaemonSet, key: str, snapshot: Snapshot) -> PodSpec | None:
    template = daemon_set.spec.template.spec
    pod = snapshot.daemon_pod(key)
    if pod is not None and not is_unreadable(pod) and _is_current(pod, daemon_set):
        live = pod.spec
        return msgspec.structs.replace(
            template,
            containers=live.containers,
            init_containers=live.init_containers,
            overhead=live.overhead,
            resources=live.resources,
            host_network=live.host_network,
        )
    return admitted(template, snapshot.limit_ranges_in(daemon_set.namespace))


def _comes(daemon_set: DaemonSet, key: str, spec: PodSpec, snapshot: Snapshot) -> bool:
    """Whether its pods will run on new nodes, as far as existing nodes show."""
    status = daemon_set.status
    if status.observed_generation < daemon_set.metadata.generation:
        return True
    if not status.desired_number_scheduled or status.number_ready:
        return True
    if not status.current_number_scheduled:
        return False
    pod = snapshot.daemon_pod(key)
    return pod is None or is_unreadable(pod) or _pod_comes(pod, spec, snapshot)


def _pod_comes(pod: Pod, spec: PodSpec, snapshot: Snapshot) -> bool:
    if pod.spec.node_name:
        return True
    if pod.spec.scheduling_gates:
        return False
    return not pod.unschedulable or _holds_any(spec, snapshot)


def _holds_any(spec: PodSpec, snapshot: Snapshot) -> bool:
    """Whether the pod fits an empty Node: then the Nodes may only be full."""
    try:
        requests = spec_requests(spec)
    except SpecError:
        return False
    nodes, derived = snapshot.nodes.values(), snapshot.derived
    return any(fits(requests, derived.of(ALLOCATABLE, node)) for node in nodes)


def _is_current(pod: Pod, daemon_set: DaemonSet) -> bool:
    """Whether the pod was made from the present template, as far as either object shows it."""
    wanted = daemon_set.annotations.get(_TEMPLATE_GENERATION)
    return pod.labels.get(_POD_GENERATION, wanted) == wanted or wanted is None
