"""The visible state of a pod, and why Tenure has nothing to decide about one."""

from __future__ import annotations

from datetime import datetime

from tenure.core.protect.protection import protection_of
from tenure.model.api.meta import FOR_EVER, format_time
from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.api.pod import Pod


def pod_state(pod: Pod, now: datetime) -> str:
    phase = pod.status.phase or "Pending"
    where = f" on {pod.spec.node_name}" if pod.spec.node_name else ", on no node"
    return f"{phase}{where}{_protected(pod, now)}"


def _protected(pod: Pod, now: datetime) -> str:
    protection = protection_of(pod)
    if protection is None or protection.until <= now:
        return ""
    end = "" if protection.until == FOR_EVER else f" until {format_time(protection.until)}"
    return f'; protected by {DO_NOT_DISRUPT}: "{protection.value}"{end}'


def why_no_verdict(pod: Pod) -> str:
    """Of a pod without a verdict; empty where its node says more."""
    if pod.finished:
        return "it has ended"
    if pod.deleting or pod.spec.node_name:
        return ""
    if pod.spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
        return f"it is not scheduled before its scheduling gates are removed: {gates}"
    if pod.daemon:
        return "a DaemonSet's pod is for one node that exists, and a new node would not help it"
    if pod.status.nominated_node_name:
        return f"the scheduler makes room for it on node {pod.status.nominated_node_name}"
    if not pod.unschedulable:
        scheduler = pod.spec.scheduler_name or "default-scheduler"
        return f"its scheduler, {scheduler}, has not said yet that no node takes it"
    return ""
