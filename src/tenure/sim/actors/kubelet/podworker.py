"""The kubelet's pod side: start what is bound, stop what is deleted, report both.

A pod bound to a living kubelet's node starts when its volumes are attached there and its image
and init containers took their time, and is Ready then (or later, where it says so). A pod that is deleted runs its
preStop hooks, stops, and is taken out of the API with grace 0 and its UID; the hooks and
the stopping together never outlive the grace, and a shortened grace counts from the moment
the kubelet hears of it, as in the real one, and never lengthens the one before. A pod that never
ran has nothing to stop. A stopped pod that a finalizer keeps says that it has Failed.

A silent kubelet does nothing: its pods stay as they are, terminating ones included. Once it
is back it looks at all of its pods afresh.

How long things take, and by which annotations a scenario changes that: ``podstatus.py``.

Simplified: one status write per start (a real kubelet first reports ``startTime`` alone),
no restarts, no probes, no admission by resources but for a fault, and no two seconds more for a pod whose preStop
hook has used up the grace.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from tenure.model.api.meta import seconds_of
from tenure.model.api.resource import PODS
from tenure.sim.actors.boundpods import BoundPods
from tenure.sim.actors.kubelet.copies import Copies
from tenure.sim.actors.kubelet.podstatus import (
    PodPace,
    PodTimings,
    finished_status,
    is_finished,
    ready_for,
    ready_status,
    refused_status,
    run_for,
    running_status,
    start_for,
    started_at,
    stop_for,
    stopped_status,
)
from tenure.sim.actors.kubelet.podwork import PodWork
from tenure.sim.actors.volumes.attaching import AttachDetach
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.virtual.environment import Environment

_NOTHING: Final = timedelta(0)
_NO_PACE: Final = PodPace()


class PodWorkers:
    def __init__(
        self,
        environment: Environment,
        store: Store,
        pods: BoundPods,
        *,
        alive: Callable[[str], bool],
        timings: PodTimings,
        volumes: AttachDetach,
        refuses: Callable[[Obj], bool] = lambda _: False,
    ) -> None:
        """``alive``: whether that node's kubelet is at work; ``refuses``: a pod that is bound."""
        self._refuses = refuses
        self._environment, self._store, self._pods = environment, store, pods
        self._alive, self._volumes = alive, volumes
        volumes.on_ready(self._on_volume)
        self._timings = timings
        #: The first that covers a pod counts, from the next thing that the pod does.
        self.paces: tuple[PodPace, ...] = ()
        #: How long a pod runs that does not say so; None: until it is told to go.
        self.runs_for: Callable[[Obj], timedelta | None] = _until_told
        self.copies = Copies()
        self._works: dict[str, PodWork] = {}
        self._address_count = 0
        store.subscribe(PODS, self._on_pod)

    def look(self, node: str) -> None:
        """The node's kubelet (re)starts: it knows nothing and looks at all of its pods."""
        pods = self._pods.on(node)
        known = {pod["metadata"]["uid"] for pod in pods}
        for uid in self.copies.on(node):
            if uid not in known:  # Removed from the API while no kubelet could stop it.
                self.copies.end(uid)
        for pod in pods:
            self._forget(pod["metadata"]["uid"])
            self._sync(pod)

    def switched_off(self, node: str) -> None:
        """The machine is off: nothing runs there any more."""
        for uid in self.copies.on(node):
            self.copies.end(uid)

    def report_ready(self, node: str) -> None:
        """The node is well again: pods that were only called unready because of it are not."""
        for pod in self._pods.on(node):
            work = self._works.get(pod["metadata"]["uid"])
            if work is None or not (work.running and work.ready) or work.done:
                continue
            if (fresh := self._current(work)) is not None:
                self._write_ready(work, fresh)

    def _on_pod(self, type_: str, pod: Obj, _old: Obj | None) -> None:
        if type_ == DELETED:
            self._abandon(pod)
            self._forget(pod["metadata"]["uid"])
        elif dig(pod, "spec", "nodeName"):
            self._sync(pod)

    def _sync(self, pod: Obj) -> None:
        if not self._alive(pod["spec"]["nodeName"]):
            return
        uid = pod["metadata"]["uid"]
        work = self._works.get(uid)
        if work is None:
            work = self._works[uid] = PodWork(pod, self._environment.now())
            self._begin(work, pod)
        if "deletionTimestamp" in pod["metadata"]:
            self._stop(work, pod)

    def _begin(self, work: PodWork, pod: Obj) -> None:
        if is_finished(pod) or "deletionTimestamp" in pod["metadata"]:
            return
        if work.running:  # Known from before a restart of the kubelet.
            self._note_start(work, pod)
            self._await_end(work, pod, since=started_at(pod) or work.admitted_at)
        elif "volumes" not in pod["spec"] or self._volumes.is_ready(pod):
            self._again(work, start_for(pod, self._timings, self._pace(pod)), self._run)

    def _on_volume(self, pod: Obj) -> None:
        """A volume of the pod has come: it may start when that was the last one."""
        work = self._works.get(pod["metadata"]["uid"])
        if work is None or work.timer is not None or (fresh := self._current(work)) is None:
            return
        if not work.running:
            self._begin(work, fresh)

    def _run(self, work: PodWork) -> None:
        pod = self._current(work)
        if pod is None:
            return
        if self._refuses(pod):
            self._write(work, refused_status(pod, self._environment.now()))
            return
        now, ready_after = self._environment.now(), ready_for(pod, self._pace(pod))
        work.running, work.ready = True, not ready_after
        self._note_start(work, pod)
        self._address_count += 1
        status = running_status(
            pod,
            now,
            admitted_at=work.admitted_at,
            ready=work.ready,
            address=_address(self._address_count),
        )
        self._write(work, status)
        if ready_after:
            self._environment.after(ready_after, self._become_ready, work)
        self._await_end(work, pod, since=now)

    def _become_ready(self, work: PodWork) -> None:
        pod = self._current(work)
        # Work from before a restart of the kubelet has no worker any more.
        if pod is not None and self._works.get(work.uid) is work:
            work.ready = True
            self._write_ready(work, pod)

    def _await_end(self, work: PodWork, pod: Obj, *, since: datetime) -> None:
        ends_after = run_for(pod, self._pace(pod))
        if ends_after is None:
            ends_after = self.runs_for(pod)
        if ends_after is not None:
            rest = max(since + ends_after - self._environment.now(), _NOTHING)
            self._again(work, rest, self._finish)

    def _finish(self, work: PodWork) -> None:
        pod = self._current(work)
        if pod is not None:
            work.running = False
            self.copies.end(work.uid)
            self._write(work, finished_status(pod, self._environment.now()))

    def _stop(self, work: PodWork, pod: Obj) -> None:
        """Stop by itself in its own time, but within the grace we hear of now."""
        if work.done:
            return
        now = self._environment.now()
        grace = seconds_of(pod["metadata"].get("deletionGracePeriodSeconds", 0))
        own = stop_for(pod, self._timings, self._pace(pod)) if work.running else _NOTHING
        stop_at = now + min(own, grace)
        if work.stop_at is None or stop_at < work.stop_at:
            work.stop_at = stop_at
            self._again(work, stop_at - now, self._remove)

    def _remove(self, work: PodWork) -> None:
        pod = self._current(work, deleting=True)
        if pod is not None:
            work.done = True
            self.copies.end(work.uid)
            if pod["metadata"].get("finalizers") and not is_finished(pod):
                self._write(work, stopped_status(pod, self._environment.now()))
            self._store.delete(PODS, work.namespace, work.name, 0, uid=work.uid)

    def _note_start(self, work: PodWork, pod: Obj) -> None:
        named = f"{work.namespace}/{work.name}"
        self.copies.start(named, work.uid, pod["spec"]["nodeName"], self._environment.now())

    def _abandon(self, pod: Obj) -> None:
        """Its object was force deleted: a running kubelet stops it now, within the pod's grace period."""
        work = self._works.get(pod["metadata"]["uid"])
        if work is None or not work.running or work.done:
            return
        if self._alive(pod["spec"]["nodeName"]):
            grace = seconds_of(pod["spec"].get("terminationGracePeriodSeconds", 0))
            rest = min(stop_for(pod, self._timings, self._pace(pod)), grace)
            self._environment.after(rest, self.copies.end, work.uid)

    def _pace(self, pod: Obj) -> PodPace:
        return next((pace for pace in self.paces if pace.covers(pod)), _NO_PACE)

    # Timers and the API.

    def _again(self, work: PodWork, delay: timedelta, callback: Callable[[PodWork], None]) -> None:
        """A pod waits for one thing at a time: the latest decision replaces the one before."""
        if work.timer is not None:
            work.timer.cancel()
        work.timer = self._environment.after(delay, callback, work)

    def _forget(self, uid: str) -> None:
        work = self._works.pop(uid, None)
        if work is not None and work.timer is not None:
            work.timer.cancel()

    def _current(self, work: PodWork, *, deleting: bool = False) -> Obj | None:
        """The pod as it is now, if it is still this one and its kubelet still at work."""
        pod = self._store.find(PODS, work.namespace, work.name)
        if pod is None or pod["metadata"]["uid"] != work.uid:
            return None
        if ("deletionTimestamp" in pod["metadata"]) != deleting:
            return None
        return pod if self._alive(pod["spec"]["nodeName"]) else None

    def _write_ready(self, work: PodWork, pod: Obj) -> None:
        self._write(work, ready_status(pod, self._environment.now()))

    def _write(self, work: PodWork, status: Obj) -> None:
        patch = {"metadata": {"uid": work.uid}, "status": status}
        self._store.patch(PODS, work.namespace, work.name, patch, subresource="status")


def _until_told(_pod: Obj) -> timedelta | None:
    return None


def _address(count: int) -> str:
    return f"10.{count >> 16 & 255}.{count >> 8 & 255}.{count & 255}"
