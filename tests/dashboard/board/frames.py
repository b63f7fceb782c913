"""Frames made by hand, and a source that shows them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tenure.dashboard.board.app import Board
from tenure.dashboard.board.source import Listener, PodLine
from tenure.dashboard.fleet.values import (
    BlockerView,
    Frame,
    Lane,
    NodeView,
    PendingPod,
    PoolView,
    Share,
    Tone,
    Totals,
)

NOW = datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
GIB = 1 << 30


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def node(name: str, **fields: Any) -> NodeView:
    usual = {
        "key": f"NodeClaim/{name}",
        "name": name,
        "node": f"node-{name}",
        "pool": "general",
        "zone": "eu-west-1a",
        "instance_type": "m5.xlarge",
        "capacity_type": "on-demand",
        "phase": "in service",
        "tone": Tone.SERVING,
        "reason": "InService",
        "because": "initialized at 2026-01-05T08:01:00Z",
        "created_at": NOW - minutes(30),
        "price": 192_000,
        "pods": 7,
        "cpu": Share(requested=2500, allocatable=4000),
        "memory": Share(requested=6 * GIB, allocatable=16 * GIB),
    }
    return NodeView(**{**usual, **fields})


def frame(*nodes: NodeView, at: datetime = NOW, **fields: Any) -> Frame:
    pools = sorted({one.pool for one in nodes if one.pool})
    usual: dict[str, Any] = {
        "cluster": "staging",
        "leader": "tenure-0 (Lease kube-system/karpenter-leader-election)",
        "totals": Totals(
            nodes=_tones(nodes),
            running=sum(one.pods for one in nodes),
            price=sum(one.price or 0 for one in nodes),
            unpriced=sum(one.price is None for one in nodes),
        ),
        "pools": tuple(_pool(name, nodes) for name in pools),
    }
    return Frame(at=at, nodes=nodes, **{**usual, **fields})


def _tones(nodes: tuple[NodeView, ...]) -> dict[Tone, int]:
    return {tone: number for tone in Tone if (number := sum(one.tone is tone for one in nodes))}


def _pool(name: str, nodes: tuple[NodeView, ...]) -> PoolView:
    here = tuple(one for one in nodes if one.pool == name)
    return PoolView(
        name=name,
        nodes=_tones(here),
        price=sum(one.price or 0 for one in here),
        unpriced=sum(one.price is None for one in here),
        reason="PoolReady",
        because="3 of 10 cpu are used",
    )


def story() -> Frame:
    """One node of each tone, in two pools and three zones, and one without a pool."""
    return frame(
        node("general-4nv74"),
        node(
            "general-9xk2p",
            zone="eu-west-1b",
            phase="draining",
            tone=Tone.LEAVING,
            reason="EvictionRefused",
            because="2 of 9 pods are left; PDB default/web allows 0 more disruptions",
            next="eviction retried",
            next_at=NOW + minutes(0.5),
            deadline=NOW + minutes(15),
            blockers=(
                BlockerView(
                    subject="PodDisruptionBudget/default/web",
                    message="allows 0 more disruptions",
                    until=NOW + minutes(0.5),
                ),
            ),
            pods=2,
            cpu=Share(requested=400, allocatable=4000),
        ),
        node(
            "general-b7c8d",
            zone="eu-west-1c",
            phase="booting",
            tone=Tone.COMING,
            reason="Launched",
            because="waiting for the Node to appear",
            next="launch fails",
            next_at=NOW + minutes(4),
            node="",
            pods=0,
            cpu=None,
            memory=None,
        ),
        node(
            "gpu-26szh",
            pool="gpu",
            instance_type="g5.2xlarge",
            capacity_type="spot",
            phase="expired",
            tone=Tone.WAITING,
            reason="DisruptionBlocked",
            because="MaintenanceWindow nights is closed",
            next="the window opens",
            next_at=NOW + timedelta(hours=13, minutes=30),
            price=None,
            cpu=Share(requested=7800, allocatable=8000),
        ),
        node(
            "gpu-x7k2p",
            pool="gpu",
            zone="eu-west-1b",
            instance_type="g5.2xlarge",
            phase="unhealthy",
            tone=Tone.UNHEALTHY,
            reason="RepairBlocked",
            because="1 of 2 Nodes of NodePool gpu are unhealthy; maxUnhealthy allows 20%",
            price=1_212_000,
        ),
        node(
            "ip-10-0-0-1",
            key="Node/ip-10-0-0-1",
            node="ip-10-0-0-1",
            pool="",
            phase="foreign",
            tone=Tone.FOREIGN,
            reason="NotOurs",
            because="has no NodeClaim",
            price=None,
        ),
        totals=Totals(
            nodes={Tone.SERVING: 1, Tone.COMING: 1, Tone.WAITING: 1, Tone.LEAVING: 1}
            | {Tone.UNHEALTHY: 1, Tone.FOREIGN: 1},
            running=41,
            pending=3,
            price=1_788_000,
            unpriced=2,
        ),
        pending=(
            PendingPod(
                key="Pod/team-a/train-0",
                name="train-0",
                namespace="team-a",
                reason="FailedScheduling",
                because="NodePool gpu: limit of 16 nvidia.com/gpu is reached",
                since=NOW - minutes(12),
            ),
        ),
    )


def fleet(count: int) -> Frame:
    pools = [f"pool-{number:02}" for number in range(10)]
    tones = list(Tone)
    return frame(
        *(
            node(
                f"{pools[number % 10]}-{number:05}",
                pool=pools[number % 10],
                zone=f"zone-{number % 3}",
                tone=tones[number % 5],
                pods=number % 30,
            )
            for number in range(count)
        )
    )


class Shown:
    """A source of frames that a test pushes by hand; questions have the answers that it is given."""

    title = "by hand"

    def __init__(self, *frames: Frame, **answers: Any) -> None:
        self.frames = frames
        self.answers = answers
        self.asked: list[tuple[str, ...]] = []
        self._end = threading.Event()

    def run(self, listener: Listener) -> None:
        for one in self.frames:
            listener.show(one)
        self._end.wait()

    def stop(self) -> None:
        self._end.set()

    def explain(self, subject: str, width: int) -> str:
        self.asked.append(("explain", subject))
        return str(self._answer("explain"))

    def pods(self, key: str) -> tuple[PodLine, ...]:
        self.asked.append(("pods", key))
        return tuple(self._answer("pods"))

    def lane(self, key: str) -> Lane | None:
        self.asked.append(("lane", key))
        found: Lane | None = self._answer("lane")
        return found

    def _answer(self, what: str) -> Any:
        answer = self.answers.get(what)
        if isinstance(answer, Exception):
            raise answer
        return answer


def screen_text(board: Board) -> str:
    """What a user sees, line by line."""
    return "\n".join(line.rstrip() for line in screen_lines(board))


def screen_lines(board: Board) -> Iterator[str]:
    for strip in board.screen._compositor.render_strips():
        yield "".join(segment.text for segment in strip)


def changed(one: Frame, key: str, **fields: Any) -> Frame:
    nodes = tuple(
        msgspec.structs.replace(view, **fields) if view.key == key else view for view in one.nodes
    )
    return msgspec.structs.replace(one, nodes=nodes)
