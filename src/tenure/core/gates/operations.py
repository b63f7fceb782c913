"""What may be done to a node, and which gates each of these operations asks.

The documentation prints the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Gate(StrEnum):
    """In the order in which they are asked."""

    OFF = "switched off"
    RULES = "usable rules"
    VETO = "veto"
    WINDOW = "maintenance windows"
    OUTAGE = "failure domain"
    BREAKER = "circuit breaker"
    PAUSE = "pause"
    BUDGET = "budgets"
    PODS = "PDBs and protected pods"
    LIMITS = "capacity and limits"
    CLOSING = "window that closes too soon"


class Operation(StrEnum):
    """What is about to be done to a node."""

    VOLUNTARY = "voluntary disruption"
    EXPIRATION = "expiration with expirationPolicy Always"
    INTERRUPTION = "interruption by the cloud"
    GRACEFUL_REPAIR = "graceful repair"
    GRACEFUL_TIMEOUT = "initialization time-out, graceful"
    FORCEFUL_REPAIR = "forceful repair"
    FORCEFUL_TIMEOUT = "readiness or initialization time-out, forceful"
    BOOT_TIMEOUT = "launch or registration time-out, lost Node, replacement that is never Ready"
    REBOOT = "reboot"
    FORCEFUL_REBOOT = "reboot without a drain"
    REBOOT_UNDER_WAY = "reboot, until its drain is over"
    REBOOT_FAILED = "replacement after a failed reboot"


_REPAIR: Final = (Gate.OFF, Gate.RULES, Gate.VETO, Gate.WINDOW, Gate.OUTAGE, Gate.BREAKER)
_PACED: Final = (Gate.PAUSE, Gate.BUDGET, Gate.PODS)
_PLANNED: Final = (Gate.LIMITS, Gate.CLOSING)

#: Which gates an operation asks. The documentation prints this table.
ASKED: Final[Mapping[Operation, frozenset[Gate]]] = {
    Operation.VOLUNTARY: frozenset({Gate.OFF, Gate.RULES, Gate.WINDOW, *_PACED, *_PLANNED}),
    # Karpenter's way: it needs no replacement, and no budget paces it.
    Operation.EXPIRATION: frozenset({Gate.OFF, Gate.RULES, Gate.WINDOW}),
    # The cloud takes the instance, whatever is asked here: only the time to drain it would be lost.
    Operation.INTERRUPTION: frozenset(),
    Operation.GRACEFUL_REPAIR: frozenset({*_REPAIR, *_PACED, *_PLANNED}),
    # Node repair switched off, or rules that cannot be used, do not stop a time-out.
    Operation.GRACEFUL_TIMEOUT: frozenset(
        {Gate.VETO, Gate.OUTAGE, Gate.BREAKER, *_PACED, Gate.LIMITS}
    ),
    # It needs no replacement, and its pods are lost anyway: nothing paces it.
    Operation.FORCEFUL_REPAIR: frozenset(_REPAIR),
    Operation.FORCEFUL_TIMEOUT: frozenset({Gate.VETO, Gate.OUTAGE, Gate.BREAKER}),
    # There is no Node that a breaker could count, or no pod on it.
    Operation.BOOT_TIMEOUT: frozenset({Gate.VETO}),
    Operation.REBOOT: frozenset({*_REPAIR, *_PACED}),
    Operation.FORCEFUL_REBOOT: frozenset({*_REPAIR, Gate.PAUSE}),
    # Once committed it is carried out; only a user calls it off.
    Operation.REBOOT_UNDER_WAY: frozenset({Gate.OFF, Gate.VETO}),
    Operation.REBOOT_FAILED: frozenset({Gate.OFF, Gate.RULES, Gate.VETO}),
}

#: Asked when a command is planned only: once the replacements are initialized, a pause would keep
#: two nodes where one is needed, and no window is too short any more.
PLAN_ONLY: Final = frozenset({Gate.PAUSE, Gate.CLOSING})

#: Asked once the plan is made, after all others.
LAST: Final = frozenset(_PLANNED)
#: Asked of every candidate, so that its verdict says what blocks it.
BEFORE_PLAN: Final = frozenset(Gate) - LAST

#: Those whose answer depends on what was started in the same pass (``GateFacts.started``, ``recorded``).
COUNTS_STARTED: Final = frozenset({Gate.BUDGET})

#: Those that repair itself has the facts for; the pipeline asks the others.
OF_REPAIR: Final = frozenset(_REPAIR)

#: What a user says, and a window, which may block for days: a command under way is rolled back
#: (``Methods.validate``). Of the other gates those that a user has closed (``Blocked.closed``) roll
#: it back there, too; else they make it wait.
ROLLS_BACK: Final = frozenset({Gate.OFF, Gate.VETO, Gate.WINDOW})
CLOSES: Final = (Gate.RULES, Gate.BUDGET, Gate.PODS)
