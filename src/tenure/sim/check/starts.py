"""The starts of commands and reboots as they truly were, for budgets with ``within``.

They are noted when the mark is written, apart from what Tenure records in the pool's status: so a
start that Tenure forgets, or records too early, is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from tenure.model.api import resource as r
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.check import read
from tenure.sim.check.read import State
from tenure.sim.check.truth import settled_pool

_DAY = timedelta(hours=24)
_POOL = "karpenter.sh/nodepool"


class Start(msgspec.Struct, frozen=True):
    at: datetime
    pool_uid: str
    labels: dict[str, str]
    #: The longest span of the pool's budgets then: for so long it had to be remembered.
    kept: timedelta


class Starts:
    def __init__(self) -> None:
        self._all: list[Start] = []

    def of(self, pool: Obj | None) -> tuple[Start, ...]:
        uid = dig(pool, "metadata", "uid")
        return tuple(start for start in self._all if start.pool_uid == uid)

    def wrote(self, before: Obj, after: Obj, states: Iterator[State], now: datetime) -> None:
        """Tenure has written a claim: notes the start if this was one.

        ``states``: those that Tenure may still have seen, the latest first. What has not had a
        budget with ``within`` in all of them was not recorded, perhaps.
        """
        if not _begins(before, after) or not read.says(before, "Initialized"):
            return
        self._all = [start for start in self._all if now - start.at < _DAY]
        name, spans, found = read.labels(after).get(_POOL, ""), list[timedelta](), list[Start]()
        for state in states:
            pool = settled_pool(state[r.NODE_POOLS].get(name), state[r.NODE_POOL_POLICIES])
            if pool is None or (span := _longest(pool)) is None:
                return
            spans.append(span)
            for node in read.nodes_of(after, state[r.NODES]):
                found.append(Start(now, pool["metadata"]["uid"], dict(read.labels(node)), span))
        if found:
            self._all.append(msgspec.structs.replace(found[0], kept=min(spans)))

    def pool_changed(self, pool: Obj) -> None:
        """Nothing has to be remembered for longer than its budgets say now: a policy's are among them."""
        longest, uid = _longest(pool), pool["metadata"]["uid"]
        others = [start for start in self._all if start.pool_uid != uid]
        own = [start for start in self._all if start.pool_uid == uid and longest is not None]
        most = longest or timedelta()
        self._all = others + [
            msgspec.structs.replace(start, kept=min(start.kept, most)) for start in own
        ]


def too_many(budget: Obj, allowed: int, node: Obj, starts: tuple[Start, ...], now: datetime) -> str:
    """Whether one more start is beyond the budget; ``allowed``: how many it lets start in its span."""
    span, per = within(budget) or _DAY, budget.get("per")
    own = read.labels(node).get(per) if per else None
    counted = [
        start
        for start in starts
        if now - start.at < min(span, start.kept)
        and read.is_selected(budget.get("selector"), start.labels)
        and (per is None or start.labels.get(per) == own)
    ]
    if len(counted) + 1 <= allowed:
        return ""
    return f"{allowed} may start in any {budget['within']}, {len(counted)} others did"


def within(budget: Obj) -> timedelta | None:
    if "within" not in budget:
        return None
    return read.span(budget["within"]) or _DAY


def _longest(pool: Obj) -> timedelta | None:
    budgets = dig(pool, "spec", "disruption", "budgets") or []
    spans = (within(one) for one in budgets if isinstance(one, dict))
    return max((one for one in spans if one is not None), default=None)


def _begins(before: Obj, after: Obj) -> bool:
    mark = "karpenter.sh/replaced-by"
    if read.annotation(before, mark) is None and read.annotation(after, mark) is not None:
        return True
    bound = read.annotation(after, "karpenter.sh/reboot-termination-grace-period")
    paced = read.span(bound) != timedelta()
    return paced and not read.says(before, "Rebooting") and read.says(after, "Rebooting")
