"""Which disruption budget covers which pod, with the numbers kept as pods come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from tenure.model.api.pod import LabelSelector
from tenure.model.matching.selectors import matches
from tenure.sim.actors.workloads.ownedpods import controller_of, is_ready
from tenure.sim.apiserver.objects.tree import Obj

_LABELS_REMEMBERED: Final = 1000

#: Kind, namespace and name of a workload.
Owner = tuple[str, str, str]


class Member(msgspec.Struct, frozen=True):
    """A pod as budgets see it; most of its updates change none of this."""

    labels: Mapping[str, str]
    healthy: bool
    leaving: bool
    owner: Owner | None

    @classmethod
    def of(cls, pod: Obj) -> Member:
        metadata, owner = pod["metadata"], controller_of(pod)
        leaving = "deletionTimestamp" in metadata
        return cls(
            labels=metadata.get("labels") or {},
            healthy=not leaving and is_ready(pod),
            leaving=leaving,
            owner=(owner["kind"], metadata["namespace"], owner["name"]) if owner else None,
        )


class CoveredPods:
    """The pods that one PDB covers, with the numbers that change with every one of them."""

    def __init__(self, spec: Obj) -> None:
        self.spec = spec
        #: No selector covers nothing, an empty one everything.
        self._selector = msgspec.convert(spec.get("selector"), LabelSelector | None)
        self.pods: dict[str, Member] = {}
        self.healthy = 0
        self.owners: Counter[Owner] = Counter()
        #: The status that we wrote last, to know our own words when we hear them.
        self.written: Obj | None = None

    def covers(self, labels: Mapping[str, str]) -> bool:
        return matches(self._selector, labels)

    def put(self, name: str, pod: Member | None) -> None:
        """Take the pod's new state, or forget it."""
        before = self.pods.pop(name, None)
        if before is not None:
            self._count(before, -1)
        if pod is not None:
            self.pods[name] = pod
            self._count(pod, +1)

    def _count(self, pod: Member, sign: int) -> None:
        self.healthy += sign * pod.healthy
        if pod.owner is not None:
            self.owners[pod.owner] += sign
            if not self.owners[pod.owner]:
                del self.owners[pod.owner]


class Namespace:
    """The budgets of one namespace, and which of them cover which pod."""

    def __init__(self) -> None:
        self.budgets: dict[str, CoveredPods] = {}
        self.pods: dict[str, Member] = {}
        #: Names of budgets by the labels they cover; equal pods are many, labels few.
        self._covering: dict[tuple[tuple[str, str], ...], list[str]] = {}

    def begin(self, name: str, spec: Obj) -> None:
        """A new budget, or a new selector of an old one."""
        self._covering.clear()
        budget = self.budgets[name] = CoveredPods(spec)
        for pod, member in self.pods.items():
            if budget.covers(member.labels):
                budget.put(pod, member)

    def end(self, name: str) -> None:
        self._covering.clear()
        del self.budgets[name]

    def put(self, pod: str, member: Member | None) -> list[str]:
        """Take a pod's new state; the budgets that it concerns."""
        before = self.pods.get(pod)
        if member == before:
            return []
        concerned: dict[str, None] = {}
        if before is not None:
            del self.pods[pod]
            for name in self.covering(before.labels):
                self.budgets[name].put(pod, None)
                concerned[name] = None
        if member is not None:
            self.pods[pod] = member
            for name in self.covering(member.labels):
                self.budgets[name].put(pod, member)
                concerned[name] = None
        return [*concerned]

    def covering(self, labels: Mapping[str, str]) -> list[str]:
        key = tuple(sorted(labels.items()))
        names = self._covering.get(key)
        if names is None:
            if len(self._covering) >= _LABELS_REMEMBERED:
                self._covering.clear()
            names = [name for name, budget in self.budgets.items() if budget.covers(labels)]
            self._covering[key] = names
        return names
