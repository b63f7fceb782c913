"""What there is to see at this instant: one row per node, and the totals.

Everything is read from where it is decided: verdicts in force, claims, nodes and pods as
Tenure sees them, and the cloud's bill.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from tenure.cli.view import labels as words
from tenure.core.decision import Verdict
from tenure.core.reasons import Reason
from tenure.dashboard.fleet.governing import governing, next_step
from tenure.dashboard.fleet.phases import BLOCKED, phase, unsaid
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.snapshot.snapshot import Snapshot
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.sim.cloud.billing import Owed
from tenure.sim.world import World


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    instance_type: str
    zone: str
    capacity_type: str
    age: timedelta
    pods: int
    reason: Reason
    phase: str
    why: str
    next_: str

    @property
    def settled(self) -> bool:
        """Nothing is going on with it."""
        return self.reason is Reason.IN_SERVICE

    @property
    def only_waits(self) -> bool:
        """It is a candidate, and a gate blocks it."""
        return self.reason in BLOCKED


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
    nodes = snapshot.nodes_with_provider(claim.provider_id)
    node = next(iter(nodes.values()), None)
    verdict = governing(claim, node, evaluator)
    if verdict is None:
        return None  # Created this very instant; evaluated at the next turn.
    pods = [pod for pod in _pods(node, snapshot) if not pod.finished]
    return NodeRow(
        name=claim.name,
        instance_type=claim.instance_type,
        zone=claim.zone,
        capacity_type=claim.capacity_type,
        age=now - claim.created_at,
        pods=len(pods),
        reason=verdict.reason,
        phase=phase(verdict.reason, verdict.facts),
        why=words.short(unsaid(verdict.facts, verdict.reason), now),
        next_=_next(verdict, pods, evaluator, now),
    )


def _pods(node: Node | None, snapshot: Snapshot) -> Iterator[Pod]:
    if node is not None:
        yield from snapshot.pods_on(node.name).values()


def _next(verdict: Verdict, pods: list[Pod], evaluator: Evaluator, now: datetime) -> str:
    """What happens next, and when: the earliest instant that a verdict names."""
    at, pod, what = next_step(verdict, pods, evaluator)
    if at is None:
        return what
    return f"{words.clock(at, now)} {f'{pod}: ' if pod else ''}{what}"
