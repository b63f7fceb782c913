"""One pass of the pipeline: what its plans and its executions share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from tenure.core.decision import Concern, Verdict
from tenure.core.disrupt.facts.planning import LaunchedAsReplacement
from tenure.core.disrupt.method import Methods
from tenure.core.disrupt.simulate import Plan, Reservations, Simulation
from tenure.core.gates.gatefacts import GateFacts, LaunchTime
from tenure.core.reasons import Reason
from tenure.model.settings import Settings


class Pass(msgspec.Struct, kw_only=True):
    """What all commands of one pass share."""

    methods: Methods
    simulation: Simulation
    settings: Settings
    now: datetime
    reservations: Reservations
    #: By pool: how many commands were carried out in this pass.
    started: dict[str, int]


def launched(plan: Plan, claims: Sequence[str], reason: str) -> Iterator[Verdict]:
    """What is said of the claims that a plan creates; ``reason``: why ``claims`` are disrupted."""
    for new in plan.claims:
        yield Verdict(
            concern=Concern.DISRUPTION,
            subject=new.subject,
            reason=Reason.NEEDED_AS_REPLACEMENT,
            facts=(LaunchedAsReplacement(tuple(claims), new.told),),
            action=msgspec.structs.replace(new.create, disrupts_for=reason),
            recheck_at=plan.changes_at,
        )


def with_plan(facts: GateFacts, plan: Plan, launches: tuple[LaunchTime, ...] = ()) -> GateFacts:
    """What the last gates ask."""
    return msgspec.structs.replace(
        facts,
        unplaced=plan.why,
        passing=plan.passing,
        replan_at=plan.changes_at,
        launches=launches,
    )
