"""Random clusters: claims at every stage of life, their nodes, pods, pools and our memory.

Instants lie on a coarse grid around ``NOW``, so that the interesting ones (just before,
at, just after) come up often.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import strategies as st

from tenure.core.marks.templatehash import field_hashes, hash_annotations
from tenure.core.protect.decider import SINCE
from tenure.core.protect.protection import since_key
from tenure.model.api import names
from tenure.model.api.meta import ApiObject, Condition, ObjectMeta, OwnerReference
from tenure.model.api.node import Node, NodeSpec, NodeStatus, NodeSystemInfo, Taint
from tenure.model.api.nodeclaim import (
    NodeClaim,
    NodeClaimSpec,
    NodeClaimStatus,
    NodeClaimTemplateSpec,
    NodeClassRef,
    Requirement,
    ResourceRequests,
)
from tenure.model.api.nodeclass import NodeClass, NodeClassStatus
from tenure.model.api.nodepool import NodeClaimTemplate, NodePool
from tenure.model.api.pod import (
    Container,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Toleration,
    Volume,
)
from tenure.model.api.window import ACTIONS, MaintenanceWindow
from tenure.model.api.workload import (
    ObjectReference,
    PersistentVolume,
    PersistentVolumeSpec,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
)
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance, InstanceState
from tenure.model.cloud.offering import InstanceType, Offering
from tenure.model.matching.requirements import Requirement as Wanted
from tenure.model.matching.requirements import Requirements
from tenure.model.snapshot.observations import (
    Announcement,
    Arrival,
    DriftAnswer,
    EvictionAnswer,
    InspectionAnswer,
    LaunchFailure,
    LaunchProblem,
    Observations,
    OrphanSighting,
    RebootAnswer,
    TerminationAnswer,
)
from tenure.model.values.quantity import UNIT
from tenure.providers.kwok.repairs import kwok_statements

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
GIB = 2**30 * UNIT
OURS = NodeClassRef(group="karpenter.kwok.sh", kind="KWOKNodeClass", name="default")
FOREIGN = NodeClassRef(group="example.com", kind="OtherClass", name="default")

CLASS_LABEL = {f"{OURS.group}/kwoknodeclass": "default"}
SIZE = {"cpu": "2", "memory": "4Gi", "pods": "10"}

instants = st.sampled_from([-20, -1, 0, 1, 4, 9, 20]).map(
    lambda seconds: NOW + timedelta(seconds=seconds)
)
past = st.sampled_from([0, 5, 590, 600, 3600]).map(lambda seconds: NOW - timedelta(seconds=seconds))


class Cluster(msgspec.Struct, frozen=True):
    objects: tuple[ApiObject, ...]
    observations: Observations


@st.composite
def metas(draw: st.DrawFn, /, name: str, **fields: Any) -> ObjectMeta:
    return ObjectMeta(
        name=name,
        uid=f"uid-{name}",
        resource_version=str(draw(st.integers(1, 99))),
        generation=1,
        creation_timestamp=draw(past),
        **fields,
    )


def condition(type_: str, status: str, at: datetime, reason: str = "") -> Condition:
    return Condition(type=type_, status=status, reason=reason or type_, last_transition_time=at)


REPAIRS: tuple[dict[str, Any], ...] = (
    {"defaultTolerationDuration": "10m"},
    {"defaultTolerationDuration": "10m", "maxUnhealthy": "100%"},
    {"defaultTolerationDuration": "590s", "maxUnhealthy": 1},
    {"policies": [{"conditionType": "Ready", "toleration": "Never"}]},
    {"policies": [{"conditionType": "Ready", "toleration": "nonsense"}]},
    {"terminationMode": "Graceful", "maxUnhealthy": "100%"},
    {
        "terminationMode": "Graceful",
        "maxUnhealthy": "100%",
        "policies": [{"conditionType": "Gpu", "status": "True", "toleration": "10m"}],
    },
)

#: How nodes may be disrupted: none at all, by the clock, and what cannot be understood.
DISRUPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"maxPodProtection": "9m"},
    {"budgets": [{"nodes": "0"}]},
    {"budgets": [{"nodes": "50%"}]},
    {"budgets": [{"nodes": "0", "schedule": "0 12 * * *", "duration": "1m"}]},
    {"budgets": [{"nodes": "many"}]},
    {"consolidateAfter": "20s", "budgets": [{"nodes": "100%"}]},
    {"consolidateAfter": "Never"},
    {"consolidateAfter": "soon"},
    {"expirationPolicy": "Always"},
    {"expirationPolicy": "Always", "consolidateAfter": "590s"},
    {"budgets": [{"nodes": "1", "within": "10m"}]},
    {"budgets": [{"nodes": "1", "within": "1h", "per": "topology.kubernetes.io/zone"}]},
)
#: What a pool may remember: a start just now, long ago, ahead of the clock, and unreadable.
STARTS: tuple[dict[str, Any], ...] = (
    {"at": "2026-03-02T11:59:59Z", "claim": "uid-c0", "reason": "Unhealthy"},
    {"at": "2026-03-02T11:51:30Z", "claim": "uid-c1", "reason": "Unhealthy"},
    {"at": "2026-03-02T08:00:00Z", "claim": "gone", "reason": "Drifted"},
    {"at": "2026-03-02T12:00:30Z", "claim": "gone", "reason": "Drifted"},
    {"at": "2026-03-02T12:10:00Z", "claim": "gone", "reason": "Drifted"},
    {"at": "soon", "claim": "gone", "reason": "Drifted"},
)


#: Satisfied by every claim, by some, and by none; and what cannot be understood.
REQUIREMENTS: tuple[list[dict[str, Any]], ...] = (
    [],
    [],
    [],
    [{"key": names.ZONE, "operator": "In", "values": ["zone-a", "zone-b"]}],
    [{"key": names.ZONE, "operator": "In", "values": ["zone-b"]}],
    [{"key": "team", "operator": "Exists"}],
    [{"key": "team", "operator": "Near"}],
)


@st.composite
def pools(draw: st.DrawFn, name: str) -> NodePool:
    limits = draw(st.sampled_from([{}, {}, {"cpu": "4"}, {"nodes": "1"}, {"cpu": "broken"}]))
    spec: dict[str, Any] = {
        "template": {
            "spec": {
                "requirements": draw(st.sampled_from(REQUIREMENTS)),
                "nodeClassRef": msgspec.to_builtins(draw(st.sampled_from([OURS] * 5 + [FOREIGN]))),
                "expireAfter": "720h",
            }
        },
        "disruption": draw(st.sampled_from(DISRUPTIONS)),
        "limits": limits,
    }
    if repair := draw(st.sampled_from([None, *REPAIRS])):
        spec["repair"] = repair
    if draw(st.sampled_from([False] * 9 + [True])):
        spec["replicas"] = 2
    starts = draw(st.lists(st.sampled_from(STARTS), max_size=2))
    status = {"disruptionStarts": starts} if "within" in str(spec["disruption"]) else {}
    pool = msgspec.convert({"spec": spec, "status": status}, NodePool)
    return msgspec.structs.replace(pool, metadata=draw(metas(name)))


STORIES = (
    "foreign",
    "new",
    "launching",
    "launching",
    "launching",
    "launched",
    "registering",
    "booting",
    "in service",
    "rebooting",
    "rebooting",
    "leaving",
    "leaving",
    "leaving",
    "ending",
    "lost",
)
#: How many stages each story has behind it.
STAGES = {
    "launched": 1,
    "registering": 1,
    "booting": 2,
    "in service": 3,
    "rebooting": 3,
    "leaving": 3,
    "ending": 3,
}


class Slot(msgspec.Struct, frozen=True):
    """One claim, where its life has got to, and what we remember of it."""

    claim: NodeClaim | None
    node: Node | None
    instance: Instance | None = None
    failure: LaunchFailure | None = None
    answer: TerminationAnswer | None = None


@st.composite
def slots(draw: st.DrawFn, index: int) -> Slot:
    story = draw(st.sampled_from(STORIES))
    claim = draw(claims(index, story)) if story != "lost" else None
    with_node = story in ("registering", "booting", "in service", "rebooting", "leaving", "lost")
    return Slot(
        claim,
        draw(nodes(index, story)) if with_node else None,
        draw(st.none() | st.none() | instances(index)) if story == "launching" else None,
        draw(st.none() | FAILURES | FAILURES) if story == "launching" else None,
        draw(st.none() | ANSWERS) if story in ("leaving", "ending") else None,
    )


def with_one_provider_id(slot: Slot) -> Slot:
    """As if a user had copied a claim, status and all."""
    claim = slot.claim
    if claim is None or not claim.provider_id:
        return slot
    status = msgspec.structs.replace(claim.status, provider_id="cloud://0")
    return msgspec.structs.replace(slot, claim=msgspec.structs.replace(claim, status=status))


#: Marks of instances that the cloud takes back; one cannot be read.
INTERRUPTIONS: tuple[dict[str, str], ...] = (
    {names.INTERRUPTION: "kwok 2026-03-02T11:59:40Z"},
    {names.INTERRUPTION: "soon"},
)

VETO_SINCE = since_key(names.DO_NOT_REPAIR)

#: Protections of Nodes and claims: not noted, noted, of another value, without one, unreadable.
NODE_PROTECTIONS: tuple[dict[str, str], ...] = (
    {names.DO_NOT_DISRUPT: "true"},
    {names.DO_NOT_DISRUPT: "10m"},
    {names.DO_NOT_DISRUPT: "10m", SINCE: "10m 2026-03-02T11:50:05Z"},
    {names.DO_NOT_DISRUPT: "10m", SINCE: "5m 2026-03-02T11:50:05Z"},
    {SINCE: "10m 2026-03-02T11:50:05Z"},
    {names.DO_NOT_DISRUPT: "two hours"},
    {names.DO_NOT_REPAIR: "true"},
    {names.DO_NOT_REPAIR: "two hours", names.DO_NOT_DISRUPT: "10m"},
    {names.DO_NOT_REPAIR: "10m", VETO_SINCE: "10m 2026-03-02T11:50:05Z"},
)

#: Deadlines written on claims: some over, some near, and one that means nothing.
STAMPS = ("2026-03-02T11:59:00Z", "2026-03-02T12:00:30Z", "2026-03-02T12:10:00Z", "soon")


#: Of a reboot, on the claim: as it is committed, as it is noted later, and what means nothing.
REBOOTS: tuple[dict[str, str], ...] = (
    {names.REBOOT_GRACE_PERIOD: "10m"},
    {names.REBOOT_GRACE_PERIOD: "600s", names.REBOOT_PRE_BOOT_ID: "boot-1"},
    {names.REBOOT_GRACE_PERIOD: "3s", names.REBOOT_PRE_BOOT_ID: "boot-1"},
    {names.REBOOT_GRACE_PERIOD: "0s", names.REBOOT_PRE_BOOT_ID: "boot-0"},
    {names.REBOOT_PRE_BOOT_ID: "boot-0"},
    {names.REBOOT_GRACE_PERIOD: "-1m"},
    {names.REBOOT_HISTORY: "2026-03-02T11:59:59Z"},
    {names.REBOOT_HISTORY: "2026-03-02T11:59:59Z cancelled"},
    {},
)


@st.composite
def reboot_conditions(draw: st.DrawFn) -> list[Condition]:
    """True and where it has got to; or ended, one way or the other."""
    status = draw(st.sampled_from(["True"] * 5 + ["False"]))
    reason = "RebootRequested" if status == "True" else draw(st.sampled_from(ENDS))
    marked = draw(st.sampled_from(["", "", "Unknown", "True", "False"]))
    told = [condition("Rebooting", status, draw(instants | past), reason)]
    mark_at = draw(instants | past | st.just(NOW - timedelta(seconds=295)))
    how = draw(st.sampled_from(["", "Spared"]))
    return [*told, condition("RebootIssued", marked, mark_at, how)] if marked else told


ENDS = ("RebootSucceeded", "RebootFailed", "RebootFailed", "RebootCancelled")

#: Of a replacement that is under way, was so, or has failed: by a claim that is there, by one
#: that is not, by no process.
REPLACEMENTS: tuple[dict[str, str], ...] = (
    {names.REPLACED_BY: "claim-1", names.DISRUPTION_REASON: "Unhealthy"},
    {names.REPLACED_BY: "claim-9", names.DISRUPTION_REASON: "Unhealthy"},
    {names.REPLACED_BY: "", names.DISRUPTION_REASON: "Unhealthy"},
    {names.REPLACED_BY: "claim-1"},
    {names.REPLACED_BY: "", names.DISRUPTION_REASON: "Empty"},
    {names.REPLACED_BY: "claim-1", names.DISRUPTION_REASON: "Drifted"},
    {names.REPLACED_BY: "claim-1", names.DISRUPTION_REASON: "Expired"},
    {names.REPLACED_BY: "claim-1", names.DISRUPTION_REASON: "Rebalance"},
    {names.REPLACES: "uid-claim-0"},
    {names.REPLACES: "uid-claim-0,uid-claim-2"},
    {names.REPLACEMENT_FAILED: "1 2026-03-02T11:59:01Z"},
    {names.REPLACEMENT_FAILED: "often"},
)

#: Which conditions make a node a candidate of voluntary disruption.
CANDIDACIES: tuple[tuple[str, ...], ...] = (
    (),
    (),
    (names.EMPTY_CONDITION,),
    (names.EXPIRED_CONDITION,),
    (names.DRIFTED_CONDITION,),
    (names.REBALANCE_CONDITION,),
    (names.EXPIRED_CONDITION, names.DRIFTED_CONDITION),
)

#: What kubelets and others say of a node beside Ready.
NODE_CONDITIONS: tuple[tuple[str, str], ...] = (
    ("KWOKUnhealthy", "True"),
    ("KWOKRebootRequired", "True"),
    ("Gpu", "True"),
    ("MemoryPressure", "False"),
)


DRIFTS = ("NodePoolDrifted", "RequirementsDrifted", "InstanceTypeNotFound", "ImageDrift")

#: Of the template that a claim was made from: as most pools have it, another one, of old, and broken.
HASHES: tuple[dict[str, str], ...] = (
    hash_annotations(
        field_hashes(
            NodeClaimTemplate(spec=NodeClaimTemplateSpec(node_class_ref=OURS, expire_after="720h"))
        )
    ),
    hash_annotations(field_hashes(NodeClaimTemplate())),
    {names.NODEPOOL_HASH: "1", names.NODEPOOL_HASH_VERSION: "v3"},
    {names.NODEPOOL_HASH: "1", names.NODEPOOL_HASH_VERSION: "v2"},
    {names.NODEPOOL_HASH: "1", names.NODEPOOL_HASH_VERSION: "v3", names.NODEPOOL_HASH_FIELDS: ","},
)

#: What the provider says that it launched: of a type that it still offers, or does not.
BOUGHT: tuple[dict[str, str], ...] = (
    {},
    {names.INSTANCE_TYPE: "small", names.ZONE: "zone-a", names.CAPACITY_TYPE: "spot"},
    {names.INSTANCE_TYPE: "small", names.ZONE: "zone-z", names.CAPACITY_TYPE: "spot"},
    {names.INSTANCE_TYPE: "gone", names.ZONE: "zone-a", names.CAPACITY_TYPE: "spot"},
)


@st.composite
def claims(draw: st.DrawFn, index: int, story: str) -> NodeClaim:
    stage = STAGES.get(story, 0)
    conditions = [
        condition(type_, "True" if position < stage else "Unknown", draw(past))
        for position, type_ in enumerate(("Launched", "Registered", "Initialized"))
    ]
    leaving = story in ("leaving", "ending") and draw(st.sampled_from([True, True, True, False]))
    drained = draw(st.sampled_from(["", "Unknown", "True"])) if leaving else ""
    if drained:
        conditions.append(condition("Drained", drained, draw(instants) - timedelta(seconds=5)))
    if drained == "True":
        detached = draw(st.sampled_from(["", "Unknown", "True", "True", "False"]))
        conditions += [condition("VolumesDetached", detached, draw(instants))] if detached else []
    if story == "rebooting" or draw(st.sampled_from([False] * 9 + [True])):
        conditions += draw(reboot_conditions())
    if draw(st.sampled_from([False, False, False, True])):
        conditions.append(condition("DisruptionReason", "True", draw(past), "Unhealthy"))
    if stage > 1 and draw(st.booleans()):
        conditions.append(condition("ReadyOnce", "True", draw(past)))
    if stage > 2:
        for type_ in draw(st.sampled_from(CANDIDACIES)):
            conditions.append(condition(type_, "True", draw(instants | past)))
    stamp = draw(st.sampled_from(["", "", "", *STAMPS]))
    if stage and draw(st.sampled_from([False, False, True])):
        conditions.append(condition("Drifted", "True", draw(past), draw(st.sampled_from(DRIFTS))))
    return NodeClaim(
        metadata=draw(
            metas(
                f"claim-{index}",
                annotations={
                    **({names.TERMINATION_TIMESTAMP: stamp} if stamp else {}),
                    **draw(st.sampled_from([{}, {}, *NODE_PROTECTIONS])),
                    **(draw(st.sampled_from(REBOOTS)) if story == "rebooting" else {}),
                    **draw(st.sampled_from([{}, {}, {}, *REPLACEMENTS])),
                    **draw(st.sampled_from([{}, {}, *HASHES])),
                    **draw(st.sampled_from([{}] * 7 + [*INTERRUPTIONS])),
                    **draw(st.sampled_from([{}, {names.NOMINATED_PODS: "uid-pod-0,uid-pod-1"}])),
                },
                labels={names.NODEPOOL: "general"}
                | ({} if story == "new" else CLASS_LABEL)
                | draw(st.sampled_from(BOUGHT)),
                finalizers=() if story == "new" else (names.FINALIZER,),
                deletion_timestamp=draw(past) if leaving else None,
            )
        ),
        spec=NodeClaimSpec(
            node_class_ref=FOREIGN if story == "foreign" else OURS,
            termination_grace_period=draw(st.sampled_from([None, None, "10m", "9m", "0s"])),
            expire_after=draw(st.sampled_from([None, "720h", "10m", "11m", "1h", "Never", "old"])),
            initialization_ttl=draw(st.sampled_from([None, None, "10m"])),
            requirements=(
                Requirement(key=names.INSTANCE_TYPE, operator="In", values=("small", "large")),
            ),
            startup_taints=draw(st.sampled_from([(), (Taint(key="agent", effect="NoSchedule"),)])),
            resources=ResourceRequests(requests={"cpu": "1", "memory": "1Gi", "pods": "5"}),
        ),
        status=NodeClaimStatus(
            provider_id=f"cloud://{index}" if stage else "",
            node_name=f"node-{index}" if stage > 1 else "",
            capacity=SIZE if stage else {},
            allocatable=SIZE if stage else {},
            conditions=tuple(conditions),
        ),
    )


def owner_of(index: int) -> OwnerReference:
    return OwnerReference(kind="NodeClaim", name=f"claim-{index}", uid=f"uid-claim-{index}")


#: Nearly all nodes have no more to say than that they are Ready, or not.
FEW = st.sampled_from([(), (), (1,)])
SOME = st.sampled_from([(), (1,), (1,)])
REBOOT_CONDITIONS: tuple[tuple[str, str], ...] = (("KWOKRebootRequired", "True"),)


@st.composite
def nodes(draw: st.DrawFn, index: int, story: str) -> Node:
    leaving = story in ("leaving", "lost")
    closed = draw(st.sampled_from([leaving, leaving, leaving, not leaving]))
    taints = [Taint(key=names.DISRUPTED_TAINT, effect="NoSchedule")] if closed else []
    if story == "rebooting" and draw(st.sampled_from([True, True, False])):
        taints.append(Taint(key=names.REBOOTING_TAINT, effect="NoSchedule"))
    if story == "registering":
        taints.append(Taint(key=names.UNREGISTERED_TAINT, effect="NoExecute"))
    if story in ("registering", "booting"):
        taints += draw(st.sampled_from([[], [Taint(key="agent", effect="NoSchedule")]]))
    # A node that is rebooted is unhealthy, else the reboot is cancelled.
    rebooted = story == "rebooting"
    few, node_conditions = (SOME, REBOOT_CONDITIONS) if rebooted else (FEW, NODE_CONDITIONS)
    labels = {**CLASS_LABEL, names.NODEPOOL: "general"}
    labels |= {names.EXCLUDE_BALANCERS: "karpenter"} if closed else {}
    if story != "registering" or draw(st.booleans()):
        labels |= {names.REGISTERED: "true"}
    if story == "rebooting" and draw(st.booleans()):
        labels |= {names.INITIALIZED: "true"}
    return Node(
        metadata=draw(
            metas(
                f"node-{index}",
                labels=labels,
                annotations=draw(st.sampled_from([{}, {}, *NODE_PROTECTIONS])),
                finalizers=() if story == "registering" else (names.FINALIZER,),
                owner_references=() if story == "registering" else (owner_of(index),),
                deletion_timestamp=draw(past) if leaving else None,
            )
        ),
        spec=NodeSpec(provider_id=f"cloud://{index}", taints=tuple(taints)),
        status=NodeStatus(
            allocatable=SIZE,
            capacity=SIZE,
            node_info=NodeSystemInfo(boot_id=draw(st.sampled_from(["boot-1", "boot-1", ""]))),
            conditions=(
                condition("Ready", draw(st.sampled_from(["True", "False"])), draw(past)),
                *(
                    condition(*draw(st.sampled_from(node_conditions)), draw(past))
                    for _ in draw(few)
                ),
            ),
        ),
    )


@st.composite
def pods(draw: st.DrawFn, index: int, node_count: int) -> Pod:
    owner = draw(
        st.sampled_from(["ReplicaSet", "ReplicaSet", "DaemonSet", "DaemonSet", "Node", ""])
    )
    owners = (OwnerReference(kind=owner, name="o", uid="o", controller=True),) if owner else ()
    protection = draw(
        st.sampled_from(["", "", "10m", "true", "false", "10m", "9m50s", "4 hours", "0"])
    )
    bound = draw(st.sampled_from([-1, *range(node_count), *range(node_count)]))
    deleting = bound >= 0 and draw(st.sampled_from([False, False, True]))
    deletion = draw(instants) - timedelta(seconds=60) if deleting else None
    phase = draw(st.sampled_from(["Running"] * 5 + ["Succeeded"]))
    conditions: tuple[Condition, ...] = ()
    if bound < 0:
        phase = "Pending"
        conditions = (condition("PodScheduled", "False", draw(instants), "Unschedulable"),)
    critical = draw(st.sampled_from(["", "", "system-node-critical"]))
    tolerations = draw(st.sampled_from([(), (), (), (Toleration(operator="Exists"),)]))
    return Pod(
        metadata=draw(
            metas(
                f"pod-{index}",
                namespace="default",
                labels={"app": "web"},
                annotations={names.DO_NOT_DISRUPT: protection} if protection else {},
                owner_references=owners,
                deletion_timestamp=deletion,
                deletion_grace_period_seconds=draw(st.sampled_from([1, 30, 600])),
            )
        ),
        spec=PodSpec(
            node_name=f"node-{bound}" if bound >= 0 else "",
            priority_class_name=critical,
            tolerations=tolerations,
            termination_grace_period_seconds=draw(st.sampled_from([30, 0, 600, None])),
            volumes=(DATA,) if draw(st.sampled_from([False, False, True])) else (),
            containers=(
                Container(
                    resources=ResourceRequirements(
                        requests={"cpu": draw(st.sampled_from(["100m", "1", "9"]))}
                    )
                ),
            ),
        ),
        status=PodStatus(phase=phase, conditions=conditions),
    )


@st.composite
def instances(draw: st.DrawFn, index: int) -> Instance:
    return Instance(
        provider_id=f"cloud://{index}",
        cluster="embedded",
        claim_uid=f"uid-claim-{index}",
        claim_name=f"claim-{index}",
        state=draw(st.sampled_from(list(InstanceState))),
        instance_type="small",
        zone="zone-a",
        capacity_type="spot",
        launched_at=draw(instants) - timedelta(minutes=5),
        labels={names.ZONE: "zone-a"},
    )


@st.composite
def announced(draw: st.DrawFn, claims: int) -> Mapping[str, Announcement]:
    said = st.builds(Announcement, by=st.just("kwok"), at=past, deadline=st.none() | instants)
    return {
        f"uid-claim-{index}": draw(said)
        for index in range(claims)
        if draw(st.sampled_from([False] * 7 + [True]))
    }


@st.composite
def memories(draw: st.DrawFn, filled: tuple[Slot, ...], pod_count: int) -> Observations:
    refused = [index for index in range(pod_count) if draw(st.booleans())]
    seen = [index for index in range(pod_count) if draw(st.booleans())]
    orphan = draw(st.none() | ORPHANS)
    dry = draw(st.none() | instants)

    def known(field: str) -> Mapping[str, Any]:
        found = ((slot.claim, getattr(slot, field)) for slot in filled)
        return {claim.uid: value for claim, value in found if claim and value is not None}

    return Observations(
        repair_statements=kwok_statements(),
        instances=known("instance"),
        launch_failures=known("failure"),
        terminations=known("answer"),
        inspections={f"uid-claim-{index}": draw(INSPECTIONS) for index in range(len(filled))},
        reboots={f"uid-claim-{index}": draw(REBOOT_ANSWERS) for index in range(len(filled))},
        drifts={
            f"uid-claim-{index}": answer
            for index in range(len(filled))
            if (answer := draw(st.none() | DRIFT_ANSWERS)) is not None
        },
        interruptions=draw(announced(len(filled))),
        recommendations=draw(announced(len(filled))),
        evictions={f"uid-pod-{index}": draw(REFUSALS) for index in refused},
        pods_decided_at=draw(st.none() | past),
        waiting_seen={f"uid-pod-{index}": draw(past) for index in seen},
        orphans={"cloud://90": orphan} if orphan else {},
        vanished={"uid-claim-0": NOW} if draw(st.booleans()) else {},
        dry_offerings={("small", "zone-a", "spot"): dry} if dry else {},
        arrivals={"uid-general": tuple(draw(st.lists(ARRIVALS, max_size=4)))},
        instance_types={"KWOKNodeClass/default": TYPES},
    )


DRIFT_ANSWERS = st.just(DriftAnswer()) | st.builds(
    DriftAnswer,
    drift=st.none() | st.just(Drift("ImageDrift", "runs v1, its class asks for v2")),
    silent_since=st.none() | past,
    failure=st.just("no answer"),
)
INSPECTIONS = st.builds(InspectionAnswer, asked_at=past, gone=st.booleans())

FAILURES = st.builds(
    LaunchFailure,
    problem=st.sampled_from([LaunchProblem.FAILED, *LaunchProblem]),
    message=st.just("no answer"),
    at=past,
    retry_at=instants | instants | st.none(),
)
ARRIVALS = st.builds(
    Arrival,
    claim=st.just("claim-9"),
    failure=st.sampled_from(["", "readiness_timeout"]),
    generations=st.sampled_from([(1, None), (1, 1), (0, 1)]),
)
ANSWERS = st.builds(TerminationAnswer, asked_at=instants, gone=st.booleans())
#: To the first claim's operation, if it was requested now, or to none.
REBOOT_ANSWERS = st.builds(
    RebootAnswer,
    operation_id=st.sampled_from([f"uid-claim-0-{int(NOW.timestamp())}-boot-1", "another"]),
    at=past,
    refusal=st.sampled_from(["", "no such rack"]),
)
REFUSALS = st.builds(EvictionAnswer, at=past, retry_at=instants, message=st.just("budget says no"))
ORPHANS = st.builds(OrphanSighting, instance=instances(90), first_at=past, last_at=st.just(NOW))


def _type(name: str, cpu: int, price: int) -> InstanceType:
    size = {"cpu": cpu * UNIT, "memory": 2 * cpu * GIB, "pods": 10 * UNIT}
    return InstanceType(
        name=name,
        requirements=Requirements.of(
            [
                Wanted.of(names.INSTANCE_TYPE, "In", [name]),
                Wanted.of(names.ARCH, "In", ["amd64"]),
                Wanted.of(names.OS, "In", ["linux"]),
                Wanted.of(names.ZONE, "In", ["zone-a", "zone-b"]),
                Wanted.of(names.CAPACITY_TYPE, "In", ["on-demand", "spot"]),
            ]
        ),
        capacity=size,
        allocatable=size,
        offerings=tuple(
            Offering(zone=zone, capacity_type=terms, price=price)
            for zone in ("zone-a", "zone-b")
            for terms in ("on-demand", "spot")
        ),
    )


TYPES = (_type("small", 2, 50_000), _type("large", 4, 100_000))


@st.composite
def budgets(draw: st.DrawFn) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=draw(metas("web", namespace="default")),
        spec=msgspec.convert(
            {"selector": {"matchLabels": {"app": "web"}}}, PodDisruptionBudgetSpec
        ),
        status=PodDisruptionBudgetStatus(disruptions_allowed=draw(st.integers(0, 1))),
    )


DATA = Volume(
    name="data", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="data")
)
CLAIMED = PersistentVolume(
    metadata=ObjectMeta(name="pv-0", uid="uid-pv-0"),
    spec=PersistentVolumeSpec(claim_ref=ObjectReference(namespace="default", name="data")),
)


@st.composite
def attachments(draw: st.DrawFn) -> list[ApiObject]:
    if draw(st.booleans()):
        return []
    volume = draw(st.sampled_from(["pv-0", "pv-0", "pv-1", ""]))
    spec = VolumeAttachmentSpec(
        node_name="node-0", source=VolumeAttachmentSource(persistent_volume_name=volume)
    )
    return [CLAIMED, VolumeAttachment(metadata=draw(metas("csi-0")), spec=spec)]


#: Active for long, opening and closing within minutes, always, at one date, and unreadable.
TIMES: tuple[dict[str, Any], ...] = (
    {"schedules": [{"cron": "0 6 * * 1-5", "duration": "8h"}]},
    {"schedules": [{"cron": "0 12 * * *", "duration": "1m"}]},
    {"schedules": [{"cron": "1 12 * * *", "duration": "30s"}]},
    {"schedules": [{"cron": "50 11 * * *", "duration": "10m5s", "timeZone": "UTC"}]},
    {"dates": [{"from": "2026-03-02T11:00:00Z", "until": "2026-03-02T12:00:09Z"}]},
    {"dates": [{"from": "2026-03-02T12:00:04Z", "until": "2026-03-02T12:01:00Z"}]},
    {},
    {"schedules": [{"cron": "not a cron", "duration": "8h"}]},
    {"schedules": [{"cron": "0 12 * * *", "duration": "1m", "timeZone": "Mars/Olympus"}]},
)
WINDOW_NAMES = ((), ("office-hours",), ("office-hours", "freeze"))
SELECTED: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"matchExpressions": [{"key": names.NODEPOOL, "operator": "In", "values": ["general"]}]},
    {"matchExpressions": [{"key": names.NODEPOOL, "operator": "Gt", "values": ["x"]}]},
)


@st.composite
def windows(draw: st.DrawFn, name: str) -> MaintenanceWindow:
    actions = st.lists(st.sampled_from(["Drift", *ACTIONS]), min_size=1, max_size=3, unique=True)
    spec = draw(st.sampled_from(TIMES)) | {
        "type": draw(st.sampled_from(["Block", "Allow"])),
        "actions": draw(actions),
        "selector": draw(st.sampled_from(SELECTED)),
    }
    window = msgspec.convert({"spec": spec}, MaintenanceWindow)
    return msgspec.structs.replace(window, metadata=draw(metas(name)))


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    filled = tuple(draw(slots(index)) for index in range(draw(st.integers(1, 3))))
    if draw(st.sampled_from([False] * 9 + [True])):
        filled = (*map(with_one_provider_id, filled),)
    pod_count = draw(st.integers(1, 6))
    ready = NodeClassStatus(conditions=(condition("Ready", "True", NOW),))
    objects: list[ApiObject] = [
        NodeClass(metadata=draw(metas("default")), status=ready),
        draw(pools("general")),
        draw(budgets()),
        *(draw(windows(name)) for name in draw(st.sampled_from(WINDOW_NAMES))),
        *(slot.claim for slot in filled if slot.claim),
        *(slot.node for slot in filled if slot.node),
        *(draw(pods(index, len(filled))) for index in range(pod_count)),
        *draw(attachments()),
    ]
    return Cluster(tuple(objects), draw(memories(filled, pod_count)))
