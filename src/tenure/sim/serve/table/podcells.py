"""What ``kubectl get pods`` shows of a pod: how many containers are ready, and one word.

The word is, in this order: why an init container holds it up; else what the containers
are doing; else the pod's own reason or phase. A pod that is being deleted is Terminating,
whatever it does.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.serve.table.ages import age

_ENDED: Final = ("Succeeded", "Failed")
NONE: Final = "<none>"


def pod_cells(pod: Obj, now: datetime) -> list[Any]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    containers = status.get("containerStatuses") or []
    ready = sum(bool(one.get("ready")) for one in containers)
    addresses = [one.get("ip", "") for one in status.get("podIPs") or []]
    return [
        pod["metadata"].get("name", ""),
        f"{ready}/{len(spec.get('containers') or [])}",
        _word(pod, spec, status),
        _restarts(containers, now),
        age(pod["metadata"].get("creationTimestamp"), now),
        addresses[0] if addresses else status.get("podIP") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    ]


def _word(pod: Obj, spec: Obj, status: Obj) -> str:
    phase = status.get("phase", "")
    if "deletionTimestamp" in pod["metadata"] and phase not in _ENDED:
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    word = status.get("reason") or phase
    if _gated(status):
        word = "SchedulingGated"
    return _init_word(spec, status) or _container_word(status, word)


def _gated(status: Obj) -> bool:
    return any(
        one.get("type") == "PodScheduled" and one.get("reason") == "SchedulingGated"
        for one in status.get("conditions") or []
    )


def _init_word(spec: Obj, status: Obj) -> str:
    statuses = status.get("initContainerStatuses") or []
    for index, one in enumerate(statuses):
        ended = dig(one, "state", "terminated")
        if ended is not None and not ended.get("exitCode"):
            continue
        if one.get("started") and one.get("ready"):  # A sidecar runs on.
            continue
        if ended is not None:
            return f"Init:{ended.get('reason') or 'Error'}"
        waiting = dig(one, "state", "waiting", "reason")
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}"
        return f"Init:{index}/{len(spec.get('initContainers') or [])}"
    return ""


def _container_word(status: Obj, word: str) -> str:
    running = False
    for one in reversed(status.get("containerStatuses") or []):
        state = one.get("state") or {}
        if waiting := dig(state, "waiting", "reason"):
            word = waiting
        elif (ended := state.get("terminated")) is not None:
            word = ended.get("reason") or f"ExitCode:{ended.get('exitCode', 0)}"
        elif one.get("ready") and state.get("running") is not None:
            running = True
    return "Running" if word == "Completed" and running else word


def _restarts(containers: list[Any], now: datetime) -> str:
    count = sum(one.get("restartCount") or 0 for one in containers)
    ends = [dig(one, "lastState", "terminated", "finishedAt") or "" for one in containers]
    last = max(ends, default="")
    return f"{count} ({age(last, now)} ago)" if count and last else str(count)


def _gates(spec: Obj, status: Obj) -> str:
    gates = spec.get("readinessGates") or []
    if not gates:
        return NONE
    true = {c.get("type") for c in status.get("conditions") or [] if c.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in true for gate in gates)}/{len(gates)}"
