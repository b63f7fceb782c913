"""What would be done now, and why not the rest: every verdict in force, in three heaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from tenure.cli.scene import Scene
from tenure.core.decision import Concern, Verdict
from tenure.core.reasons import Reason

#: Things are as they should be, or none of our business: counted, not told.
SETTLED: Final = frozenset(
    {
        Reason.IN_SERVICE,
        Reason.NOT_OURS,
        Reason.INSTANCE_KNOWN,
        Reason.POOL_CURRENT,
        Reason.WINDOW_CURRENT,
        Reason.LEFT_ALONE,
    }
)
_ORDER: Final = {concern: position for position, concern in enumerate(Concern)}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    also_at: str
    #: In order of authority, then by name.
    to_do: tuple[Verdict, ...]
    not_now: tuple[Verdict, ...]
    settled: Mapping[Reason, int]
    #: When the earliest verdict can change by itself.
    next_at: datetime | None


def plan_of(scene: Scene) -> Plan:
    verdicts = sorted(scene.judge.in_force(), key=lambda v: (_ORDER[v.concern], v.subject))
    to_do = [verdict for verdict in verdicts if verdict.action is not None]
    quiet = [verdict for verdict in verdicts if verdict.action is None]
    settled = [v for v in quiet if v.reason in SETTLED and not v.blockers]
    return Plan(
        at=scene.at,
        also_at=scene.also_at,
        to_do=tuple(to_do),
        not_now=tuple(v for v in quiet if v.reason not in SETTLED or v.blockers),
        settled=Counter(v.reason for v in settled),
        next_at=_earliest(verdicts),
    )


def _earliest(verdicts: Iterable[Verdict]) -> datetime | None:
    instants = (verdict.recheck_at for verdict in verdicts if verdict.recheck_at is not None)
    return min(instants, default=None)
