"""Beside Karpenter: are more Nodes open to disruption than the budgets of a NodePoolPolicy let go?

A Node is open without ``karpenter.sh/do-not-disrupt: "true"``. One that leaves has used its place. Budgets with
``within`` are not asked: how many nodes have left is known to Karpenter alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from tenure.errors import SpecError
from tenure.model.api import resource as r
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.check import read
from tenure.sim.check.read import State
from tenure.sim.check.truth import settled_pool

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
        for node in read.nodes_of(claim, state[r.NODES]):
            leaves = read.is_leaving(claim) or read.is_leaving(node)
            leaves = leaves or read.has_taint(node, "karpenter.sh/disrupted")
            is_open = read.annotation(node, read.DO_NOT_DISRUPT) != "true"
            unready = not read.says(node, "Ready")
            yield node, leaves or is_open or unready or node["metadata"]["name"] == opened
