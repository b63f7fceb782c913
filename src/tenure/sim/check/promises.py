"""Single promises, as questions about plain trees: each answers with a sentence, or with nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.model.api import resource as r
from tenure.model.api.meta import format_time, read_instant
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


def is_users_status(target: Route) -> bool:
    """Users write windows and policies; their status is ours."""
    users = (r.MAINTENANCE_WINDOWS, r.NODE_POOL_POLICIES)
    return target.resource in users and target.subresource == "status"


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


# -- beside Karpenter -----------------------------------------------------------------

_LEVER: Final = "karpenter.sh/do-not-disrupt"
_MARKS: Final = {f"tenure.dev/do-not-disrupt-{end}" for end in ("by", "because", "until")}
_BEGINNINGS: Final = {f"{_LEVER}-since", "karpenter.sh/do-not-repair-since"}
_STAMP: Final = "karpenter.sh/nodeclaim-termination-timestamp"
_BY: Final = "tenure.dev/termination-by"
_STAMPED: Final = {_BY, "tenure.dev/termination-because"}
_PROBE: Final = "tenure.dev/repair-probe"
_NOTES: Final = {"tenure.dev/ready-once", "tenure.dev/node-lost"}
#: The annotations that are ours, by the kind of object: a list that shares no code with that of the guard.
_OURS: Final = {
    r.NODES: {_LEVER, *_MARKS},
    r.NODE_CLAIMS: {*_BEGINNINGS, *_NOTES, _STAMP, *_STAMPED, _PROBE},
    r.NODE_POOLS: {_PROBE},
}


def beyond_levers(method: str, target: Route, body: Any, stored: Obj | None) -> str:
    """How it is more than a lever; empty where it is none."""
    resource = target.resource
    if resource in (r.EVENTS, r.LEASES) or is_users_status(target):
        return ""
    what = f"{method} {resource.kind} {target.name}"
    if method == "DELETE" and resource == r.NODE_CLAIMS:
        return _deletes(what, body, stored)
    if method != "PATCH" or target.subresource or resource not in _OURS:
        return f"{what}: not ours to write beside Karpenter"
    if stored is None or not is_same_version(stored, body):
        return ""  # It is refused.
    metadata = dig(body, "metadata") or {}
    if set(body) != {"metadata"} or set(metadata) - {"annotations", "uid", "resourceVersion"}:
        return f"{what}: more than annotations"
    written = metadata.get("annotations") or {}
    if others := sorted(set(written) - _OURS[resource]):
        return f"{what}: writes {', '.join(others)}"
    if resource == r.NODES:
        return _of_a_user(what, written, stored)
    return _stamps(what, written, stored) if resource == r.NODE_CLAIMS else ""


def karpenter_repairs(gates: str, deployments: Iterable[Obj]) -> bool:
    """Whether its feature gate NodeRepair is on, by the setting or else by what its Deployments say."""
    texts = [gates]
    for one in deployments if not gates else ():
        labels = dig(one, "metadata", "labels") or {}
        if labels.get("app.kubernetes.io/name") == "karpenter":
            texts.append(str(dig(one, "spec", "template", "spec", "containers")))
    return any("NodeRepair=true" in text for text in texts)


def _deletes(what: str, body: Any, stored: Obj | None) -> str:
    """On the version that carries our deadline."""
    if stored is None:
        return ""
    wanted = dig(body, "preconditions") or {}
    if not wanted.get("uid") or not wanted.get("resourceVersion"):
        return f"{what}: on any version"
    if wanted["resourceVersion"] != stored["metadata"]["resourceVersion"]:
        return ""  # It is refused.
    there = dig(stored, "metadata", "annotations") or {}
    if there.get(_BY) != "tenure" or read_instant(there.get(_STAMP) or "") is None:
        return f"{what}: without a deadline of ours"
    return ""


def _stamps(what: str, written: Mapping[str, Any], stored: Obj) -> str:
    """The deadline stands with its marks or not at all; one of another program only if it leaves."""
    there = dig(stored, "metadata", "annotations") or {}
    live = "deletionTimestamp" not in stored["metadata"]
    if _STAMP in written and _STAMP in there and there.get(_BY) != "tenure" and live:
        return f"{what}: the deadline is another program's"
    after = {**there, **written}
    marked = {key for key in _STAMPED if after.get(key) is not None}
    if written.get(_STAMP) is not None and marked != _STAMPED:
        return f"{what}: a deadline without its marks"
    return f"{what}: marks without a deadline" if marked and after.get(_STAMP) is None else ""


def _of_a_user(what: str, written: Mapping[str, Any], stored: Obj) -> str:
    there = dig(stored, "metadata", "annotations") or {}
    value, ours = there.get(_LEVER), "tenure.dev/do-not-disrupt-by" in there
    if _LEVER in written and value is not None and not (ours and value == "true"):
        return f'{what}: the value "{value}" is a user\'s'
    after = {**there, **written}
    marked = {key for key in _MARKS if after.get(key) is not None}
    if after.get(_LEVER) == "true" and written.get(_LEVER) == "true" and marked != _MARKS:
        return f"{what}: a lever without its marks"
    return f"{what}: marks without a lever" if marked and after.get(_LEVER) != "true" else ""
