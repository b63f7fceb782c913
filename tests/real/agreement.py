"""Whether kube-scheduler does what was planned: counts the pods for which it did not.

A pod *disagrees* when

1. it is left pending;
2. a node was launched for it, and later one more: a second claim names it;
3. it was to fit a node that existed or was on its way, and later a node was launched for it. The log of Tenure
   says so.

A pod that is bound elsewhere than planned, and for which nothing more is launched, agrees: pods of one workload are
alike, and which of them gets which node makes no difference to anyone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any, Final

import msgspec

from tenure.errors import TenureError
from tenure.model.api.names import NOMINATED_PODS
from tenure.model.api.resource import DEPLOYMENTS, NODE_CLAIMS, PODS, STATEFUL_SETS, Resource
from tests.builders import Manifest
from tests.real.randomworkloads import a_round, kind_of
from tests.real.users import Json, Users

#: Seconds without a pod that is bound or a claim that comes, after which pending pods are left.
QUIET: Final = 60.0
LOOK_EVERY: Final = 0.25
#: Rounds in one namespace.
ROUNDS_EACH: Final = 4


class Disagreement(msgspec.Struct, frozen=True):
    pod: str
    kind: str
    #: Those that named the pod, in the order in which they were created.
    claims: tuple[str, ...]
    #: Where it was bound; empty if it is pending.
    node: str
    #: What kube-scheduler said of the pod last, before it was bound.
    said: str
    #: When it was nominated to which node, and bound.
    story: tuple[str, ...] = ()
    #: Pods on the first of these nodes that were not planned there.
    instead: tuple[str, ...] = ()

    def __str__(self) -> str:
        end = f"bound to {self.node}" if self.node else "left pending"
        return f"{self.pod}: {' → '.join(self.claims) or 'no claim'}, {end}: {self.said}" + "".join(
            f"\n    {line}" for line in (*self.story, f"instead: {', '.join(self.instead)}")
        )


class Agreement:
    """Watches pods and claims from the beginning on."""

    def __init__(self, *users: Users) -> None:
        self._users = users[0]
        self._namespaces = {each.namespace for each in users}
        #: By UID, as they were last seen; those that are gone included.
        self.pods: dict[str, Json] = {}
        self.claims: dict[str, Json] = {}
        #: Of each pod, by UID: when it was nominated to which node, and bound.
        self.stories: dict[str, list[str]] = {}
        #: What the scheduler said last of a pod, by UID.
        self._said: dict[str, str] = {}
        #: Those that were pending when nothing happened any more, whatever became of them later.
        self._late: set[str] = set()
        self._changed_at = time.monotonic()

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        tasks = [
            asyncio.create_task(self._follow(PODS, self.pods)),
            asyncio.create_task(self._follow(NODE_CLAIMS, self.claims)),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def settled(self, pods: int) -> None:
        """Until so many pods were seen in all and each is bound, or nothing happens any more."""
        self._changed_at = time.monotonic()
        while len(self._ours()) < pods or self._pending():
            if time.monotonic() - self._changed_at > QUIET:
                self._late |= {pod["metadata"]["uid"] for pod in self._pending()}
                return
            await asyncio.sleep(LOOK_EVERY)

    def disagreements(self) -> list[Disagreement]:
        named = self._named()
        pending = {pod["metadata"]["uid"] for pod in self._pending()}
        return [
            Disagreement(
                pod["metadata"]["name"],
                kind_of(pod["metadata"]["name"]),
                tuple(named.get(uid, ())),
                pod["spec"].get("nodeName", ""),
                self._said.get(uid, ""),
                tuple(self.stories.get(uid, ())),
                tuple(self._instead(named.get(uid, [])[:1])),
            )
            for uid, pod in self._ours().items()
            if len(named.get(uid, ())) > 1 or uid in pending | self._late
        ]

    def story_of(self, name: str) -> Iterator[str]:
        """When a pod of this name was nominated to which node and bound, and what kube-scheduler said."""
        for uid, pod in self._ours().items():
            if pod["metadata"]["name"] == name:
                yield from self.stories.get(uid, ())

    def _instead(self, claims: Iterable[str]) -> Iterator[str]:
        for claim in self.claims.values():
            if claim["metadata"]["name"] not in claims:
                continue
            node = claim.get("status", {}).get("nodeName", "")
            planned = claim["metadata"]["annotations"][NOMINATED_PODS].split(",")
            for uid, pod in self.pods.items():
                if _node(pod) == node and uid not in planned:
                    priority = pod["spec"].get("priority", 0)
                    yield f"{pod['metadata']['name']} ({priority})"

    def _ours(self) -> dict[str, Json]:
        ours = self._namespaces
        return {uid: p for uid, p in self.pods.items() if p["metadata"]["namespace"] in ours}

    def _pending(self) -> list[Json]:
        return [
            pod
            for pod in self._ours().values()
            if not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
        ]

    def _named(self) -> dict[str, list[str]]:
        """By pod UID: the claims that were created for it."""
        found: dict[str, list[str]] = {}
        made = sorted(self.claims.values(), key=lambda c: c["metadata"]["creationTimestamp"])
        for claim in made:
            named = claim["metadata"].get("annotations", {}).get(NOMINATED_PODS, "")
            for uid in filter(None, named.split(",")):
                found.setdefault(uid, []).append(claim["metadata"]["name"])
        return found

    async def _follow(self, resource: Resource, known: dict[str, Json]) -> None:
        client = self._users.client
        while True:
            with suppress(TenureError):
                items, version = await client.list_all(resource)
                for each in map(msgspec.json.decode, items):
                    self._note(known, each)
                async for line in await client.watch(resource, version):
                    event = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        break
                    if event["type"] != "BOOKMARK":
                        self._note(known, event["object"], gone=event["type"] == "DELETED")
            await asyncio.sleep(LOOK_EVERY)

    def _note(self, known: dict[str, Json], thing: Json, *, gone: bool = False) -> None:
        uid = thing["metadata"]["uid"]
        before = known.get(uid)
        if known is self.pods:
            self._tell(uid, before or {}, thing)
        if gone:
            thing["metadata"].setdefault("deletionTimestamp", "gone")
        known[uid] = thing
        if before is None or _node(before) != _node(thing):
            self._changed_at = time.monotonic()
        if said := _scheduler_says(thing):
            self._said[uid] = said

    def _tell(self, uid: str, before: Json, pod: Json) -> None:
        """What became of the pod, one line for each change of its node and its nomination."""
        was, is_ = (
            (_node(one), one.get("status", {}).get("nominatedNodeName", ""))
            for one in (before, pod)
        )
        at = time.strftime("%H:%M:%S") + f".{int(time.time() * 1000) % 1000:03}"
        story = self.stories.setdefault(uid, [])
        if was != is_:
            story.append(f"{at} node {is_[0]!r} nominated {is_[1]!r}")
        if (said := _scheduler_says(pod)) and said != self._said.get(uid):
            story.append(f"{at} kube-scheduler: {said}")


def _node(thing: Json) -> str:
    return str(thing.get("spec", {}).get("nodeName", ""))


def _scheduler_says(pod: Json) -> str:
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message", ""))
    return ""


def launched_after_all(log: Iterable[Json]) -> dict[str, str]:
    """By name of a pod: the node that it was to fit by a decision, and the claim that was created for it later.

    A decision creates claims: by it, every pod that waits has a place. What a pod fits while the batch is open is
    no plan yet.
    """
    fits: dict[str, str] = {}
    planned: dict[str, str] = {}
    found: dict[str, str] = {}
    for line in log:
        if line.get("concern") != "provisioning":
            continue
        name, because = line["subject"].rpartition("/")[2], line["because"]
        if line["reason"] == "NeededForPods" and line["message"] == "acted":
            planned |= fits
        elif not line["subject"].startswith("Pod/") or line["message"] != "verdict":
            continue
        elif because.startswith("fits "):
            fits[name] = because
        elif because.startswith("needs new ") and name in planned:
            found.setdefault(name, f"{planned[name]}, then {because}")
        else:
            fits.pop(name, None)
    assert planned, "the log says of no pod which node it fits: is its wording another one?"
    return found


class Rounds:
    """Random workloads, round by round: some of the older ones go, new ones come.

    They go within minutes, and so were their nodes launched in vain. The launch breaker allows a namespace a number of these
    an hour, so there is another namespace every few rounds.
    """

    def __init__(self, *users: Users, seed: int) -> None:
        self._users, self._random = users, Random(seed)
        self._there: list[tuple[Users, Resource, Manifest]] = []
        self._number = 0

    async def next(self, pods: int, *, leave: float = 0.4) -> int:
        """Begin one; how many pods come. ``leave``: the share of workloads that go first."""
        for gone in self._random.sample(self._there, int(leave * len(self._there))):
            await _delete(*gone)
            self._there.remove(gone)
        came, users = 0, self._users[self._number // ROUNDS_EACH % len(self._users)]
        for workload in a_round(self._random, self._number, pods):
            await users.apply(workload)
            kind = DEPLOYMENTS if workload["kind"] == "Deployment" else STATEFUL_SETS
            self._there.append((users, kind, workload))
            came += workload["spec"]["replicas"]
        self._number += 1
        return came


async def _delete(users: Users, resource: Resource, workload: Manifest) -> None:
    name, namespace = workload["metadata"]["name"], users.namespace
    found: dict[str, Any] = msgspec.json.decode(await users.client.get(resource, name, namespace))
    uid = found["metadata"]["uid"]
    await users.client.delete(resource, name, uid=uid, namespace=namespace)


def explained(disagreements: Iterable[Disagreement]) -> str:
    return "\n".join(map(str, disagreements)) or "none"
