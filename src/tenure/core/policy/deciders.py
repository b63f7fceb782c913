"""The deciders, in order of precedence.

Of several verdicts on one subject, that of the earlier decider applies (``Concern`` has the same
order). Their actions do not undo each other: a decider that removes a taint or an annotation that
several deciders may write checks first that no other decider needs it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.beside.departures import StartsDecider
from tenure.core.beside.kinds import LEVERS
from tenure.core.beside.leftover.incharge import InChargeDecider
from tenure.core.beside.leftover.levers import LeversLeftDecider
from tenure.core.beside.levers import LeverDecider
from tenure.core.beside.memory import MemoryDecider
from tenure.core.beside.pools import KarpenterDecider
from tenure.core.beside.repair import RepairBesideDecider
from tenure.core.beside.replacing.methods import methods_beside
from tenure.core.beside.replacing.surroundings import BesideKarpenter
from tenure.core.claim.decider import LifecycleDecider
from tenure.core.claim.garbage import GarbageDecider
from tenure.core.claim.node import NodeDecider
from tenure.core.decider import AnyDecider, Patience
from tenure.core.decision import Concern, Verdict
from tenure.core.disrupt.consolidation.decider import ConsolidationDecider
from tenure.core.disrupt.emptiness import EmptinessDecider
from tenure.core.disrupt.expiration import ExpirationDecider
from tenure.core.disrupt.method import Methods
from tenure.core.disrupt.methods import METHODS
from tenure.core.disrupt.orchestrate import ReplacementDecider
from tenure.core.disrupt.pipeline import DisruptionDecider
from tenure.core.disrupt.pipeline import may_wait as disruption_may_wait
from tenure.core.drift.decider import DriftDecider
from tenure.core.gates.remaining import PoolBudgets
from tenure.core.notice.interruption import InterruptionDecider
from tenure.core.notice.recommendation import RecommendationDecider
from tenure.core.opening.decider import OpeningDecider
from tenure.core.opening.naming import ReserveDecider
from tenure.core.opening.naming import may_wait as reservation_may_wait
from tenure.core.pool.status import PoolDecider, only_counts
from tenure.core.poolpolicy.status import PoolPolicyDecider
from tenure.core.protect.decider import ProtectionDecider
from tenure.core.provision.decider import ProvisionDecider, is_arrival, may_wait
from tenure.core.reboot.decider import RebootDecider
from tenure.core.repair.decider import RepairDecider
from tenure.core.terminate.deadlinestatus import DeadlineDecider
from tenure.core.terminate.decider import TerminationDecider
from tenure.core.terminate.drain import DrainDecider
from tenure.core.terminate.outlook import OutlookDecider
from tenure.core.unreadable.decider import UnreadableDecider
from tenure.core.unreadable.failclosed import fail_closed
from tenure.core.windows.status import WindowDecider
from tenure.model.api.resource import NODE_CLAIMS, PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot

USUAL: Final = Settings()

#: Disruption evaluates every Node, so it runs less often than provisioning. While pods arrive, provisioning
#: looks at them every two seconds: a batch that gets more pods does not close earlier (``provision.batch``).
PATIENCE: Final = {
    Concern.DISRUPTION: Patience(disruption_may_wait, gaps=3),
    Concern.PROVISIONING: Patience(
        may_wait,
        gaps=2,
        gaps_at_rest=1,
        observed=frozenset({NODE_CLAIMS.kind}),
        prolongs=is_arrival,
    ),
    Concern.NOMINATION: Patience(reservation_may_wait),
    Concern.POOL: Patience(only_counts),
}

#: By resource: concerns that do not depend on it. Most changes are of pods, so this saves work.
UNMOVED: Final = {
    PODS: frozenset(
        {
            Concern.INTERRUPTION,
            Concern.REPAIR,
            Concern.LIFECYCLE,
            Concern.NODE,
            Concern.DRIFT,
            Concern.EXPIRATION,
            Concern.REBALANCE,
            Concern.CONSOLIDATION,
            Concern.GARBAGE,
            Concern.POOL,
            Concern.WINDOW,
            Concern.POOL_POLICY,
            Concern.LEVER,
            Concern.REPAIR_LEVER,
            Concern.STARTS,
            Concern.MEMORY,
            Concern.LEFT_OVER,
            Concern.KARPENTER,
        }
    )
}

#: Concerns that create claims: evaluated again only once the watch has shown all of them. Otherwise
#: a claim that is not visible yet would be created a second time.
AWAIT_CREATIONS: Final = frozenset({Concern.DISRUPTION, Concern.PROVISIONING})


def deciders(settings: Settings = USUAL, methods: Methods = METHODS) -> tuple[AnyDecider, ...]:
    """``methods``: the reasons to disrupt nodes; tests add their own."""
    if settings.beside_karpenter:
        return beside_karpenter(settings)
    return (
        UnreadableDecider(),
        TerminationDecider(),
        DrainDecider(),
        InterruptionDecider(),
        RebootDecider(),
        ReplacementDecider(methods),
        DisruptionDecider(settings.protection_clock, methods),
        RepairDecider(),
        DeadlineDecider(),
        ProtectionDecider(),
        LifecycleDecider(),
        NodeDecider(),
        DriftDecider(),
        EmptinessDecider(),
        ExpirationDecider(),
        RecommendationDecider(),
        ConsolidationDecider(),
        OutlookDecider(),
        GarbageDecider(),
        ProvisionDecider(settings.protection_clock),
        ReserveDecider(),
        OpeningDecider(),
        PoolDecider(PoolBudgets()),
        WindowDecider(),
        PoolPolicyDecider(),
        LeversLeftDecider(),  # Of a Tenure that ran beside Karpenter.
    )


def beside_karpenter(settings: Settings) -> tuple[AnyDecider, ...]:
    """Those that write nothing but what Tenure may write beside Karpenter (``safety.beside``).

    All others write what is Karpenter's there: status and finalizers of claims and Nodes, status of pools,
    pods. What differs in those that are there is in ``core.beside``.
    """
    return (
        UnreadableDecider(),  # Writes nothing.
        *replacing_beside(
            settings
        ),  # Claims of replacements, marks of commands; deletes what is replaced.
        RepairBesideDecider(settings),  # Stamps and deletes claims; notes a probe on its pool.
        ProtectionDecider(claims_only=True),  # Records from when on a duration on a claim counts.
        ExpirationDecider(
            BesideKarpenter(settings)
        ),  # Marks claims that expire by a NodePoolPolicy.
        WindowDecider(),  # The status of MaintenanceWindows, which are ours …
        PoolPolicyDecider(),  # … and of NodePoolPolicies.
        StartsDecider(),  # The same: departures, for budgets with within.
        *(LeverDecider(settings, kind) for kind in LEVERS),
        MemoryDecider(settings),  # What a claim remembers of its Node.
        InChargeDecider(settings),  # Marks of a Tenure that was in charge, and its taint.
        KarpenterDecider(settings),  # Writes nothing.
    )


def replacing_beside(settings: Settings) -> tuple[AnyDecider, ...]:
    """Graceful repair and soft expiration: the same pipeline, with claims that Karpenter launches."""
    methods, surroundings = methods_beside(settings), BesideKarpenter(settings)
    return (
        ReplacementDecider(methods, surroundings),
        DisruptionDecider(settings.protection_clock, methods, surroundings),
    )


def decide_all(
    decider: AnyDecider, snapshot: Snapshot, settings: Settings, now: datetime
) -> list[Verdict]:
    """Evaluate every key from nothing; incremental evaluation must give the same verdicts.

    Exceptions of a decider are passed on; the evaluator isolates them.
    """
    verdicts: list[Verdict] = []
    for key in sorted(set(decider.keys(snapshot))):
        view = decider.view(snapshot, key)
        if view is not None:
            verdicts += fail_closed(tuple(decider.decide(view, settings, now)), snapshot)
    return verdicts
