"""Safety reads protection and deadlines by itself, and comes to the same end as the deciders.

Where they differed, one would do for ever what the other refuses.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
import pytest

from tenure.core.marks import deadline as deciders_deadline
from tenure.core.protect.protection import protection_of
from tenure.core.terminate.pods import blocks_drain
from tenure.model.api import names
from tenure.model.api.meta import FOR_EVER, format_time
from tenure.model.api.pod import Pod
from tenure.model.snapshot.unreadable import stand_in
from tenure.safety.pods import is_awaited, protected_until, why_protected
from tenure.safety.times import deadline_of
from tests.core.build import NOW, a_claim, a_pod, ago, ahead

VALUES = (None, "true", "false", "4h", "90s", "1ns", "0s", "-5m", "soon", "", "9999999h")
CAPS = (None, "1h", "24h", "0s", "many")


@pytest.mark.parametrize("clock", ["creation", "start"])
@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("value", VALUES)
def test_a_pod_is_protected_as_long_as_the_deciders_say(
    value: str | None, cap: str | None, clock: str
) -> None:
    started = msgspec.structs.replace(a_pod().status, start_time=ago(60))
    new = a_pod(protected=value, creation_timestamp=ago(3600))
    for pod in (
        new,
        msgspec.structs.replace(new, status=started),
        a_pod(protected=value, deletion_timestamp=ahead(5)),
        a_pod(protected=value, phase="Succeeded"),
        stand_in(new, "is not a pod"),
    ):
        theirs = protection_of(pod, cap=cap, clock=clock)
        assert protected_until(pod, cap=cap, clock=clock) == (theirs and theirs.until)


def test_a_protection_is_said_with_its_end() -> None:
    pod = a_pod(protected="4h")
    assert why_protected(pod, NOW) == (
        f'karpenter.sh/do-not-disrupt: "4h" protects it until {format_time(NOW)}'
    )
    assert why_protected(pod, FOR_EVER).endswith("protects it for ever")


@pytest.mark.parametrize("period", [None, "30s", "2h", "0s", "Never", "soon", "9999999h"])
@pytest.mark.parametrize("stamp", [None, "", "soon", format_time(ahead(60)), "2026-03-02T12:00:00"])
@pytest.mark.parametrize("deleted", [None, ago(30)])
def test_a_deadline_is_the_one_of_the_deciders(
    period: str | None, stamp: str | None, deleted: datetime | None
) -> None:
    annotations = {} if stamp is None else {names.TERMINATION_TIMESTAMP: stamp}
    claim = a_claim(
        annotations=annotations,
        deletion_timestamp=deleted,
        spec={"termination_grace_period": period},
    )
    theirs = deciders_deadline.deadline_of(claim)
    assert deadline_of(claim) == (theirs.at if theirs is not None else None)


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(),
        a_pod(phase="Failed"),
        a_pod(owner="Node"),
        a_pod(deletion_timestamp=ahead(5), deletion_grace_period_seconds=30),
        a_pod(deletion_timestamp=ago(59), deletion_grace_period_seconds=30),
        a_pod(deletion_timestamp=ago(60), deletion_grace_period_seconds=30),
        a_pod(deletion_timestamp=ago(600), deletion_grace_period_seconds=2**62),
        a_pod(deletion_timestamp=ago(600)),
    ],
)
def test_a_podis_awaited_as_in_the_drain(pod: Pod) -> None:
    assert is_awaited(pod, NOW) is blocks_drain(pod, NOW)
