"""Two stages for stories about the loop.

``Tapped`` is a whole embedded cluster with taps on Tenure's way to its API and cloud.
``Bench`` is a store and a controller whose only decider says what the story wants, so that
the executor can be shown actions that no real decider would ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

import msgspec

from tenure.core.decider import AnyDecider
from tenure.core.decision import Action, Concern, Evict, Subject, Verdict
from tenure.core.facts import Quoted
from tenure.core.reasons import Reason
from tenure.model.api.names import DISRUPTED_TAINT, FINALIZER
from tenure.model.api.resource import NODE_POOLS, NODES, PODS, Resource
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import EvictionAnswer
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.runtime.controller import Controller
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.history import Entry
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import World, WorldOptions
from tests.builders import a_node_class, a_pool
from tests.runtime.taps import tapped


class Switch:
    """A fence that a story opens and closes."""

    def __init__(self, why: str = "") -> None:
        self.why = why

    def closed(self) -> str:
        return self.why


class Tapped(Story):
    def __init__(self, *manifests: Mapping[str, Any], options: WorldOptions | None = None) -> None:
        super().__init__(*manifests, options=options)
        self.api_tap, self.cloud_tap = tapped(self)

    @property
    def seconds(self) -> float:
        return self.elapsed / timedelta(seconds=1)


def outcomes(world: World, subject: str = "", action: str = "") -> list[str]:
    """How Tenure's actions ended, in order."""
    return [entry.outcome for entry in acts(world, subject, action)]


def acts(world: World, subject: str = "", action: str = "") -> list[Entry]:
    return [
        entry
        for entry in world.history.entries
        if entry.ended is not None and subject in entry.subject and action in entry.action
    ]


class Wish(msgspec.Struct, frozen=True):
    verdict: Verdict
    answer: EvictionAnswer | None = None


class Wishes:
    """A decider that says what it is told to: one key, a verdict for each wish.

    It is a decider all the same: a pod that is leaving or gone is not asked again, and one
    that was refused is asked when the answer says so.
    """

    concern = Concern.DRAIN

    def __init__(self) -> None:
        self.verdicts: tuple[Verdict, ...] = ()

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return ("wishes",)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        return ("wishes",)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ("wishes",)

    def view(self, snapshot: Snapshot, key: str) -> tuple[Wish, ...]:
        return tuple(
            Wish(verdict, snapshot.observations.evictions.get(verdict.subject.uid))
            for verdict in self.verdicts
            if not isinstance(verdict.action, Evict) or _is_there(verdict.action, snapshot)
        )

    def decide(
        self, view: tuple[Wish, ...], settings: Settings, now: datetime
    ) -> Sequence[Verdict]:
        return [_granted(wish, now) for wish in view]


def _is_there(eviction: Evict, snapshot: Snapshot) -> bool:
    pod = snapshot.pods.get(f"{eviction.namespace}/{eviction.name}")
    return pod is not None and pod.uid == eviction.uid and not pod.deleting


def _granted(wish: Wish, now: datetime) -> Verdict:
    if wish.answer is None or now >= wish.answer.retry_at:
        return wish.verdict
    return msgspec.structs.replace(wish.verdict, action=None, recheck_at=wish.answer.retry_at)


class Bench(Tapped):
    """Nothing but what is wished happens here. It begins with a pool and its node class."""

    def __init__(self, settings: Settings | None = None, *manifests: Mapping[str, Any]) -> None:
        options = WorldOptions(settings=settings or Settings())
        self.wishes = Wishes()
        self.decider: AnyDecider = self.wishes
        self.fence = Switch()
        super().__init__(a_node_class(), a_pool(), *manifests, options=options)

    def _new_controller(self) -> Controller:
        return Controller(
            transport=self.transport,
            cloud=self.cloud_api,
            clock=self.environment.clock,
            journal=self.history,
            settings=self.options.settings,
            random=Random(1),
            fence=self.fence,
            choose=lambda _: (self.decider,),
            report=self.errors.append,
        )

    def wish(self, *actions: Action) -> None:
        """From now on these are asked for, until the story says otherwise."""
        self.wishes.verdicts = tuple(_verdict(action) for action in actions)
        self.controller.observations.noted.note(Subject("Wish", "new"))

    def the_pool(self) -> Obj:
        return self.store.get(NODE_POOLS, "", "general")

    def a_leaving_node(self, name: str = "leaving") -> None:
        """A node of ours that is being deleted and closed for new pods."""
        labels = {"karpenter.kwok.sh/kwoknodeclass": "default"}
        metadata = {"name": name, "labels": labels, "finalizers": [FINALIZER]}
        self.store.create(NODES, {"metadata": metadata, "spec": {}})
        taints = [{"key": DISRUPTED_TAINT, "effect": "NoSchedule"}]
        self.store.patch(NODES, "", name, {"spec": {"taints": taints}})
        self.store.delete(NODES, "", name)

    def pods_on(self, node: str, count: int, **labels: str) -> list[Evict]:
        """Pods that never stop by themselves, and the evictions that ask them to leave."""
        evictions = []
        for number in range(count):
            spec = {
                "containers": [{"name": "main", "image": "app"}],
                "nodeName": node,
                "tolerations": [{"operator": "Exists"}],  # No other controller evicts it.
            }
            metadata = {"name": f"pod-{number}", "namespace": "default", "labels": labels}
            pod = self.store.create(PODS, {"metadata": metadata, "spec": spec})
            uid = pod["metadata"]["uid"]
            evictions.append(Evict(name=f"pod-{number}", namespace="default", uid=uid))
        return evictions


def _verdict(action: Action) -> Verdict:
    name = getattr(action, "name", "") or getattr(action, "provider_id", "") or "new"
    uid = getattr(action, "uid", "")
    namespace = getattr(action, "namespace", "")
    kind = "Pod" if isinstance(action, Evict) else _kind(action)
    return Verdict(
        concern=Concern.DRAIN,
        subject=Subject(kind, name, namespace, uid),
        reason=Reason.EVICTING if isinstance(action, Evict) else Reason.LAUNCHING,
        facts=(Quoted("wished"),),
        action=action,
    )


def _kind(action: Action) -> str:
    resource: Resource | None = getattr(action, "resource", None)
    return resource.kind if resource is not None else type(action).__name__
