"""What the checkers read of objects: plain trees, instants and spans, and nothing of Tenure's rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from tenure.errors import SpecError
from tenure.model.api.meta import FOR_EVER, earlier, later, read_instant
from tenure.model.api.resource import Resource
from tenure.model.matching.requirement import Requirement
from tenure.model.values.cron import Cron, parse_zone
from tenure.model.values.duration import parse_duration
from tenure.sim.apiserver.objects.tree import Obj, dig

#: What every object of a kind is, by name.
State = Mapping[Resource, Mapping[str, Obj]]

DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
DO_NOT_REPAIR: Final = "karpenter.sh/do-not-repair"
STAMP: Final = "karpenter.sh/nodeclaim-termination-timestamp"
#: On a claim whose instance the cloud takes back.
INTERRUPTION: Final = "karpenter.sh/interruption"


def annotation(obj: Obj, key: str) -> str | None:
    found: str | None = (dig(obj, "metadata", "annotations") or {}).get(key)
    return found


def labels(obj: Obj) -> Mapping[str, str]:
    found: Mapping[str, str] = dig(obj, "metadata", "labels") or {}
    return found


def instant(obj: Obj, *path: str) -> datetime | None:
    return read_instant(dig(obj, *path) or "")


def is_leaving(obj: Obj) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def conditions(obj: Obj) -> list[Obj]:
    return dig(obj, "status", "conditions") or []


def condition(obj: Obj, type_: str) -> Obj:
    return next((one for one in conditions(obj) if one["type"] == type_), {})


def says(obj: Obj, type_: str, status: str = "True") -> bool:
    return condition(obj, type_).get("status") == status


def has_taint(node: Obj, key: str) -> bool:
    taints = dig(node, "spec", "taints") or []
    return any((t["key"], t.get("effect")) == (key, "NoSchedule") for t in taints)


def span(text: str | None) -> timedelta | None:
    """None for none, for ``Never`` and for what cannot be read."""
    try:
        return parse_duration(text or "").timedelta
    except (SpecError, OverflowError):
        return None


def is_scheduled(cron: str, lasts: str, zone: str | None, now: datetime) -> bool:
    """Whether the schedule hit within the last so long. Raises SpecError for bad text."""
    hit = Cron.parse(cron).next_after(
        earlier(now, parse_duration(lasts).timedelta), parse_zone(zone or "UTC")
    )
    return hit is not None and hit <= now


def is_selected(selector: Any, of: Mapping[str, str]) -> bool:
    for one in dig(selector, "matchExpressions") or ():
        if not Requirement.of(one["key"], one["operator"], one.get("values") or ()).matches(of):
            return False
    return True


def window_labels(node: Obj) -> dict[str, str]:
    """The labels that windows select by: ``provisioner-name`` is another name of the pool's label."""
    own = dict(labels(node))
    own.pop("karpenter.sh/provisioner-name", None)
    if "karpenter.sh/nodepool" in own:
        own["karpenter.sh/provisioner-name"] = own["karpenter.sh/nodepool"]
    return own


def share(text: str, total: int) -> int:
    """A number, or a percentage that is rounded up. Raises ValueError for anything else."""
    number = int(text.removesuffix("%"))
    if number < 0 or (text.endswith("%") and number > 100):
        raise ValueError(text)
    return -(-number * total // 100) if text.endswith("%") else number


# -- pods ------------------------------------------------------------------------------


def protected_until(pod: Obj, cap: str | None, clock: str) -> datetime | None:
    """Until when a pod must not be evicted; None when nothing protects it."""
    value = annotation(pod, DO_NOT_DISRUPT)
    finished = dig(pod, "status", "phase") in ("Succeeded", "Failed")
    if value in (None, "false") or finished or is_leaving(pod):
        return None
    path = ("metadata", "creationTimestamp") if clock == "creation" else ("status", "startTime")
    since = instant(pod, *path)
    spans = [one for one in (span(value), span(cap)) if one is not None and one > timedelta()]
    return later(since, min(spans)) if spans and since is not None else FOR_EVER


def deadline(claim: Obj) -> datetime | None:
    """The instant by which a claim that is being deleted has to be gone."""
    deleted = instant(claim, "metadata", "deletionTimestamp")
    if deleted is None:
        return None
    period = span(dig(claim, "spec", "terminationGracePeriod"))
    found = [read_instant(annotation(claim, STAMP) or "")]
    found += [later(deleted, period)] if period is not None else []
    return min((at for at in found if at is not None), default=None)


def forced_from(pod: Obj, by: datetime) -> datetime:
    """When a pod is deleted at the earliest so that it has stopped by the deadline."""
    grace = dig(pod, "spec", "terminationGracePeriodSeconds")
    try:
        return earlier(by, timedelta(seconds=30 if grace is None else max(grace, 0)))
    except OverflowError:
        return datetime.min.replace(tzinfo=by.tzinfo)


def is_drained(pod: Obj) -> bool:
    """Whether a drain leaves the pod alone: finished, a mirror, or one that tolerates the taint."""
    if dig(pod, "status", "phase") in ("Succeeded", "Failed"):
        return True
    if annotation(pod, "kubernetes.io/config.mirror") is not None:
        return True
    tolerated = dig(pod, "spec", "tolerations") or []
    return any(
        one.get("key") in (None, "", "karpenter.sh/disrupted")
        and one.get("effect") in (None, "", "NoSchedule")
        and (one.get("operator") == "Exists" or one.get("value", "") == "")
        for one in tolerated
        if one.get("key") or one.get("operator") == "Exists"
    )


def nodes_of(claim: Obj, nodes: Mapping[str, Obj]) -> Iterator[Obj]:
    if provider_id := dig(claim, "status", "providerID"):
        for node in nodes.values():
            if dig(node, "spec", "providerID") == provider_id:
                yield node
