"""Beside Karpenter: what Tenure may write to replace a node, as questions about plain trees.

Each answers with a sentence, or with nothing. Whether windows, budgets and vetoes allow it, ``departures`` asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tenure.model.api import resource as r
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.check import read
from tenure.sim.check.beside.deadline import REASONS, is_another_programs
from tenure.sim.check.read import State

_POOL: Final = "karpenter.sh/nodepool"
_REASON: Final = "karpenter.sh/disruption-reason"
_REPLACED_BY: Final = "karpenter.sh/replaced-by"
_REPLACES: Final = "karpenter.sh/replaces"
_LEVER: Final = {
    "karpenter.sh/do-not-disrupt",
    *(f"tenure.dev/do-not-disrupt-{end}" for end in ("by", "because", "until")),
}
_COMMAND: Final = {
    _REPLACED_BY,
    _REASON,
    read.STAMP,
    "tenure.dev/disrupted-by",
    "tenure.dev/disrupted-since",
    "karpenter.sh/repair-reason",
    "karpenter.sh/repair-probe",
    "karpenter.sh/replacement-failed",
}
_SAY_WHOSE: Final = {_REPLACED_BY, _REASON, "tenure.dev/disrupted-by"}
_GIVEN_UP: Final = {*_LEVER, _REPLACES, "tenure.dev/created-by"}


def created_beyond(body: Any, state: State) -> str:
    """How a new claim is more than a replacement that Karpenter launches."""
    pool = state[r.NODE_POOLS].get(dig(body, "metadata", "labels", _POOL) or "")
    owners = dig(body, "metadata", "ownerReferences") or []
    if pool is None or pool["metadata"]["uid"] not in [one.get("uid") for one in owners]:
        return "a NodeClaim of no NodePool"
    if "replicas" in pool["spec"]:
        return "a NodeClaim of a NodePool with replicas, whose number Karpenter keeps"
    if dig(body, "spec", "nodeClassRef") != dig(pool, "spec", "template", "spec", "nodeClassRef"):
        return "a NodeClaim of another node class than its NodePool's"
    if dig(body, "metadata", "finalizers") or "status" in body:
        return "a NodeClaim with a finalizer or a status"
    there = dig(body, "metadata", "annotations") or {}
    replaced = [
        one
        for one in state[r.NODE_CLAIMS].values()
        if one["metadata"]["uid"] == there.get(_REPLACES) and not read.is_leaving(one)
    ]
    if not replaced or read.labels(replaced[0]).get(_POOL) != pool["metadata"]["name"]:
        return "a NodeClaim that replaces none of its pool"
    if is_another_programs(dig(replaced[0], "metadata", "annotations") or {}):
        return "a NodeClaim for one whose deadline is another program's"
    theirs = dig(pool, "spec", "template", "metadata", "annotations") or {}
    whole = all(there.get(key) for key in _LEVER) and _is_our_lever(there)
    protected = whole or "karpenter.sh/do-not-disrupt" in theirs
    if there.get("tenure.dev/created-by") != "tenure" or not protected:
        return "a NodeClaim without our marks, or that Karpenter may remove while it is empty"
    return ""


def marked_beyond(written: Mapping[str, Any], claim: Obj) -> str:
    """How annotations of a claim are more than the marks of a replacement."""
    there = dig(claim, "metadata", "annotations") or {}
    if set(written) <= {"tenure.dev/expired-at"}:
        return ""
    if set(written) <= _GIVEN_UP:
        kept = any(value is not None for value in written.values())
        users = "karpenter.sh/do-not-disrupt" in written and not _is_our_lever(there)
        return "writes marks of a replacement, or a user's value" if kept or users else ""
    if others := sorted(set(written) - _COMMAND):
        return f"writes {', '.join(others)}"
    after = {key: value for key, value in {**there, **written}.items() if value is not None}
    if written.get(_REASON) is not None and written[_REASON] not in REASONS:
        return f"disrupts it for {written[_REASON]}"
    # What is left of a command of others goes as a whole, or stays.
    touched = any(written.get(key) is not None for key in written) or written.keys() & _SAY_WHOSE
    if not touched:
        return ""
    if _REPLACED_BY in after and after.get(_REASON) not in REASONS:
        return f"replaces it for {after.get(_REASON)}"
    if _REPLACED_BY in after and after.get("tenure.dev/disrupted-by") != "tenure":
        return "replaces it without a mark of ours"
    begins = _REPLACED_BY in after and _REPLACED_BY not in there
    if begins and is_another_programs(there):
        return "replaces it although its deadline is another program's"
    return ""


def _is_our_lever(there: Mapping[str, Any]) -> bool:
    marked = there.get("tenure.dev/do-not-disrupt-by") == "tenure"
    return marked and there.get("karpenter.sh/do-not-disrupt") == "true"
