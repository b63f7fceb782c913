"""The facts about commands: planned, waiting, rolled back and carried out."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import ClassVar, Final

from tenure.core.facts import AT, THEN, Fact, counted, sentence, some, unreadable
from tenure.core.gates.operations import Gate
from tenure.core.protect.protection import Protection
from tenure.core.provision.facts import CheapestFit, ClaimRefused
from tenure.core.windows.facts import OutsideAllowWindows
from tenure.model.api.meta import FOR_EVER, format_time, later
from tenure.model.values.duration import Duration, compact
from tenure.model.values.unreadable import UnreadableObject

# -- where its pods would be scheduled -------------------------------------------------------


class PendingPodsFirst(Fact, frozen=True):
    def __str__(self) -> str:
        return "pending pods get their nodes first"


class PodFitsNowhere(Fact, frozen=True):
    pod: str
    #: Pool by pool, or what the API server answered.
    why: tuple[Fact, ...]

    def __str__(self) -> str:
        return f"Pod {self.pod} fits nowhere else: {sentence(self.why)}"


class PendingPodsFit(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"pending pods fit on Node {self.node}, so the scheduler may bind them there"


class PlannedOnto(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"pods of a node that is being replaced fit on Node {self.node}"


class CapacityNotInitialized(Fact, frozen=True):
    #: Names of Nodes; of claims that have no Node yet.
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        verb = "is" if len(self.nodes) == 1 else "are"
        return f"pods fit on {_all(self.nodes)}, which {verb} not initialized yet"


class ReservedCapacityTaken(Fact, frozen=True):
    """``claims``: what is created instead; empty: provisioning does so."""

    claims: tuple[str, ...] = ()

    def __str__(self) -> str:
        new = f"creating {_claims(self.claims)}" if self.claims else "provisioning launches more"
        return f"other pods have taken the capacity that was reserved; {new}"


class NoCapacityInTime(Fact, frozen=True):
    node: str
    #: Since when its pods could go, but for capacity, and by when they had to fit elsewhere.
    since: datetime
    by: datetime

    def __str__(self) -> str:
        return (
            f"pods of Node {self.node} still fit nowhere else at {format_time(self.by)}, "
            f"and have waited for capacity since {format_time(self.since)}"
        )


# -- whether a node is empty -----------------------------------------------------------------


class NodeIsEmpty(Fact, frozen=True):
    node: str
    #: None: it has just become so.
    since: datetime | None = None

    def __str__(self) -> str:
        since = f" since {format_time(self.since)}" if self.since is not None else ""
        return f"Node {self.node} has no reschedulable pods{since}"


class CandidateFrom(Fact, frozen=True):
    """When a node that stays empty is a candidate."""

    at: datetime
    #: The ``consolidateAfter`` of its pool.
    after: str

    def __str__(self) -> str:
        return f"a candidate from {format_time(self.at)} on, if it stays so (consolidateAfter {self.after})"


class NodeNotEmpty(Fact, frozen=True):
    claim: str

    def __str__(self) -> str:
        return f"the node of NodeClaim {self.claim} is not empty, or nothing asks whether it is"


class PodsNominated(Fact, frozen=True):
    claim: str
    #: With their namespaces.
    pods: tuple[str, ...]
    until: datetime

    def __str__(self) -> str:
        pods = f"{counted(len(self.pods), 'pod')} ({some(self.pods)})"
        verb = "is" if len(self.pods) == 1 else "are"
        until = "" if self.until == FOR_EVER else f" until {format_time(self.until)}"
        return f"{pods} {verb} nominated to NodeClaim {self.claim}{until}"


class ReservedForPods(Fact, frozen=True):
    claim: str
    #: The claim that it replaces.
    replaces: str

    def __str__(self) -> str:
        return f"NodeClaim {self.claim} is reserved for the pods of NodeClaim {self.replaces}"


# -- when a node expires, and why else it is a candidate -----------------------------------------


class ClaimExpires(Fact, frozen=True):
    claim: str
    at: datetime
    #: As written.
    after: str
    policy: str
    #: Whether that instant has passed.
    over: bool = False

    def __str__(self) -> str:
        rule = f"expireAfter {self.after}, expirationPolicy {self.policy}"
        verb = "has expired" if self.over else "expires"
        return f"NodeClaim {self.claim} {verb} at {format_time(self.at)} ({rule})"


class DoesNotExpire(Fact, frozen=True):
    claim: str
    #: Its ``expireAfter``, where that is why.
    invalid: str = ""

    def __str__(self) -> str:
        why = f': expireAfter "{self.invalid}" is no duration above zero' if self.invalid else ""
        return f"NodeClaim {self.claim} does not expire{why}"


class StaticPool(Fact, frozen=True):
    pool: str

    def __str__(self) -> str:
        return f"NodePool {self.pool} has spec.replicas: none of its nodes is disrupted by choice"


class NodeExpired(Fact, frozen=True):
    node: str
    since: datetime
    #: As written.
    after: str

    def __str__(self) -> str:
        return f"Node {self.node} has been expired since {format_time(self.since)} (expireAfter {self.after})"


class NodeDrifted(Fact, frozen=True):
    node: str
    since: datetime
    #: As the claim's condition says; empty: it does not.
    what: str = ""

    def __str__(self) -> str:
        what = f": {self.what}" if self.what else ""
        return f"Node {self.node} has drifted since {format_time(self.since)}{what}"


class RebalanceRecommended(Fact, frozen=True):
    node: str
    since: datetime

    def __str__(self) -> str:
        since = format_time(self.since)
        return f"the cloud recommends since {since} to leave the instance of Node {self.node}"


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


class PlannedLater(Fact, frozen=True):
    at: datetime

    news: ClassVar[bool] = False

    def gist(self) -> object:
        return type(self)

    def __str__(self) -> str:
        return f"other nodes are planned first; planning again at {format_time(self.at)}"


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
        return f"creating replacement {_claims(self.claims)}"


class ReplacedBy(Fact, frozen=True):
    claims: tuple[str, ...]

    def __str__(self) -> str:
        return f"replaced by {_claims(self.claims)}"


class PodsFitElsewhere(Fact, frozen=True):
    def __str__(self) -> str:
        return "all pods fit on other Nodes"


class NoReschedulablePods(Fact, frozen=True):
    def __str__(self) -> str:
        return "no reschedulable pods"


class LaunchedAsReplacement(Fact, frozen=True):
    claim: str
    fit: CheapestFit

    def __str__(self) -> str:
        return f"replacement of NodeClaim {self.claim}; {self.fit}"


# -- waiting, rolling back -------------------------------------------------------------------


class ReplacementsAwaited(Fact, frozen=True):
    #: Each with the instant by which it has to be initialized, where there is one.
    claims: tuple[tuple[str, datetime | None], ...]
    #: Why the node is disrupted.
    reason: str = ""

    def __str__(self) -> str:
        named = [
            f"{name} (by {format_time(until)} at the latest)" if until is not None else name
            for name, until in self.claims
        ]
        verb = "is" if len(named) == 1 else "are"
        why = f" (disruption reason {self.reason})" if self.reason else ""
        return f"waiting until replacement {_claims(named)} {verb} initialized{why}"


class RollsBackAt(Fact, frozen=True):
    """Unless its replacements are initialized before."""

    at: datetime
    why: tuple[Fact, ...]

    def __str__(self) -> str:
        return f"rolled back at {format_time(self.at)} if that takes longer: {sentence(self.why)}"


class ReplacementsInitialized(Fact, frozen=True):
    """``claims``: empty where there are no pods, or they fit on other Nodes."""

    claims: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.claims:
            return "no replacement is needed"
        verb = "is" if len(self.claims) == 1 else "are"
        return f"replacement {_claims(self.claims)} {verb} initialized"


class CommandTakenOver(Fact, frozen=True):
    #: Of the command so far.
    reason: str

    def __str__(self) -> str:
        return f"the command that began for {self.reason or 'no reason'} goes on for this reason"


class NodeClosed(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"Node {self.node} takes no new pods"


class StaysUntilReplaced(Fact, frozen=True):
    def __str__(self) -> str:
        return "the node stays until its replacements are initialized"


class RolledBack(Fact, frozen=True):
    """``retried``: it is still wanted, so there will be another try."""

    node: str
    retried: bool = False

    def __str__(self) -> str:
        stays = f"Node {self.node}" if self.node else "the node"
        until = " until the next try" if self.retried else ""
        return f"rolling back: {stays} stays and takes pods again{until}"


class NoSingleNode(Fact, frozen=True):
    claim: str
    nodes: int

    def __str__(self) -> str:
        has = f"{self.nodes} Nodes" if self.nodes else "no Node"
        return f"NodeClaim {self.claim} has {has}"


class UnknownReason(Fact, frozen=True):
    reason: str

    def __str__(self) -> str:
        return f'unknown disruption reason "{self.reason}"'


class NoLongerDue(Fact, frozen=True):
    claim: str
    #: Of the disruption.
    reason: str
    #: None: it is not a candidate at all any more.
    due_at: datetime | None = None

    def __str__(self) -> str:
        what = f"NodeClaim {self.claim} is no longer a candidate for reason {self.reason}"
        return what if self.due_at is None else f"{what} before {format_time(self.due_at)}"


class PodsCame(Fact, frozen=True):
    node: str
    #: With their namespaces.
    pods: tuple[str, ...]

    def __str__(self) -> str:
        verb = "is" if len(self.pods) == 1 else "are"
        pods = counted(len(self.pods), "pod")
        return f"Node {self.node} is no longer empty: {pods} {verb} there ({some(self.pods)})"


class NodeRecovered(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"Node {self.node} has recovered"


class RepairNotAsked(Fact, frozen=True):
    """The pool's rules have changed."""

    node: str
    pool: str

    def __str__(self) -> str:
        return f"NodePool {self.pool} no longer repairs the conditions of Node {self.node}"


class ReplacementGone(Fact, frozen=True):
    claim: str

    def __str__(self) -> str:
        return f"replacement NodeClaim {self.claim} is gone"


class ReplacementTerminating(Fact, frozen=True):
    claim: str

    def __str__(self) -> str:
        return (
            f"replacement NodeClaim {self.claim} is terminating: it did not come up, or was deleted"
        )


class ReplacementLate(Fact, frozen=True):
    claim: str
    by: datetime

    def __str__(self) -> str:
        by = format_time(self.by)
        return f"replacement NodeClaim {self.claim} was Ready, but not initialized by {by}"


class ReplacementUnreadable(Fact, frozen=True):
    why: UnreadableObject
    by: datetime

    def __str__(self) -> str:
        return f"a replacement was not initialized by {format_time(self.by)}, as far as can be read: {self.why}"


# -- replacements that are left over -------------------------------------------------------------


class LeftOverKept(Fact, frozen=True):
    claim: str
    replaces: str
    until: datetime

    def __str__(self) -> str:
        return (
            f"no command of NodeClaim {self.replaces} waits for its replacement {self.claim}, which is "
            f"removed at {format_time(self.until)} unless one does by then, or pods use it"
        )


class LeftOverInUse(Fact, frozen=True):
    claim: str
    replaces: str

    def __str__(self) -> str:
        return f"NodeClaim {self.replaces} stays, and pods use its replacement {self.claim}, which stays, too"


class LeftOverProtected(Fact, frozen=True):
    claim: str
    replaces: str
    why: Fact

    def __str__(self) -> str:
        return f"NodeClaim {self.replaces} stays, and its replacement {self.claim} stays, too: {self.why}"


class LeftOverRemoved(Fact, frozen=True):
    claim: str
    replaces: str

    def __str__(self) -> str:
        return f"NodeClaim {self.replaces} stays, and no pod uses its replacement {self.claim}: deleting it"


# -- carrying out ----------------------------------------------------------------------------


class ToleratedAgain(Fact, frozen=True):
    until: datetime

    def __str__(self) -> str:
        return (
            f"the Node's conditions have changed, and are tolerated until {format_time(self.until)}"
        )


class MoreReplacements(Fact, frozen=True):
    claims: tuple[str, ...]

    def __str__(self) -> str:
        return f"pods need replacement {_claims(self.claims)} as well"


class TerminatingWithin(Fact, frozen=True):
    #: None: as long as its pods take.
    within: timedelta | None = None

    def __str__(self) -> str:
        if self.within is None:
            return "terminating"
        if not self.within:
            return "terminating now"
        return f"terminating within {compact(Duration.of(self.within))}"


def _claims(names: Iterable[str]) -> str:
    named = list(names)
    return f"NodeClaim{'' if len(named) == 1 else 's'} {', '.join(named)}"


def _all(names: Iterable[str]) -> str:
    return ", ".join(names)


EXAMPLES: Final[tuple[Fact, ...]] = (
    PendingPodsFirst(),
    PodFitsNowhere(
        "default/web-1", (ClaimRefused("general-x8w2c", "spec.requirements: too many"),)
    ),
    PendingPodsFit("node-1"),
    PlannedOnto("node-1"),
    CapacityNotInitialized(("node-2",)),
    ReservedCapacityTaken(),
    ReservedCapacityTaken(("general-26szh",)),
    NoCapacityInTime("node-1", AT, later(AT, timedelta(minutes=15))),
    NodeIsEmpty("node-1"),
    NodeIsEmpty("node-1", AT),
    CandidateFrom(AT, "10m"),
    NodeNotEmpty("general-4nv74"),
    PodsNominated("general-4nv74", ("default/web-1", "default/web-2"), AT),
    PodsNominated("general-4nv74", ("default/web-1",), FOR_EVER),
    ReservedForPods("general-26szh", "general-4nv74"),
    ClaimExpires("general-4nv74", AT, "720h", "WhenAllowed"),
    ClaimExpires("general-4nv74", AT, "720h", "WhenAllowed", over=True),
    DoesNotExpire("general-4nv74"),
    DoesNotExpire("general-4nv74", "-1h"),
    StaticPool("gpu"),
    NodeExpired("node-1", AT, "720h"),
    NodeDrifted("node-1", AT, "the template of NodePool general has changed"),
    NodeDrifted("node-1", AT),
    RebalanceRecommended("node-1", AT),
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
    PlannedLater(AT),
    StartRecorded("general"),
    StartRefused("NodeClaim", "general-4nv74", "admission webhook denied the request"),
    RebootCommitted("node-1"),
    ReplacementsCreated(("general-26szh",)),
    ReplacedBy(("general-26szh", "general-9xkq2")),
    PodsFitElsewhere(),
    NoReschedulablePods(),
    LaunchedAsReplacement(
        "general-4nv74", CheapestFit("c-4x-amd64-linux", "test-zone-a", "spot", 100_000)
    ),
    ReplacementsAwaited((("general-26szh", None),)),
    ReplacementsAwaited((("general-26szh", AT), ("general-9xkq2", None)), "Drifted"),
    RollsBackAt(AT, (OutsideAllowWindows(("nights",), ("Drift",), "node-1", THEN),)),
    ReplacementsInitialized(("general-26szh",)),
    ReplacementsInitialized(),
    CommandTakenOver("Drifted"),
    NodeClosed("node-1"),
    StaysUntilReplaced(),
    RolledBack("node-1"),
    RolledBack("node-1", retried=True),
    RolledBack(""),
    NoSingleNode("general-4nv74", 0),
    NoSingleNode("general-4nv74", 2),
    UnknownReason("Odd"),
    NoLongerDue("general-4nv74", "Empty"),
    NoLongerDue("general-4nv74", "Empty", AT),
    PodsCame("node-1", ("default/web-1",)),
    NodeRecovered("node-1"),
    RepairNotAsked("node-1", "general"),
    ReplacementGone("general-26szh"),
    ReplacementTerminating("general-26szh"),
    ReplacementLate("general-26szh", AT),
    ReplacementUnreadable(unreadable("NodeClaim", "general-26szh", "status"), AT),
    LeftOverKept("general-26szh", "general-4nv74", AT),
    LeftOverInUse("general-26szh", "general-4nv74"),
    LeftOverProtected("general-26szh", "general-4nv74", Protection("true", FOR_EVER)),
    LeftOverRemoved("general-26szh", "general-4nv74"),
    ToleratedAgain(AT),
    MoreReplacements(("general-26szh",)),
    TerminatingWithin(),
    TerminatingWithin(timedelta(seconds=45)),
    TerminatingWithin(timedelta(minutes=10)),
    TerminatingWithin(timedelta()),
)
