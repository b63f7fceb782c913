"""Watches that nothing happens which must never happen, on the true state.

The guard asks ``tenure.safety`` about what Tenure believes; this asks the same questions
about what is: the store and the cloud themselves, at the very instant of the change.

========================  ===========================================================
when                      what must not be
========================  ===========================================================
Tenure sends a write      it is about an object that is not ours, or takes a pod away
                          from a node that neither leaves nor reboots, before its protection
                          ends, or by force before its node's deadline requires it
Tenure's write is done    our finalizer went although the instance is still there
an instance is launched   its claim has another one
an instance is rebooted   its claim does not say so
an instance is ended      its claim is alive
time passes               an instance has had no claim for longer than garbage
                          collection may take, Tenure's time in the grave not counted
========================  ===========================================================

What a person does by hand (a finalizer taken off, an instance lost) is no violation;
what Tenure makes of it may be one.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from tenure import safety
from tenure.core.terminate.deadline import deadline_of
from tenure.model.api import resource as r
from tenure.model.api.kinds import decode
from tenure.model.api.names import FINALIZER, NODEPOOL
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.api.resource import Resource
from tenure.model.cloud.instance import Instance, InstanceState
from tenure.model.settings import Settings
from tenure.sim.apiserver.routes import Route
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.tree import Obj, dig
from tenure.sim.apiserver.store.watch import ADDED, DELETED
from tenure.sim.cloud.cloud import CloudEvent, SimulatedCloud
from tenure.sim.environment import Environment

#: Beyond grace and two periods: the way to the cloud and back, and a failed call or two.
SLACK: Final = timedelta(minutes=1)

_encode = msgspec.json.encode


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
    ) -> None:
        self._environment, self._store, self._cloud = environment, store, cloud
        self._settings = settings
        self._report = report
        self._unclaimed: dict[str, datetime] = {}
        self._claim_uids: set[str] = set()
        self.violations: list[Violation] = []
        cloud.listen(self._on_instance)
        store.subscribe(r.NODE_CLAIMS, self._on_claim, replay=True)

    @property
    def allowance(self) -> timedelta:
        """How long an instance may be without a claim: garbage collection at its slowest."""
        settings = self._settings
        return settings.garbage_grace + 2 * settings.garbage_period + SLACK

    def tenure_started(self) -> None:
        """What it had seen twice it must see twice again."""
        now = self._environment.now()
        for provider_id in self._unclaimed:
            self._unclaimed[provider_id] = now
        if self._unclaimed:
            self._look_again()

    # -- Tenure's requests, told by the witness at the API's door -----------------------

    def will_write(self, method: str, target: Route, body: Any) -> None:
        """A request of Tenure's is about to be carried out."""
        sentence = self._foreign(method, target, body) or self._takes_pod(method, target, body)
        if sentence is not None:
            self._broken("foreign write" if target.resource != r.PODS else "pod taken", sentence)

    def has_written(self, target: Route, before: Obj | None) -> None:
        """A request of Tenure's has been carried out; ``before`` is what was there."""
        if before is None or target.resource not in (r.NODES, r.NODE_CLAIMS):
            return
        if FINALIZER not in _finalizers(before):
            return
        after = self._store.find(target.resource, target.namespace, target.name)
        if after is not None and FINALIZER in _finalizers(after):
            return
        what = f"{target.resource.kind} {target.name}"
        if sentence := safety.early_release(what, self._has_instance(target.resource, before)):
            self._broken("early release", sentence)

    def _foreign(self, method: str, target: Route, body: Any) -> str | None:
        resource = target.resource
        ours = frozenset(kind.group_kind for kind in self._cloud.node_classes)
        if resource in (r.EVENTS, r.LEASES, r.PODS) or _is_window_status(target):
            return None
        given = body if method == "POST" else self._stored(target)
        if given is None:
            return None  # Nothing is there to write to; the answer is a refusal.
        thing = decode(resource, _encode(given)) if resource in _JUDGED else None
        match thing:
            case NodeClaim():
                return safety.foreign_class(thing.spec.node_class_ref, ours)
            case NodePool():
                return safety.foreign_class(thing.spec.template.spec.node_class_ref, ours)
            case Node():
                return safety.foreign_node(thing, self._claim_of(thing), ours)
        if resource.group_kind in ours:
            return None
        return f"{method} {resource.kind} {target.name}: nothing but claims, nodes, pools is ours"

    def _takes_pod(self, method: str, target: Route, body: Any) -> str | None:
        if target.resource != r.PODS:
            return None
        if method != "DELETE" and target.subresource != "eviction":
            return f"{method} Pod {target.namespace}/{target.name}: pods are evicted, never written"
        stored = self._stored(target)
        if stored is None or _wanted_uid(body) not in ("", stored["metadata"]["uid"]):
            return None
        pod = decode(r.PODS, _encode(stored))
        assert isinstance(pod, Pod), f"{target.name} cannot be read"
        node = self._node(pod.spec.node_name)
        claim = self._claim_of(node) if node is not None else None
        early = safety.early_eviction(pod, node, claim, forced=method == "DELETE")
        if node is None or early is not None:
            return early
        now = self._environment.now()
        if method != "DELETE":
            clock = self._settings.protection_clock
            return safety.protected_eviction(pod, now, cap=self._cap(node), clock=clock)
        deadline = deadline_of(self._claim_of(node))
        grace = (body or {}).get("gracePeriodSeconds", 0)
        return safety.early_force(pod, deadline.at if deadline else None, grace, now)

    def _cap(self, node: Node) -> str | None:
        pool = self._store.find(r.NODE_POOLS, "", node.labels.get(NODEPOOL, ""))
        cap: str | None = dig(pool or {}, "spec", "disruption", "maxPodProtection")
        return cap

    # -- instances and claims -----------------------------------------------------------

    def _on_instance(self, event: CloudEvent, instance: Instance) -> None:
        provider_id = instance.provider_id
        if event is CloudEvent.LAUNCHED:
            for sentence in safety.doubled_instances(self._cloud.instances()):
                self._broken("doubled instance", sentence)
            if self._is_ours(instance) and instance.claim_uid not in self._claim_uids:
                self._begin_unclaimed(provider_id)
            return
        if event is CloudEvent.REBOOTING:
            claim = self._claim_where(("metadata", "uid"), instance.claim_uid)
            if uncalled := safety.uncalled_reboot(claim, provider_id):
                self._broken("uncalled reboot", uncalled)
            return
        self._unclaimed.pop(provider_id, None)
        if event is CloudEvent.ENDING:
            claim = self._claim_where(("metadata", "uid"), instance.claim_uid)
            ended_alive = safety.live_termination(claim)
            if ended_alive is not None:
                self._broken("live termination", ended_alive)

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
        for sentence in safety.leaked_instances(self._unclaimed, now, self.allowance):
            self._broken("leaked instance", sentence)
        for provider_id in [p for p, at in self._unclaimed.items() if now - at > self.allowance]:
            del self._unclaimed[provider_id]  # Said once.

    def unclaimed(self) -> tuple[str, ...]:
        """Provider ids of running instances of ours that no claim stands for."""
        return tuple(
            instance.provider_id
            for instance in self._cloud.instances()
            if self._is_ours(instance) and instance.claim_uid not in self._claim_uids
        )

    def _is_ours(self, instance: Instance) -> bool:
        return (
            instance.cluster == self._settings.cluster_name
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
        """Whether the cloud still knows an instance of that claim, or of that node's claim."""
        provider_id = obj.get("spec", {}).get("providerID", "")
        uid = obj["metadata"]["uid"]
        if resource == r.NODES:
            claim = self._claim_where(_PROVIDER_ID, provider_id)
            if claim is None:
                return False  # Its instance went with its claim, or was never ours.
            uid = claim.uid
        return any(instance.claim_uid == uid for instance in self._cloud.instances())

    def _node(self, name: str) -> Node | None:
        """The Node; when it is gone, as it was last: it may have gone a moment ago."""
        shelf = self._store.shelf(r.NODES)
        record = shelf.records.get(name)
        if record is None:
            past = (event.record for event in reversed(shelf.history.since(shelf.history.floor)))
            record = next((one for one in past if one.obj["metadata"]["name"] == name), None)
        node = decode(r.NODES, record.raw) if record is not None else None
        return node if isinstance(node, Node) else None

    def _claim_of(self, node: Node) -> NodeClaim | None:
        return self._claim_where(_PROVIDER_ID, node.spec.provider_id)

    def _claim_where(self, path: tuple[str, str], value: str) -> NodeClaim | None:
        for record in self._store.shelf(r.NODE_CLAIMS).records.values():
            if value and dig(record.obj, *path) == value:
                claim = decode(r.NODE_CLAIMS, record.raw)
                return claim if isinstance(claim, NodeClaim) else None
        return None

    def _broken(self, rule: str, sentence: str) -> None:
        violation = Violation(at=self._environment.now(), rule=rule, message=sentence)
        self.violations.append(violation)
        self._report(violation)


_PROVIDER_ID: Final = ("status", "providerID")
_JUDGED: Final = frozenset({r.NODE_CLAIMS, r.NODE_POOLS, r.NODES})


def _finalizers(obj: Obj) -> list[str]:
    return obj["metadata"].get("finalizers") or []


def _is_window_status(target: Route) -> bool:
    """Windows are a person's; what they come to is ours to say."""
    return target.resource == r.MAINTENANCE_WINDOWS and target.subresource == "status"


def _wanted_uid(body: Any) -> str:
    """The UID that a deletion or eviction insists on."""
    options = body.get("deleteOptions", body) if isinstance(body, dict) else {}
    uid: str = (options.get("preconditions") or {}).get("uid") or ""
    return uid
