"""The facts about ``karpenter.sh/do-not-disrupt`` and ``karpenter.sh/do-not-repair``."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, Fact, unreadable
from tenure.core.protect.protection import UNREADABLE, Protection
from tenure.model.api.meta import FOR_EVER, format_time
from tenure.model.api.names import DO_NOT_DISRUPT, DO_NOT_REPAIR


class ProtectionEnded(Fact, frozen=True):
    value: str
    until: datetime
    #: The pool's ``maxPodProtection``, where that ended it.
    capped_by: str = ""

    def __str__(self) -> str:
        cap = f" (maxPodProtection {self.capped_by})" if self.capped_by else ""
        until = format_time(self.until)
        return f'{DO_NOT_DISRUPT}: "{self.value}" protected from disruption until {until}{cap}'


class DurationBegins(Fact, frozen=True):
    annotation: str
    value: str

    def __str__(self) -> str:
        return f'{self.annotation}: "{self.value}" counts from now on; recording the instant'


class DurationGone(Fact, frozen=True):
    annotation: str

    def __str__(self) -> str:
        return f"removing {self.annotation}: the duration that it belongs to is gone"


class VetoUnreadable(Fact, frozen=True):
    value: str

    def __str__(self) -> str:
        return f'{DO_NOT_REPAIR}: "{self.value}" {UNREADABLE} vetoes repair for ever'


EXAMPLES: Final[tuple[Fact, ...]] = (
    Protection("true", FOR_EVER),
    Protection("4h", AT),
    Protection("forever", FOR_EVER, unreadable=True),
    Protection("true", AT, capped_by="12h"),
    Protection("", FOR_EVER, problem=unreadable("Pod", "default/web-1", "spec.containers")),
    ProtectionEnded("4h", AT),
    ProtectionEnded("true", AT, capped_by="12h"),
    DurationBegins(DO_NOT_DISRUPT, "4h"),
    DurationGone(f"{DO_NOT_DISRUPT}-since"),
    VetoUnreadable("forever"),
)
