"""Labels of the view: short forms of values.

What happened and why is always a verdict's own sentence; its phase is ``dashboard.fleet.phases``.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from tenure.model.cloud.offering import MICRO_DOLLARS
from tenure.sim.cloud.billing import Owed

_INSTANT: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)Z")
#: Not the end of another name: ``my-default/web`` is in a namespace of its own.
_NAMESPACE: Final = re.compile(r"(?<![\w.-])default/")


def short(sentence: str, now: datetime) -> str:
    """The sentence without today's date and the usual namespace; another day keeps its date."""
    today = f"{now:%Y-%m-%d}"

    def shown(found: re.Match[str]) -> str:
        return found[2] if found[1] == today else f"{found[1]} {found[2]}"

    return _NAMESPACE.sub("", _INSTANT.sub(shown, sentence))


def clock(instant: datetime, now: datetime | None = None) -> str:
    """With the date where it is another one than ``now`` has."""
    same = now is None or instant.date() == now.date()
    return f"{instant:%H:%M:%S}" if same else f"{instant:%Y-%m-%d %H:%M:%S}"


def span(length: timedelta) -> str:
    """``47s``, ``3m05s``, ``2h14m``."""
    seconds = int(length.total_seconds())
    if seconds < 60:
        return f"{seconds}s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}m{seconds:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m"


def money(micro_dollars: int) -> str:
    """At least two digits that say something: ``$1.24``, ``$0.0124``."""
    dollars = micro_dollars / MICRO_DOLLARS
    return f"${dollars:.2f}" if dollars >= 0.1 else f"${dollars:.4f}"


def owed(sum_: Owed, per: str = "") -> str:
    """``$1.24``, ``at least $1.24`` or ``an unknown sum``, with ``/h`` behind it for example."""
    known = "an unknown sum" if sum_.amount is None else sum_.said(money(sum_.known))
    return f"{known}{per}"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
