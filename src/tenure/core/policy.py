"""The deciders, read top to bottom like a policy.

Of several verdicts on one subject, an earlier decider's governs (``Concern`` has the
same order). Their actions do not undo each other: whoever takes off a mark that several may
write asks first whether another stands behind it.
"""

from __future__ import annotations

from typing import Final

from tenure.core.claim.decider import LifecycleDecider
from tenure.core.claim.drift import DriftDecider
from tenure.core.claim.garbage import GarbageDecider
from tenure.core.claim.node import NodeDecider
from tenure.core.decider import AnyDecider, Patience
from tenure.core.decision import Concern
from tenure.core.disrupt.method import Methods
from tenure.core.disrupt.methods import METHODS
from tenure.core.disrupt.orchestrate import ReplacementDecider
from tenure.core.disrupt.pipeline import DisruptionDecider
from tenure.core.disrupt.pipeline import may_wait as disruption_may_wait
from tenure.core.pool.status import PoolDecider, only_counts
from tenure.core.pool.windows import WindowDecider
from tenure.core.protect.decider import ProtectionDecider
from tenure.core.provision.decider import ProvisionDecider, may_wait
from tenure.core.reboot.decider import RebootDecider
from tenure.core.repair.decider import RepairDecider
from tenure.core.terminate.deadlinestatus import DeadlineDecider
from tenure.core.terminate.decider import TerminationDecider
from tenure.core.terminate.drain import DrainDecider
from tenure.core.terminate.outlook import OutlookDecider
from tenure.core.unreadable.decider import UnreadableDecider
from tenure.model.api.resource import PODS
from tenure.model.settings import Settings

USUAL: Final = Settings()

#: A plan for whom to disrupt looks at every node, so it is made less often than that for pods.
PATIENCE: Final = {
    Concern.DISRUPTION: Patience(disruption_may_wait, gaps=6),
    Concern.PROVISIONING: Patience(may_wait),
    Concern.POOL: Patience(only_counts),
}

#: Concerns to which no pod makes a difference: most of what happens need not be shown to them.
UNMOVED: Final = {
    PODS: frozenset(
        {
            Concern.REPLACEMENT,
            Concern.REPAIR,
            Concern.LIFECYCLE,
            Concern.NODE,
            Concern.DRIFT,
            Concern.GARBAGE,
            Concern.POOL,
            Concern.WINDOW,
        }
    )
}

#: Concerns that create what they then see: asked again only once all of it has arrived. A claim
#: that is still on its way would be planned a second time.
AWAIT_CREATIONS: Final = frozenset({Concern.DISRUPTION, Concern.PROVISIONING})


def deciders(settings: Settings = USUAL, methods: Methods = METHODS) -> tuple[AnyDecider, ...]:
    """``methods``: the reasons to disrupt nodes; tests add their own."""
    return (
        UnreadableDecider(),
        TerminationDecider(),
        DrainDecider(),
        RebootDecider(),
        ReplacementDecider(methods),
        DisruptionDecider(settings.protection_clock, methods),
        RepairDecider(),
        DeadlineDecider(),
        ProtectionDecider(),
        LifecycleDecider(),
        NodeDecider(),
        DriftDecider(),
        OutlookDecider(),
        GarbageDecider(),
        ProvisionDecider(settings.protection_clock),
        PoolDecider(),
        WindowDecider(),
    )
