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
from tenure.model.api.meta import format_time, later, read_instant
from tenure.model.api.names import FINALIZER, NODEPOOL
from tenure.model.api.resource import Resource
from tenure.model.cloud.instance import Instance, InstanceState
from tenure.model.settings import Settings
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.routes import Route
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import ADDED, DELETED
from tenure.sim.check import read
from tenure.sim.check.choices import occupies
from tenure.sim.check.departures import Departure
from tenure.sim.check.drifts import Drifts
from tenure.sim.check.promises import (
    early_force,
    finalizers,
    is_meant,
    is_same_version,
    is_window_status,
    not_leaving,
    uncalled_reboot,
)
from tenure.sim.check.recent import Recent
from tenure.sim.check.replacements import Replacements
from tenure.sim.check.rules import RULES
from tenure.sim.check.starts import Starts
from tenure.sim.cloud.cloud import CloudEvent, SimulatedCloud
from tenure.sim.virtual.environment import Environment

#: Beyond grace and two periods: the way to the cloud and back, and a failed call or two.
SLACK: Final = timedelta(minutes=1)
SECOND: Final = timedelta(seconds=1)

#: After the deadline every pod has been deleted; then the instance goes, whatever is left.
LAST_MINUTE: Final = timedelta(minutes=1)


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A promise that was broken, and when."""

    at: datetime
    rule: str
    message: str


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
        #: Of the Tenure that runs now.
        self.settings = settings
        self._report = report
        self._clock_offset = clock_offset
        #: How far Tenure may have been ahead or behind (negative) in what it does now; no more than
        #: ``--clock-skew-max``.
        self._ahead = self._behind = timedelta(0)
        self._unclaimed: dict[str, datetime] = {}
        self._claim_uids: set[str] = set()
        self.recent = Recent(environment, store)
        self._starts = Starts()
        self._drifts = Drifts(environment, store, cloud)
        self.violations: list[Violation] = []
        #: How often each rule was asked.
        self.asked: Counter[str] = Counter()
        cloud.listen(self._on_instance)
        cloud.listen_for_reboot_calls(self._on_reboot_call)
        store.subscribe(r.NODE_CLAIMS, self._on_claim, replay=True)
        store.subscribe(r.NODE_POOLS, self._starts.pool_changed)
        Replacements(environment, store, partial(self._check, "idle replacement"))

    @property
    def allowance(self) -> timedelta:
        """How long an instance may be without a claim: garbage collection at its slowest."""
        settings = self.settings
        return settings.garbage_grace + 2 * settings.garbage_period + SLACK

    def tenure_started(self) -> None:
        """Garbage collection begins again: an instance is listed twice before it is ended."""
        now = self._environment.now()
        for provider_id in self._unclaimed:
            self._unclaimed[provider_id] = now
        if self._unclaimed:
            self._look_again()

    # -- Tenure's requests, shown by the API's door ------------------------------------

    def will_write(self, method: str, target: Route, body: Any) -> None:
        """A request of Tenure's is about to be carried out."""
        # A call that left while the clock was ahead may arrive when it is right again.
        offset, most = self._clock_offset(), self.settings.clock_skew_max
        self._ahead = max(self._ahead, min(offset, most))
        self._behind = min(self._behind, max(offset, -most))
        if target.resource == r.PODS:
            self._take_pod(method, target, body)
            return
        self._check("foreign write", self._foreign(method, target, body))
        if target.resource == r.NODE_CLAIMS and method == "POST":
            self._drifts.creating(body, self.recent.past())
        stored = self._stored(target)
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

    def has_written(self, target: Route, before: Obj | None) -> None:
        """A request of Tenure's has been carried out; ``before`` is what was there."""
        if (stored := self._stored(target)) is not None and _version(stored) != _version(before):
            self.recent.wrote(target.resource, stored)  # Else it was refused.
        if before is None or target.resource not in (r.NODES, r.NODE_CLAIMS):
            return
        if FINALIZER not in finalizers(before):
            return
        after = self._store.find(target.resource, target.namespace, target.name)
        if after is not None and target.resource == r.NODE_CLAIMS:
            self._starts.wrote(before, after, self.recent.past(), self._environment.now())
        if after is not None and FINALIZER in finalizers(after):
            return
        running = self._has_instance(target.resource, before)
        what = f"the finalizer of {target.resource.kind} {target.name}"
        self._check("early release", f"{what} goes while its instance is there" if running else "")

    def _foreign(self, method: str, target: Route, body: Any) -> str:
        resource = target.resource
        ours = frozenset(kind.group_kind for kind in self._cloud.node_classes)
        if resource in (r.EVENTS, r.LEASES) or is_window_status(target):
            return ""
        given = body if method == "POST" else self._stored(target)
        if given is None or resource.group_kind in ours:
            return ""  # Nothing is there to write to, or it is a node class.
        what = f"{method} {resource.kind} {target.name or dig(given, 'metadata', 'name')}"
        claim = self._claim_of(given) if resource == r.NODES else None
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

    def _is_terminated(self, node: Obj) -> bool:
        provider_id = dig(node, "spec", "providerID")
        return all(one.provider_id != provider_id for one in self._cloud.instances())

    # -- pods --------------------------------------------------------------------------

    def _take_pod(self, method: str, target: Route, body: Any) -> None:
        name = f"pod {target.namespace}/{target.name}"
        taken = method == "DELETE" or target.subresource == "eviction"
        self._check("pod written", "" if taken else f"{method} {name}")
        pod = self._stored(target)
        if not taken or pod is None or not is_meant(pod, body):
            return
        node = self._node(dig(pod, "spec", "nodeName") or "")
        claim = self._claim_of(node) if node is not None else None
        now = later(self._environment.now(), self._ahead)
        forced, by = method == "DELETE", read.deadline(claim) if claim is not None else None
        early = not_leaving(node, claim, forced=forced)
        self._check("early eviction", f"{name} is taken: {early}" if early else "")
        if early or node is None:
            return
        if forced and claim is None and self._is_terminated(node):
            return  # Nothing runs there any more; the claim went since the pod was looked at.
        if forced:
            self._check(
                "early force",
                f"{name} is forced{why}" if (why := early_force(pod, body, by, now)) else "",
            )
            return
        until = read.protected_until(pod, self._cap(node), self.settings.protection_clock)
        kept = until is not None and now < until
        at = format_time(until) if until is not None else ""
        self._check("protected eviction", f"{name} is protected until {at}" if kept else "")

    def _cap(self, node: Obj) -> str | None:
        pool = self._store.find(r.NODE_POOLS, "", read.labels(node).get(NODEPOOL, ""))
        cap: str | None = dig(pool or {}, "spec", "disruption", "maxPodProtection")
        return cap

    # -- claims and Nodes that go ------------------------------------------------------

    def _delete_claim(self, claim: Obj) -> None:
        """A rule is broken that no state keeps which Tenure may still see."""
        if read.is_leaving(claim):
            return
        self._ask_all(self._departure(claim), "is deleted")

    def _begin_command(self, claim: Obj, body: Any) -> None:
        annotations = dig(body, "metadata", "annotations") or {}
        mark, reason = "karpenter.sh/replaced-by", "karpenter.sh/disruption-reason"
        if annotations.get(mark) is None or read.annotation(claim, mark) is not None:
            return
        planned = msgspec.structs.replace(
            self._departure(claim), begins=annotations.get(reason) or "Unhealthy"
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
            self.asked[rule] += 1
            if sentence and not self._was_kept(rule, departure):
                self._broken(rule, f"claim {name} {what}: {sentence}")

    def _departure(self, claim: Obj) -> Departure:
        pool = self._store.find(r.NODE_POOLS, "", read.labels(claim).get(NODEPOOL, ""))
        return Departure(
            claim=claim,
            starts=self._starts.of(pool),
            state=self.recent.now(),
            now=self._environment.now(),
            settings=self.settings,
            statements=self._cloud.repair_statements,
            has_instance=self._has_instance(r.NODE_CLAIMS, claim),
            interrupted=dig(claim, "status", "providerID") in self._interruptions,
            pods=tuple(self._known_pods(claim)),
            nominated=tuple(self._nominated(claim)),
            differs=self._drifts.differs,
        )

    def _known_pods(self, claim: Obj) -> Iterator[Obj]:
        """The pods on its Nodes, but those that came so lately that a watch may not show them."""
        nodes = {node["metadata"]["name"] for node in self._nodes_of(claim)}
        now = self._environment.now()
        for record in self._store.shelf(r.PODS).records.values():
            came = read.instant(record.obj, "status", "startTime")
            known = came is not None and now - came > self.recent.late
            if known and dig(record.obj, "spec", "nodeName") in nodes:
                yield record.obj

    def _nominated(self, claim: Obj) -> Iterator[str]:
        """Pods of Nodes that have been terminating for longer than a watch may be late."""
        uids = set((read.annotation(claim, "karpenter.sh/nominated-pods") or "").split(","))
        nodes, now = self._store.shelf(r.NODES).records, self._environment.now()
        for record in self._store.shelf(r.PODS).records.values():
            if record.obj["metadata"]["uid"] not in uids or not occupies(record.obj):
                continue
            node = nodes.get(dig(record.obj, "spec", "nodeName") or "")
            since = read.instant(node.obj if node else {}, "metadata", "deletionTimestamp")
            if since is not None and now - since > self.recent.late:
                yield record.obj["metadata"]["name"]

    def _was_kept(self, rule: str, departure: Departure) -> bool:
        """In a state that Tenure may still have seen, and by a clock that it may have had."""
        now = departure.now
        clocks = {now, later(now, self._ahead), later(now, self._behind)}
        for state in self.recent.seen():
            seen = (msgspec.structs.replace(departure, state=state, now=at) for at in clocks)
            if any(not dict(one.answers()).get(rule) for one in seen):
                return True
        return False

    def _early_node(self, node: Obj) -> str:
        claim = self._claim_of(node)
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

    # -- instances and claims -----------------------------------------------------------

    def _on_instance(self, event: CloudEvent, instance: Instance) -> None:
        provider_id = instance.provider_id
        if event is CloudEvent.LAUNCHED:
            self._check("doubled instance", self._doubled(instance))
            if self._is_ours(instance) and instance.claim_uid not in self._claim_uids:
                self._begin_unclaimed(provider_id)
            return
        if event is CloudEvent.REBOOTING:
            return  # It was checked as the call left.
        claim = self._claim_where(("metadata", "uid"), instance.claim_uid)
        self._unclaimed.pop(provider_id, None)
        if event is CloudEvent.TERMINATING and claim is not None:
            name = claim["metadata"]["name"]
            stays = "" if read.is_leaving(claim) else f"{provider_id} is ended, claim {name} stays"
            self._check("live termination", stays)
            if not stays:
                self._check("pods lost", self._lost_pods(claim))

    def _on_reboot_call(self, provider_id: str) -> None:
        """As the call leaves: what changes while it is on its way cannot be known."""
        called = (one for one in self._cloud.instances() if one.provider_id == provider_id)
        for instance in called:
            claim = self._claim_where(("metadata", "uid"), instance.claim_uid)
            self._check("uncalled reboot", uncalled_reboot(claim, provider_id))

    def _doubled(self, instance: Instance) -> str:
        live = [
            one.provider_id
            for one in self._cloud.instances()
            if one.claim_uid == instance.claim_uid and one.state is not InstanceState.TERMINATING
        ]
        if not instance.claim_uid or len(live) < 2:
            return ""
        return f"claim {instance.claim_name} has two instances: {', '.join(sorted(live))}"

    def _lost_pods(self, claim: Obj) -> str:
        """Pods that a drain has to move first. One that came lately was bound while the taint was on
        its way, or the watch has not shown it yet."""
        now, by = self._environment.now(), read.deadline(claim)
        if by is not None and now >= later(by, -SLACK):
            return ""
        nodes = {
            node["metadata"]["name"]
            for node in self._nodes_of(claim)
            if FINALIZER in finalizers(node)
        }
        for record in self._store.shelf(r.PODS).records.values():
            pod = record.obj
            if dig(pod, "spec", "nodeName") not in nodes or read.is_drained(pod):
                continue
            began = read.instant(pod, "status", "startTime")
            stops = read.instant(pod, "metadata", "deletionTimestamp")
            stuck = stops is not None and now > stops + LAST_MINUTE - SECOND
            if not stuck and began is not None and now - began > self.recent.late:
                return f"pod {pod['metadata']['name']} runs on the instance of claim {claim['metadata']['name']}"
        return ""

    def _on_claim(self, type_: str, claim: Obj, _old: Obj | None) -> None:
        uid = claim["metadata"]["uid"]
        running = [i for i in self._cloud.instances() if self._is_ours(i) and i.claim_uid == uid]
        if type_ == ADDED:
            self._claim_uids.add(uid)
            for instance in running:
                self._unclaimed.pop(instance.provider_id, None)
        elif type_ == DELETED:
            self._claim_uids.discard(uid)
            for instance in running:
                self._begin_unclaimed(instance.provider_id)

    def _begin_unclaimed(self, provider_id: str) -> None:
        self._unclaimed[provider_id] = self._environment.now()
        self._look_again()

    def _look_again(self) -> None:
        # A microsecond more: leaked is what stays *longer* than allowed.
        self._environment.after(self.allowance + timedelta(microseconds=1), self._look_for_leaks)

    def _look_for_leaks(self) -> None:
        now = self._environment.now()
        for provider_id in filter(self._runs_pods, sorted(self._unclaimed)):
            self._unclaimed[provider_id] = now  # Its Node has to be drained first.
            self._look_again()
        for provider_id, since in sorted(self._unclaimed.items()):
            leaked = now - since > self.allowance
            what = f"instance {provider_id} has had no claim since {format_time(since)}"
            self._check("leaked instance", what if leaked else "")
        for provider_id in [p for p, at in self._unclaimed.items() if now - at > self.allowance]:
            del self._unclaimed[provider_id]  # Said once.

    def _runs_pods(self, provider_id: str) -> bool:
        """Whether the Node of an instance has pods that a drain waits for."""
        nodes = {
            node["metadata"]["name"]
            for node in self._store.list(r.NODES)
            if dig(node, "spec", "providerID") == provider_id
        }
        return any(
            dig(pod, "spec", "nodeName") in nodes and dig(pod, "status", "phase") == "Running"
            for pod in self._store.list(r.PODS)
        )

    def unclaimed(self) -> tuple[str, ...]:
        """Provider ids of running instances of ours that no claim stands for."""
        return tuple(
            instance.provider_id
            for instance in self._cloud.instances()
            if self._is_ours(instance) and instance.claim_uid not in self._claim_uids
        )

    def _is_ours(self, instance: Instance) -> bool:
        return (
            instance.cluster == self.settings.cluster_name
            and instance.state is InstanceState.RUNNING
        )

    def assert_kept(self) -> None:
        """For tests: every promise was kept so far."""
        assert not self.violations, "\n".join(
            f"{v.at:%H:%M:%S} {v.rule}: {v.message}" for v in self.violations
        )

    # -- what is true -------------------------------------------------------------------

    def _stored(self, target: Route) -> Obj | None:
        return self._store.find(target.resource, target.namespace, target.name)

    def _has_instance(self, resource: Resource, obj: Obj) -> bool:
        """Whether the cloud still knows an instance of that claim, or of that Node's claim."""
        uid = obj["metadata"]["uid"]
        if resource == r.NODES:
            claim = self._claim_of(obj)
            if claim is None:
                return False  # Its instance went with its claim, or was never ours.
            uid = claim["metadata"]["uid"]
        return any(instance.claim_uid == uid for instance in self._cloud.instances())

    def _node(self, name: str) -> Obj | None:
        """The Node; when it is gone, as it was last: it may have gone a moment ago."""
        shelf = self._store.shelf(r.NODES)
        record = shelf.records.get(name)
        if record is None:
            past = (event.record for event in reversed(shelf.history.since(shelf.history.floor)))
            record = next((one for one in past if one.obj["metadata"]["name"] == name), None)
        return record.obj if record is not None else None

    def _nodes_of(self, claim: Obj) -> list[Obj]:
        records = self._store.shelf(r.NODES).records
        return list(read.nodes_of(claim, {name: one.obj for name, one in records.items()}))

    def _claim_of(self, node: Obj) -> Obj | None:
        return self._claim_where(("status", "providerID"), dig(node, "spec", "providerID") or "")

    def _claim_where(self, path: tuple[str, str], value: str) -> Obj | None:
        records = self._store.shelf(r.NODE_CLAIMS).records.values() if value else ()
        return next((one.obj for one in records if dig(one.obj, *path) == value), None)

    def _check(self, rule: str, sentence: str) -> None:
        """Count the rule as asked; a sentence says how it is broken."""
        self.asked[rule] += 1
        if sentence:
            self._broken(rule, sentence)

    def _broken(self, rule: str, sentence: str) -> None:
        assert rule in RULES, f"{rule} is not in the table"
        violation = Violation(at=self._environment.now(), rule=rule, message=sentence)
        self.violations.append(violation)
        self._report(violation)


def _version(obj: Obj | None) -> str:
    return dig(obj, "metadata", "resourceVersion") or ""
