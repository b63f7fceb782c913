"""Which pods of a job run, which are done, and how long to wait after failures.

Pure: the job's pods and what it has counted so far go in, a tally comes out.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.model.api.resource import JOBS
from tenure.sim.actors.workloads.ownedpods import is_ready, phase
from tenure.sim.actors.workloads.podtemplate import new_pod
from tenure.sim.apiserver.objects.tree import Obj

#: Keeps a pod until the job has counted it.
TRACKING: Final = "batch.kubernetes.io/job-tracking"
#: After the first failure; doubles with each further one until a pod succeeds.
BACKOFF_FIRST: Final = timedelta(seconds=10)
BACKOFF_LAST: Final = timedelta(minutes=10)
_BACKOFF_DOUBLINGS_MAX: Final = 10


class JobPods(msgspec.Struct, frozen=True):
    """A job's pods, each in one of these."""

    active: list[Obj]
    #: Being deleted and not finished; their successors need not wait for them by default.
    terminating: list[Obj]
    #: Held by our finalizer and not counted yet.
    succeeded: list[Obj]
    failed: list[Obj]

    @classmethod
    def of(cls, job: Obj, pods: Iterable[Obj]) -> JobPods:
        pods_by_state = cls([], [], [], [])
        for pod in pods:
            pods_by_state._sort_in(job, pod)
        return pods_by_state

    def _sort_in(self, job: Obj, pod: Obj) -> None:
        metadata, now = pod["metadata"], phase(pod)
        leaving, tracked = (
            "deletionTimestamp" in metadata,
            TRACKING in metadata.get("finalizers", ()),
        )
        if leaving and now not in ("Succeeded", "Failed"):
            self.terminating.append(pod)
        elif not leaving and now not in ("Succeeded", "Failed"):
            self.active.append(pod)
        if tracked and now == "Succeeded":
            self.succeeded.append(pod)
        elif tracked and (now == "Failed" or (leaving and not waits_for_end(job))):
            self.failed.append(pod)


def waits_for_end(job: Obj) -> bool:
    """Whether a pod counts as failed, and is replaced, only when it has stopped."""
    return bool(job["spec"].get("podReplacementPolicy") == "Failed")


def job_pod(job: Obj) -> Obj:
    pod = new_pod(job["spec"]["template"], job, JOBS)
    finalizers = [*(pod["metadata"].get("finalizers") or ()), TRACKING]
    pod["metadata"] = {**pod["metadata"], "finalizers": finalizers}
    return pod


def missing_count(job: Obj, pods_by_state: JobPods, succeeded: int) -> int:
    """How many pods to make now; negative when there are too many."""
    spec = job["spec"]
    if spec.get("suspend"):
        return -len(pods_by_state.active)
    wanted: int = spec["parallelism"]
    if (completions := spec.get("completions")) is not None:
        wanted = min(wanted, max(0, completions - succeeded))
    elif succeeded:  # A work queue: running pods finish, no new pod starts.
        wanted = min(wanted, len(pods_by_state.active))
    busy = len(pods_by_state.active) + (len(pods_by_state.terminating) if waits_for_end(job) else 0)
    return (
        wanted - busy if wanted >= len(pods_by_state.active) else wanted - len(pods_by_state.active)
    )


def is_complete(job: Obj, pods_by_state: JobPods, succeeded: int) -> bool:
    completions = job["spec"].get("completions")
    if completions is None:
        return bool(succeeded) and not pods_by_state.active and not pods_by_state.terminating
    return bool(succeeded >= completions)


def pause_after(failures: int) -> timedelta:
    """How long after the last of so many failures in a row the next pod is made."""
    if not failures:
        return timedelta(0)
    doublings = min(failures - 1, _BACKOFF_DOUBLINGS_MAX)
    return min(BACKOFF_FIRST * (1 << doublings), BACKOFF_LAST)


def ready_count(pods_by_state: JobPods) -> int:
    return sum(is_ready(pod) for pod in pods_by_state.active)


def failed_at(pod: Obj, now: datetime) -> datetime:
    """When the pod was lost: when it was told to go, or now that it is seen to have failed."""
    metadata = pod["metadata"]
    if "deletionTimestamp" not in metadata:
        return now
    grace = timedelta(seconds=metadata.get("deletionGracePeriodSeconds", 0))
    return datetime.fromisoformat(metadata["deletionTimestamp"]) - grace
