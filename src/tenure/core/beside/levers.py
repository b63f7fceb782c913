"""Decide for every Node with a NodeClaim whether Karpenter may disrupt it voluntarily, or repair it.

A lever is an annotation that Karpenter honours (``kinds``, ``mark``); one decider for each. What is concluded
of one Node is in ``onenode``. The Nodes of a pool with budgets that Karpenter does not know are decided
together (``limits``): their key is that of the pool.

Nodes that Karpenter could disrupt next are first: their claim is Drifted or Consolidatable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from tenure.core.beside.cover import Causes, cover_of
from tenure.core.beside.departures import pools_touched, unrecorded
from tenure.core.beside.karpenter import karpenter_of
from tenure.core.beside.kinds import DISRUPTION, LeverKind
from tenure.core.beside.limits import closed, limited
from tenure.core.beside.mark import levers_on
from tenure.core.beside.onenode import LeverView, node_verdicts
from tenure.core.beside.poolnodes import PoolLeverView, pool_verdicts
from tenure.core.beside.replacing.stand import replacing_of, stand_of
from tenure.core.decision import Subject, Verdict
from tenure.core.gates.fleet import fleet_of
from tenure.core.marks.command import replaced_uids, replacements_by_uid
from tenure.core.protect.protection import protection_on
from tenure.core.windows.windows import windows_for_commands
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import CONSOLIDATABLE_CONDITION, DRIFTED_CONDITION
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import (
    CRDS,
    DEPLOYMENTS,
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOL_POLICIES,
    NODE_POOLS,
    NODES,
)
from tenure.model.api.window import MaintenanceWindow
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

#: Prefix of the key of a pool; no name of a Node can contain a slash.
_POOL: Final = "pool/"


class LeverDecider:
    def __init__(self, settings: Settings, kind: LeverKind = DISRUPTION) -> None:
        self._settings = settings
        self._kind = kind
        self.concern = kind.concern
        #: Budgets do not limit repair by levers.
        self._by_pool = kind == DISRUPTION

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        yield from snapshot.nodes
        if self._by_pool:
            yield from (_POOL + name for name in snapshot.pools)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODES:
            yield change.key
        elif change.resource == NODE_CLAIMS:
            for claim in change.versions():
                assert isinstance(claim, NodeClaim)
                replacements = snapshot.once(replacements_by_uid).get(claim.uid, ())
                for one in (claim, *replacements):
                    yield from snapshot.nodes_with_provider(one.provider_id)
                if is_unreadable(claim) or _launches(claim):
                    yield from snapshot.nodes  # It may be that of any Node without one.
        elif change.resource in (DEPLOYMENTS, CRDS) or _alters_windows(change) or _lists(change):
            yield from self.keys(snapshot)
        if self._by_pool:
            yield from _pools_touched(change, snapshot)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> LeverView | PoolLeverView | None:
        if key.startswith(_POOL):
            return self._view_of_pool(key.removeprefix(_POOL), snapshot)
        node = snapshot.nodes.get(key)
        claim = snapshot.claim_of(node) if node is not None else None
        if node is None or is_unreadable(node):
            return None
        if claim is None:
            return self._view_without_claim(node, snapshot)
        if self._by_pool and _limited(claim.pool_name, snapshot) is not None:
            return None  # The key of the pool has it.
        return self._view_of_node(node, claim, snapshot)

    def _view_without_claim(self, node: Node, snapshot: Snapshot) -> LeverView | None:
        """What was set while it had one. Of several claims it is not known which one Karpenter takes; and the Node of a
        replacement can be there before its claim says so."""
        if self._kind not in levers_on(node):
            return None
        unknown = any(resource == NODE_CLAIMS for resource, _ in snapshot.unreadable())
        launching = any(map(_launches, snapshot.replacing_claims().values()))
        if unknown or launching or snapshot.claims_with_provider(node.spec.provider_id):
            return None
        return LeverView(
            causes=Causes(kind=self._kind, node=node, claim=None),
            karpenter=karpenter_of(snapshot, self._settings),
            leaves=node.deleting,
        )

    def _view_of_node(self, node: Node, claim: NodeClaim, snapshot: Snapshot) -> LeverView:
        stand = stand_of(claim, snapshot) if self._kind == DISRUPTION else None
        return LeverView(
            causes=Causes(
                kind=self._kind,
                node=node,
                claim=claim,
                windows=windows_for_commands(self._kind.actions, snapshot),
                protection=protection_on(claim, self._kind.annotation),
                replacing=replacing_of(claim, node, stand) if self._kind == DISRUPTION else None,
            ),
            karpenter=karpenter_of(snapshot, self._settings),
            leaves=node.deleting or claim.deleting,
            next=_is_next(claim),
            policies_unlisted=snapshot.unlisted(NODE_POOL_POLICIES),
            stand=stand,
        )

    def _view_of_pool(self, name: str, snapshot: Snapshot) -> PoolLeverView | None:
        pool = _limited(name, snapshot)
        if pool is None:
            return None
        return PoolLeverView(
            pool=pool,
            fleet=fleet_of(name, snapshot),
            nodes=tuple(
                self._view_of_node(node, claim, snapshot)
                for node, claim in sorted(_pairs_of(name, snapshot), key=lambda it: it[0].name)
                if not is_unreadable(node)
            ),
            departures=unrecorded(pool, snapshot),
        )

    def decide(
        self, view: LeverView | PoolLeverView, settings: Settings, now: datetime
    ) -> Sequence[Verdict]:
        if isinstance(view, PoolLeverView):
            return tuple(pool_verdicts(view, now))
        return node_verdicts(view, cover_of(view.causes, now), now)


def _launches(claim: NodeClaim) -> bool:
    """A replacement, which has its lever from its creation on, without an instance so far."""
    return not claim.provider_id and bool(replaced_uids(claim))


def _pools_touched(change: Change, snapshot: Snapshot) -> Iterator[str]:
    if change.resource == NODE_POOLS:
        yield _POOL + change.key
        if _limits(change.old) != _limits(change.new):
            yield from _nodes_of(change.key, snapshot)
    elif change.resource == NODE_POOL_POLICIES:
        for resource, name in snapshot.unreadable():
            if resource == NODE_POOLS:
                yield _POOL + name
                yield from _nodes_of(name, snapshot)
    elif change.resource in (NODES, NODE_CLAIMS):
        yield from (_POOL + name for name in pools_touched(change, snapshot))


def _nodes_of(pool: str, snapshot: Snapshot) -> Iterator[str]:
    return (node.name for node, _ in _pairs_of(pool, snapshot))


def _pairs_of(pool: str, snapshot: Snapshot) -> Iterator[tuple[Node, NodeClaim]]:
    """The Nodes with one claim, of this pool: a Node counts by its claim, and not by its label."""
    for claim in snapshot.claims_of_pool(pool).values():
        for node in snapshot.nodes_with_provider(claim.provider_id).values():
            if snapshot.claim_of(node) is claim:
                yield node, claim


def _limited(pool_name: str, snapshot: Snapshot) -> NodePool | None:
    pool = snapshot.pools.get(pool_name)
    if pool is None:
        return None
    if is_unreadable(pool):  # Which policy is for it cannot be read.
        return closed(pool) if snapshot.pool_policies else None
    return limited(pool)


def _limits(pool: ApiObject | None) -> bool | None:
    """None: that cannot be read. A pool that is gone limits nothing."""
    if pool is None:
        return False
    assert isinstance(pool, NodePool)
    return None if is_unreadable(pool) else limited(pool) is not None


def _is_next(claim: NodeClaim) -> bool:
    for type_ in (DRIFTED_CONDITION, CONSOLIDATABLE_CONDITION):
        condition = claim.condition(type_)
        if condition is not None and condition.status == "True":
            return True
    return False


def _alters_windows(change: Change) -> bool:
    """Whether windows may forbid something else: our own writes of their status do not."""
    if change.resource != MAINTENANCE_WINDOWS:
        return False
    return _meaning(change.old) != _meaning(change.new) or change.new is None


def _lists(change: Change) -> bool:
    """Whether policies can be listed again, or no longer."""
    return change.resource == NODE_POOL_POLICIES and not change.key


def _meaning(window: ApiObject | None) -> object:
    if not isinstance(window, MaintenanceWindow) or is_unreadable(window):
        return window  # A stand-in is compared as a whole.
    return window.spec
