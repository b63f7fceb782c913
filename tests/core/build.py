"""Objects for decisions: a sentence says what matters, the rest is as in a quiet cluster.

Everything happens around ``NOW``; ``ago`` and ``ahead`` count seconds from there. A claim
is built at a stage of its life, with the conditions that a claim of that stage has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

import msgspec

from tenure.core.decider import AnyDecider
from tenure.core.decision import Verdict
from tenure.core.facts import Fact
from tenure.core.policy.deciders import decide_all
from tenure.model.api import names
from tenure.model.api.meta import ApiObject, Condition, ObjectMeta, OwnerReference
from tenure.model.api.node import Node, NodeSpec, NodeStatus, Taint
from tenure.model.api.nodeclaim import (
    NodeClaim,
    NodeClaimSpec,
    NodeClaimStatus,
    NodeClassRef,
    Requirement,
    ResourceRequests,
)
from tenure.model.api.nodeclass import NodeClass, NodeClassStatus
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.api.window import MaintenanceWindow
from tenure.model.api.workload import (
    DaemonSet,
    DaemonSetSpec,
    LimitRange,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    PodTemplate,
)
from tenure.model.cloud.instance import Instance
from tenure.model.cloud.offering import InstanceType, Offering
from tenure.model.matching.requirements import Requirement as Allowed
from tenure.model.matching.requirements import Requirements
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import Observations
from tenure.model.values.quantity import UNIT, parse_resources
from tests.snapshots import snapshot_with

Fields = dict[str, Any]

NOW: Final = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
OURS: Final = NodeClassRef(group="karpenter.kwok.sh", kind="KWOKNodeClass", name="default")
FOREIGN: Final = NodeClassRef(group="example.com", kind="OtherClass", name="default")
CLASS_LABEL: Final = {"karpenter.kwok.sh/kwoknodeclass": "default"}
SIZE: Final = {"cpu": "4", "memory": "8Gi", "pods": "20"}
SETTINGS: Final = Settings()

STAGES: Final = ("Launched", "Registered", "Initialized")
LAUNCHED, REGISTERED, INITIALIZED = 1, 2, 3

DISRUPTED: Final = Taint(key=names.DISRUPTED_TAINT, effect="NoSchedule")
UNREGISTERED: Final = Taint(key=names.UNREGISTERED_TAINT, effect="NoExecute")


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def ahead(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


HOUR_AGO, TEN_MINUTES_AGO, MINUTE_AGO = ago(3600), ago(600), ago(60)


def evaluated(
    decider: AnyDecider,
    *objects: ApiObject,
    now: datetime = NOW,
    settings: Settings = SETTINGS,
    **known: Any,
) -> list[Verdict]:
    """The decider's verdicts on these objects; keyword arguments are observations."""
    snapshot = snapshot_with(*objects, observations=Observations(**known))
    return decide_all(decider, snapshot, settings, now)


def about(verdicts: Sequence[Verdict], subject: str) -> Verdict:
    """The one verdict on ``Kind/name`` or ``Kind/namespace/name``."""
    (verdict,) = (verdict for verdict in verdicts if str(verdict.subject) == subject)
    return verdict


_F = TypeVar("_F", bound=Fact)


def fact_of(verdict: Verdict, kind: type[_F]) -> _F:
    """The one fact of that kind."""
    (found,) = (fact for fact in verdict.facts if isinstance(fact, kind))
    return found


def body_of(verdict: Verdict) -> Any:
    """The body of the verdict's patch or creation."""
    action = verdict.action
    assert action is not None
    body: Any = getattr(action, "body")  # noqa: B009  # patches and creations have one
    return body


def said(verdict: Verdict) -> dict[str, tuple[str, str]]:
    """Status and reason of each condition that the verdict's patch writes."""
    conditions = body_of(verdict)["status"]["conditions"]
    return {entry["type"]: (entry["status"], entry["reason"]) for entry in conditions}


def meta(name: str, **fields: Any) -> ObjectMeta:
    usual: Fields = {"creation_timestamp": HOUR_AGO, "generation": 1, "resource_version": "7"}
    return ObjectMeta(name=name, uid=f"uid-{name}", **usual | fields)


def condition(
    type_: str,
    status: str = "True",
    reason: str = "",
    message: str = "",
    at: datetime | None = TEN_MINUTES_AGO,
) -> Condition:
    return Condition(
        type=type_,
        status=status,
        reason=reason or type_,
        message=message,
        last_transition_time=at,
        observed_generation=1,
    )


def a_claim(
    name: str = "a",
    *,
    stage: int = INITIALIZED,
    conditions: Sequence[Condition] = (),
    ref: NodeClassRef = OURS,
    labels: Mapping[str, str] | None = None,
    status: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    **metadata: Any,
) -> NodeClaim:
    """The claim ``a`` has the instance ``cloud://a`` and the Node ``node-a``."""
    done = [condition(type_) for type_ in STAGES[:stage]]
    waiting = [condition(type_, "Unknown", "Waiting") for type_ in STAGES[stage:] if stage]
    root = [condition("Ready")] if stage == INITIALIZED else []
    told = {c.type: c for c in [*done, *waiting, *root, *conditions]}
    labels = {names.NODEPOOL: "general", **CLASS_LABEL, **(labels or {})}
    known: Fields = {
        "provider_id": f"cloud://{name}" if stage else "",
        "node_name": f"node-{name}" if stage >= REGISTERED else "",
        "capacity": SIZE if stage else {},
        "allocatable": SIZE if stage else {},
        "conditions": tuple(told.values()),
    }
    wanted: Fields = {
        "requirements": (Requirement(key=names.INSTANCE_TYPE, operator="In", values=("small",)),),
        "resources": ResourceRequests(requests={"cpu": "1", "memory": "1Gi", "pods": "2"}),
    }
    return NodeClaim(
        metadata=meta(name, **{"labels": labels, "finalizers": (names.FINALIZER,)} | metadata),
        spec=NodeClaimSpec(node_class_ref=ref, **wanted | dict(spec or {})),
        status=NodeClaimStatus(**known | dict(status or {})),
    )


def a_leaving_claim(name: str = "a", **fields: Any) -> NodeClaim:
    return a_claim(name, deletion_timestamp=ago(30), **fields)


def a_node(
    name: str = "node-a",
    *,
    claim: str = "a",
    ready: bool | None = True,
    taints: Sequence[Taint] = (),
    labels: Mapping[str, str] | None = None,
    registered: bool = True,
    unschedulable: bool = False,
    status: Mapping[str, Any] | None = None,
    **metadata: Any,
) -> Node:
    """The Node of the claim ``a``, registered by default."""
    ours: dict[str, Any] = {"labels": dict(labels or {})}
    if registered:
        ours["labels"] = {
            names.NODEPOOL: "general",
            names.REGISTERED: "true",
            **CLASS_LABEL,
            **(labels or {}),
        }
        ours["finalizers"] = (names.FINALIZER,)
        ours["owner_references"] = (
            OwnerReference(kind="NodeClaim", name=claim, uid=f"uid-{claim}"),
        )
    reports = () if ready is None else (condition("Ready", "True" if ready else "False"),)
    known: Fields = {"capacity": SIZE, "allocatable": SIZE, "conditions": reports}
    return Node(
        metadata=meta(name, **ours | metadata),
        spec=NodeSpec(
            provider_id=f"cloud://{claim}", taints=tuple(taints), unschedulable=unschedulable
        ),
        status=NodeStatus(**known | dict(status or {})),
    )


def a_leaving_node(name: str = "node-a", *, closed: bool = True, **fields: Any) -> Node:
    """Being deleted, and tainted by default."""
    if closed:
        fields["taints"] = (*fields.get("taints", ()), DISRUPTED)
        fields["labels"] = {**fields.get("labels", {}), names.EXCLUDE_BALANCERS: "karpenter"}
    return a_node(name, **{"deletion_timestamp": ago(30)} | fields)


def a_pod(
    name: str = "web",
    *,
    node: str = "node-a",
    owner: str = "ReplicaSet",
    phase: str = "Running",
    requests: Mapping[str, str] | None = None,
    protected: str | None = None,
    conditions: Sequence[Condition] = (),
    nominated: str = "",
    spec: Mapping[str, Any] | None = None,
    **metadata: Any,
) -> Pod:
    owners = (OwnerReference(kind=owner, name="o", uid="o", controller=True),) if owner else ()
    annotations = {} if protected is None else {names.DO_NOT_DISRUPT: protected}
    requests = {"cpu": "500m", "memory": "512Mi"} if requests is None else requests
    about_it = {"labels": {"app": "web"}, "annotations": annotations, "owner_references": owners}
    return Pod(
        metadata=meta(name, **{"namespace": "default"} | about_it | metadata),
        spec=PodSpec(
            node_name=node,
            containers=(Container(resources=ResourceRequirements(requests=requests)),),
            **{"termination_grace_period_seconds": 30} | dict(spec or {}),
        ),
        status=PodStatus(phase=phase, conditions=tuple(conditions), nominated_node_name=nominated),
    )


def a_pending_pod(
    name: str = "web", *, since: datetime | None = MINUTE_AGO, said: str = "", **fields: Any
) -> Pod:
    """The scheduler has found no node for it."""
    told = condition("PodScheduled", "False", "Unschedulable", said, at=since)
    return a_pod(name, node="", phase="Pending", conditions=(told,), **fields)


def a_pool(
    name: str = "general",
    *,
    ref: NodeClassRef = OURS,
    requirements: Sequence[Mapping[str, Any]] = (),
    template: Mapping[str, Any] | None = None,
    template_meta: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    deletion_timestamp: datetime | None = None,
    **spec: Any,
) -> NodePool:
    """``template`` goes into ``spec.template.spec``, further arguments into ``spec``."""
    inner = {
        "requirements": list(requirements),
        "nodeClassRef": msgspec.to_builtins(ref),
        "expireAfter": "720h",
        **(template or {}),
    }
    written = {
        "spec": {"template": {"metadata": template_meta or {}, "spec": inner}, **spec},
        "status": status or {},
    }
    pool = msgspec.convert(written, NodePool)
    named = meta(
        name,
        annotations=annotations or {},
        labels=labels or {},
        deletion_timestamp=deletion_timestamp,
    )
    return msgspec.structs.replace(pool, metadata=named)


def a_class(name: str = "default", *, ready: Condition | None = None, **fields: Any) -> NodeClass:
    status = NodeClassStatus(conditions=(ready or condition("Ready"),))
    return NodeClass(metadata=meta(name, **fields), status=status)


def a_pdb(name: str = "web", *, app: str = "web", **status: Any) -> PodDisruptionBudget:
    healthy = status.get("desired_healthy", 0)
    spec = {"selector": {"matchLabels": {"app": app}}, "minAvailable": healthy}
    return PodDisruptionBudget(
        metadata=meta(name, namespace="default"),
        spec=msgspec.convert(spec, PodDisruptionBudgetSpec),
        status=PodDisruptionBudgetStatus(**status),
    )


def a_daemon_set(name: str = "agent", *, spec: PodSpec | None = None, **metadata: Any) -> DaemonSet:
    template = PodTemplate(spec=spec or PodSpec())
    metadata = {"namespace": "default", **metadata}
    return DaemonSet(metadata=meta(name, **metadata), spec=DaemonSetSpec(template=template))


def a_limit_range(name: str = "limits", **item: Any) -> LimitRange:
    item = {"type": "Container", **item}
    manifest = {"spec": {"limits": [item]}}
    found = msgspec.convert(manifest, LimitRange)
    return msgspec.structs.replace(found, metadata=meta(name, namespace="default"))


def a_window(cron: str = "0 6 * * 1-5", **fields: Any) -> MaintenanceWindow:
    spec = {"schedules": [{"cron": cron, "duration": "8h"}], "actions": ["Drift"]}
    window = msgspec.convert({"spec": spec, **fields}, MaintenanceWindow)
    return msgspec.structs.replace(window, metadata=meta("office-hours"))


def a_policy(name: str = "usual", **spec: Any) -> NodePoolPolicy:
    """``spec``: as it is written."""
    policy = msgspec.convert({"spec": spec}, NodePoolPolicy)
    return msgspec.structs.replace(policy, metadata=meta(name))


def an_instance(name: str = "a", **fields: Any) -> Instance:
    known: Fields = {
        "provider_id": f"cloud://{name}",
        "cluster": "embedded",
        "claim_uid": f"uid-{name}",
        "claim_name": name,
        "instance_type": "small",
        "zone": "zone-a",
        "capacity_type": "spot",
        "image_id": "image-1",
        "launched_at": ago(600),
        "capacity": SIZE,
        "allocatable": SIZE,
    }
    return Instance(**known | fields)


def a_type(
    name: str = "small",
    *,
    cpu: str = "4",
    price: int = 100_000,
    labels: Mapping[str, str] | None = None,
) -> InstanceType:
    """Sold in two zones, on demand and at half the price as spot."""
    size = parse_resources({"cpu": cpu, "memory": "8Gi", "pods": "20"})
    fixed = {names.INSTANCE_TYPE: name, names.ARCH: "amd64", names.OS: "linux", **(labels or {})}
    return InstanceType(
        name=name,
        requirements=Requirements.from_labels(fixed).add(
            Allowed.of(names.ZONE, "In", ["zone-a", "zone-b"]),
            Allowed.of(names.CAPACITY_TYPE, "In", ["on-demand", "spot"]),
        ),
        capacity=size,
        allocatable=size,
        offerings=tuple(
            Offering(zone=zone, capacity_type=terms, price=price // (2 if terms == "spot" else 1))
            for zone in ("zone-a", "zone-b")
            for terms in ("on-demand", "spot")
        ),
    )


def types(*kinds: InstanceType) -> dict[str, tuple[InstanceType, ...]]:
    """As they are filed in the observations for our node class."""
    return {"KWOKNodeClass/default": kinds or (a_type(),)}


def units(**amounts: float) -> dict[str, int]:
    """Amounts in nano-units."""
    return {name: int(amount * UNIT) for name, amount in amounts.items()}
