"""What there is to explain: a look at a cluster, and what Tenure concludes from it."""

from __future__ import annotations

from datetime import datetime

import msgspec

from tenure.core.decision import Subject, Verdict
from tenure.model.api.meta import ApiObject
from tenure.model.api.resource import Resource
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.runtime.clock.facts import ClockSkewed
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.evaluate.verdicts import VerdictsInForce
from tenure.runtime.executor.clockblocker import blocked_by_clock


class ClockBlocker(msgspec.Struct, frozen=True):
    #: Whose clock is wrong, and by how much.
    off: str
    #: The Lease of the replica, or the replica itself.
    holder: Subject

    def __str__(self) -> str:
        return str(ClockSkewed(self.off))


class EvaluatedCluster(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    snapshot: Snapshot
    #: Or its verdicts, for a thread beside the loop.
    evaluator: Evaluator | VerdictsInForce
    #: By which it was evaluated.
    settings: Settings = Settings()
    #: The same instant in other words, if there are any: how long after the start.
    also_at: str = ""
    #: Which clock ``at`` is of, where it is not that of this machine; empty where it is.
    clock: str = ""
    #: Which replica acts on the cluster, in words; empty where that is no question.
    leader: str = ""
    #: Whose clock blocks every action that takes away, and how it is off; None: no replica's does.
    clock_blocker: ClockBlocker | None = None

    def about(self, resource: Resource, item: ApiObject) -> list[Verdict]:
        """The verdicts on an object, the governing one first, as the replica that acts treats them."""
        found = self.evaluator.about(resource.kind, item.name, item.namespace)
        return [self._with_clock(verdict) for verdict in found]

    def in_force(self) -> list[Verdict]:
        """All of them."""
        return [self._with_clock(verdict) for verdict in self.evaluator.in_force()]

    def _with_clock(self, verdict: Verdict) -> Verdict:
        blocker = self.clock_blocker
        return (
            verdict if blocker is None else blocked_by_clock(verdict, blocker.off, blocker.holder)
        )

    def find(self, resource: Resource, namespace: str, name: str) -> ApiObject | None:
        """Also one that cannot be read."""
        key = f"{namespace}/{name}" if namespace else name
        known: ApiObject | None = self.snapshot.objects(resource).get(key)
        return known

    def names(self, resource: Resource, namespace: str) -> list[str]:
        """Of that namespace, if the kind has one."""
        objects = self.snapshot.objects(resource).values()
        return sorted(item.name for item in objects if item.namespace == namespace)

    def elsewhere(self, resource: Resource, namespace: str) -> list[tuple[str, str]]:
        """Namespace and name of what is in other namespaces."""
        objects = self.snapshot.objects(resource).values()
        return sorted((one.namespace, one.name) for one in objects if one.namespace != namespace)
