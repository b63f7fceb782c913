"""The facts about commands under way: awaited, rolled back, left over, carried out."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from tenure.core.facts import AT, THEN, Fact, claims_text, counted, sentence, some, unreadable
from tenure.core.protect.protection import Protection
from tenure.core.windows.facts import OutsideAllowWindows
from tenure.model.api.meta import FOR_EVER, format_time
from tenure.model.values.duration import Duration, compact
from tenure.model.values.unreadable import UnreadableObject

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
        return f"waiting until replacement {claims_text(named)} {verb} initialized{why}"


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
            return "the node goes without a replacement"
        verb = "is" if len(self.claims) == 1 else "are"
        return f"replacement {claims_text(self.claims)} {verb} initialized"


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
        return f"pods need replacement {claims_text(self.claims)} as well"


class TerminatingWithin(Fact, frozen=True):
    #: None: as long as its pods take.
    within: timedelta | None = None

    def __str__(self) -> str:
        if self.within is None:
            return "terminating"
        if not self.within:
            return "terminating now"
        return f"terminating within {compact(Duration.of(self.within))}"


EXAMPLES: Final[tuple[Fact, ...]] = (
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
