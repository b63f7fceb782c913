"""Whether a node that Tenure takes away by choice may go: its reason holds, by its objects alone.

The arithmetic is apart from that of the deciders and of ``tenure.safety``. Each answers with a
sentence, or with nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from tenure.model.api.meta import BEGINNING, FOR_EVER, later
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.check import read

_DAY: Final = timedelta(hours=24)
_CONDITIONS: Final = {
    "Empty": "Empty",
    "Drifted": "Drifted",
    "Rebalance": "RebalanceRecommended",
}


def unfounded(claim: Obj, reason: str, pool: Obj | None, pods: Sequence[Obj], now: datetime) -> str:
    """``pods``: those on its Node that Tenure must know of."""
    if reason not in (*_CONDITIONS, "Expired", "Underutilized"):
        return ""  # It is not known here.
    if pool is None or "replicas" in pool["spec"]:
        return "its NodePool is gone, or has replicas"
    if reason == "Underutilized":
        return _kept(pool, pods, now)
    if reason == "Expired":
        early = expires_at(claim, spread=True)
        return "" if now >= early else f"it expires at {early} at the earliest"
    if not read.says(claim, _CONDITIONS[reason]):
        return f"it is not {reason}"
    return _occupied(claim, pool, pods, now) if reason == "Empty" else ""


def expires_at(claim: Obj, *, spread: bool) -> datetime:
    """``spread``: a tenth of its age earlier, and a day at the most."""
    age = read.span(dig(claim, "spec", "expireAfter"))
    if age is None or age <= timedelta():
        return FOR_EVER
    at = later(read.instant(claim, "metadata", "creationTimestamp") or BEGINNING, age)
    return at - min(age / 10, _DAY) if spread else at


def _occupied(claim: Obj, pool: Obj, pods: Sequence[Obj], now: datetime) -> str:
    for pod in pods:
        if occupies(pod):
            return f"pod {pod['metadata']['name']} runs there"
    after = read.span(dig(pool, "spec", "disruption", "consolidateAfter"))
    since = read.instant(read.condition(claim, "Empty"), "lastTransitionTime")
    if after is None or since is None or now < later(since, after):
        return "it has not been empty for consolidateAfter"
    return ""


def _kept(pool: Obj, pods: Sequence[Obj], now: datetime) -> str:
    """Its pool consolidates nodes with pods, each pod comes back elsewhere, and none came just now."""
    block = dig(pool, "spec", "disruption") or {}
    after = read.span(block.get("consolidateAfter"))
    if after is None or block.get("consolidationPolicy") == "WhenEmpty":
        return "its NodePool does not consolidate nodes with pods"
    for pod in filter(occupies, pods):
        name = pod["metadata"]["name"]
        if not any(one.get("controller") for one in pod["metadata"].get("ownerReferences") or ()):
            return f"nothing creates pod {name} again"
        bound = read.instant(read.condition(pod, "PodScheduled"), "lastTransitionTime")
        if bound is not None and now < later(bound, after):
            return f"pod {name} came within consolidateAfter"
    return ""


def occupies(pod: Obj) -> bool:
    owners = {
        one["kind"] for one in pod["metadata"].get("ownerReferences") or () if one.get("controller")
    }
    if dig(pod, "status", "phase") in ("Succeeded", "Failed") or owners & {"DaemonSet", "Node"}:
        return False
    return "StatefulSet" in owners or not read.is_leaving(pod)


def is_left_over(claim: Obj, claims: Mapping[str, Obj], pods: Sequence[Obj]) -> bool:
    """Launched as a replacement, named by no claim that it replaces, and without pods."""
    uids = (read.annotation(claim, "karpenter.sh/replaces") or "").split(",")
    name = claim["metadata"]["name"]
    replaced = [one for one in claims.values() if one["metadata"]["uid"] in uids]
    naming = [
        one
        for one in replaced
        if read.is_leaving(one)
        or name in (read.annotation(one, "karpenter.sh/replaced-by") or "").split(",")
    ]
    return bool(replaced) and not naming and not any(map(occupies, pods))
