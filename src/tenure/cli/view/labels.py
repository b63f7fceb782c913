"""Labels of the view: short forms of sentences and sums; of values those that the board shows, too.

What happened and why is always a verdict's own sentence; its phase is ``dashboard.fleet.phases``.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from tenure.dashboard.fleet.words import clock, count, money, span
from tenure.sim.cloud.billing import Owed

__all__ = ["clock", "count", "money", "owed", "short", "span"]

_INSTANT: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)Z")
#: Not the end of another name: ``my-default/web`` is in a namespace of its own.
_NAMESPACE: Final = re.compile(r"(?<![\w.-])default/")


def short(sentence: str, now: datetime) -> str:
    """The sentence without today's date and the usual namespace; another day keeps its date."""
    today = f"{now:%Y-%m-%d}"

    def shown(found: re.Match[str]) -> str:
        return found[2] if found[1] == today else f"{found[1]} {found[2]}"

    return _NAMESPACE.sub("", _INSTANT.sub(shown, sentence))


def owed(sum_: Owed, per: str = "") -> str:
    """``$1.24``, ``at least $1.24`` or ``an unknown sum``, with ``/h`` behind it for example."""
    known = "an unknown sum" if sum_.amount is None else sum_.said(money(sum_.known))
    return f"{known}{per}"
