"""Nodes that go because they are empty, at once or when a window or a budget lets them: no pod is moved onto them.

A pod that is moved there keeps a node that would go, for another one that would stay: nothing is saved, and its
pods are disturbed. A window or a budget that keeps empty nodes keeps room for pods that arrive: if pods were moved
there, nodes with pods would go in place of the empty ones. Where a protection keeps the empty node, it
stays anyway, and may as well take pods.
"""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.disrupt.consolidation.eligible import Pools
from tenure.core.disrupt.emptiness import consolidate_after, is_occupied, pods_expected
from tenure.core.gates.gates import first_blocked
from tenure.core.gates.operations import BEFORE_PLAN, Gate, Operation
from tenure.core.gates.reasons import TRAITS, Disruption
from tenure.core.marks.candidacy import node_of
from tenure.model.api.names import EMPTY_CONDITION
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.packing.demand.steps import NODES_A_STEP, Steps

_EMPTY: Final = TRAITS[Disruption.EMPTY]
#: Those of a single node. Windows and budgets only say when it goes.
_GATES: Final = BEFORE_PLAN - {Gate.BUDGET, Gate.WINDOW}


class GoingEmpty(msgspec.Struct, frozen=True, kw_only=True):
    #: Names of Nodes.
    nodes: frozenset[str] = frozenset()
    #: When other ones may go although nothing happens.
    instants: tuple[datetime, ...] = ()


def going_empty(
    snapshot: Snapshot, settings: Settings, now: datetime, despite: Set[Gate] = frozenset()
) -> Steps[GoingEmpty]:
    """In steps: the nodes that the method Empty takes away, as if the gates in ``despite`` were open."""
    pools, found, instants = Pools(snapshot, _EMPTY), set[str](), list[datetime]()
    said = snapshot.claims_that_say(EMPTY_CONDITION)
    for number, claim in enumerate(tuple(said.values()), start=1):
        if not number % NODES_A_STEP:
            yield
        node = node_of(claim, snapshot)
        if node is None or not _is_empty(claim, node, snapshot):
            continue
        stays, changes_at = _stays(claim, node, pools, snapshot, settings, now, despite)
        if not stays:
            found.add(node.name)
        if changes_at is not None:
            instants.append(changes_at)
    return GoingEmpty(nodes=frozenset(found), instants=tuple(instants))


def still_going(nodes: Set[str], snapshot: Snapshot) -> frozenset[str]:
    """Those of them that are empty by now."""
    said = snapshot.claims_that_say(EMPTY_CONDITION).values() if nodes else ()
    empty = ((claim, node_of(claim, snapshot)) for claim in said)
    return frozenset(
        node.name
        for claim, node in empty
        if node is not None and node.name in nodes and _is_empty(claim, node, snapshot)
    )


def _is_empty(claim: NodeClaim, node: Node, snapshot: Snapshot) -> bool:
    pool = snapshot.pools[claim.pool_name]
    if consolidate_after(pool.spec.disruption.consolidate_after) is None:
        return False
    return not is_occupied(node, snapshot) and pods_expected(claim, node, snapshot)[0] is None


def _stays(
    claim: NodeClaim,
    node: Node,
    pools: Pools,
    snapshot: Snapshot,
    settings: Settings,
    now: datetime,
    despite: Set[Gate],
) -> tuple[bool, datetime | None]:
    """Whether a gate keeps it, and when that may differ."""
    facts = pools.of(claim.pool_name).asked_of(claim, node, snapshot)
    blocked = first_blocked(Operation.VOLUNTARY, facts, settings, now, only=_GATES - despite)
    return (False, None) if blocked is None else (True, blocked.recheck_at)
