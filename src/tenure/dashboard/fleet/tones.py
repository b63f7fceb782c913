"""How a phase looks, and which phase a node without a verdict is in."""

from __future__ import annotations

from typing import Final, NamedTuple

from tenure.core.decision import Verdict
from tenure.core.reasons import Reason
from tenure.core.repair.facts import ConditionUnhealthy
from tenure.dashboard.fleet.phases import BLOCKED, PHASES, phase
from tenure.dashboard.fleet.values import Tone
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim

UNREADABLE: Final = "unreadable"
FOREIGN: Final = "foreign"


class ToneSign(NamedTuple):
    """Board and page show a tone by the same sign and word."""

    sign: str
    word: str
    #: Of a node, for a legend.
    means: str


SIGNS: Final[dict[Tone, ToneSign]] = {
    Tone.SERVING: ToneSign("●", "in service", "initialized and Ready"),
    Tone.COMING: ToneSign("○", "coming", "launched, booting, joining or starting"),
    Tone.WAITING: ToneSign(
        "◆", "blocked", "a disruption candidate, and something blocks its disruption"
    ),
    Tone.LEAVING: ToneSign("▼", "leaving", "being replaced, draining or terminating"),
    Tone.UNHEALTHY: ToneSign("✖", "unhealthy", "unhealthy, lost, failed or unreadable"),
    Tone.FOREIGN: ToneSign("·", "not managed", "of another provider, or without a NodeClaim"),
}

_PHASES_OF: Final[dict[Tone, tuple[str, ...]]] = {
    Tone.SERVING: ("in service",),
    Tone.COMING: ("planned", "launching", "booting", "joining", "starting"),
    Tone.WAITING: ("blocked", "drifted", "underused", "expired", "to leave"),
    Tone.LEAVING: (
        *("replacing", "leaving", "terminating", "draining", "empty", "gone"),
        "rebooting",
    ),
    Tone.UNHEALTHY: (
        *("failed", "unclear", "timed out", "lost", "unhealthy", "not ready"),
        UNREADABLE,
    ),
    Tone.FOREIGN: (FOREIGN,),
}
TONES: Final[dict[str, Tone]] = {
    phase: tone for tone, phases in _PHASES_OF.items() for phase in phases
}


_UNHEALTHY: Final = "unhealthy"


def tone_of(phase: str, reason: Reason | None) -> Tone:
    """A candidate that a gate blocks waits, whatever makes it one; unless it is unhealthy."""
    if reason in BLOCKED and phase != _UNHEALTHY:
        return Tone.WAITING
    return TONES.get(phase, Tone.SERVING)


def phase_by_verdict(verdict: Verdict) -> str:
    """Empty: the verdict does not say; that on a lever, for example."""
    if verdict.reason in BLOCKED and isinstance(verdict.facts[0], ConditionUnhealthy):
        return _UNHEALTHY
    return phase(verdict.reason, verdict.facts) if tells_phase(verdict.reason) else ""


def tells_phase(reason: Reason) -> bool:
    return reason in PHASES


def phase_without_verdict(claim: NodeClaim | None, node: Node | None) -> str:
    """By the objects alone: no replica's verdicts are known, or none tells."""
    if claim is None:
        return FOREIGN
    if claim.deleting or (node is not None and node.deleting):
        return "terminating"
    if not claim.launched:
        return "launching"
    if not claim.registered:
        return "booting"
    if not claim.initialized:
        return "starting"
    return "in service" if node is not None and node.ready else "not ready"
