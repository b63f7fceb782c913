"""Candidates for which the gates answer the same: the same pool and reason, the same labels where windows
or budgets ask for them. So thousands of nodes ask the gates as often as a few.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.disrupt.expiration import ALWAYS, SPREAD, SPREAD_MAX
from tenure.core.facts import Fact
from tenure.core.forecast.candidates import VOLUNTARY, Candidacy
from tenure.core.gates.gatefacts import GateFacts
from tenure.core.gates.gates import changes_at, first_blocked
from tenure.core.gates.operations import Gate, Operation
from tenure.core.gates.reasons import Disruption
from tenure.core.marks.timeout import span_of
from tenure.core.windows.facts import InvalidWindowBlocks, OutsideAllowWindows, WindowBlocks
from tenure.model.api.meta import FOR_EVER, later
from tenure.model.api.nodepool import NodePool
from tenure.model.settings import Settings

#: The gates that are the same for every node of a group. Budgets are counted on, and what of pods and
#: protections blocks a node is known by its instant.
_OF_GROUP: Final = frozenset({Gate.OFF, Gate.RULES, Gate.WINDOW, Gate.PAUSE})
_EXPIRED: Final = next(one for one in VOLUNTARY if one[1].traits.reason == Disruption.EXPIRED)

#: As the pipeline sorts its candidates.
SortKey = tuple[bool, int, bool, datetime, int, str]


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    candidacy: Candidacy
    labels: Mapping[str, str]
    generation: int = 0
    approximate: bool = False
    pods: int = 0
    #: Whether a new node has to come first.
    replaced: bool = True
    drains_until: datetime | None = None

    @property
    def sort_key(self) -> SortKey:
        candidacy = self.candidacy
        rank = candidacy.order, not candidacy.first, candidacy.due_at
        return not candidacy.launched, *rank, self.pods, candidacy.node.name


#: The order of the pipeline, then that of arrival.
Queued = tuple[SortKey, int, Candidate]


class CandidateGroup:
    """Candidates for which the gates answer the same, the first one first."""

    def __init__(self, one: Candidate, facts: GateFacts) -> None:
        self.operation, self.traits = one.candidacy.operation, one.candidacy.traits
        self.pool, self.labels, self.facts = one.candidacy.claim.pool_name, one.labels, facts
        #: Sorted.
        self.waiting: list[Queued] = []
        self.why: Fact | None = None
        self._is_open = False
        self._asked: datetime | None = None
        self.opens_at: datetime | None = None

    def is_open(self, settings: Settings, now: datetime) -> bool:
        """By the gates that depend on time alone; ``opens_at``: when to ask again."""
        if self._asked is not None and now < (self.opens_at or FOR_EVER) and now >= self._asked:
            return self._is_open
        blocked = first_blocked(self.operation, self.facts, settings, now, only=_OF_GROUP)
        self._asked, self._is_open = now, blocked is None
        if blocked is not None:
            self.why = blocked.facts[0]
            self.opens_at = blocked.until
        else:
            only_windows = msgspec.structs.replace(self.facts, fleet=msgspec.UNSET)
            self.opens_at = changes_at(self.operation, only_windows, now)
        return self._is_open

    def forget(self) -> None:
        """So that the gates are asked again."""
        self._asked = None

    def closes_too_soon(self, settings: Settings, now: datetime) -> bool:
        """Whether a window closes before a new node is initialized."""
        found = first_blocked(self.operation, self.facts, settings, now, only={Gate.CLOSING})
        if found is not None:
            self.why = found.facts[0]
        return found is not None


def about_node(why: Fact, node: str) -> Fact:
    """What blocks the group, said of one of its nodes; of none if that is empty."""
    if isinstance(why, InvalidWindowBlocks | OutsideAllowWindows | WindowBlocks):
        return msgspec.structs.replace(why, node=node)
    return why


def expires_again(one: Candidate, pool: NodePool, created_at: datetime) -> Candidate | None:
    """Its replacement, which expires in its turn; None: it does not.

    How much earlier its UID lets it expire is not known yet: by half of what is possible.
    """
    age = span_of(pool.spec.template.spec.expire_after)
    if age is None or age <= timedelta():
        return None
    always = pool.spec.disruption.expiration_policy == ALWAYS
    spread = timedelta() if always else min(age / SPREAD, SPREAD_MAX) / 2
    order, method = _EXPIRED
    candidacy = msgspec.structs.replace(
        one.candidacy,
        method=method,
        order=order,
        operation=Operation.EXPIRATION if always else Operation.VOLUNTARY,
        due_at=later(created_at, age - spread).replace(microsecond=0),
        first=False,
        launched=False,
    )
    return msgspec.structs.replace(
        one,
        candidacy=candidacy,
        generation=one.generation + 1,
        approximate=one.approximate or not always,
        drains_until=None,
    )
