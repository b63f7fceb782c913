"""Single promises, as questions about plain trees: each answers with a sentence, or with nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api import resource as r
from tenure.model.api.meta import format_time
from tenure.model.api.names import DISRUPTED_TAINT, REBOOTING_TAINT
from tenure.model.snapshot.kinds import decode
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.routes import Route
from tenure.sim.check import read
from tenure.sim.check.beside.deadline import MARKS, deleted_beyond, stamped_beyond
from tenure.sim.check.beside.replacing import created_beyond, marked_beyond
from tenure.sim.check.read import State
from tenure.sim.check.truth import settled_pool


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

#: Each with its marks.
_LEVERS: Final = {
    f"karpenter.sh/{lever}": {f"tenure.dev/{lever}-{end}" for end in ("by", "because", "until")}
    for lever in ("do-not-disrupt", "do-not-repair")
}
_COPIED: Final = {"karpenter.sh/replaces", "tenure.dev/created-by"}
_BEGINNINGS: Final = {f"{lever}-since" for lever in _LEVERS}
_PROBE: Final = "tenure.dev/repair-probe"
_NOTES: Final = {"tenure.dev/ready-once", "tenure.dev/node-lost"}
#: The annotations that are ours, by the kind of object: a list that shares no code with that of the guard.
_OURS: Final = {
    r.NODES: {key for lever, marks in _LEVERS.items() for key in (lever, *marks)},
    r.NODE_CLAIMS: {*_BEGINNINGS, *_NOTES, read.STAMP, *MARKS, _PROBE},
    r.NODE_POOLS: {_PROBE},
}


def beyond_levers(method: str, target: Route, body: Any, stored: Obj | None, state: State) -> str:
    """How it is more than a lever or a replacement; empty where it is not."""
    resource = target.resource
    if resource in (r.EVENTS, r.LEASES) or is_users_status(target):
        return ""
    what = f"{method} {resource.kind} {target.name}"
    if resource == r.NODE_CLAIMS and not target.subresource and method == "POST":
        said = created_beyond(body, state)
        return f"{what}: {said}" if said else ""
    if method == "DELETE" and resource == r.NODE_CLAIMS:
        return _deletes(what, body, stored)
    if method != "PATCH" or target.subresource or resource not in _OURS:
        return f"{what}: not ours to write beside Karpenter"
    if stored is None or not is_same_version(stored, body):
        return ""  # It is refused.
    metadata = dig(body, "metadata") or {}
    if resource == r.NODES and "spec" in body:
        return "" if _opens_reserved(body, stored) else f"{what}: taints that are not ours"
    if set(body) != {"metadata"} or set(metadata) - {"annotations", "uid", "resourceVersion"}:
        return f"{what}: more than annotations"
    written = metadata.get("annotations") or {}
    if resource == r.NODE_CLAIMS:
        return _on_claim(what, written, stored)
    # Karpenter copies annotations of a claim to its Node.
    kept = {key for key, value in written.items() if key not in _COPIED or value is not None}
    if others := sorted(kept - _OURS[resource]):
        return f"{what}: writes {', '.join(others)}"
    found = (_of_a_user(what, one, written, stored) for one in _LEVERS if resource == r.NODES)
    return next(filter(None, found), "")


def _opens_reserved(body: Any, node: Obj) -> bool:
    """Whether only the taint goes with which Tenure in charge launched it."""
    taints = dig(node, "spec", "taints") or []
    kept = [one for one in taints if one["key"] != "tenure.dev/reserved"]
    only = set(body) == {"metadata", "spec"} and not body["metadata"].keys() & {
        "annotations",
        "labels",
    }
    return only and body["spec"] == {"taints": kept}


def _on_claim(what: str, written: Mapping[str, Any], stored: Obj) -> str:
    """Of repair and time-outs, or else of a replacement."""
    said = stamped_beyond(written, stored)
    if not said and not set(written) <= _OURS[r.NODE_CLAIMS]:
        gone = {*MARKS, _PROBE, read.INTERRUPTION}
        said = marked_beyond({k: v for k, v in written.items() if k not in gone or v}, stored)
    return f"{what}: {said}" if said else ""


def karpenter_repairs(gates: str, deployments: Iterable[Obj]) -> bool:
    """Whether its feature gate NodeRepair is on, or may be, by the setting or else by what its Deployments say."""
    if gates:
        return _ON in gates.lower()
    for one in deployments:
        labels = dig(one, "metadata", "labels") or {}
        containers = dig(one, "spec", "template", "spec", "containers") or []
        may = any(_ON in str(each).lower() or _hides_gates(each) for each in containers)
        if may and labels.get("app.kubernetes.io/name") == "karpenter":
            return True
    return False


_ON: Final = "noderepair=true"


def _hides_gates(container: Obj) -> bool:
    """They are written in another object."""
    said = any("feature-gates" in arg for arg in container.get("args") or [])
    elsewhere = [
        e for e in container.get("env") or [] if e["name"] == "FEATURE_GATES" and "valueFrom" in e
    ]
    return bool(elsewhere) and not said


def _deletes(what: str, body: Any, stored: Obj | None) -> str:
    """On a known version, and only what is ours to delete."""
    if stored is None:
        return ""
    wanted = dig(body, "preconditions") or {}
    if not wanted.get("uid") or not wanted.get("resourceVersion"):
        return f"{what}: on any version"
    if wanted["resourceVersion"] != stored["metadata"]["resourceVersion"]:
        return ""  # It is refused.
    said = deleted_beyond(stored)
    return f"{what}: {said}" if said else ""


def _of_a_user(what: str, lever: str, written: Mapping[str, Any], stored: Obj) -> str:
    there = dig(stored, "metadata", "annotations") or {}
    marks = _LEVERS[lever]
    if not written.keys() & {lever, *marks}:
        return ""
    value, ours = there.get(lever), any(there.get(key) == "tenure" for key in marks)
    if lever in written and value is not None and not (ours and value == "true"):
        return f'{what}: the value "{value}" is a user\'s'
    after = {**there, **written}
    marked = {key for key in marks if after.get(key) is not None}
    if after.get(lever) == "true" and written.get(lever) == "true" and marked != marks:
        return f"{what}: a lever without its marks"
    return f"{what}: marks without a lever" if marked and after.get(lever) != "true" else ""


# Are more Nodes open to disruption than the budgets of a NodePoolPolicy let go? A Node is open without
# ``karpenter.sh/do-not-disrupt: "true"``; one that leaves has used its place. Budgets with ``within`` are not
# asked: how many nodes have left is known to Karpenter alone.

_POOL: Final = "karpenter.sh/nodepool"
_DEFAULT: Final = [{"nodes": "10%"}]
_REASONS: Final = {"Drifted", "Empty", "Underutilized"}


def opens(body: Any) -> bool:
    """Whether a patch of a Node takes the lever off."""
    written = dig(body, "metadata", "annotations") or {}
    return read.DO_NOT_DISRUPT in written and written[read.DO_NOT_DISRUPT] is None


def too_many_open(node: Obj, state: State, now: datetime) -> str:
    """``node``: the one that is opened."""
    provider_id = dig(node, "spec", "providerID")
    claims = (one for one in state[r.NODE_CLAIMS].values() if provider_id)
    own = next((one for one in claims if dig(one, "status", "providerID") == provider_id), None)
    if own is None or not read.says(own, "Initialized"):
        return ""
    pool = read.labels(own).get(_POOL, "")
    fleet = list(_fleet(pool, node["metadata"]["name"], state))
    for budget in _policy_budgets(state[r.NODE_POOLS].get(pool), state):
        try:
            said = _beyond(budget, node, fleet, now)
        except (SpecError, ValueError, KeyError) as error:
            said = f"a budget cannot be read: {error}"
        if said:
            return f"Node {node['metadata']['name']} of NodePool {pool}: {said}"
    return ""


def _policy_budgets(pool: Obj | None, state: State) -> list[Obj]:
    settled = settled_pool(pool, state[r.NODE_POOL_POLICIES])
    if pool is None or settled is None:
        return []
    own = dig(pool, "spec", "disruption", "budgets") or []
    made: list[Obj] = dig(settled, "spec", "disruption", "budgets") or []
    if made is own or made == own:
        return []
    return made if own == _DEFAULT else made[len(own) :]


def _beyond(budget: Obj, node: Obj, fleet: list[tuple[Obj, bool]], now: datetime) -> str:
    if "within" in budget or not set(budget.get("reasons") or _REASONS) & _REASONS:
        return ""
    cron, lasts = budget.get("schedule"), budget.get("duration")
    if cron and not read.is_scheduled(cron, lasts or "", budget.get("timeZone"), now):
        return ""
    selector, per = budget.get("selector"), budget.get("per")
    if not read.is_selected(selector, read.labels(node)):
        return ""
    group = [
        (one, used)
        for one, used in fleet
        if read.is_selected(selector, read.labels(one))
        and (per is None or read.labels(one).get(per) == read.labels(node).get(per))
    ]
    allowed = read.share(str(budget.get("nodes", "10%")), len(group))
    used = sum(used for _, used in group)
    return f"{used} of {len(group)} Nodes open or leaving, {allowed} may" if used > allowed else ""


def _fleet(pool: str, opened: str, state: State) -> Iterator[tuple[Obj, bool]]:
    """The Nodes that budgets count, and whether each uses a place."""
    for claim in state[r.NODE_CLAIMS].values():
        if read.labels(claim).get(_POOL) != pool or not read.says(claim, "Initialized"):
            continue
        if read.says(claim, "InstanceTerminating"):
            continue  # Karpenter's budgets do not count it any more.
        for node in read.nodes_of(claim, state[r.NODES]):
            leaves = read.is_leaving(claim) or read.is_leaving(node)
            leaves = leaves or read.has_taint(node, "karpenter.sh/disrupted")
            is_open = read.annotation(node, read.DO_NOT_DISRUPT) != "true"
            unready = not read.says(node, "Ready")
            yield node, leaves or is_open or unready or node["metadata"]["name"] == opened
