"""What a forecast says. Instants are exact where they follow from the calendar and from what objects
say; of starts and ends only those that wait for nothing but the calendar are.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from tenure.core.facts import Fact


class WindowForecast(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    #: ``Block`` or ``Allow``.
    type: str
    actions: tuple[str, ...]
    #: How many Nodes it selects.
    nodes: int
    active: bool
    #: When it opens or closes, in turn.
    changes: tuple[datetime, ...] = ()
    #: Until when all changes are listed.
    known_until: datetime
    #: It is not active, and never will be.
    never: bool = False
    #: Why it cannot be understood; empty: it can.
    problem: str = ""


class BudgetForecast(msgspec.Struct, frozen=True, kw_only=True):
    """A budget with a schedule."""

    pool: str
    #: In ``spec.disruption.budgets``.
    index: int
    nodes: str
    active: bool
    changes: tuple[datetime, ...] = ()


class Expiry(msgspec.Struct, frozen=True, kw_only=True):
    """A node that exists becomes a candidate, because it expires."""

    at: datetime
    pool: str
    claim: str


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A disruption that begins."""

    at: datetime
    pool: str
    reason: str
    #: The claim; of a node that does not exist yet, the claim that it will replace.
    claim: str
    #: How many replacements there were since the forecast began; 0: the node exists now.
    generation: int = 0
    #: From when on it is a candidate.
    due_at: datetime
    #: When its instance terminates; None: its drain has no end.
    ends_at: datetime | None
    #: Whether a new node comes first.
    replaced: bool
    #: Its candidacy depends on the UID of a claim that does not exist yet.
    approximate: bool = False


class MomentKind(StrEnum):
    PROTECTION = "protection ends"
    DEADLINE = "deadline"
    BOOT = "boot time-out"
    REPAIR = "repair due"
    FORCED_EXPIRY = "forced expiry"


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """Something that ends or falls due at an instant."""

    at: datetime
    kind: MomentKind
    #: As in messages: ``Pod/default/web-1``.
    subject: str
    what: Fact


class Peak(msgspec.Struct, frozen=True):
    """The most nodes that are disrupted at once."""

    nodes: int = 0
    at: datetime | None = None


class Rotation(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of the candidates of one pool for one reason."""

    reason: str
    #: Candidates now, and those that become so within the horizon.
    now: int
    due: int
    #: Those of them that are replacements, and do not exist yet.
    again: int = 0
    #: Those that start within the horizon.
    started: int = 0
    #: Those that exist now and become older than ``expireAfter`` before they start, and by how much
    #: the last of them.
    late: int = 0
    late_by: timedelta = timedelta()
    #: The longest that a candidate waits for its start.
    longest: timedelta = timedelta()
    last_start: datetime | None = None
    #: Those that do not start, and of these the ones that nothing opens for.
    waiting: int = 0
    never: int = 0
    #: Those that start, or wait at the end, for another reason.
    otherwise: int = 0
    #: Those that do not start, and have waited for a day or more then.
    overdue: int = 0
    #: What blocks those that do not start, with how many.
    why: tuple[tuple[int, Fact], ...] = ()

    @property
    def in_time(self) -> bool:
        return not (self.late or self.never or self.overdue)


class PoolForecast(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    nodes: int
    #: How long its new nodes take, by its own launches; None: it has none yet.
    launch_takes: timedelta | None
    peak: Peak = Peak()
    rotations: tuple[Rotation, ...] = ()
    #: How many of its nodes Karpenter expires within the horizon, beside which Tenure runs.
    expired_by_force: int = 0
    #: Why nothing of it is disrupted by choice; empty: it may be.
    problem: str = ""


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    until: datetime
    windows: tuple[WindowForecast, ...] = ()
    budgets: tuple[BudgetForecast, ...] = ()
    #: Those that are still to come, in order.
    expiries: tuple[Expiry, ...] = ()
    moments: tuple[Moment, ...] = ()
    starts: tuple[Start, ...] = ()
    pools: tuple[PoolForecast, ...] = ()
    peak: Peak = Peak()
    #: What the reader has to know, a sentence each.
    notes: tuple[str, ...] = ()
