"""What was seen of each node since the board began, and the instants at which its verdicts can change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.core.decision import Verdict
from tenure.dashboard.fleet.history import Recorder
from tenure.dashboard.fleet.nodeview import known
from tenure.dashboard.fleet.values import Frame, Lane, Mark
from tenure.model.api.resource import NODE_CLAIMS, NODES


class Lanes:
    def __init__(self) -> None:
        self._recorder = Recorder()

    def record(self, frame: Frame) -> None:
        self._recorder.record(frame)

    def lane(self, key: str, evaluated: EvaluatedCluster) -> Lane | None:
        """Of the node with that key; None for one that was never seen."""
        history = self._recorder.history()
        found = (one for one in history.lanes if one.key == key) if history is not None else ()
        lane = next(iter(found), None)
        if lane is None:
            return None
        return msgspec.structs.replace(lane, marks=(*lane.marks, *_foreseen(key, evaluated)))


def _foreseen(key: str, evaluated: EvaluatedCluster) -> Iterator[Mark]:
    """Of its claim and its Node; nothing changes before, unless the cluster does."""
    kind, _, name = key.partition("/")
    said: dict[tuple[datetime, str], Mark] = {}
    for verdict in _about(kind, name, evaluated):
        for mark in _marks(verdict):
            if mark.at > evaluated.at:
                said.setdefault((mark.at, mark.what), mark)
    yield from said.values()


def _about(kind: str, name: str, evaluated: EvaluatedCluster) -> Iterator[Verdict]:
    snapshot = evaluated.snapshot
    if kind == NODE_CLAIMS.kind:
        if (claim := snapshot.claims.get(name)) is None:
            return
        yield from evaluated.about(NODE_CLAIMS, claim)
        nodes = list(snapshot.nodes_with_provider(claim.provider_id).values())
    else:
        nodes = [node for node in (snapshot.nodes.get(name),) if node is not None]
    for node in nodes:
        yield from evaluated.about(NODES, node)


def _marks(verdict: Verdict) -> Iterator[Mark]:
    if (at := known(verdict.recheck_at)) is not None:
        what = f"{verdict.reason} can change"
        yield Mark(at=at, what=what, because=verdict.message, foreseen=True)
    for blocker in verdict.blockers:
        if (until := known(blocker.until)) is not None:
            what = f"{blocker.subject} blocks until then"
            yield Mark(at=until, what=what, because=blocker.message, foreseen=True)
