"""Random pods, with their PDBs and volumes."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from hypothesis import strategies as st

from tenure.model.api import names
from tenure.model.api.meta import ApiObject, Condition, ObjectMeta, OwnerReference
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
from tests.properties.drawn.basics import condition, instants, metas


def owner_of(index: int) -> OwnerReference:
    return OwnerReference(kind="NodeClaim", name=f"claim-{index}", uid=f"uid-claim-{index}")


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
