"""Checks what becomes of instances: none is doubled, leaked, or terminated while its pods run.

``InstanceChecks`` listens to the cloud and to claims.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from tenure.model.api import resource as r
from tenure.model.api.meta import format_time, later
from tenure.model.api.names import FINALIZER
from tenure.model.cloud.instance import Instance, InstanceState
from tenure.model.settings import Settings
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import ADDED, DELETED
from tenure.sim.check import read
from tenure.sim.check.promises import finalizers, uncalled_reboot
from tenure.sim.check.recent import Recent
from tenure.sim.check.rules import Violations
from tenure.sim.check.truth import Truth
from tenure.sim.cloud.cloud import CloudEvent, SimulatedCloud
from tenure.sim.virtual.environment import Environment

#: Beyond grace and two periods: the way to the cloud and back, and a failed call or two.
SLACK: Final = timedelta(minutes=1)
SECOND: Final = timedelta(seconds=1)
#: After the deadline every pod has been deleted; then the instance goes, whatever is left.
LAST_MINUTE: Final = timedelta(minutes=1)


class InstanceChecks:
    def __init__(
        self,
        environment: Environment,
        store: Store,
        cloud: SimulatedCloud,
        settings: Callable[[], Settings],
        recent: Recent,
        violations: Violations,
    ) -> None:
        self._environment, self._cloud, self._settings = environment, cloud, settings
        self._truth, self._recent, self._check = Truth(store, cloud), recent, violations.check
        #: Since when each instance of ours has had no claim, by provider id.
        self._unclaimed: dict[str, datetime] = {}
        self._claim_uids: set[str] = set()
        cloud.listen(self._on_instance)
        cloud.listen_for_reboot_calls(self._on_reboot_call)
        store.subscribe(r.NODE_CLAIMS, self._on_claim, replay=True)

    @property
    def allowance(self) -> timedelta:
        """How long an instance may be without a claim: garbage collection at its slowest."""
        settings = self._settings()
        return settings.garbage_grace + 2 * settings.garbage_period + SLACK

    def tenure_started(self) -> None:
        """Garbage collection begins again: an instance is listed twice before it is terminated."""
        now = self._environment.now()
        for provider_id in self._unclaimed:
            self._unclaimed[provider_id] = now
        if self._unclaimed:
            self._look_again()

    def unclaimed(self) -> tuple[str, ...]:
        """Provider ids of running instances of ours that no claim stands for."""
        return tuple(
            instance.provider_id
            for instance in self._cloud.instances()
            if self._is_ours(instance) and instance.claim_uid not in self._claim_uids
        )

    def _is_ours(self, instance: Instance) -> bool:
        return (
            instance.cluster == self._settings().cluster_name
            and instance.state is InstanceState.RUNNING
        )

    # -- what the cloud does -------------------------------------------------------------

    def _on_instance(self, event: CloudEvent, instance: Instance) -> None:
        provider_id = instance.provider_id
        if event is CloudEvent.LAUNCHED:
            self._check("doubled instance", self._doubled(instance))
            if self._is_ours(instance) and instance.claim_uid not in self._claim_uids:
                self._begin_unclaimed(provider_id)
            return
        if event is CloudEvent.REBOOTING:
            return  # It was checked as the call left.
        claim = self._truth.claim_where(("metadata", "uid"), instance.claim_uid)
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
            claim = self._truth.claim_where(("metadata", "uid"), instance.claim_uid)
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
            for node in self._truth.nodes_of(claim)
            if FINALIZER in finalizers(node)
        }
        for pod in self._truth.pods():
            if dig(pod, "spec", "nodeName") not in nodes or read.is_drained(pod):
                continue
            began = read.instant(pod, "status", "startTime")
            stops = read.instant(pod, "metadata", "deletionTimestamp")
            stuck = stops is not None and now > stops + LAST_MINUTE - SECOND
            if not stuck and began is not None and now - began > self._recent.late:
                return f"pod {pod['metadata']['name']} runs on the instance of claim {claim['metadata']['name']}"
        return ""

    # -- instances without a claim -------------------------------------------------------

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
            name
            for name, node in self._truth.nodes().items()
            if dig(node, "spec", "providerID") == provider_id
        }
        return any(
            dig(pod, "spec", "nodeName") in nodes and dig(pod, "status", "phase") == "Running"
            for pod in self._truth.pods()
        )
