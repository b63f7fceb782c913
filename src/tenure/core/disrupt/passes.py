"""One pass of the pipeline: what its plans and its executions share."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from datetime import datetime

import msgspec

from tenure.core.decider import Progress
from tenure.core.decision import Concern, Verdict
from tenure.core.disrupt.facts.planning import LaunchedAsReplacement
from tenure.core.disrupt.method import Methods
from tenure.core.disrupt.simulate import LeavingNode, Plan, Reservations, Simulation
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
    progress: Progress = msgspec.field(default_factory=Progress)

    def refused(self, one: LeavingNode) -> Plan | None:
        """Why there was no plan for the node, with these pods, before the pass was begun anew."""
        plan: Plan | None = self.progress.refused.get(_asked(one))
        self.progress.remembers |= plan is not None
        return plan

    def remember(self, one: LeavingNode, plan: Plan) -> None:
        """A refusal that does not pass by itself."""
        if plan.why is not None and not plan.passing:
            self.progress.refused[_asked(one)] = plan


def _asked(one: LeavingNode) -> Hashable:
    return one.claim.uid, one.own, tuple(pod.uid for pod in one.pods)


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
