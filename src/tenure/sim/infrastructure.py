"""The node side of the embedded cluster, wired together: cloud, kubelets, controllers.

The builder of a cluster creates one of these on its environment and store; the order in
which the actors subscribe is fixed here, because it is part of every history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import msgspec

from tenure.model.api.resource import Resource
from tenure.model.cloud.market import Market
from tenure.model.cloud.offering import InstanceType
from tenure.sim.actors.boundpods import BoundPods
from tenure.sim.actors.kubelet.kubelet import Kubelets, KubeletTimings
from tenure.sim.actors.kubelet.podstatus import PodPace
from tenure.sim.actors.kubelet.startupagents import StartupAgents
from tenure.sim.actors.nodes.lifecycle import NodeLifecycle
from tenure.sim.actors.nodes.otherprograms import OtherPrograms
from tenure.sim.actors.nodes.podgc import PodGarbageCollector
from tenure.sim.actors.nodes.tainteviction import TaintEviction
from tenure.sim.actors.volumes.driver import VolumeTimings
from tenure.sim.actors.volumes.storage import Storage
from tenure.sim.apiserver.store.store import Store
from tenure.sim.cloud.awslabels import AWS_GROUPS, with_aws_labels
from tenure.sim.cloud.catalogue import DEFAULT_ZONES, instance_types, select
from tenure.sim.cloud.cloud import CloudTimings, SimulatedCloud
from tenure.sim.cloud.standins import StandIns
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.faults import Faults, FaultSwitch
from tenure.sim.virtual.outages import ZoneOutages


class InfrastructureOptions(msgspec.Struct, frozen=True, kw_only=True):
    #: ``common``, ``all``, or names of instance types.
    catalogue: str | Sequence[str] = "common"
    zones: Sequence[str] = DEFAULT_ZONES
    #: Instance types of one's own, instead of the catalogue.
    types: Sequence[InstanceType] = ()
    #: Node classes of other clouds that the embedded one launches for.
    stands_in_for: Sequence[Resource] = ()
    #: Whether such a class is Ready, as its own cloud's controller would have it; else its status says so.
    makes_classes_ready: bool = False
    cloud: CloudTimings = CloudTimings()
    kubelet: KubeletTimings = KubeletTimings()
    #: How long the pods of some apps take for what they do; the first that covers a pod counts.
    paces: Sequence[PodPace] = ()
    volumes: VolumeTimings = VolumeTimings()
    #: Startup taint key → how long its agent needs on a Ready node before it removes it.
    startup_agents: Mapping[str, timedelta] = {}
    faults: Faults = Faults()


class Infrastructure:
    def __init__(
        self,
        environment: Environment,
        store: Store,
        options: InfrastructureOptions | None = None,
    ) -> None:
        options = options or InfrastructureOptions()
        types = options.types or _catalogue(options, environment.seed)
        self.faults = FaultSwitch(options.faults)
        self.outages = ZoneOutages()
        self.pods = BoundPods(store)
        self.storage = Storage(
            environment,
            store,
            alive=self._is_alive,
            timings=options.volumes,
            faults=self.faults,
            zones=sorted({offer.zone for kind in types for offer in kind.offerings}),
        )
        self.kubelets = Kubelets(
            environment,
            store,
            self.pods,
            timings=options.kubelet,
            faults=self.faults,
            outages=self.outages,
            volumes=self.storage.attachments,
        )
        self.kubelets.set_paces(*options.paces)
        self.cloud = SimulatedCloud(
            environment,
            store,
            self.kubelets,
            Market(types),
            timings=options.cloud,
            faults=self.faults,
            outages=self.outages,
            stands_in_for=options.stands_in_for,
        )
        if options.makes_classes_ready:
            StandIns(environment, store, options.stands_in_for)
        self.node_lifecycle = NodeLifecycle(environment, store, self.pods, self.kubelets)
        self.kubelets.on_silence(self.node_lifecycle.fell_silent)
        self.taint_eviction = TaintEviction(environment, store, self.pods)
        self.pod_gc = PodGarbageCollector(environment, store, self.pods)
        self.startup_agents = StartupAgents(
            environment, store, options.startup_agents, faults=self.faults
        )

        self.other_programs = OtherPrograms(environment, store, self.faults)

    def _is_alive(self, node: str) -> bool:
        """Storage is there before the kubelets that it asks about."""
        return self.kubelets.is_alive(node)


def _catalogue(options: InfrastructureOptions, seed: int) -> tuple[InstanceType, ...]:
    types = instance_types(select(options.catalogue), seed=seed, zones=options.zones)
    if any(one.group in AWS_GROUPS for one in options.stands_in_for):
        return tuple(map(with_aws_labels, types))
    return types
