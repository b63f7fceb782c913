"""What odd objects may do to a small cluster that they have nothing to do with: nothing.

The cluster has a node in service, one that drains with a protected pod on it, one that is
unhealthy, and a pod that waits for a node. Odd objects come and go beside it, and after each:

1. no evaluation fails, neither of an object nor as a whole, and every object can be read;
2. every verdict on the cluster's own objects is what it was before;
3. now and then, what was evaluated step by step is what is evaluated from nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.decision import Concern, Verdict
from tenure.core.policy.deciders import UNMOVED, decide_all, deciders
from tenure.core.policy.readers import READERS
from tenure.core.poolpolicy.govern import govern
from tenure.core.reasons import Reason
from tenure.model.api import names
from tenure.model.api.meta import ApiObject
from tenure.model.api.resource import Resource
from tenure.model.settings import Settings
from tenure.model.snapshot.kinds import decode
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Change, Snapshot, Tables
from tenure.model.snapshot.unreadable import unreadable_object
from tenure.providers.kwok.repairs import kwok_statements
from tenure.runtime.evaluate.evaluator import Evaluator
from tests.core.build import (
    NOW,
    a_claim,
    a_class,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pending_pod,
    a_pod,
    a_pool,
    condition,
    types,
)
from tests.snapshots import RESOURCE_OF, snapshot_with

SETTINGS: Final = Settings()
OBSERVATIONS: Final = Observations(
    repair_statements=kwok_statements(timedelta(minutes=10)), instance_types=types()
)
#: How far apart the turns are: retries and rechecks come about, too.
STEP: Final = timedelta(milliseconds=50)
#: After so many objects everything is evaluated from nothing and compared.
IN_FULL_EVERY: Final = 200
#: So many bytes of an object are shown in a finding.
RAW_MAX: Final = 3000
#: So many odd objects are there at once.
STAYING_MAX: Final = 60


def the_cluster() -> list[ApiObject]:
    not_ready = condition("Ready", "False", "KubeletNotReady", at=NOW - timedelta(hours=1))
    only_here = {"node_selector": {names.NODEPOOL: "general"}}
    return [
        a_class(),
        a_pool(),
        a_claim("a"),
        a_node("node-a", claim="a"),
        a_pod("web", node="node-a"),
        a_leaving_claim("b"),
        a_leaving_node("node-b", claim="b"),
        a_pod("kept", node="node-b", protected="true"),
        a_claim("c"),
        a_node("node-c", claim="c", ready=False, status={"conditions": (not_ready,)}),
        a_pending_pod("waiting", requests={"cpu": "2"}, spec=only_here),
        a_pending_pod("second", requests={"cpu": "2"}, spec=only_here),
    ]


class Finding(msgspec.Struct, frozen=True):
    what: str
    about: str

    def __str__(self) -> str:
        return f"{self.about}: {self.what}"


class Bystanders:
    def __init__(self) -> None:
        self._tables = Tables(READERS, govern=govern)
        self._evaluator = Evaluator(deciders(SETTINGS), SETTINGS, unmoved=UNMOVED)
        self._now: datetime = NOW
        first = [self._tables.put(RESOURCE_OF[type(item)], item) for item in the_cluster()]
        self._own = {f"{RESOURCE_OF[type(item)].kind}/{item.key}" for item in the_cluster()}
        self._evaluator.evaluate(self._snapshot(), first, (), self._now)
        self._usual = self._said()
        assert not self._evaluator.failing()
        assert {Reason.PROTECTED, Reason.IN_SERVICE} <= {said[0] for said in self._usual.values()}
        self._seen = 0
        self._staying: list[tuple[Resource, str]] = []

    def meet(self, resource: Resource, versions: Iterable[bytes]) -> list[Finding]:
        """The object in each of these versions, and then without it."""
        found: list[Finding] = []
        item = None
        for raw in versions:
            item = decode(resource, raw)
            about = f"{resource.kind} {item.key} {raw[:RAW_MAX]!r}"
            found += self._turn([self._tables.put(resource, item)], about)
            if (why := self._tables.unreadable.get((resource, item.key))) is not None:
                found.append(Finding(str(unreadable_object(why)), f"{resource.kind} {item.key}"))
        if item is not None:
            gone = self._tables.remove(resource, item.key)
            found += self._turn([gone], f"{resource.kind} {item.key}, gone")
        return found

    def stay(self, resource: Resource, raw: bytes) -> list[Finding]:
        """The object stays beside those that come later, until many others do."""
        item = decode(resource, raw)
        changes = [self._tables.put(resource, item)]
        self._staying.append((resource, item.key))
        if len(self._staying) > STAYING_MAX:
            changes.append(self._tables.remove(*self._staying.pop(0)))
        return self._turn(changes, f"{resource.kind} {item.key}, to stay")

    def _turn(self, changes: list[Change], about: str) -> list[Finding]:
        self._now += STEP
        snapshot = self._snapshot()
        self._evaluator.evaluate(snapshot, changes, (), self._now)
        self._evaluator.take_ended()
        found = [*self._failures(), *self._differences()]
        self._seen += 1
        if self._seen % IN_FULL_EVERY == 0:
            found += self._in_full(snapshot)
        return [Finding(what, about) for what in found]

    def _failures(self) -> Iterator[str]:
        yield from (verdict.message for verdict in self._evaluator.failing())
        for verdict in self._evaluator.in_force():
            if verdict.reason is Reason.EVALUATION_FAILED:
                yield verdict.message

    def _differences(self) -> Iterator[str]:
        now = self._said()
        for name in self._usual.keys() | now.keys():
            before, after = self._usual.get(name), now.get(name)
            if before != after and not (_placed(before) and _placed(after)):
                yield f"{name} was {self._usual.get(name)}, and is {now.get(name)}"
        self._usual = now

    def _in_full(self, snapshot: Snapshot) -> Iterator[str]:
        full = [v for d in deciders(SETTINGS) for v in decide_all(d, snapshot, SETTINGS, self._now)]
        if _shown(full) != _shown(self._evaluator.in_force()):
            missing = set(_shown(full)) ^ set(_shown(self._evaluator.in_force()))
            yield f"evaluated step by step differs from evaluated in full: {sorted(missing)[:4]}"

    def _said(self) -> dict[tuple[Concern, str], tuple[Reason, str]]:
        """Of the cluster's own objects; how many pods share a new claim is no difference."""
        return {
            (v.concern, str(v.subject)): (v.reason, type(v.action).__name__)
            for v in self._evaluator.in_force()
            if str(v.subject) in self._own
        }

    def _snapshot(self) -> Snapshot:
        return Snapshot(self._tables, OBSERVATIONS, ours=snapshot_with().ours)


def _placed(said: tuple[Reason, str] | None) -> bool:
    """Which node a pod gets depends on all nodes and daemons; that it gets one does not."""
    return said is not None and said[0] in (Reason.NOMINATED, Reason.SCHEDULER_DISAGREES)


def _shown(verdicts: Iterable[Verdict]) -> list[str]:
    return sorted(
        f"{v.concern} {v.subject} {v.reason} {type(v.action).__name__} {v.message}"
        for v in verdicts
    )
