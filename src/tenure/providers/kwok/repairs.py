"""What Karpenter's KWOK provider states about unhealthy nodes."""

from __future__ import annotations

from datetime import timedelta

from tenure.model.cloud.repairs import RepairAction, RepairStatement


def kwok_statements(ready: timedelta = timedelta(minutes=10)) -> tuple[RepairStatement, ...]:
    """``ready``: the toleration duration of a Node that is not Ready."""
    none = timedelta()
    return (
        RepairStatement(
            condition_type="Ready", status="False", toleration=ready, grace_period=none
        ),
        RepairStatement(
            condition_type="Ready",
            status="Unknown",
            reason=".*",
            toleration=ready,
            grace_period=none,
        ),
        RepairStatement(
            condition_type="KWOKUnhealthy",
            status="True",
            reason=".*",
            toleration=timedelta(seconds=30),
            grace_period=timedelta(seconds=45),
        ),
        RepairStatement(
            condition_type="KWOKRebootRequired",
            status="True",
            reason=".*",
            toleration=timedelta(seconds=30),
            grace_period=timedelta(minutes=1),
            action=RepairAction.REBOOT,
        ),
    )
