"""How a verdict on one of our objects is made.

Each decider has its own concern: ``_say = partial(say, Concern.X)``.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from tenure.core.decision import Action, Blocker, Concern, Verdict
from tenure.core.facts import Fact
from tenure.core.reasons import Reason
from tenure.core.writes import Written, subject_of
from tenure.model.api.node import Node


def say(
    concern: Concern,
    about: Written,
    reason: Reason,
    *facts: Fact,
    action: Action | None = None,
    recheck_at: datetime | None = None,
    blockers: tuple[Blocker, ...] = (),
    gate: str = "",
) -> Verdict:
    return Verdict(
        concern=concern,
        subject=subject_of(about),
        reason=reason,
        facts=facts,
        action=action,
        recheck_at=recheck_at,
        blockers=blockers,
        gate=gate,
    )


def also_of(node: Node, verdict: Verdict) -> Verdict:
    """The same verdict on the claim's Node, without the action: users read either object."""
    return msgspec.structs.replace(
        verdict, subject=subject_of(node), action=None, commits=None, command=None
    )


def no_later(verdict: Verdict, *instants: datetime | None) -> Verdict:
    """The verdict, evaluated again at the first of these instants at the latest."""
    given = [at for at in (verdict.recheck_at, *instants) if at is not None]
    return msgspec.structs.replace(verdict, recheck_at=min(given, default=None))
