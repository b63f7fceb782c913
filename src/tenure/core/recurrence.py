"""A recurring period: whether it is active now, and when that may change.

It begins at each hit of a cron schedule and lasts for a duration: active from the hit on, inactive
from the exact end. Periods may overlap: then it stays active.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from tenure.model.api.meta import earlier, later
from tenure.model.values.cron import Cron

#: How many hits are followed to find the end of an active period. Where periods always overlap there
#: is no end; then it is active at least until the end of the last of these hits.
_HITS: Final = 64


class Phase(msgspec.Struct, frozen=True):
    on: bool
    #: Nothing changes before; None: never again.
    changes_at: datetime | None


def phase(cron: Cron, lasts: timedelta, zone: ZoneInfo, now: datetime) -> Phase:
    hit = cron.next_after(earlier(now, lasts), zone)
    if hit is None or hit > now:
        return Phase(False, hit)
    for _ in range(_HITS):
        following = cron.next_after(hit, zone)
        if following is None or following > later(hit, lasts):
            break
        hit = following
    return Phase(True, later(hit, lasts))
