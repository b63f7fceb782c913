"""The other built-in kinds we read: workloads, budgets, volumes, priorities, leases, events."""

from __future__ import annotations

from collections.abc import Mapping

from tenure.model.api.meta import ApiObject, Condition, Instant, ObjectMeta, Wire
from tenure.model.api.pod import LabelSelector, NodeSelector, PodSpec, ResourceRequirements


class PodTemplate(Wire, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class DaemonSetSpec(Wire, frozen=True, kw_only=True):
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class DaemonSetStatus(Wire, frozen=True, kw_only=True):
    observed_generation: int = 0
    #: Nodes that should run a pod of it, that have one, and that have one that is Ready.
    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    number_ready: int = 0


class DaemonSet(ApiObject, frozen=True, kw_only=True):
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class LimitRangeItem(Wire, frozen=True, kw_only=True):
    """What admission fills in for, and asks of, one container or one pod of a namespace."""

    type: str = ""
    default: Mapping[str, str] = {}
    default_request: Mapping[str, str] = {}
    max: Mapping[str, str] = {}
    min: Mapping[str, str] = {}
    max_limit_request_ratio: Mapping[str, str] = {}


class LimitRangeSpec(Wire, frozen=True, kw_only=True):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(ApiObject, frozen=True, kw_only=True):
    spec: LimitRangeSpec = LimitRangeSpec()


class PodDisruptionBudgetSpec(Wire, frozen=True, kw_only=True):
    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(Wire, frozen=True, kw_only=True):
    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: Mapping[str, Instant] = {}
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(ApiObject, frozen=True, kw_only=True):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class VolumeAttachmentSource(Wire, frozen=True, kw_only=True, gc=False):
    persistent_volume_name: str = ""


class VolumeAttachmentSpec(Wire, frozen=True, kw_only=True):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(ApiObject, frozen=True, kw_only=True):
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


class ObjectReference(Wire, frozen=True, kw_only=True, gc=False):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""


class VolumeNodeAffinity(Wire, frozen=True, kw_only=True):
    required: NodeSelector | None = None


class CsiVolumeSource(Wire, frozen=True, kw_only=True, gc=False):
    driver: str = ""
    volume_handle: str = ""


class PathVolumeSource(Wire, frozen=True, kw_only=True, gc=False):
    """A directory or disk of one node."""

    path: str = ""


class PersistentVolumeSpec(Wire, frozen=True, kw_only=True):
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: Mapping[str, str] = {}
    csi: CsiVolumeSource | None = None
    local: PathVolumeSource | None = None
    host_path: PathVolumeSource | None = None


class PersistentVolume(ApiObject, frozen=True, kw_only=True):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()


class PersistentVolumeClaimSpec(Wire, frozen=True, kw_only=True):
    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    selector: LabelSelector | None = None


class PersistentVolumeClaimStatus(Wire, frozen=True, kw_only=True, gc=False):
    phase: str = ""


class PersistentVolumeClaim(ApiObject, frozen=True, kw_only=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class TopologySelectorLabelRequirement(Wire, frozen=True, kw_only=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Wire, frozen=True, kw_only=True):
    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class Namespace(ApiObject, frozen=True, kw_only=True):
    """Only its labels matter: namespace selectors of pod affinity ask for them."""


class StorageClass(ApiObject, frozen=True, kw_only=True):
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(Wire, frozen=True, kw_only=True, gc=False):
    #: How many volumes of the driver the node can attach; absent: any number.
    count: int | None = None


class CsiNodeDriver(Wire, frozen=True, kw_only=True):
    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CsiNodeSpec(Wire, frozen=True, kw_only=True):
    drivers: tuple[CsiNodeDriver, ...] = ()


class CsiNode(ApiObject, frozen=True, kw_only=True):
    """Has the name of its Node; the kubelet writes it as drivers come."""

    spec: CsiNodeSpec = CsiNodeSpec()


class PriorityClass(ApiObject, frozen=True, kw_only=True):
    value: int = 0
    global_default: bool = False


class LeaseSpec(Wire, frozen=True, kw_only=True, gc=False):
    holder_identity: str = ""
    lease_duration_seconds: int | None = None
    acquire_time: Instant | None = None
    renew_time: Instant | None = None
    lease_transitions: int = 0


class Lease(ApiObject, frozen=True, kw_only=True):
    spec: LeaseSpec = LeaseSpec()


class EventSource(Wire, frozen=True, kw_only=True, gc=False):
    component: str = ""
    host: str = ""


class Event(ApiObject, frozen=True, kw_only=True):
    """core/v1: ``kubectl describe`` finds events by ``involvedObject``."""

    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    type: str = "Normal"
    count: int = 1
    first_timestamp: Instant | None = None
    last_timestamp: Instant | None = None
    source: EventSource = EventSource()
    reporting_component: str = ""
