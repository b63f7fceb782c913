"""The facts about planning: which candidates wait, and what is launched."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, Fact, claims_text, counted, some
from tenure.core.gates.operations import Gate
from tenure.core.provision.facts import CheapestFit
from tenure.model.api.meta import format_time

# -- planning --------------------------------------------------------------------------------


class NodesWatched(Fact, frozen=True):
    #: What they are, by the method.
    what: str
    claims: tuple[str, ...]
    #: Of the method.
    reason: str = ""
    #: How many of them are due: candidates, whether a gate blocks them or not.
    due: int = 0

    def gist(self) -> object:
        return type(self), self.what, _magnitude(len(self.claims))

    def __str__(self) -> str:
        verb = "is" if len(self.claims) == 1 else "are"
        return f"{counted(len(self.claims), 'NodeClaim')} {verb} {self.what}: {some(self.claims)}"


class CandidatesWait(Fact, frozen=True):
    """Of voluntary methods, in one NodePool."""

    waiting: int
    candidates: int
    #: When that may change by itself for the first of them; None: not at a known instant.
    until: datetime | None = None
    #: How many of the candidates there are of each reason.
    reasons: tuple[tuple[str, int], ...] = ()
    #: For which gate how many wait, the most first; an empty name: for their turn.
    gates: tuple[tuple[str, int], ...] = ()
    #: How many nodes of the pool are being disrupted meanwhile.
    leaving: int = 0

    def gist(self) -> object:
        """Said again when what most of them wait for changes, and as the crowd becomes smaller."""
        reasons = tuple(reason for reason, _ in self.reasons)
        return type(self), _magnitude(self.waiting), reasons, self.gates[:1] and self.gates[0][0]

    def __str__(self) -> str:
        verb = "waits" if self.waiting == 1 else "wait"
        reasons = ", ".join(f"{count} {reason}" for reason, count in self.reasons)
        gates = ", ".join(f"{count} for {_AWAITED.get(gate, gate)}" for gate, count in self.gates)
        of = f"{counted(self.candidates, 'candidate')} for voluntary disruption ({reasons})"
        waits = f"{self.waiting} of {of} {verb}: {gates}"
        leaving = (
            f"; {self.leaving} more {_is(self.leaving)} being disrupted" if self.leaving else ""
        )
        return f"{waits}{leaving}; {self._next_chance()}"

    def _next_chance(self) -> str:
        if self.until is not None:
            return f"next chance at {format_time(self.until)}, or when the cluster changes"
        if self.leaving:
            return "next chance when one of the disruptions under way is over"
        return "next chance when the cluster or the settings change"


#: What candidates wait for that no gate blocks.
TURN: Final = "their turn"
#: Other words for gates, where they are not what a candidate waits for.
_AWAITED: Final = {
    "": TURN,
    Gate.OFF: "--voluntary-disruption=true",
    Gate.RULES: "a valid spec.disruption",
    Gate.PAUSE: "the end of a back-off",
    Gate.LIMITS: "capacity or limits",
    Gate.CLOSING: "a window that is open for long enough",
}


def _magnitude(count: int) -> int:
    """Rounded down to one digit and zeros: 5000 candidates that become none are said 32 times."""
    digits = str(count)
    return int(digits[0] + "0" * (len(digits) - 1))


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


class PlannedFirst(Fact, frozen=True):
    """One replacement is planned at a time."""

    claim: str

    def gist(self) -> object:
        return type(self)

    def __str__(self) -> str:
        return f"NodeClaim {self.claim} is replaced first"


class StartRecorded(Fact, frozen=True):
    """Before a start is committed, where a budget counts starts."""

    pool: str

    def __str__(self) -> str:
        return (
            f"the start is recorded in status.disruptionStarts of NodePool {self.pool} "
            "before it is committed"
        )


class StartRefused(Fact, frozen=True):
    kind: str
    name: str
    #: The message of the API server, or of the guard.
    said: str

    def __str__(self) -> str:
        return f"the write to {self.kind} {self.name} that begins this was refused: {self.said}"


class RebootCommitted(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"rebooting Node {self.node}"


class ReplacementsCreated(Fact, frozen=True):
    claims: tuple[str, ...]

    def __str__(self) -> str:
        return f"creating replacement {claims_text(self.claims)}"


class ReplacedBy(Fact, frozen=True):
    claims: tuple[str, ...]

    def __str__(self) -> str:
        return f"replaced by {claims_text(self.claims)}"


class PodsFitElsewhere(Fact, frozen=True):
    def __str__(self) -> str:
        return "all pods fit on other Nodes"


class NoReschedulablePods(Fact, frozen=True):
    def __str__(self) -> str:
        return "no reschedulable pods"


class LaunchedAsReplacement(Fact, frozen=True):
    #: Those that it replaces.
    claims: tuple[str, ...]
    #: What is launched.
    fit: Fact

    def __str__(self) -> str:
        return f"replacement of {claims_text(self.claims)}; {self.fit}"


EXAMPLES: Final[tuple[Fact, ...]] = (
    NodesWatched("unhealthy or not up yet", ("general-4nv74", "general-26szh")),
    CandidatesWait(
        36,
        40,
        AT,
        (("Expired", 10), ("Drifted", 30)),
        ((Gate.WINDOW, 30), (Gate.BUDGET, 6)),
        4,
    ),
    CandidatesWait(36, 36, None, (("Drifted", 36),), ((Gate.BUDGET, 35), ("", 1)), 4),
    CandidatesWait(1, 1, None, (("Empty", 1),), ((Gate.OFF, 1),)),
    PlannedFirst("general-4nv74"),
    StartRecorded("general"),
    StartRefused("NodeClaim", "general-4nv74", "admission webhook denied the request"),
    RebootCommitted("node-1"),
    ReplacementsCreated(("general-26szh",)),
    ReplacedBy(("general-26szh", "general-9xkq2")),
    PodsFitElsewhere(),
    NoReschedulablePods(),
    LaunchedAsReplacement(
        ("general-4nv74",), CheapestFit("c-4x-amd64-linux", "test-zone-a", "spot", 100_000)
    ),
)
