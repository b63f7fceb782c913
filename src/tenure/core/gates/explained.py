"""What each gate means to an operator, and what to do about it.

Several gates have one reason code; a verdict that one of them blocks names the gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from tenure.core.decision import Verdict
from tenure.core.gates.operations import Gate
from tenure.core.reasons import NO_ADVICE, REASONS, ReasonInfo


class GateInfo(msgspec.Struct, frozen=True):
    meaning: str
    advice: str


EXPLAINED: Final[Mapping[Gate, GateInfo]] = {
    Gate.OFF: GateInfo(
        "The node is to be disrupted, and that is switched off: node repair or voluntary disruption.",
        "Set --node-repair=true or --voluntary-disruption=true, or repair the node by hand.",
    ),
    Gate.RULES: GateInfo(
        "The node is unhealthy, and not repaired: the repair block of its NodePool cannot be used.",
        "Correct spec.repair of the NodePool, or repair the node by hand.",
    ),
    Gate.VETO: GateInfo(
        "The node is due for repair, but karpenter.sh/do-not-repair vetoes it.",
        "Remove the annotation when the node may be repaired.",
    ),
    Gate.WINDOW: GateInfo(
        "The node is to be disrupted, and a maintenance window does not allow that now.",
        "Wait until the instant that is named, or change the MaintenanceWindow that is named: its "
        "actions, selector or schedules.",
    ),
    Gate.OUTAGE: GateInfo(
        "The node is due for repair, but most nodes of its zone, image or instance type are "
        "unhealthy: the cause is probably one that these nodes share.",
        "Look for what they share: network, image, zone. To repair them all the same, set "
        "--repair-domain-breaker=false.",
    ),
    Gate.BREAKER: GateInfo(
        "The node is due for repair, but too many nodes of its NodePool are unhealthy.",
        "Look for what they share: network, image, zone. To go on, raise repair.maxUnhealthy of the "
        "NodePool.",
    ),
    Gate.PAUSE: GateInfo(
        "The node is to be disrupted; a replacement has failed, and the NodePool backs off.",
        NO_ADVICE,
    ),
    Gate.BUDGET: GateInfo(
        "The node is to be disrupted, and a budget of its NodePool allows no more disruptions now.",
        "Raise the budget that is named, or wait until its schedule ends or other disruptions of "
        "the NodePool are over.",
    ),
    Gate.PODS: GateInfo(
        "The node is to be disrupted, and its Node, claim or a pod on it is protected, or a PDB "
        "allows no eviction.",
        "Remove the protection that is named, or let the PDB allow an eviction. Only where no grace "
        "period bounds the drain: set terminationGracePeriod of the NodePool for new claims.",
    ),
    Gate.CLOSING: GateInfo(
        "The node is to be disrupted, and a maintenance window begins to block before its replacement "
        "could be initialized.",
        "Wait until the window allows it again, or make the window longer than the launches of the "
        "NodePool take.",
    ),
    Gate.LIMITS: GateInfo(
        "The node is to be replaced, and its pods fit nowhere else.",
        "Raise the limit that is named, or free capacity.",
    ),
}


def info_of(verdict: Verdict) -> ReasonInfo:
    """Of the gate that blocks it, else of its reason code."""
    info = REASONS[verdict.reason]
    if not verdict.gate:
        return info
    gate = EXPLAINED[Gate(verdict.gate)]
    return ReasonInfo(gate.meaning, gate.advice, info.event)
