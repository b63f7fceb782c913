"""Single promises, as questions about plain trees: each answers with a sentence, or with nothing."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from tenure.model.api import resource as r
from tenure.model.api.meta import format_time
from tenure.model.api.names import DISRUPTED_TAINT, REBOOTING_TAINT
from tenure.model.snapshot.kinds import decode
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.routes import Route
from tenure.sim.check import read


def not_leaving(node: Obj | None, claim: Obj | None, *, forced: bool) -> str:
    """Why no pod may be taken from a Node; empty where they may.

    Tenure writes nothing to a Node that it cannot read: the deadline of its claim holds without.
    """
    if node is None:
        return "it is on no Node"
    name = node["metadata"]["name"]
    unreadable = forced and is_unreadable(decode(r.NODES, msgspec.json.encode(node)))
    if unreadable and claim is not None and read.is_leaving(claim):
        return ""
    if read.is_leaving(node):
        return "" if read.has_taint(node, DISRUPTED_TAINT) else f"Node {name} takes new pods"
    if claim is not None and read.says(claim, "Rebooting"):
        return "" if read.has_taint(node, REBOOTING_TAINT) else f"Node {name} takes new pods"
    return f"Node {name} is not on its way"


def early_force(pod: Obj, body: Any, by: datetime | None, now: datetime) -> str:
    if dig(body, "gracePeriodSeconds") in (None, 0):
        return " without a grace"
    if by is None:
        return ", and its Node has no deadline"
    if read.is_leaving(pod) or now >= read.forced_from(pod, by):
        return ""
    return f" before {format_time(read.forced_from(pod, by))}"


def uncalled_reboot(claim: Obj | None, provider_id: str) -> str:
    if claim is None or dig(claim, "status", "providerID") != provider_id:
        return f"no claim has instance {provider_id}"
    if read.is_leaving(claim) or not read.says(claim, "Rebooting"):
        return f"claim {claim['metadata']['name']} does not ask for a reboot"
    return ""


def finalizers(obj: Obj) -> list[str]:
    return obj["metadata"].get("finalizers") or []


def is_window_status(target: Route) -> bool:
    """Users write windows; their status is ours."""
    return target.resource == r.MAINTENANCE_WINDOWS and target.subresource == "status"


def is_meant(stored: Obj, body: Any) -> bool:
    """Whether the preconditions of a deletion or eviction hold; else it is refused."""
    options = dig(body, "deleteOptions") or body
    wanted = dig(options, "preconditions") or {}
    meta = stored["metadata"]
    same_uid = wanted.get("uid") in (None, "", meta["uid"])
    return same_uid and wanted.get("resourceVersion") in (None, "", meta["resourceVersion"])


def is_same_version(stored: Obj, body: Any) -> bool:
    version = dig(body, "metadata", "resourceVersion")
    return version in (None, "", stored["metadata"]["resourceVersion"])
