"""What a new node will hold because of DaemonSets: requests and host ports of their pods.

In this order:

1. the DaemonSet's newest living pod says it: admission has already filled in what LimitRanges
   and webhooks add to the template. A pod of an older template says nothing about the next one;
2. without such a pod, the template does, with the namespace's LimitRanges applied as admission
   would;
3. a DaemonSet whose pods admission would refuse gets none, so no room is kept for them.

Which nodes the pods come to is always the template's to say: a living pod is tied to its node.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tenure.core.provision.limitranges import admitted
from tenure.model.api.pod import Pod, PodSpec
from tenure.model.api.workload import DaemonSet
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.packing.demand.problem import Daemon

#: The DaemonSet controller counts templates here, and writes the number on each pod.
_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_POD_GENERATION: Final = "pod-template-generation"


def daemons(snapshot: Snapshot) -> list[Daemon]:
    found = []
    for key, daemon_set in sorted(snapshot.daemon_sets.items()):
        if daemon_set.deleting or is_unreadable(daemon_set):
            continue
        spec = _spec(daemon_set, key, snapshot)
        if spec is not None:
            found.append(Daemon(name=key, spec=spec))
    return found


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


def _is_current(pod: Pod, daemon_set: DaemonSet) -> bool:
    """Whether the pod was made from the template as it is now, as far as either says so."""
    wanted = daemon_set.annotations.get(_TEMPLATE_GENERATION)
    return pod.labels.get(_POD_GENERATION, wanted) == wanted or wanted is None
