"""Watches that nothing happens which must never happen, on the true state.

The guard asks ``tenure.safety`` about Tenure's view. This computes the same promises by arithmetic
of its own, from the store and the cloud themselves, at the very instant of the change: code that is
shared would share its faults. ``RULES`` lists them, and ``asked`` counts how often each was asked.

A change that a user makes by hand (a finalizer taken off, an instance lost) is no violation; what
Tenure makes of it may be one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec

from tenure.model.api import resource as r
from tenure.model.api.meta import later, read_instant
from tenure.model.api.names import FINALIZER
from tenure.model.settings import Settings
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.routes import Route
from tenure.sim.apiserver.store.store import Store
from tenure.sim.check import read
from tenure.sim.check.choices import occupies
from tenure.sim.check.departures import Departure
from tenure.sim.check.drifts import Drifts
from tenure.sim.check.instances import InstanceChecks
from tenure.sim.check.pods import PodChecks
from tenure.sim.check.promises import (
    beyond_levers,
    finalizers,
    is_meant,
    is_same_version,
    is_users_status,
    karpenter_repairs,
)
from tenure.sim.check.recent import Recent
from tenure.sim.check.replacements import Replacements
from tenure.sim.check.rules import Violation, Violations
from tenure.sim.check.starts import Starts
from tenure.sim.check.truth import Truth
from tenure.sim.cloud.cloud import SimulatedCloud
from tenure.sim.virtual.environment import Environment

SECOND: Final = timedelta(seconds=1)
#: How long after it has left a call may be carried out. What is closed by the clock meanwhile cannot be known.
ON_ITS_WAY: Final = timedelta(seconds=5)
#: Pods that have run for longer are in the list that Tenure makes right before it deletes a claim, however
#: late its watches are: the deletion leaves after the list, and takes no longer than this.
LISTED: Final = timedelta(seconds=15)


class Checkers:
    def __init__(
        self,
        environment: Environment,
        store: Store,
        cloud: SimulatedCloud,
        settings: Settings,
        report: Callable[[Violation], object] = lambda _: None,
        *,
        clock_offset: Callable[[], timedelta] = timedelta,
    ) -> None:
        """``clock_offset``: how far the clock of Tenure's machine is ahead of the true time."""
        self._environment, self._store, self._cloud = environment, store, cloud
        self._truth, self._violations = Truth(store, cloud), Violations(environment, report)
        self._check = self._violations.check
        #: Of the Tenure that runs now.
        self.settings = settings
        self._clock_offset = clock_offset
        #: How far Tenure may have been ahead or behind (negative) in what it does now; no more than
        #: ``--clock-skew-max``.
        self._ahead = self._behind = timedelta(0)
        self.recent = Recent(environment, store)
        self._starts = Starts()
        self._drifts = Drifts(environment, store, cloud)
        self._pods = PodChecks(self._truth, self.recent, self._violations)
        self.instances = InstanceChecks(
            environment, store, cloud, lambda: self.settings, self.recent, self._violations
        )
        for resource in (r.NODE_POOLS, r.NODE_POOL_POLICIES):
            store.subscribe(resource, self._budgets_changed)
        Replacements(environment, store, partial(self._check, "idle replacement"))

    @property
    def violations(self) -> list[Violation]:
        return self._violations.found

    @property
    def asked(self) -> Counter[str]:
        """How often each rule was asked."""
        return self._violations.asked

    def assert_kept(self) -> None:
        """For tests: every promise was kept so far."""
        assert not self.violations, "\n".join(
            f"{v.at:%H:%M:%S} {v.rule}: {v.message}" for v in self.violations
        )

    def _budgets_changed(self, _type: str, changed: Obj, _old: Obj | None) -> None:
        """Of a pool, or of the pools of a policy."""
        for pool in self._truth.pools():
            if changed["kind"] == r.NODE_POOL_POLICIES.kind or _is_same(pool, changed):
                self._starts.pool_changed(pool)

    # -- Tenure's requests, shown by the API's door ------------------------------------

    def will_write(self, method: str, target: Route, body: Any) -> None:
        """A request of Tenure's is about to be carried out."""
        # A call that left while the clock was ahead may arrive when it is right again.
        offset, most = self._clock_offset(), self.settings.clock_skew_max
        self._ahead = max(self._ahead, min(offset, most))
        self._behind = min(self._behind, max(offset, -most))
        if self.settings.beside_karpenter:
            self._beside(method, target, body)
            return
        if target.resource == r.PODS:
            now = later(self._environment.now(), self._ahead)
            self._pods.written(method, target, body, self.settings, now)
            return
        self._check("foreign write", self._foreign(method, target, body))
        if target.resource == r.NODE_CLAIMS and method == "POST":
            self._drifts.creating(body, self.recent.past())
        stored = self._truth.stored(target)
        if stored is None or method == "POST":
            return
        if method == "DELETE" and is_meant(stored, body):
            if target.resource == r.NODE_CLAIMS:
                self._delete_claim(stored)
            elif target.resource == r.NODES:
                self._check("early Node deletion", self._early_node(stored))
        elif target.resource == r.NODE_CLAIMS and is_same_version(stored, body):
            self._begin_command(stored, body)
            self._reboot(stored, body)
            self._set_deadline(stored, body)

    def _beside(self, method: str, target: Route, body: Any) -> None:
        """Beside Karpenter what ends a claim is asked about as without."""
        stored = self._truth.stored(target)
        self._check("beyond levers", beyond_levers(method, target, body, stored))
        if stored is None or target.resource != r.NODE_CLAIMS:
            return
        if method == "DELETE" and is_meant(stored, body):
            self._delete_claim(stored)
        elif method == "PATCH" and is_same_version(stored, body):
            self._set_deadline(stored, body)

    def has_written(self, target: Route, before: Obj | None) -> None:
        """A request of Tenure's has been carried out; ``before`` is what was there."""
        after = self._truth.stored(target)
        if after is not None and _version(after) != _version(before):
            self.recent.wrote(target.resource, after)  # Else it was refused.
        if before is None or target.resource not in (r.NODES, r.NODE_CLAIMS):
            return
        if FINALIZER not in finalizers(before):
            return
        if after is not None and target.resource == r.NODE_CLAIMS:
            self._starts.wrote(before, after, self.recent.past(), self._environment.now())
        if after is not None and FINALIZER in finalizers(after):
            return
        running = self._truth.has_instance(target.resource, before)
        what = f"the finalizer of {target.resource.kind} {target.name}"
        self._check("early release", f"{what} goes while its instance is there" if running else "")

    def _foreign(self, method: str, target: Route, body: Any) -> str:
        resource = target.resource
        ours = frozenset(kind.group_kind for kind in self._cloud.node_classes)
        if resource in (r.EVENTS, r.LEASES) or is_users_status(target):
            return ""
        given = body if method == "POST" else self._truth.stored(target)
        if given is None or resource.group_kind in ours:
            return ""  # Nothing is there to write to, or it is a node class.
        what = f"{method} {resource.kind} {target.name or dig(given, 'metadata', 'name')}"
        claim = self._truth.claim_of(given) if resource == r.NODES else None
        if resource == r.NODES and claim is None:
            mine = {f"{group}/{kind.lower()}" for group, kind in ours} & set(read.labels(given))
            return "" if mine else f"{what}: it belongs to no claim of ours"
        if resource == r.NODE_POOLS:
            ref = dig(given, "spec", "template", "spec", "nodeClassRef")
        elif resource in (r.NODE_CLAIMS, r.NODES):
            ref = dig(claim or given, "spec", "nodeClassRef")
        else:
            return f"{what}: only claims, Nodes and pools are ours"
        if (dig(ref, "group"), dig(ref, "kind")) in ours:
            return ""
        return f"{what}: node class {dig(ref, 'kind')}.{dig(ref, 'group')} is not served here"

    # -- claims and Nodes that go ------------------------------------------------------

    def _delete_claim(self, claim: Obj) -> None:
        """A rule is broken that no state keeps which Tenure may still see."""
        if read.is_leaving(claim):
            return
        departure = self._departure(claim)
        pods = tuple(self._known_pods(claim, min(LISTED, self.recent.late)))
        self._ask_all(msgspec.structs.replace(departure, pods=pods), "is deleted")

    def _begin_command(self, claim: Obj, body: Any) -> None:
        annotations = dig(body, "metadata", "annotations") or {}
        mark, reason = "karpenter.sh/replaced-by", "karpenter.sh/disruption-reason"
        if annotations.get(mark) is None or read.annotation(claim, mark) is not None:
            return
        now = self._departure(claim)
        planned = msgspec.structs.replace(
            now,
            begins=annotations.get(reason) or "Unhealthy",
            together=frozenset(now.replaced_by(annotations[mark])),
        )
        self._ask_all(planned, "is to be replaced")

    def _reboot(self, claim: Obj, body: Any) -> None:
        """A reboot begins, or its drain is over and the cloud is asked next."""
        said = {(c["type"], c["status"]) for c in dig(body, "status", "conditions") or ()}
        begins = ("Rebooting", "True") in said and not read.says(claim, "Rebooting")
        drained = ("RebootIssued", "Unknown") in said
        drained = drained and not read.says(claim, "RebootIssued", "Unknown")
        if begins or drained:
            bound = read.annotation(claim, "karpenter.sh/reboot-termination-grace-period")
            reboot = msgspec.structs.replace(
                self._departure(claim),
                begins="Unhealthy",
                unpaced=read.span(bound) == timedelta(),
                drained=not begins,
            )
            self._ask_all(reboot, "is to be rebooted")

    def _ask_all(self, departure: Departure, what: str) -> None:
        name = departure.claim["metadata"]["name"]
        for rule, sentence in departure.answers():
            broken = sentence and not self._was_kept(rule, departure)
            self._check(rule, f"claim {name} {what}: {sentence}" if broken else "")

    def _departure(self, claim: Obj) -> Departure:
        # Beside Karpenter its instance is in a cloud that is not known here.
        beside, gates = self.settings.beside_karpenter, self.settings.karpenter_feature_gates
        return Departure(
            claim=claim,
            starts=self._starts.of(self._truth.pool_of(claim)),
            state=self.recent.now(),
            now=self._environment.now(),
            settings=self.settings,
            statements=self._cloud.repair_statements,
            has_instance=beside or self._truth.has_instance(r.NODE_CLAIMS, claim),
            left=beside and karpenter_repairs(gates, self._store.list(r.DEPLOYMENTS)),
            interrupted=dig(claim, "status", "providerID") in self._interruptions,
            pods=tuple(self._known_pods(claim, self.recent.late)),
            nominated=tuple(self._nominated(claim)),
            differs=self._drifts.differs,
        )

    def _known_pods(self, claim: Obj, lately: timedelta) -> Iterator[Obj]:
        """The pods on its Nodes, but those that came so lately that Tenure may not know of them."""
        nodes = {node["metadata"]["name"] for node in self._truth.nodes_of(claim)}
        now = self._environment.now()
        for pod in self._truth.pods():
            came = read.instant(pod, "status", "startTime")
            known = came is not None and now - came > lately
            if known and dig(pod, "spec", "nodeName") in nodes:
                yield pod

    def _nominated(self, claim: Obj) -> Iterator[str]:
        """Pods of Nodes that have been terminating for longer than a watch may be late."""
        uids = set((read.annotation(claim, "karpenter.sh/nominated-pods") or "").split(","))
        nodes, now = self._truth.nodes(), self._environment.now()
        for pod in self._truth.pods():
            if pod["metadata"]["uid"] not in uids or not occupies(pod):
                continue
            node = nodes.get(dig(pod, "spec", "nodeName") or "")
            since = read.instant(node or {}, "metadata", "deletionTimestamp")
            if since is not None and now - since > self.recent.late:
                yield pod["metadata"]["name"]

    def _was_kept(self, rule: str, departure: Departure) -> bool:
        """In a state that Tenure may still have seen, and by a clock that it may have had when the
        call left."""
        now = departure.now
        offsets = (timedelta(), self._ahead, self._behind)
        clocks = {later(at, by) for at in (now, later(now, -ON_ITS_WAY)) for by in offsets}
        for state in self.recent.seen():
            seen = (msgspec.structs.replace(departure, state=state, now=at) for at in clocks)
            if any(not dict(one.answers()).get(rule) for one in seen):
                return True
        return False

    def _early_node(self, node: Obj) -> str:
        claim = self._truth.claim_of(node)
        if claim is None or read.is_leaving(claim):
            return ""
        name = claim["metadata"]["name"]
        return f"Node {node['metadata']['name']} is deleted while its claim {name} stays"

    def _set_deadline(self, claim: Obj, body: Any) -> None:
        annotations = dig(body, "metadata", "annotations") or {}
        if read.STAMP not in annotations:
            return
        written, known = read_instant(annotations[read.STAMP] or ""), read.deadline(claim)
        what = f"the deadline of claim {claim['metadata']['name']}"
        put_off = known is not None and (written is None or written > known + SECOND)
        self._check("deadline put off", f"{what} was {known}, and is {written}" if put_off else "")
        if annotations.get(read.INTERRUPTION) is not None:
            why = self._unfounded_interruption(claim, written)
            self._check("unfounded deadline", f"{what} is {written}: {why}" if why else "")
            return
        now = self._environment.now()
        if written is None or written > now or read.is_leaving(claim):
            return
        # A stamp that is over by now is half of a deletion by force.
        departure = self._departure(claim)
        rule = "unfounded deletion"
        why = dict(departure.answers()).get(rule, "")
        wrong = why and not self._was_kept(rule, departure)
        self._check("unfounded deadline", f"{what} is {written}: {why}" if wrong else "")

    @property
    def _interruptions(self) -> Mapping[str, datetime | None]:
        return self._cloud.announcements.interruptions

    def _unfounded_interruption(self, claim: Obj, written: datetime | None) -> str:
        """A deadline for an interruption is the instant that the cloud announced."""
        provider_id = dig(claim, "status", "providerID") or ""
        if provider_id not in self._interruptions:
            return "the cloud has not announced that it takes the instance back"
        announced = self._interruptions[provider_id]
        if announced is None or written is None or written > announced - SECOND:
            return ""
        return f"the cloud takes the instance at {announced}"


def _is_same(one: Obj, other: Obj) -> bool:
    return bool(one["metadata"]["uid"] == other["metadata"]["uid"])


def _version(obj: Obj | None) -> str:
    return dig(obj, "metadata", "resourceVersion") or ""
