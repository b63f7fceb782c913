"""What packing is asked: pods, the nodes there are, the pools that can make more.

Everything here is a frozen value that the caller fills in; packing reads nothing else.
Amounts are nano-units (``tenure.model.values.quantity``), money is micro-dollars per hour.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from tenure.model.api.names import INITIALIZED, REGISTERED
from tenure.model.api.node import Taint
from tenure.model.api.pod import Pod, PodSpec
from tenure.model.cloud.offering import InstanceType, OfferingKey
from tenure.model.matching.requirements import Requirements
from tenure.model.snapshot.derived import NOTHING_KEPT, Derived
from tenure.model.values.quantity import subtract, total
from tenure.packing.demand.requests import HostPort, Resources, host_ports, pod_requests
from tenure.packing.demand.volumes import VolumeAnswer

#: The pseudo-resource by which a pool's limits bound its number of nodes.
NODES: Final = "nodes"

#: Labels that Tenure itself puts on every node, before pods come.
NEW_NODE_LABELS: Final[Mapping[str, str]] = {REGISTERED: "true", INITIALIZED: "true"}

#: What a node costs beyond its price, in cpus at the price that the pods pay for one: its share of the control
#: plane, addresses, image pulls, DaemonSets, the trouble of draining it one day. Without it the cheapest plan is
#: a crowd of tiny nodes.
NODE_FEE_CPUS: Final = 3


class PoolTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A pool as a source of new nodes."""

    pool: str
    #: Pools of higher weight are tried first; of equal weight, the later name.
    weight: int = 0
    #: The template's requirements and labels, and the label ``karpenter.sh/nodepool``.
    requirements: Requirements = Requirements()
    taints: tuple[Taint, ...] = ()
    #: Gone before pods come, so they do not matter here; carried for who makes the claim.
    startup_taints: tuple[Taint, ...] = ()
    instance_types: tuple[InstanceType, ...] = ()
    #: Limits less usage, ``nodes`` included; a resource that is not named has no limit.
    remaining: Resources | None = None
    #: The limits themselves; packing does not count with them, but advice names them.
    limits: Resources | None = None


class ExistingNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node that takes pods, or will: a claim in flight that has no Node yet stands here too.

    A node that takes none is ``closed``. It stands here because the scheduler counts the pods
    that run on it, and its zone among the zones.

    ``ExistingNode.holding`` computes what follows from the pods that are bound to it.
    """

    name: str
    labels: Mapping[str, str] = {}
    #: Of a node that is not initialized, without startup and known ephemeral taints.
    taints: tuple[Taint, ...] = ()
    #: Allocatable less the requests of every pod bound there, daemons included.
    available: Resources = {}
    initialized: bool = True
    #: Taken by pods that are bound there.
    host_ports: tuple[HostPort, ...] = ()
    #: Requests of the daemon pods that are bound there: no capacity is reserved for these again.
    daemon_requests: Resources = {}
    #: Unfinished pods bound there, those that terminate included; spread and anti-affinity
    #: count them. A pod that is among ``Problem.pods``, too, counts until its turn comes.
    pods: tuple[Pod, ...] = ()
    #: Takes no pods: cordoned, or leaving.
    closed: bool = False
    #: Labels that it will have, of an instance that is not launched yet: one of these values each.
    undecided: Mapping[str, frozenset[str]] = {}

    @classmethod
    def holding(
        cls,
        pods: Iterable[Pod],
        *,
        name: str,
        allocatable: Resources,
        labels: Mapping[str, str] | None = None,
        taints: tuple[Taint, ...] = (),
        initialized: bool = True,
        closed: bool = False,
    ) -> ExistingNode:
        """The node with what these pods, daemons included, leave of it."""
        pods = tuple(pods)
        requests: list[Resources] = []
        of_daemons: list[Resources] = []
        ports: list[HostPort] = []
        for pod in pods:  # In one loop: all pods of the cluster, after a start.
            requests.append(asked := pod_requests(pod))
            if pod.daemon:
                of_daemons.append(asked)
            ports += host_ports(pod.spec)
        return cls(
            name=name,
            labels=labels or {},
            taints=taints,
            available=subtract(allocatable, total(requests)),
            initialized=initialized,
            host_ports=tuple(ports),
            daemon_requests=total(of_daemons),
            pods=pods,
            closed=closed,
        )

    def with_pod(self, pod: Pod) -> ExistingNode:
        """The node with one pod more that is not there yet, but has its place."""
        return msgspec.structs.replace(
            self,
            available=subtract(self.available, pod_requests(pod)),
            host_ports=(*self.host_ports, *host_ports(pod.spec)),
            pods=(*self.pods, pod),
        )


class Daemon(msgspec.Struct, frozen=True, kw_only=True):
    """What a DaemonSet puts on every node that its pods accept."""

    name: str
    #: Of its newest living pod where there is one, else of its template.
    spec: PodSpec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One question. The order of any of these does not matter."""

    pods: tuple[Pod, ...] = ()
    nodes: tuple[ExistingNode, ...] = ()
    #: These are all nodes that there are: an index of them is kept in ``derived``.
    all_nodes: bool = False
    templates: tuple[PoolTemplate, ...] = ()
    daemons: tuple[Daemon, ...] = ()
    #: Offerings that were sold out lately: not counted on.
    dry: frozenset[OfferingKey] = frozenset()
    #: Zones that get new nodes only for pods that nothing else can take.
    avoid: frozenset[str] = frozenset()
    #: By pod UID, the node that was launched for it: it stays there for as long as it fits.
    nominated: Mapping[str, str] = {}
    #: Names of nodes that the scheduler is just binding such pods to: one that has no room there may get it yet.
    binding: frozenset[str] = frozenset()
    #: UIDs of pods that may go to nodes that exist or are on their way, but get no new claim.
    no_claim: frozenset[str] = frozenset()
    #: UIDs of pods that share a new claim only with pods of their own owner and class.
    apart: frozenset[str] = frozenset()
    #: By UID, of the pods that have persistent volumes: what these ask of a node, or what is wrong.
    volumes: Mapping[str, VolumeAnswer] = {}
    #: A node costs as much as so many cpus beyond its price (``opening.market``).
    node_fee_cpus: int = NODE_FEE_CPUS
    #: Whether preferences are kept where they can be. Karpenter's ``--preference-policy``.
    preferences: bool = False
    #: Whether ``minValues`` must be met, or are a wish. Karpenter's ``--min-values-policy``.
    min_values: bool = True
    #: Labels of namespaces by name; None: not known.
    namespaces: Mapping[str, Mapping[str, str]] | None = None
    #: Where what is read of a pod is kept for the next problem. It does not change the answer.
    derived: Derived = NOTHING_KEPT
