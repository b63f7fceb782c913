"""The facts about levers, and about the Karpenter that honours them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, Fact, some
from tenure.model.api.meta import FOR_EVER, format_time
from tenure.model.api.names import DO_NOT_DISRUPT, DO_NOT_DISRUPT_BY, READY_ONCE_AT

_ONLY_LOOKS: Final = "so Tenure only looks: no lever is set, and those that are set stay"


class KarpenterNotFound(Fact, frozen=True):
    selector: str

    def __str__(self) -> str:
        return f"no Deployment with the label {self.selector} is found, {_ONLY_LOOKS}"

    def remedy(self) -> str:
        return "If Karpenter runs outside this cluster, set --karpenter-version."


class DeploymentsUnlisted(Fact, frozen=True):
    problem: str

    def __str__(self) -> str:
        return f"Deployments cannot be listed ({self.problem}), {_ONLY_LOOKS}"

    def remedy(self) -> str:
        return "Grant list and watch of deployments.apps, or set --karpenter-version."


class KarpenterUnreadable(Fact, frozen=True):
    deployment: str
    image: str = ""

    def __str__(self) -> str:
        image = f' (image "{self.image}")' if self.image else ""
        return (
            f"the release of Karpenter in Deployment {self.deployment}{image} cannot be read, "
            f"{_ONLY_LOOKS}"
        )

    def remedy(self) -> str:
        return "Set the label app.kubernetes.io/version of that Deployment, or --karpenter-version."


class SeveralKarpenters(Fact, frozen=True):
    #: Each with its release.
    deployments: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        said = some(f"{name} ({release})" for name, release in self.deployments)
        return f"Deployments of several releases of Karpenter are found: {said}, {_ONLY_LOOKS}"

    def remedy(self) -> str:
        return "Delete the Deployment that is not in use, or set --karpenter-version."


class KarpenterUnsupported(Fact, frozen=True):
    release: str
    oldest: str
    newest: str

    def __str__(self) -> str:
        return (
            f"Karpenter {self.release} is not among the releases {self.oldest} to {self.newest} that "
            f"the levers are tested with, {_ONLY_LOOKS}"
        )

    def remedy(self) -> str:
        return "Upgrade Tenure or Karpenter."


class KarpenterInCharge(Fact, frozen=True):
    release: str
    #: None: not known.
    gates: tuple[tuple[str, bool], ...] | None = ()

    def __str__(self) -> str:
        return f"Karpenter {self.release} is in charge of nodes{self._gates()}"

    def _gates(self) -> str:
        if self.gates is None:
            return "; its feature gates are not known"
        on = [name for name, is_on in self.gates if is_on]
        return f"; feature gates that are on: {', '.join(on)}" if on else ""


class KarpenterRepairs(Fact, frozen=True):
    """Its feature gate ``NodeRepair`` is on, or is not known."""

    release: str
    known: bool = True

    def __str__(self) -> str:
        if self.known:
            return f"Karpenter {self.release} repairs nodes (feature gate NodeRepair is on)"
        return (
            f"Karpenter {self.release} may repair nodes: its feature gate NodeRepair cannot be read"
        )

    def remedy(self) -> str:
        if self.known:
            return "Turn the feature gate off, and Tenure repairs by policy."
        return "Write --feature-gates of Karpenter as text, or set --karpenter-feature-gates."


class ReadyNoted(Fact, frozen=True):
    node: str
    #: None: just now.
    at: datetime | None = None

    def __str__(self) -> str:
        if self.at is None:
            return f"Node {self.node} is Ready for the first time; readinessTTL no longer applies"
        return f"Node {self.node} has been Ready ({READY_ONCE_AT} {format_time(self.at)})"


class LeverBlocks(Fact, frozen=True, kw_only=True):
    """The annotation is ours, and why it is there."""

    node: str
    #: As the mark on the Node says it.
    because: str
    #: ``FOR_EVER`` where the end is not known.
    until: datetime = FOR_EVER
    #: Disruptions that it blocks although no cause names them.
    beyond: tuple[str, ...] = ()
    #: ``window`` and ``protection``, for metrics.
    causes: tuple[str, ...] = ()

    def __str__(self) -> str:
        end = (
            f" until {format_time(self.until)}"
            if self.until != FOR_EVER
            else ", without a known end"
        )
        more = f"; this blocks {' and '.join(self.beyond)}, too" if self.beyond else ""
        return (
            f'{DO_NOT_DISRUPT}: "true" blocks voluntary disruption of Node {self.node} by Karpenter'
            f"{end}: {self.because}{more}"
        )


class LeverNotNeeded(Fact, frozen=True):
    node: str
    #: When a window or a protection may begin.
    looks_at: datetime | None = None

    def __str__(self) -> str:
        at = f" before {format_time(self.looks_at)}" if self.looks_at is not None else ""
        return (
            f"no MaintenanceWindow and no protection blocks disruption of Node {self.node}{at}; "
            "Karpenter may disrupt it"
        )


class UsersProtection(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return (
            f'a user or another tool has set {DO_NOT_DISRUPT}: "true" on Node {self.node}: Karpenter '
            "does not disrupt it voluntarily, and Tenure does not touch the annotation"
        )


class ValueInTheWay(Fact, frozen=True, kw_only=True):
    """A user's value stands where the lever would."""

    node: str
    value: str
    claim: str = ""
    #: What the lever would be for; empty: nothing but that value.
    because: str = ""

    def __str__(self) -> str:
        wanted = f"; so {self.because} has no effect there" if self.because else ""
        return (
            f'Karpenter ignores {DO_NOT_DISRUPT}: "{self.value}" on Node {self.node}, because on Nodes '
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

    def __str__(self) -> str:
        return (
            f'{DO_NOT_DISRUPT}: "{self.value}" of Node {self.node} is a user\'s, because that value or '
            f"{DO_NOT_DISRUPT_BY} was changed; removing the marks of Tenure beside it"
        )


class NodeLeaves(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"Node {self.node} or its NodeClaim is being deleted: no lever has an effect there"


EXAMPLES: Final[tuple[Fact, ...]] = (
    KarpenterNotFound("app.kubernetes.io/name=karpenter"),
    DeploymentsUnlisted("403 Forbidden"),
    KarpenterUnreadable("kube-system/karpenter", "registry.example.com/karpenter:team-build"),
    SeveralKarpenters((("kube-system/karpenter", "1.6"), ("old/karpenter", "1.15"))),
    KarpenterUnsupported("1.16", "1.6", "1.15"),
    KarpenterInCharge("1.15", (("NodeRepair", True),)),
    KarpenterInCharge("1.15", None),
    KarpenterRepairs("1.15"),
    KarpenterRepairs("1.15", known=False),
    ReadyNoted("node-1"),
    ReadyNoted("node-1", AT),
    LeverBlocks(
        node="node-1",
        because="MaintenanceWindow office-hours",
        until=AT,
        beyond=("consolidation",),
        causes=("window",),
    ),
    LeverBlocks(node="node-1", because="MaintenanceWindow freeze", causes=("window",)),
    LeverNotNeeded("node-1", AT),
    LeverNotNeeded("node-1"),
    UsersProtection("node-1"),
    ValueInTheWay(node="node-1", value="2h", claim="general-4nv74"),
    ValueInTheWay(node="node-1", value="2h", because="MaintenanceWindow office-hours"),
    MarkDropped("node-1", "false"),
    NodeLeaves("node-1"),
)
