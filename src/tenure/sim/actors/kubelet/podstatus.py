"""What a kubelet writes about a pod, and how long a pod takes for what; as values.

How long things take is said, first hit wins, by the pod's annotations, by the pace that a story
sets for its app, and by ``PodTimings``. The annotations, in seconds:

=================================  =====================================================
``sim.tenure.dev/start-seconds``   bound → running
``sim.tenure.dev/ready-seconds``   running → ready
``sim.tenure.dev/run-seconds``     running → Succeeded; without it the pod runs for ever
``sim.tenure.dev/exit-code``       other than 0: Failed at the end of ``run-seconds``
``sim.tenure.dev/prestop-seconds`` deleted → asked to stop
``sim.tenure.dev/stop-seconds``    asked to stop → stopped
=================================  =====================================================

Without ``prestop-seconds``, a container's ``lifecycle.preStop.sleep`` counts.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.meta import format_time
from tenure.sim.apiserver.objects.tree import Obj, dig

PREFIX: Final = "sim.tenure.dev/"
#: The labels that name an app.
APP_LABELS: Final = ("app", "app.kubernetes.io/name")

_NOTHING: Final = timedelta(0)


class PodTimings(msgspec.Struct, frozen=True, kw_only=True):
    """How long pods take that do not say it themselves."""

    #: Bound → running: pulling images, creating the sandbox.
    start_for: timedelta = timedelta(seconds=3)
    #: Added for each init container that is not a sidecar.
    init_container_for: timedelta = timedelta(seconds=1)
    #: Asked to stop → stopped, for a program that heeds SIGTERM.
    stop_for: timedelta = timedelta(seconds=2)


class PodPace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long the pods of an app take; None leaves it as it would be."""

    app: str = ""
    namespace: str = ""
    #: Bound, with its volumes attached → running.
    start_takes: timedelta | None = None
    #: Running → ready.
    ready_takes: timedelta | None = None
    #: Running → Succeeded, or Failed where an annotation says so.
    run_takes: timedelta | None = None
    #: Deleted → stopped, preStop hooks included, if the grace lets it.
    stop_takes: timedelta | None = None

    def covers(self, pod: Obj) -> bool:
        metadata = pod["metadata"]
        labels = metadata.get("labels") or {}
        of_app = any(labels.get(key) == self.app for key in APP_LABELS)
        return self.namespace in ("", metadata["namespace"]) and (not self.app or of_app)


_NO_PACE: Final = PodPace()


def start_for(pod: Obj, timings: PodTimings, pace: PodPace = _NO_PACE) -> timedelta:
    said = _seconds(pod, "start-seconds", pace.start_takes)
    if said is not None:
        return said
    inits = pod["spec"].get("initContainers", ())
    inits_count: int = sum(container.get("restartPolicy") != "Always" for container in inits)
    return timings.start_for + inits_count * timings.init_container_for


def ready_for(pod: Obj, pace: PodPace = _NO_PACE) -> timedelta:
    return _seconds(pod, "ready-seconds", pace.ready_takes) or _NOTHING


def run_for(pod: Obj, pace: PodPace = _NO_PACE) -> timedelta | None:
    return _seconds(pod, "run-seconds", pace.run_takes)


def stop_for(pod: Obj, timings: PodTimings, pace: PodPace = _NO_PACE) -> timedelta:
    """From the deletion to the end of the last container, if the grace lets it."""
    prestop, stop = _seconds(pod, "prestop-seconds"), _seconds(pod, "stop-seconds")
    if prestop is None and stop is None and pace.stop_takes is not None:
        return pace.stop_takes
    if prestop is None:
        containers = pod["spec"].get("containers", ())
        sleeps = (dig(c, "lifecycle", "preStop", "sleep", "seconds") or 0 for c in containers)
        prestop = timedelta(seconds=max(sleeps, default=0))
    return prestop + (timings.stop_for if stop is None else stop)


def started_at(pod: Obj) -> datetime | None:
    text = dig(pod, "status", "startTime")
    return datetime.fromisoformat(text) if text else None


def is_finished(pod: Obj) -> bool:
    return dig(pod, "status", "phase") in ("Succeeded", "Failed")


def pod_ready(pod: Obj) -> bool:
    conditions = dig(pod, "status", "conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def running_status(
    pod: Obj, now: datetime, *, admitted_at: datetime, ready: bool, address: str
) -> Obj:
    at = format_time(now)
    return {
        "phase": "Running",
        "startTime": format_time(admitted_at),
        "podIP": address,
        "conditions": with_readiness(pod, "True" if ready else "False", now),
        "containerStatuses": [
            {
                "name": container.get("name", ""),
                "image": container.get("image", ""),
                # No image is fetched, so its digest is unknown; typed clients require the field.
                "imageID": "",
                "ready": ready,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": at}},
            }
            for container in pod["spec"].get("containers", ())
        ],
    }


def ready_status(pod: Obj, now: datetime) -> Obj:
    containers = dig(pod, "status", "containerStatuses") or ()
    return {
        "conditions": with_readiness(pod, "True", now),
        "containerStatuses": [{**container, "ready": True} for container in containers],
    }


def finished_status(pod: Obj, now: datetime) -> Obj:
    code = _annotation(pod, "exit-code") or "0"
    failed = code != "0"
    reason = "PodFailed" if failed else "PodCompleted"
    ended = {
        "exitCode": int(code) if code.isdecimal() else 1,
        "reason": "Error" if failed else "Completed",
        "finishedAt": format_time(now),
    }
    return {
        "phase": "Failed" if failed else "Succeeded",
        "conditions": with_readiness(pod, "False", now, reason),
        "containerStatuses": [
            _ended(container, ended) for container in dig(pod, "status", "containerStatuses") or ()
        ],
    }


def _ended(container: Obj, how: Obj) -> Obj:
    since = dig(container, "state", "running", "startedAt")
    state = {"terminated": {**({"startedAt": since} if since else {}), **how}}
    return {**container, "ready": False, "started": False, "state": state}


def refused_status(pod: Obj, now: datetime) -> Obj:
    """Of a pod that the kubelet does not admit."""
    message = "Pod was rejected: Node didn't have enough resource: cpu"
    return {
        "phase": "Failed",
        "reason": "OutOfcpu",
        "message": message,
        "conditions": with_readiness(pod, "False", now, "PodFailed"),
    }


def stopped_status(pod: Obj, now: datetime) -> Obj:
    """Of a pod that was told to go before it was done."""
    return {"phase": "Failed", "conditions": with_readiness(pod, "False", now, "PodFailed")}


def with_readiness(pod: Obj, ready: str, now: datetime, reason: str = "") -> list[Obj]:
    """The pod's conditions with its containers this ready; others are kept as they are."""
    wanted = {"Initialized": "True", "Ready": ready, "ContainersReady": ready}
    conditions = {c["type"]: c for c in dig(pod, "status", "conditions") or ()}
    for type_, status in wanted.items():
        before = conditions.get(type_)
        if before is None or before["status"] != status:
            conditions[type_] = _condition(type_, status, now, reason)
    return list(conditions.values())


def with_condition(
    pod: Obj, type_: str, status: str, now: datetime, *, reason: str = "", message: str = ""
) -> list[Obj]:
    """The pod's conditions with this one set or replaced."""
    others = [c for c in dig(pod, "status", "conditions") or () if c["type"] != type_]
    return [*others, _condition(type_, status, now, reason, message)]


def _condition(type_: str, status: str, now: datetime, reason: str = "", message: str = "") -> Obj:
    condition = {"type": type_, "status": status, "lastTransitionTime": format_time(now)}
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    return condition


def _annotation(pod: Obj, name: str) -> str | None:
    value: str | None = (pod["metadata"].get("annotations") or {}).get(PREFIX + name)
    return value


def _seconds(pod: Obj, name: str, otherwise: timedelta | None = None) -> timedelta | None:
    text = _annotation(pod, name)
    if text is None:
        return otherwise
    try:
        return timedelta(seconds=float(text))
    except (ValueError, OverflowError):
        at = f"Pod/{pod['metadata']['name']} metadata.annotations[{PREFIX}{name}]"
        raise SpecError(at, text, "a number of seconds", 'For example "12.5".') from None
