"""What was seen of each node since this replica began: its phases, instants that stand out, and what all nodes cost.

Bounded: so many lanes, so many segments of one, so many samples of the cost. The oldest is forgotten first, gone nodes
before those that exist; the history says so (``cut``).
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.dashboard.fleet.texts import cut
from tenure.dashboard.fleet.values import Cost, Frame, History, Lane, Mark, NodeView, Segment, Tone

LANES_MAX: Final = 2000
#: Of nodes that are gone.
GONE_MAX: Final = 500
SEGMENTS_MAX: Final = 12
MARKS_MAX: Final = 8
BECAUSE_MAX: Final = 160
#: Segments of a lane that keep their sentence: the last ones. Each reader who is slow holds a copy of all.
TOLD: Final = 2
#: Samples of the cost. When there are so many, each second one is forgotten, and they are taken half as often.
SAMPLES_MAX: Final = 720
SAMPLED_EVERY: Final = timedelta(seconds=10)


class _Lane(msgspec.Struct):
    key: str
    name: str
    pool: str
    zone: str
    segments: list[Segment] = []
    marks: list[Mark] = []
    gone: bool = False

    def value(self) -> Lane:
        return Lane(
            key=self.key,
            name=self.name,
            pool=self.pool,
            zone=self.zone,
            segments=tuple(self.segments),
            marks=tuple(self.marks),
        )


class Recorder:
    def __init__(self) -> None:
        self._since: datetime | None = None
        self._at: datetime | None = None
        self._cut = False
        #: The one that changed longest ago first.
        self._lanes: OrderedDict[str, _Lane] = OrderedDict()
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._views: dict[str, NodeView] = {}
        self._cost: list[Cost] = []
        self._every = SAMPLED_EVERY

    def record(self, frame: Frame) -> None:
        """Each frame, in order; one whose instant is before the last one is of a clock that was set back."""
        if self._since is None:
            self._since = frame.at
        self._at = frame.at
        views = {view.key: view for view in frame.nodes}
        for key in self._views.keys() - views.keys():
            self._ended(key, frame.at)
        for key, view in views.items():
            before = self._views.get(key)
            if before is not view:
                self._changed(view, before, frame.at)
        self._views = views
        self._sample(frame)
        self._forget()

    def history(self) -> History | None:
        """None before the first frame."""
        if self._since is None or self._at is None:
            return None
        return History(
            since=self._since,
            at=self._at,
            cut=self._cut,
            lanes=tuple(one.value() for one in self._lanes.values()),
            cost=tuple(self._cost),
        )

    # -- lanes ---------------------------------------------------------------------------

    def _changed(self, view: NodeView, before: NodeView | None, at: datetime) -> None:
        lane = self._lanes.get(view.key)
        if lane is None:
            lane = _Lane(view.key, view.name, view.pool, view.zone)
            self._lanes[view.key] = lane
            self._mark(lane, Mark(at=view.created_at, what="created"))
        lane.zone = view.zone or lane.zone
        lane.pool = view.pool or lane.pool
        lane.gone = False
        self._gone.pop(view.key, None)
        self._lanes.move_to_end(view.key)
        self._step(lane, view, at)
        if before is not None:
            self._mark_change(lane, view, before, at)
        if view.deadline is not None and (before is None or before.deadline != view.deadline):
            lane.marks = [mark for mark in lane.marks if mark.what != "deadline"]
            self._mark(lane, Mark(at=view.deadline, what="deadline"))

    def _step(self, lane: _Lane, view: NodeView, at: datetime) -> None:
        segment = Segment(
            begin=at,
            phase=view.phase,
            tone=view.tone,
            reason=view.reason,
            because=cut(view.because, BECAUSE_MAX),
        )
        last = lane.segments[-1] if lane.segments else None
        if last is not None and last.end is None:
            if (last.phase, last.tone, last.reason) == (view.phase, view.tone, view.reason):
                lane.segments[-1] = msgspec.structs.replace(segment, begin=last.begin)
                return
            lane.segments[-1] = msgspec.structs.replace(last, end=at)
        lane.segments.append(segment)
        if len(lane.segments) > TOLD:
            untold = lane.segments[-TOLD - 1]
            lane.segments[-TOLD - 1] = msgspec.structs.replace(untold, because="")
        if len(lane.segments) > SEGMENTS_MAX:
            del lane.segments[0]
            self._cut = True

    def _mark_change(self, lane: _Lane, view: NodeView, before: NodeView, at: datetime) -> None:
        if before.phase == view.phase:
            return
        because = cut(view.because, BECAUSE_MAX)
        if view.phase == "booting":
            self._mark(lane, Mark(at=at, what="launched", because=because))
        elif before.tone is Tone.COMING and view.tone is Tone.SERVING:
            self._mark(lane, Mark(at=at, what="ready", because=because))

    def _mark(self, lane: _Lane, mark: Mark) -> None:
        lane.marks.append(mark)
        if len(lane.marks) > MARKS_MAX:
            del lane.marks[0]
            self._cut = True

    def _ended(self, key: str, at: datetime) -> None:
        lane = self._lanes.get(key)
        if lane is None:
            return
        if lane.segments and lane.segments[-1].end is None:
            lane.segments[-1] = msgspec.structs.replace(lane.segments[-1], end=at)
        lane.gone = True
        self._mark(lane, Mark(at=at, what="gone"))
        self._gone[key] = None

    def _forget(self) -> None:
        while len(self._gone) > GONE_MAX:
            self._drop(next(iter(self._gone)))
        while len(self._lanes) > LANES_MAX:
            self._drop(next(iter(self._gone), next(iter(self._lanes))))

    def _drop(self, key: str) -> None:
        self._gone.pop(key, None)
        del self._lanes[key]
        self._cut = True

    # -- cost ----------------------------------------------------------------------------

    def _sample(self, frame: Frame) -> None:
        totals = frame.totals
        if self._cost and abs(frame.at - self._cost[-1].at) < self._every:
            return
        self._cost.append(
            Cost(
                at=frame.at,
                price=totals.price,
                nodes=sum(totals.nodes.values()),
                unpriced=totals.unpriced,
            )
        )
        if len(self._cost) > SAMPLES_MAX:
            self._cost = self._cost[::2]
            self._every *= 2
