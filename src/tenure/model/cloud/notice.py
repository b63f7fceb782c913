"""What a cloud announces about an instance before it happens."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec


class NoticeKind(StrEnum):
    #: The cloud takes the instance back: spot capacity that it needs elsewhere.
    INTERRUPTION = "Interruption"
    #: An interruption has become more likely. The instance may run on for days.
    REBALANCE = "Rebalance"


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    kind: NoticeKind
    provider_id: str
    #: When the cloud announced it.
    at: datetime
    #: When the instance is taken away; None where the cloud does not say, or does not take it.
    deadline: datetime | None = None
    #: By which the cloud knows the notice when it is acknowledged; means nothing to us.
    receipt: str = ""
