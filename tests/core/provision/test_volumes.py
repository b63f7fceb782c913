"""The last steps of a terminating Node: attached volumes, and what remains at a deadline."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tenure.core.decision import Terminate, Verdict
from tenure.core.marks.deadline import Deadline
from tenure.core.reasons import Reason
from tenure.core.terminate.decider import TerminationDecider
from tenure.core.terminate.facts.termination import (
    Drained,
    PodsRemained,
    VolumesRemained,
    WaitingForVolumes,
)
from tenure.model.api.pod import PersistentVolumeClaimVolumeSource, Pod, Toleration, Volume
from tenure.model.api.workload import (
    ObjectReference,
    PersistentVolume,
    PersistentVolumeSpec,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
)
from tests.core.build import (
    NOW,
    a_leaving_claim,
    a_leaving_node,
    a_pod,
    about,
    ago,
    ahead,
    condition,
    evaluated,
    meta,
    said,
)

QUARTER = {"termination_grace_period": "15m"}
DEADLINE, END = ahead(870), ahead(930)
DRAINED = condition("Drained", at=ago(20))
WAITING = condition("VolumesDetached", "Unknown", "AwaitingVolumeDetachment", "csi-data", ago(20))
BEGAN = condition("Drained", "Unknown", at=ago(20))
DATA = Volume(
    name="data", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="data")
)


def an_attachment(volume: str = "pv-data", node: str = "node-a") -> VolumeAttachment:
    source = VolumeAttachmentSource(persistent_volume_name=volume)
    return VolumeAttachment(
        metadata=meta("csi-data"), spec=VolumeAttachmentSpec(node_name=node, source=source)
    )


def a_volume() -> PersistentVolume:
    claim = ObjectReference(namespace="default", name="data")
    return PersistentVolume(metadata=meta("pv-data"), spec=PersistentVolumeSpec(claim_ref=claim))


def a_user(**fields: Any) -> Pod:
    return a_pod(spec={"volumes": (DATA,), **fields.pop("spec", {})}, **fields)


def verdicts_on(*objects: Any, now: datetime = NOW) -> tuple[Verdict, Verdict]:
    """On the Node, and on its claim."""
    verdicts = evaluated(TerminationDecider(), a_leaving_node(), *objects, now=now)
    return about(verdicts, "Node/node-a"), about(verdicts, "NodeClaim/a")


def test_the_instance_waits_for_its_volumes_and_names_them() -> None:
    claim = a_leaving_claim(conditions=[DRAINED], spec=QUARTER)
    node, followed = verdicts_on(claim, an_attachment(), a_volume())
    assert (node.reason, node.action) == (Reason.AWAITING_VOLUMES, None)
    deadline = Deadline(DEADLINE, "terminationGracePeriod 15m")
    waiting = WaitingForVolumes((("csi-data", "pv-data"),), deadline)
    assert node.facts == (Drained(("node-a",)), waiting)
    assert [str(blocker.subject) for blocker in node.blockers] == ["VolumeAttachment/csi-data"]
    assert said(followed)["VolumesDetached"] == ("Unknown", "AwaitingVolumeDetachment")
    assert (node.recheck_at, followed.recheck_at) == (DEADLINE, DEADLINE)


def test_when_they_are_detached_that_is_recorded_and_the_instance_is_terminated() -> None:
    node, followed = verdicts_on(a_leaving_claim(conditions=[DRAINED, WAITING]))
    assert (node.reason, node.action) == (Reason.DRAINED, None)
    assert said(followed)["VolumesDetached"] == ("True", "VolumesDetached")
    detached = condition("VolumesDetached")
    node, _ = verdicts_on(a_leaving_claim(conditions=[DRAINED, detached]))
    assert node.action == Terminate(provider_id="cloud://a", claim_uid="uid-a", pods_of=("node-a",))


def test_the_deadline_does_not_wait_for_volumes() -> None:
    claim = a_leaving_claim(conditions=[DRAINED, WAITING], spec=QUARTER)
    node, followed = verdicts_on(claim, an_attachment(), a_volume(), now=DEADLINE)
    assert node.reason is Reason.DRAINED
    assert followed.reason is Reason.GRACE_PERIOD_ELAPSED
    assert said(followed)["VolumesDetached"] == ("False", "TerminationGracePeriodElapsed")
    assert followed.facts == (VolumesRemained(("node-a",), (("csi-data", "pv-data"),)),)


@pytest.mark.parametrize(
    ("attachment", "pods"),
    [
        pytest.param(an_attachment(node="node-b"), [], id="of another node"),
        pytest.param(an_attachment(volume=""), [], id="of no persistent volume"),
        pytest.param(
            an_attachment(),
            [a_user(spec={"tolerations": (Toleration(operator="Exists"),)})],
            id="of a pod that stays",
        ),
        pytest.param(
            an_attachment(), [a_user(deletion_timestamp=ago(61))], id="of a pod that is stuck"
        ),
    ],
)
def test_what_will_not_be_detached_is_not_waited_for(
    attachment: VolumeAttachment, pods: list[Pod]
) -> None:
    claim = a_leaving_claim(conditions=[BEGAN])
    _, followed = verdicts_on(claim, attachment, a_volume(), *pods)
    assert said(followed)["VolumesDetached"] == ("True", "VolumesDetached")


def test_a_finished_pods_volume_is_waited_for() -> None:
    """Its kubelet lets go of the volume."""
    claim = a_leaving_claim(conditions=[BEGAN])
    _, followed = verdicts_on(claim, an_attachment(), a_volume(), a_user(phase="Succeeded"))
    assert said(followed)["VolumesDetached"][0] == "Unknown"


def test_a_minute_after_the_deadline_the_instance_is_terminated_even_if_pods_remain() -> None:
    stays = a_pod(deletion_timestamp=ahead(880), deletion_grace_period_seconds=20)
    claim = a_leaving_claim(conditions=[BEGAN], spec=QUARTER)
    node, _ = verdicts_on(claim, stays, now=ahead(929))
    assert node.reason is Reason.DRAINING
    assert node.recheck_at == END
    node, followed = verdicts_on(claim, stays, now=END)
    assert followed.reason is Reason.GRACE_PERIOD_ELAPSED
    assert said(followed)["Drained"] == ("False", "TerminationGracePeriodElapsed")
    assert followed.facts == (PodsRemained(("node-a",), ("default/web",)),)
    over = [
        condition("Drained", "False", "TerminationGracePeriodElapsed", at=END),
        condition("VolumesDetached", at=END),
    ]
    node, _ = verdicts_on(a_leaving_claim(conditions=over, spec=QUARTER), stays, now=END)
    assert node.action == Terminate(provider_id="cloud://a", claim_uid="uid-a")
