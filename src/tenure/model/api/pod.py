"""A pod as scheduling and draining see it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from tenure.model.api.meta import ApiObject, Condition, Instant, Wire, find_condition
from tenure.model.api.names import DISRUPTED_TAINT
from tenure.model.api.node import Taint
from tenure.model.api.taints import tolerates


class ResourceRequirements(Wire, frozen=True, kw_only=True):
    requests: Mapping[str, str] = {}
    limits: Mapping[str, str] = {}


class ContainerPort(Wire, frozen=True, kw_only=True, gc=False):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(Wire, frozen=True, kw_only=True):
    name: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    #: ``Always`` on an init container makes it a sidecar.
    restart_policy: str = ""


class Toleration(Wire, frozen=True, kw_only=True, gc=False):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSelectorRequirement(Wire, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Wire, frozen=True, kw_only=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Wire, frozen=True, kw_only=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Wire, frozen=True, kw_only=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Wire, frozen=True, kw_only=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class LabelSelectorRequirement(Wire, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Wire, frozen=True, kw_only=True):
    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class PodAffinityTerm(Wire, frozen=True, kw_only=True):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Wire, frozen=True, kw_only=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Wire, frozen=True, kw_only=True):
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(Wire, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Wire, frozen=True, kw_only=True):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class PersistentVolumeClaimVolumeSource(Wire, frozen=True, kw_only=True, gc=False):
    claim_name: str = ""


class Volume(Wire, frozen=True, kw_only=True):
    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    #: A generic ephemeral volume: its claim is named ``<pod>-<volume>``.
    ephemeral: Mapping[str, Any] | None = None


class SchedulingGate(Wire, frozen=True, kw_only=True, gc=False):
    name: str = ""


class PodSpec(Wire, frozen=True, kw_only=True):
    node_name: str = ""
    node_selector: Mapping[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Mapping[str, str] = {}
    #: Pod-level resources; they override the sum over containers.
    resources: ResourceRequirements | None = None
    priority: int | None = None
    priority_class_name: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    termination_grace_period_seconds: int | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    host_network: bool = False


class ContainerStatus(Wire, frozen=True, kw_only=True):
    """What a kubelet has given a container; it differs from the spec while the pod is resized in place."""

    name: str = ""
    allocated_resources: Mapping[str, str] = {}
    resources: ResourceRequirements | None = None

    def says_the_same(self, asked: Mapping[str, str]) -> bool:
        given = self.resources.requests if self.resources is not None else asked
        return given == asked and (
            not self.allocated_resources or self.allocated_resources == asked
        )


class PodStatus(Wire, frozen=True, kw_only=True):
    phase: str = ""
    reason: str = ""
    conditions: tuple[Condition, ...] = ()
    start_time: Instant | None = None
    nominated_node_name: str = ""
    #: Until Kubernetes 1.32: ``Infeasible`` and others; later a condition says it.
    resize: str = ""
    #: Empty where all of them have what the spec asks for.
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


#: The taint of a terminating node.
LEAVING_TAINT = Taint(key=DISRUPTED_TAINT, effect="NoSchedule")

CRITICAL_PRIORITY_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})


class Pod(ApiObject, frozen=True, kw_only=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def __post_init__(self) -> None:
        """Nearly always nothing is being resized: then what kubelets have given is not kept."""
        status = self.status
        if not (status.container_statuses or status.init_container_statuses):
            return
        of = {one.name: one.resources.requests for one in self.spec.containers}
        of |= {one.name: one.resources.requests for one in self.spec.init_containers}
        given = (*status.container_statuses, *status.init_container_statuses)
        if all(one.says_the_same(of.get(one.name, {})) for one in given):
            kept = msgspec.structs.replace(
                status, container_statuses=(), init_container_statuses=()
            )
            msgspec.structs.force_setattr(self, "status", kept)

    @property
    def finished(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def active(self) -> bool:
        return not self.finished and not self.deleting

    @property
    def owner_kind(self) -> str:
        for owner in self.metadata.owner_references:  # As ``controller_of``: all pods are asked.
            if owner.controller:
                return owner.kind
        return ""

    @property
    def daemon(self) -> bool:
        return self.owner_kind == "DaemonSet"

    @property
    def mirror(self) -> bool:
        """A static pod's shadow: the kubelet owns it, the API cannot evict it."""
        return self.owner_kind == "Node"

    @property
    def critical(self) -> bool:
        return self.spec.priority_class_name in CRITICAL_PRIORITY_CLASSES

    @property
    def ready(self) -> bool:
        condition = find_condition(self.status.conditions, "Ready")
        return condition is not None and condition.status == "True"

    @property
    def unscheduled_since(self) -> datetime:
        """When the scheduler said first that it is on no node."""
        condition = find_condition(self.status.conditions, "PodScheduled")
        since = condition.last_transition_time if condition is not None else None
        return since or self.created_at

    @property
    def unschedulable(self) -> bool:
        """The scheduler looked at it and found no node."""
        if self.spec.node_name:
            return False
        condition = find_condition(self.status.conditions, "PodScheduled")
        return (
            condition is not None
            and condition.status == "False"
            and condition.reason == "Unschedulable"
        )

    @property
    def coming_to(self) -> str:
        """The Node that the scheduler is about to bind it to; empty where it is bound, or fits no node.

        From Kubernetes 1.35 on the scheduler names that Node while it waits for something first: mostly a volume that is
        made for the pod, which may take minutes. Until then the room is taken, and no other field says so.
        """
        name = self.status.nominated_node_name
        return (
            name
            if name and self.active and not self.spec.node_name and not self.unschedulable
            else ""
        )

    @property
    def volume_claims(self) -> frozenset[str]:
        """The PersistentVolumeClaims of its namespace that it uses, by name."""
        named = {
            v.persistent_volume_claim.claim_name
            for v in self.spec.volumes
            if v.persistent_volume_claim
        }
        return frozenset(
            named | {f"{self.name}-{v.name}" for v in self.spec.volumes if v.ephemeral is not None}
        )

    @property
    def tolerates_disruption(self) -> bool:
        """It tolerates the exact taint of a terminating node, so it is not evicted."""
        return tolerates(self.spec.tolerations, LEAVING_TAINT)
