"""The facts about candidates: where their pods fit, and why a node is one."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from tenure.core.facts import AT, Fact, claims_text, counted, sentence, some
from tenure.core.provision.facts import ClaimRefused
from tenure.model.api.meta import FOR_EVER, format_time, later


def _all(names: Iterable[str]) -> str:
    return ", ".join(names)


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
        new = (
            f"creating {claims_text(self.claims)}" if self.claims else "provisioning launches more"
        )
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
    #: It is shorter than what a node must be empty for at least.
    least: str = ""

    def __str__(self) -> str:
        least = f", and {self.least} at least" if self.least else ""
        at = format_time(self.at)
        return f"a candidate from {at} on, if it stays so (consolidateAfter {self.after}{least})"


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


class ExpiresByForce(Fact, frozen=True):
    """Beside Karpenter: its own ``expireAfter`` is Karpenter's to read."""

    claim: str
    at: datetime
    after: str

    def __str__(self) -> str:
        return (
            f"Karpenter expires NodeClaim {self.claim} at {format_time(self.at)} (expireAfter "
            f"{self.after}), whatever windows and budgets say"
        )

    def remedy(self) -> str:
        return (
            "Set expireAfter: Never in the NodePool and expireAfter in a NodePoolPolicy: nodes that are "
            "launched from then on wait for windows and budgets."
        )


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
    CandidateFrom(AT, "10m0s"),
    CandidateFrom(AT, "0s", "15s"),
    NodeNotEmpty("general-4nv74"),
    PodsNominated("general-4nv74", ("default/web-1", "default/web-2"), AT),
    PodsNominated("general-4nv74", ("default/web-1",), FOR_EVER),
    ReservedForPods("general-26szh", "general-4nv74"),
    ClaimExpires("general-4nv74", AT, "720h", "WhenAllowed"),
    ClaimExpires("general-4nv74", AT, "720h", "WhenAllowed", over=True),
    DoesNotExpire("general-4nv74"),
    DoesNotExpire("general-4nv74", "-1h"),
    ExpiresByForce("general-4nv74", AT, "720h"),
    StaticPool("gpu"),
    NodeExpired("node-1", AT, "720h"),
    NodeDrifted("node-1", AT, "the template of NodePool general has changed"),
    NodeDrifted("node-1", AT),
    RebalanceRecommended("node-1", AT),
)
