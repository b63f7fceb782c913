"""The facts about the lever of one Node."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.beside.kinds import DISRUPTION, REPAIR, LeverKind
from tenure.core.facts import AT, Fact
from tenure.model.api.meta import FOR_EVER, format_time


class LeverBlocks(Fact, frozen=True, kw_only=True):
    """The annotation is ours, or is to be set, and why."""

    node: str
    #: As the mark on the Node says it.
    because: str
    #: ``FOR_EVER`` where the end is not known.
    until: datetime = FOR_EVER
    #: Disruptions that it blocks although no cause names them.
    beyond: tuple[str, ...] = ()
    #: ``window``, ``protection``, ``budget`` and ``replacement``, for metrics.
    causes: tuple[str, ...] = ()
    kind: LeverKind = DISRUPTION
    #: It is on the Node; else a replica has yet to set it.
    stands: bool = True
    #: The verdict has no fact beside this one.
    alone: bool = False

    def __str__(self) -> str:
        # The mark beside the annotation says "unknown", too.
        end = "an unknown end" if self.until == FOR_EVER else format_time(self.until)
        more = f"; this blocks {' and '.join(self.beyond)}, too" if self.beyond else ""
        yet = "" if self.stands else f"is not set yet on Node {self.node}; once set it "
        return (
            f'{self.kind.annotation}: "true" {yet}blocks {self.kind.what} of Node {self.node} by Karpenter '
            f"until {end}: {self.because}{more}"
        )

    def remedy(self) -> str:
        if self.causes != ("window",) or not self.alone:
            return ""  # The other facts say so.
        if self.until == FOR_EVER:
            them = "them" if ", " in self.because else "it"
            return f"Delete {self.because}, or give {them} schedules or dates."
        return f"Wait until {format_time(self.until)}, or change {self.because}: actions, selector or schedules."


class LeverNotNeeded(Fact, frozen=True):
    node: str
    #: When a window or a protection may begin.
    looks_at: datetime | None = None
    kind: LeverKind = DISRUPTION

    def __str__(self) -> str:
        at = f" before {format_time(self.looks_at)}" if self.looks_at is not None else ""
        gate = ", where its feature gate NodeRepair is on" if self.kind == REPAIR else ""
        return (
            f"no MaintenanceWindow and no protection blocks {self.kind.what} of Node {self.node}{at}; "
            f"Karpenter may {self.kind.verb} it{gate}"
        )


class LeverNoEffect(Fact, frozen=True):
    """The Karpenter in charge does not honour the annotation."""

    node: str
    kind: LeverKind
    release: str
    #: It knows the annotation, and runs with ``--legacy-node-repair``.
    legacy: bool = False

    def __str__(self) -> str:
        why = f"Karpenter {self.release} does not know {self.kind.annotation}"
        if self.legacy:
            why = f"Karpenter runs with --legacy-node-repair, which ignores {self.kind.annotation}"
        return f"{why}, so the lever on Node {self.node} has no effect there"

    def remedy(self) -> str:
        if self.legacy:
            return "Remove --legacy-node-repair from Karpenter, or switch its NodeRepair gate off."
        since = ".".join(map(str, self.kind.since))
        return f"Upgrade Karpenter to {since}, or switch its NodeRepair gate off."


class UsersProtection(Fact, frozen=True):
    node: str
    kind: LeverKind = DISRUPTION

    def __str__(self) -> str:
        by_choice = " voluntarily" if self.kind == DISRUPTION else ""
        return (
            f'a user or another tool has set {self.kind.annotation}: "true" on Node {self.node}: '
            f"Karpenter does not {self.kind.verb} it{by_choice}, and Tenure does not touch the "
            "annotation"
        )


class ValueInTheWay(Fact, frozen=True, kw_only=True):
    """A user's value stands where the lever would."""

    node: str
    value: str
    claim: str = ""
    #: What the lever would be for; empty: nothing but that value.
    because: str = ""
    kind: LeverKind = DISRUPTION

    def __str__(self) -> str:
        wanted = f"; so {self.because} has no effect there" if self.because else ""
        return (
            f'Karpenter ignores {self.kind.annotation}: "{self.value}" on Node {self.node}, because on Nodes '
            f'it reads "true" alone; Tenure does not edit what a user wrote{wanted}'
        )

    def remedy(self) -> str:
        claim = f"NodeClaim {self.claim}" if self.claim else "its NodeClaim"
        return (
            f'Remove the annotation from Node {self.node}, or set it to "true"; write a duration on '
            f"{claim} instead, and Tenure protects the Node for that long."
        )


class MarkDropped(Fact, frozen=True):
    node: str
    value: str
    kind: LeverKind = DISRUPTION

    def __str__(self) -> str:
        return (
            f'{self.kind.annotation}: "{self.value}" of Node {self.node} is a user\'s, because that '
            f"value or {self.kind.by} was changed; removing the marks of Tenure beside it"
        )


class NodeLeaves(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"Node {self.node} or its NodeClaim is being deleted: no lever has an effect there"


class NodeWithoutClaim(Fact, frozen=True):
    node: str
    kind: LeverKind = DISRUPTION

    def __str__(self) -> str:
        return (
            f"Node {self.node} has no NodeClaim any more, so Karpenter does not {self.kind.verb} it, with or "
            f"without {self.kind.annotation}"
        )


class PoliciesUnlisted(Fact, frozen=True):
    """Why a lever stays that nothing asks for."""

    node: str
    problem: str

    def __str__(self) -> str:
        return (
            f"the lever of Node {self.node} stays, because a budget of a NodePoolPolicy may have set it "
            f"({self.problem})"
        )

    def remedy(self) -> str:
        return "Grant list and watch of nodepoolpolicies.tenure.dev: apply the ClusterRole of this release."


EXAMPLES: Final[tuple[Fact, ...]] = (
    LeverBlocks(
        node="node-1",
        because="MaintenanceWindow office-hours",
        until=AT,
        beyond=("consolidation",),
        causes=("window",),
    ),
    LeverBlocks(node="node-1", because="MaintenanceWindow freeze", causes=("window",)),
    LeverBlocks(node="node-1", because="MaintenanceWindow freeze", until=AT, kind=REPAIR),
    LeverBlocks(node="node-1", because="MaintenanceWindow freeze", until=AT, stands=False),
    LeverNoEffect("node-1", REPAIR, "1.14"),
    LeverNoEffect("node-1", REPAIR, "1.15", legacy=True),
    LeverNotNeeded("node-1", AT),
    LeverNotNeeded("node-1", AT, REPAIR),
    LeverNotNeeded("node-1"),
    UsersProtection("node-1"),
    UsersProtection("node-1", REPAIR),
    ValueInTheWay(node="node-1", value="2h", claim="general-4nv74"),
    ValueInTheWay(node="node-1", value="2h", because="MaintenanceWindow office-hours"),
    MarkDropped("node-1", "false"),
    NodeLeaves("node-1"),
    NodeWithoutClaim("node-1"),
    PoliciesUnlisted("node-1", "403 Forbidden"),
)
