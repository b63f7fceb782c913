"""What deciders read from a single object, tried once when the object arrives.

An object on which one of these fails is set aside before any decider sees it (``Tables.put``), so
that it fails alone, and no traceback is needed to find out which object it was. A ``SpecError`` is
not such a failure: the deciders report it themselves.

The readers are pure and cheap: a cluster has a hundred thousand pods. Most results are cached with
the object, so they are not computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from tenure.core.health.health import unusable
from tenure.core.health.readiness import boot_of, initialization_ttl
from tenure.core.marks.deadline import deadline_of, grace_of, stamp_of
from tenure.core.marks.reboot import is_issued, mark_of
from tenure.core.poolpolicy.govern import govern
from tenure.core.protect.protection import CREATION, protection_of, protection_on
from tenure.core.terminate.pdb import blocked_since, refusal
from tenure.model.api import resource as r
from tenure.model.api.meta import later
from tenure.model.api.names import DO_NOT_REPAIR
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.api.window import MaintenanceWindow
from tenure.model.api.workload import PodDisruptionBudget
from tenure.model.matching.requirements import Requirements, pod_alternatives
from tenure.model.matching.selectors import matches
from tenure.model.values.quantity import parse_resources
from tenure.packing.demand.requests import host_ports, pod_requests
from tenure.packing.demand.terms import rules_of
from tenure.schema.problems import problems_of

Reader = Callable[[Any], object]
#: What pods ask for is remembered where it is short: so many of them, so many bytes each.
PLACEMENTS_MAX: Final = 1_024
PLACEMENT_MAX: Final = 4_096


def _ports(pod: Pod) -> None:
    host_ports(pod.spec)


class _Placements:
    """What pods ask of nodes and of pods around them: replicas and versions of a pod say the same, and are read once."""

    def __init__(self) -> None:
        self._read: set[bytes] = set()
        self._encode = msgspec.msgpack.Encoder().encode

    def read(self, pod: Pod) -> None:
        spec = pod.spec
        # Spread constraints of a bound pod no longer matter.
        spreads = () if spec.node_name else spec.topology_spread_constraints
        if spec.affinity is None and not spec.node_selector and not spreads:
            return  # Nearly all have none.
        said = self._encode((spec.affinity, spec.node_selector, spreads, pod.namespace, pod.labels))
        if said in self._read:
            return
        if spec.affinity is not None or spec.node_selector:
            pod_alternatives(pod)
        if spec.affinity is not None or spreads:
            rules_of(pod)
        if len(said) <= PLACEMENT_MAX:
            if len(self._read) >= PLACEMENTS_MAX:
                self._read.clear()
            self._read.add(said)


def _instants(pod: Pod) -> None:
    later(pod.created_at, grace_of(pod))
    protection_of(pod, clock=CREATION)


def _pod_state(pod: Pod) -> None:
    _ = pod.ready, pod.daemon, pod.mirror, pod.critical, pod.tolerates_disruption


def _node_amounts(node: Node) -> None:
    _ = node.capacity, node.allocatable


def _node_state(node: Node) -> None:
    _ = node.ready, protection_on(node), protection_on(node, DO_NOT_REPAIR)


def _claim_times(claim: NodeClaim) -> None:
    _ = deadline_of(claim), stamp_of(claim), boot_of(claim, None), initialization_ttl(claim)


def _claim_state(claim: NodeClaim) -> None:
    _ = protection_on(claim), mark_of(claim), is_issued(claim), claim.drifted


def _claim_spec(claim: NodeClaim) -> None:
    Requirements.from_wire(claim.spec.requirements)
    parse_resources(claim.spec.resources.requests, "spec.resources.requests")


def _pool_problems(pool: NodePool) -> None:
    unusable(pool)
    list(problems_of(pool))


def _pool_spec(pool: NodePool) -> None:
    Requirements.from_wire(pool.spec.template.spec.requirements)
    parse_resources(pool.spec.limits, "spec.limits")


def _budget(budget: PodDisruptionBudget) -> None:
    matches(budget.spec.selector, {})
    _ = str(refusal(budget)), blocked_since(budget, None)


def _window(window: MaintenanceWindow) -> None:
    list(problems_of(window))


def _pool_policy(policy: NodePoolPolicy) -> None:
    list(problems_of(policy))
    govern(NodePool(), (policy,))


READERS: Final[Mapping[r.Resource, tuple[Reader, ...]]] = {
    r.PODS: (pod_requests, _ports, _Placements().read, _instants, _pod_state),
    r.NODES: (_node_amounts, _node_state),
    r.NODE_CLAIMS: (_claim_times, _claim_state, _claim_spec),
    r.NODE_POOLS: (_pool_problems, _pool_spec),
    r.POD_DISRUPTION_BUDGETS: (_budget,),
    r.MAINTENANCE_WINDOWS: (_window,),
    r.NODE_POOL_POLICIES: (_pool_policy,),
}
