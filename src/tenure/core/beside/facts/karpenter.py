"""The facts about the Karpenter that is in charge, and about what it leaves to Tenure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, Fact, some
from tenure.model.api.meta import format_time
from tenure.model.api.names import READY_ONCE_AT

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


class KarpenterNotReady(Fact, frozen=True):
    #: Each with the number of replicas that are wanted.
    deployments: tuple[tuple[str, int], ...]

    def gist(self) -> object:
        return type(self), tuple((name, wanted > 0) for name, wanted in self.deployments)

    def __str__(self) -> str:
        said = some(f"{name} {_state(wanted)}" for name, wanted in self.deployments)
        return (
            f"Karpenter launches and terminates nothing: Deployment {said}. Tenure replaces, repairs and "
            "times out nothing until a replica is ready; levers go on"
        )

    def remedy(self) -> str:
        return (
            "Find out why Karpenter does not run (kubectl describe deployment). If Karpenter runs outside this "
            "cluster, delete this Deployment and set --karpenter-version."
        )


def _state(wanted: int) -> str:
    return f"has none of {wanted} replicas ready" if wanted else "is scaled to 0"


class KarpenterRollsOut(Fact, frozen=True):
    deployments: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"Deployment {some(self.deployments)} is being rolled out, so it is not known which release of "
            "Karpenter and which feature gates act. Tenure replaces, repairs and times out nothing until the "
            "rollout is complete; levers go on"
        )

    def remedy(self) -> str:
        return "If the rollout does not end, kubectl rollout status says why."


class CrdNotServed(Fact, frozen=True):
    crd: str
    version: str
    served: tuple[str, ...] = ()

    def __str__(self) -> str:
        served = f"serves {', '.join(self.served)}" if self.served else "serves no version"
        return f"CustomResourceDefinition {self.crd} {served} and not {self.version}, {_ONLY_LOOKS}"

    def remedy(self) -> str:
        return "Apply the CRDs of a release of Karpenter that is supported."


class CrdsUnread(Fact, frozen=True):
    problem: str

    def __str__(self) -> str:
        return f"the CRDs of Karpenter cannot be read ({self.problem}), so its release alone counts"

    def remedy(self) -> str:
        return "Grant get of customresourcedefinitions, for the two names of Karpenter's kinds."


class CrdIsOurs(Fact, frozen=True):
    def __str__(self) -> str:
        return (
            "the CRD of NodePool is Tenure's: fields that Karpenter does not know are stored in NodePools, "
            "and Tenure reads them"
        )


class NoPoliciesListed(Fact, frozen=True):
    problem: str

    def __str__(self) -> str:
        return (
            f"NodePoolPolicies cannot be listed ({self.problem}), which the ClusterRole of the chart allows. One may have "
            "budgets, so levers that are set stay, and nothing is replaced, repaired or timed out by a policy; windows and "
            "protections go on"
        )

    def remedy(self) -> str:
        return "Grant list and watch of nodepoolpolicies.tenure.dev: apply the ClusterRole of this release."


class KarpentersElsewhere(Fact, frozen=True):
    deployments: tuple[str, ...]
    namespaces: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"Deployments of Karpenter's name elsewhere do not count, as one runs in "
            f"{' or '.join(self.namespaces)}: {some(self.deployments)}"
        )

    def remedy(self) -> str:
        return "Delete them, or take Karpenter's label off; if one of them is in charge, set --karpenter-version."


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


class DriftedByKarpenter(Fact, frozen=True, kw_only=True):
    """What Karpenter says of a claim; Tenure decides nothing about drift there."""

    claim: str
    node: str
    since: datetime | None = None
    #: Why, in Karpenter's word; empty where that is "drifted" again.
    reason: str = ""

    def __str__(self) -> str:
        since = f" since {format_time(self.since)}" if self.since is not None else ""
        why = f" ({self.reason})" if self.reason else ""
        return (
            f"NodeClaim {self.claim} has drifted{since}{why}; Karpenter replaces Node {self.node} when nothing "
            "blocks that"
        )


class ReadyNoted(Fact, frozen=True):
    node: str
    #: None: just now.
    at: datetime | None = None

    def __str__(self) -> str:
        if self.at is None:
            return f"Node {self.node} is Ready for the first time; readinessTTL no longer applies"
        return f"Node {self.node} has been Ready ({READY_ONCE_AT} {format_time(self.at)})"


EXAMPLES: Final[tuple[Fact, ...]] = (
    KarpenterNotFound("app.kubernetes.io/name=karpenter"),
    DeploymentsUnlisted("403 Forbidden"),
    KarpenterUnreadable("kube-system/karpenter", "registry.example.com/karpenter:team-build"),
    SeveralKarpenters((("kube-system/karpenter", "1.6"), ("old/karpenter", "1.15"))),
    KarpenterUnsupported("1.16", "1.6", "1.15"),
    KarpenterNotReady((("kube-system/karpenter", 0),)),
    KarpenterNotReady((("kube-system/karpenter", 2),)),
    KarpenterRollsOut(("kube-system/karpenter",)),
    CrdNotServed("nodepools.karpenter.sh", "v1", ("v1beta1",)),
    CrdNotServed("nodepools.karpenter.sh", "v1"),
    CrdsUnread("403 Forbidden"),
    CrdIsOurs(),
    KarpenterInCharge("1.15", (("NodeRepair", True),)),
    KarpenterInCharge("1.15", None),
    NoPoliciesListed("403 Forbidden"),
    KarpentersElsewhere(("tenant/karpenter",), ("karpenter", "kube-system")),
    KarpenterRepairs("1.15"),
    KarpenterRepairs("1.15", known=False),
    DriftedByKarpenter(claim="general-4nv74", node="node-1", since=AT, reason="NodePoolDrifted"),
    ReadyNoted("node-1"),
    ReadyNoted("node-1", AT),
)
