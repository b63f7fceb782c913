"""The deciders, read top to bottom like a policy.

Of several verdicts on one subject, an earlier decider's governs (``Concern`` has the
same order); their actions never touch the same field.
"""

from __future__ import annotations

from tenure.core.decider import AnyDecider
from tenure.core.drain import DrainDecider
from tenure.core.garbage import GarbageDecider
from tenure.core.lifecycle import LifecycleDecider
from tenure.core.poolstatus import PoolDecider
from tenure.core.provision import ProvisionDecider
from tenure.core.termination import TerminationDecider
from tenure.core.windowstatus import WindowDecider


def deciders() -> tuple[AnyDecider, ...]:
    return (
        TerminationDecider(),
        DrainDecider(),
        LifecycleDecider(),
        GarbageDecider(),
        ProvisionDecider(),
        PoolDecider(),
        WindowDecider(),
    )
