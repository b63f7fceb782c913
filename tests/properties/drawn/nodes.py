"""Random claims and Nodes: in every stage of their life, with every mark that they may have."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st

from tenure.core.marks.templatehash import field_hashes, hash_annotations
from tenure.core.protect.decider import SINCE
from tenure.core.protect.protection import since_key
from tenure.model.api import names
from tenure.model.api.meta import Condition
from tenure.model.api.node import Node, NodeSpec, NodeStatus, NodeSystemInfo, Taint
from tenure.model.api.nodeclaim import (
    NodeClaim,
    NodeClaimSpec,
    NodeClaimStatus,
    NodeClaimTemplateSpec,
    Requirement,
    ResourceRequests,
)
from tenure.model.api.nodepool import NodeClaimTemplate
from tests.properties.drawn.basics import (
    CLASS_LABEL,
    FOREIGN,
    NOW,
    OURS,
    SIZE,
    condition,
    instants,
    metas,
    past,
)
from tests.properties.drawn.pods import owner_of

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
#: Marks of instances that the cloud takes back; one cannot be read.
INTERRUPTIONS: tuple[dict[str, str], ...] = (
    {names.INTERRUPTION: "kwok 2026-03-02T11:59:40Z"},
    {names.INTERRUPTION: "soon"},
)
VETO_SINCE = since_key(names.DO_NOT_REPAIR)
#: The marks of a lever.
LEVER = {
    names.DO_NOT_DISRUPT_BY: "tenure",
    names.DO_NOT_DISRUPT_BECAUSE: "MaintenanceWindow office-hours",
    names.DO_NOT_DISRUPT_UNTIL: "unknown",
}
REPAIR_LEVER = {
    names.DO_NOT_REPAIR_BY: "tenure",
    names.DO_NOT_REPAIR_BECAUSE: "MaintenanceWindow office-hours",
    names.DO_NOT_REPAIR_UNTIL: "unknown",
}
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
    # Levers beside Karpenter: ours, past its end, edited by a user, without its value.
    {names.DO_NOT_DISRUPT: "true", **LEVER},
    {names.DO_NOT_DISRUPT: "true", **LEVER, names.DO_NOT_DISRUPT_UNTIL: "2026-03-02T11:00:00Z"},
    {names.DO_NOT_DISRUPT: "5m", **LEVER},
    LEVER,
    {names.DO_NOT_REPAIR: "true", **REPAIR_LEVER},
    {names.DO_NOT_REPAIR: "true", **REPAIR_LEVER, names.DO_NOT_DISRUPT: "true", **LEVER},
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
def stage_conditions(draw: st.DrawFn, story: str) -> list[Condition]:
    stage = STAGES.get(story, 0)
    found = [
        condition(type_, "True" if position < stage else "Unknown", draw(past))
        for position, type_ in enumerate(("Launched", "Registered", "Initialized"))
    ]
    if stage > 1 and draw(st.booleans()):
        found.append(condition("ReadyOnce", "True", draw(past)))
    return found


@st.composite
def drain_conditions(draw: st.DrawFn) -> list[Condition]:
    found: list[Condition] = []
    drained = draw(st.sampled_from(["", "Unknown", "True"]))
    if drained:
        found.append(condition("Drained", drained, draw(instants) - timedelta(seconds=5)))
    if drained == "True":
        detached = draw(st.sampled_from(["", "Unknown", "True", "True", "False"]))
        found += [condition("VolumesDetached", detached, draw(instants))] if detached else []
    return found


@st.composite
def disruption_conditions(draw: st.DrawFn, story: str) -> list[Condition]:
    """What makes it a candidate, and what is being done to it."""
    found: list[Condition] = []
    stage = STAGES.get(story, 0)
    if story == "rebooting" or draw(st.sampled_from([False] * 9 + [True])):
        found += draw(reboot_conditions())
    if draw(st.sampled_from([False, False, False, True])):
        found.append(condition("DisruptionReason", "True", draw(past), "Unhealthy"))
    if stage > 2:
        for type_ in draw(st.sampled_from(CANDIDACIES)):
            found.append(condition(type_, "True", draw(instants | past)))
    if stage and draw(st.sampled_from([False, False, True])):
        found.append(condition("Drifted", "True", draw(past), draw(st.sampled_from(DRIFTS))))
    return found


@st.composite
def claims(draw: st.DrawFn, index: int, story: str) -> NodeClaim:
    stage = STAGES.get(story, 0)
    leaving = story in ("leaving", "ending") and draw(st.sampled_from([True, True, True, False]))
    conditions = [
        *draw(stage_conditions(story)),
        *(draw(drain_conditions()) if leaving else ()),
        *draw(disruption_conditions(story)),
    ]
    stamp = draw(st.sampled_from(["", "", "", *STAMPS]))
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
