"""Checks what Tenure does to pods: nothing but their nomination is written, and none is taken too early."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tenure.model.api import resource as r
from tenure.model.api.meta import format_time
from tenure.model.settings import Settings
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.routes import Route
from tenure.sim.check import read
from tenure.sim.check.promises import early_force, is_meant, not_leaving
from tenure.sim.check.recent import Recent
from tenure.sim.check.rules import Violations
from tenure.sim.check.truth import Truth, settled_pool


class PodChecks:
    def __init__(self, truth: Truth, recent: Recent, violations: Violations) -> None:
        self._truth, self._recent, self._check = truth, recent, violations.check

    def written(
        self, method: str, target: Route, body: Any, settings: Settings, now: datetime
    ) -> None:
        """``now``: by the clock that Tenure may have had."""
        name = f"pod {target.namespace}/{target.name}"
        taken = method == "DELETE" or target.subresource == "eviction"
        nominated = target.subresource == "status" and _only_nominates(body)
        self._check("pod written", "" if taken or nominated else f"{method} {name}")
        pod = self._truth.stored(target)
        if not taken or pod is None or not is_meant(pod, body):
            return
        node = self._truth.node(dig(pod, "spec", "nodeName") or "")
        claim = self._truth.claim_of(node) if node is not None else None
        forced = method == "DELETE"
        early = not_leaving(node, claim, forced=forced)
        self._check("early eviction", f"{name} is taken: {early}" if early else "")
        if early or node is None:
            return
        if not forced:
            why = self._protected(pod, node, settings, now)
            self._check("protected eviction", f"{name} {why}" if why else "")
        elif claim is not None or not self._truth.is_terminated(node):
            by = read.deadline(claim) if claim is not None else None
            why = early_force(pod, body, by, now)
            self._check("early force", f"{name} is forced{why}" if why else "")
        # Else nothing runs there any more; the claim went since the pod was looked at.

    def _protected(self, pod: Obj, node: Obj, settings: Settings, now: datetime) -> str:
        """By every cap that Tenure may still have seen: a user may have taken one away just now."""
        ends: list[datetime] = []
        for pool in self._pools(node):
            cap = dig(pool or {}, "spec", "disruption", "maxPodProtection")
            until = read.protected_until(pod, cap, settings.protection_clock)
            if until is None or until <= now:
                return ""
            ends.append(until)
        return f"is protected until {format_time(ends[0])}"

    def _pools(self, node: Obj) -> Iterator[Obj | None]:
        """Its pool as it is, then as it was."""
        yield self._truth.pool_of(node)
        for state in self._recent.seen():
            pool = state[r.NODE_POOLS].get(read.labels(node).get("karpenter.sh/nodepool", ""))
            yield settled_pool(pool, state[r.NODE_POOL_POLICIES])


def _only_nominates(body: Any) -> bool:
    """Writes or removes the node that is kept for the pod, and nothing else."""
    if not isinstance(body, dict) or set(body) - {"metadata", "status"}:
        return False
    marks = set(body.get("metadata") or {}) - {"uid", "resourceVersion"}
    return not marks and set(body.get("status") or {}) == {"nominatedNodeName"}
