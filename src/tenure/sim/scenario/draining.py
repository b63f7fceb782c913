"""The verb ``drain``: what ``kubectl drain --ignore-daemonsets --delete-emptydir-data --force`` does.

The Node is cordoned, then every pod on it is evicted but mirror pods and those of DaemonSets. An
eviction that a PDB refuses is tried again every five seconds; pods that come later are left alone,
as kubectl leaves them. It ends when all of these pods are gone, when the Node is, or at its time-out,
and says which.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import msgspec

from tenure.errors import ApiError, NotFound
from tenure.model.api import resource as r
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.scenario.actions import Cordon, subject_of
from tenure.sim.scenario.context import ScenarioContext, span
from tenure.sim.scenario.targets import Target

#: As kubectl waits between two evictions of one pod.
RETRY: Final = timedelta(seconds=5)
#: How often it is looked whether the last pod has stopped; kubectl polls as often.
_LOOK: Final = timedelta(seconds=1)
_MIRROR: Final = "kubernetes.io/config.mirror"


class Drain(msgspec.Struct, frozen=True):
    target: Target
    #: None: never.
    timeout: timedelta | None

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        node = context.found(self.target)
        Cordon(self.target, closed=True).do(context)
        pods = [pod for pod in context.pods_on(node["metadata"]["name"]) if _is_evicted(pod)]
        _Draining(context, node, pods, self.timeout).begin()
        names = ", ".join(_named(pod) for pod in pods) or "none"
        return subject_of(node), f"cordoned; evicting {len(pods)} pods: {names}"


def _is_evicted(pod: Obj) -> bool:
    metadata = pod["metadata"]
    if _MIRROR in (metadata.get("annotations") or {}):
        return False
    owners = metadata.get("ownerReferences") or ()
    return not any(owner["kind"] == r.DAEMON_SETS.kind for owner in owners)


def _named(pod: Obj) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


class _Draining:
    """A drain under way."""

    def __init__(
        self, context: ScenarioContext, node: Obj, pods: list[Obj], timeout: timedelta | None
    ) -> None:
        self._context, self._node = context, node
        self._timeout = timeout
        self._began_at = context.now
        #: By UID: a pod of the same name that comes later is another one.
        self._left = {pod["metadata"]["uid"]: pod for pod in pods}
        self._count = len(pods)
        self._asked: set[str] = set()
        self._refused: set[str] = set()
        self._next_try = context.now

    def begin(self) -> None:
        self._context.world.environment.soon(self._turn)

    def _turn(self) -> None:
        self._left = {uid: pod for uid, pod in self._left.items() if self._is_there(uid, pod)}
        now, name = self._context.now, self._node["metadata"]["name"]
        took = span(now - self._began_at)
        node = self._context.store.find(r.NODES, "", name)
        if not self._left:
            return self._say(f"drained after {took}: {self._count} pods evicted")
        if node is None or node["metadata"]["uid"] != self._node["metadata"]["uid"]:
            return self._say(f"the Node is gone after {took}; {len(self._left)} pods were left")
        if self._timeout is not None and now >= self._began_at + self._timeout:
            left = ", ".join(_named(pod) for pod in self._left.values())
            return self._say(f"the drain ends after its timeout of {took}; pods left: {left}")
        if now >= self._next_try:
            self._evict()
            self._next_try = now + RETRY
        self._context.world.environment.after(_LOOK, self._turn)
        return None

    def _is_there(self, uid: str, pod: Obj) -> bool:
        metadata = pod["metadata"]
        found = self._context.store.find(r.PODS, metadata["namespace"], metadata["name"])
        return found is not None and found["metadata"]["uid"] == uid

    def _evict(self) -> None:
        for uid, pod in self._left.items():
            if uid in self._asked:
                continue
            metadata = pod["metadata"]
            try:
                self._context.store.evict(metadata["namespace"], metadata["name"], uid=uid)
                self._asked.add(uid)
            except NotFound:
                self._asked.add(uid)
            except ApiError as error:
                self._on_refusal(uid, pod, error)

    def _on_refusal(self, uid: str, pod: Obj, error: ApiError) -> None:
        """Said once for each pod: it is tried again until it leaves."""
        if uid not in self._refused:
            self._refused.add(uid)
            why = "; ".join(cause.message for cause in error.causes) or error.message
            self._say(
                f"cannot evict pod {_named(pod)} yet: {why.rstrip('.')}; tried every {span(RETRY)}"
            )

    def _say(self, message: str) -> None:
        self._context.world.history.note("script", subject_of(self._node), "drain", message)
