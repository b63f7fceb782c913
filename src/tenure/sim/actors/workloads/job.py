"""Jobs: pods until so many have succeeded, or too many have failed.

Every pod carries a finalizer until it is counted, so none is lost however it went. A pod that is
deleted, evicted for one, counts as failed and is replaced at once, as by default on a real
cluster (``podReplacementPolicy: Failed`` waits until it has stopped). After a failure the next
pod waits 10 s, then 20 s, and so on until one succeeds.

A job is done when ``completions`` pods have succeeded (without a number: when one has and no
other runs), failed with more than ``backoffLimit`` failures or after ``activeDeadlineSeconds``.
What still runs then is deleted; the last condition follows when it has stopped. With
``ttlSecondsAfterFinished`` the job goes, too, and its pods with it.

Not modelled: indexed jobs, failure and success policies. A pod that fails is not started again
in place (``OnFailure``), but replaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from tenure.model.api.resource import JOBS, PODS
from tenure.sim.actors.workloads.failedcreate import create_pod
from tenure.sim.actors.workloads.jobpods import (
    TRACKING,
    JobPods,
    failed_at,
    is_complete,
    job_pod,
    missing_count,
    pause_after,
    ready_count,
)
from tenure.sim.actors.workloads.ownedpods import Group, OwnedPods
from tenure.sim.actors.workqueue import WorkQueue, queue_key
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.virtual.environment import Environment

_NO_PODS: Final = Group()
#: What is said first, while pods may still run → what is said when none does.
_OUTCOMES: Final = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}
_REACHED: Final = ("CompletionsReached", "Reached expected number of succeeded pods")
_TOO_MANY: Final = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
_TOO_LONG: Final = ("DeadlineExceeded", "Job was active longer than specified deadline")


class _Failures:
    """Failures in a row, and the last of them; a controller forgets them with its job."""

    def __init__(self) -> None:
        self.count = 0
        self.last: datetime | None = None


class Jobs:
    def __init__(self, env: Environment, store: Store) -> None:
        self._env = env
        self._store = store
        self._queue = WorkQueue(env, self._look)
        self._failures: dict[str, _Failures] = {}
        #: None until there is a job: clusters without any do not pay for following pods.
        self._pods: OwnedPods | None = None
        store.subscribe(JOBS, self._on_job, replay=True)

    def _on_job(self, type_: str, new: Obj, old: Obj | None) -> None:
        if self._pods is None:
            self._pods = OwnedPods(self._store, JOBS.kind)
            self._pods.listen(self._queue.add)
        metadata = new["metadata"]
        if type_ == DELETED:
            self._failures.pop(metadata["uid"], None)
            self._let_go(self._group(new).pods.values())
        elif old is None or new["spec"] is not old["spec"] or "deletionTimestamp" in metadata:
            self._queue.add(queue_key(new))

    def _group(self, job: Obj) -> Group:
        return self._pods.of(job["metadata"]["uid"]) if self._pods else _NO_PODS

    def _look(self, namespace: str, name: str) -> None:
        job = self._store.find(JOBS, namespace, name)
        if job is None:
            return
        pods = self._group(job).pods.values()
        if "deletionTimestamp" in job["metadata"]:
            self._let_go(pods)
            return
        pods_by_state = JobPods.of(job, pods)
        status = self._counted(job, pods_by_state)
        outcome = _outcome(status) or self._new_outcome(job, status, pods_by_state)
        if outcome is None:
            self._fit(job, status, pods_by_state)
        else:
            _note(status, outcome, self._store.stamp())
            self._end(job, status, pods_by_state)
        if status != job.get("status"):
            self._store.update(JOBS, {**job, "status": status}, "status")
        self._let_go([*pods_by_state.succeeded, *pods_by_state.failed])

    def _counted(self, job: Obj, pods_by_state: JobPods) -> dict[str, Any]:
        """The job's status with those counted that have not been yet."""
        status = {**(job.get("status") or {})}
        if not job["spec"].get("suspend") and not _outcome(status):
            status.setdefault("startTime", self._store.stamp())
        failures = self._failures.setdefault(job["metadata"]["uid"], _Failures())
        for pod in pods_by_state.failed:
            failures.count += 1
            failures.last = failed_at(pod, self._env.now())
        if pods_by_state.succeeded:
            failures.count = 0
        for field, more in (
            ("succeeded", pods_by_state.succeeded),
            ("failed", pods_by_state.failed),
        ):
            if more:
                status[field] = status.get(field, 0) + len(more)
        status.pop("active", None)
        if pods_by_state.active:
            status["active"] = len(pods_by_state.active)
        status["terminating"] = len(pods_by_state.terminating)
        status["ready"] = ready_count(pods_by_state)
        status["uncountedTerminatedPods"] = {}
        return status

    def _new_outcome(
        self, job: Obj, status: Obj, pods_by_state: JobPods
    ) -> tuple[str, tuple[str, str]] | None:
        spec = job["spec"]
        if status.get("failed", 0) > spec["backoffLimit"]:
            return "FailureTarget", _TOO_MANY
        if spec.get("activeDeadlineSeconds") and "startTime" in status:
            began = datetime.fromisoformat(status["startTime"])
            due = began + timedelta(seconds=spec["activeDeadlineSeconds"])
            if due <= self._env.now():
                return "FailureTarget", _TOO_LONG
            self._queue.add_at(queue_key(job), due)
        if is_complete(job, pods_by_state, status.get("succeeded", 0)):
            return "SuccessCriteriaMet", _REACHED
        return None

    def _fit(self, job: Obj, status: Obj, pods_by_state: JobPods) -> None:
        """Make the pods that are missing, delete those that are too many."""
        count = missing_count(job, pods_by_state, status.get("succeeded", 0))
        if count < 0:
            self._delete(pods_by_state.active[count:])
        if count <= 0:
            return
        failures = self._failures[job["metadata"]["uid"]]
        if failures.last is not None:
            due = failures.last + pause_after(failures.count)
            if due > self._env.now():
                self._queue.add_at(queue_key(job), due)
                return
        for _ in range(count):
            create_pod(self._store, job_pod(job), job, JOBS)
        status["active"] = len(pods_by_state.active) + count

    def _end(self, job: Obj, status: Obj, pods_by_state: JobPods) -> None:
        """Delete what still runs; when nothing does, the job is over."""
        self._delete(pods_by_state.active)
        if pods_by_state.active or pods_by_state.terminating:
            return
        first = next(c for c in status["conditions"] if c["type"] in _OUTCOMES)
        last = _OUTCOMES[first["type"]]
        if all(condition["type"] != last for condition in status["conditions"]):
            _note(status, (last, (first["reason"], first["message"])), self._store.stamp())
            if last == "Complete":
                status["completionTime"] = self._store.stamp()
        self._expire(job, status, last)

    def _expire(self, job: Obj, status: Obj, last: str) -> None:
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return
        over = next(c for c in status["conditions"] if c["type"] == last)
        due = datetime.fromisoformat(over["lastTransitionTime"]) + timedelta(seconds=ttl)
        self._env.at(due, self._remove, queue_key(job), job["metadata"]["uid"])

    def _remove(self, key: str, uid: str) -> None:
        namespace, _, name = key.partition("/")
        job = self._store.find(JOBS, namespace, name)
        if job is not None and job["metadata"]["uid"] == uid:
            self._store.delete(JOBS, namespace, name, propagation_policy="Foreground")

    def _delete(self, pods: list[Obj]) -> None:
        for pod in pods:
            self._store.delete(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"])

    def _let_go(self, pods: Iterable[Obj]) -> None:
        """Remove our finalizer, now that these are counted or counting has ended."""
        for seen in [*pods]:
            metadata = seen["metadata"]
            pod = self._store.find(PODS, metadata["namespace"], metadata["name"])
            if pod is None or pod["metadata"]["uid"] != metadata["uid"]:
                continue
            finalizers = pod["metadata"].get("finalizers") or []
            if TRACKING in finalizers:
                left = [one for one in finalizers if one != TRACKING]
                patch = {"metadata": {"finalizers": left or None}}
                self._store.patch(PODS, metadata["namespace"], metadata["name"], patch)


def _outcome(status: Obj) -> tuple[str, tuple[str, str]] | None:
    """What has been decided about the job, if anything."""
    for condition in status.get("conditions") or ():
        if condition["type"] in _OUTCOMES:
            return condition["type"], (condition["reason"], condition["message"])
    return None


def _note(status: Obj, outcome: tuple[str, tuple[str, str]], now: str) -> None:
    type_, (reason, message) = outcome
    conditions = status.get("conditions") or []
    if any(condition["type"] == type_ for condition in conditions):
        return
    condition = {
        "type": type_,
        "status": "True",
        "lastProbeTime": now,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }
    status["conditions"] = [*conditions, condition]
