"""What there is to see at this instant: one row per node, and the totals.

A row is the node as ``tenure board`` and the page show it; what the screen says beside its phase is cut to a line.
The totals are the cloud's bill.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from tenure.cli.view import labels as words
from tenure.core.reasons import Reason
from tenure.dashboard.fleet.governing import governing
from tenure.dashboard.fleet.nodeview import shown_node
from tenure.dashboard.fleet.phases import BLOCKED, unsaid
from tenure.dashboard.fleet.prices import Prices
from tenure.dashboard.fleet.values import NodeView
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.snapshot import Snapshot
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.sim.cloud.billing import Owed
from tenure.sim.world import World


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    node: NodeView
    age: timedelta
    why: str
    next_: str

    @property
    def settled(self) -> bool:
        """Nothing is going on with it."""
        return self.node.reason == Reason.IN_SERVICE

    @property
    def only_waits(self) -> bool:
        """It is a candidate, and a gate blocks it."""
        return self.node.reason in BLOCKED


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    in_service: int = 0
    coming: int = 0
    terminating: int = 0
    running: int = 0
    pending: int = 0
    #: Per hour, and so far.
    hourly: Owed = Owed()
    spent: Owed = Owed()


class Board(msgspec.Struct, frozen=True, kw_only=True):
    now: datetime
    rows: tuple[NodeRow, ...]
    totals: Totals


def look(world: World) -> Board:
    snapshot, evaluator, now = world.controller.snapshot(), world.controller.evaluator, world.now
    claims = sorted(snapshot.claims.values(), key=lambda claim: (claim.created_at, claim.name))
    rows = tuple(
        row for claim in claims if (row := _row(claim, snapshot, evaluator, now)) is not None
    )
    return Board(now=now, rows=rows, totals=_totals(world, snapshot))


def _totals(world: World, snapshot: Snapshot) -> Totals:
    claims, pods = snapshot.claims.values(), snapshot.pods.values()
    return Totals(
        in_service=sum(claim.initialized and not claim.deleting for claim in claims),
        coming=sum(not claim.initialized and not claim.deleting for claim in claims),
        terminating=sum(claim.deleting for claim in claims),
        running=sum(pod.active and pod.ready for pod in pods),
        pending=sum(pod.active and not pod.ready for pod in pods),
        hourly=world.cloud.bill.owed_hourly(),
        spent=world.cloud.bill.owed(world.now),
    )


def _row(
    claim: NodeClaim, snapshot: Snapshot, evaluator: Evaluator, now: datetime
) -> NodeRow | None:
    node = next(iter(snapshot.nodes_with_provider(claim.provider_id).values()), None)
    verdict = governing(claim, node, evaluator)
    if verdict is None:
        return None  # Created this very instant; evaluated at the next turn.
    view = shown_node(claim, node, snapshot, evaluator, Prices()).view
    at = "" if view.next_at is None else f"{words.clock(view.next_at, now)} "
    return NodeRow(
        node=view,
        age=now - view.created_at,
        why=words.short(unsaid(verdict.facts, verdict.reason), now),
        next_=f"{at}{view.next}",
    )
