"""The facts about nodes that are replaced beside Karpenter, and about what keeps them from it."""

from __future__ import annotations

from typing import Final

from tenure.core.facts import Fact, claims_text
from tenure.model.api.names import ZONE


class LikeForLike(Fact, frozen=True, kw_only=True):
    """What a replacement is made from: no instance type is chosen here."""

    claim: str
    pool: str
    #: Empty: any that the pool has.
    zone: str = ""
    #: Amounts and resources.
    requests: tuple[tuple[str, str], ...] = ()
    #: The template of the pool has changed: none of the claim's own requirements were taken.
    template_only: bool = False

    def __str__(self) -> str:
        zone = f" in {self.zone}" if self.zone else ""
        asks = ", ".join(f"{amount} {resource}" for resource, amount in self.requests)
        of = f"requirements of NodeClaim {self.claim} and of NodePool {self.pool}"
        if self.template_only:
            of = (
                f"requirements of NodePool {self.pool} alone, which those of NodeClaim {self.claim} "
                "contradict"
            )
        return f"Karpenter chooses an instance type{zone} for {asks or 'its pods'}: {of}"


class TemplateExcludes(Fact, frozen=True):
    pool: str
    node: str
    key: str
    value: str
    #: A pod that asks for that label; empty: volumes or programs are bound to it.
    pod: str = ""

    def __str__(self) -> str:
        needs = (
            f"pod {self.pod} asks for it" if self.pod else f"the pods of Node {self.node} need it"
        )
        if not self.pod and self.key == ZONE:
            needs = f"volumes of pods on Node {self.node} may be bound to it"
        return (
            f"the template of NodePool {self.pool} no longer allows {self.key}={self.value}, "
            f"and {needs}"
        )

    def remedy(self) -> str:
        return f"Allow {self.key}={self.value} in NodePool {self.pool}, or delete the NodeClaim."


class PodAsksForNode(Fact, frozen=True):
    pod: str
    node: str

    def __str__(self) -> str:
        return f"pod {self.pod} asks for Node {self.node} by its name, and fits on no other"


class LimitInTheWay(Fact, frozen=True):
    pool: str
    resource: str
    left: str
    needs: str

    def gist(self) -> object:
        return type(self), self.resource

    def __str__(self) -> str:
        return (
            f"spec.limits.{self.resource} of NodePool {self.pool} has {self.left} left, and a "
            f"replacement needs {self.needs} before the node that it replaces is gone"
        )

    def remedy(self) -> str:
        return f"Raise spec.limits.{self.resource} of NodePool {self.pool}."


class PodsCameSince(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return (
            f"reschedulable pods came to Node {self.node}, and no replacement was launched for them"
        )


class ReplicasLaunched(Fact, frozen=True):
    pool: str

    def __str__(self) -> str:
        return (
            f"NodePool {self.pool} has spec.replicas, so Karpenter launches its next node once this one is "
            "deleted, and Tenure launches none first"
        )


class ReplicasNotLaunched(Fact, frozen=True):
    pool: str
    #: Whether the feature gate can be read.
    known: bool = True

    def __str__(self) -> str:
        gate = "is off" if self.known else "cannot be read"
        return (
            f"NodePool {self.pool} has spec.replicas, and the feature gate StaticCapacity of Karpenter {gate}: "
            "nothing would launch another node"
        )

    def remedy(self) -> str:
        return "Turn the feature gate on, name it in --karpenter-feature-gates, or delete the NodeClaim."


class NoReboots(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"Node {self.node} is to be rebooted, and Tenure reboots nothing beside Karpenter"

    def remedy(self) -> str:
        return "Set action: Replace in the repair policy."


class CommandNotOurs(Fact, frozen=True):
    """A command of a Tenure that was in charge before, or that a user has written."""

    claim: str

    def __str__(self) -> str:
        return (
            f"nothing says that Tenure beside Karpenter has begun to replace NodeClaim {self.claim}"
        )


class ReplacementReserved(Fact, frozen=True):
    """The lever of a replacement: Karpenter would remove it while it is empty."""

    node: str
    #: Those that it replaces, and that are still there.
    claims: tuple[str, ...]

    def __str__(self) -> str:
        return f"Node {self.node} replaces {claims_text(self.claims)}, whose pods are still to come"


class NodeIsReplaced(Fact, frozen=True):
    """The lever of a node that is being replaced: Karpenter would launch a second replacement."""

    node: str
    claims: tuple[str, ...]

    def __str__(self) -> str:
        by = f" by {claims_text(self.claims)}" if self.claims else ""
        return f"Tenure replaces Node {self.node}{by}"


class OnNodeAlready(Fact, frozen=True):
    """The lever has been copied from the claim to its Node."""

    claim: str
    node: str

    def __str__(self) -> str:
        return (
            f"Node {self.node} has the annotation of NodeClaim {self.claim}, where it has no effect"
        )


class ReplacementDone(Fact, frozen=True):
    claim: str

    def __str__(self) -> str:
        return f"what NodeClaim {self.claim} replaces is gone: it is a NodeClaim like any other from now on"


EXAMPLES: Final[tuple[Fact, ...]] = (
    LikeForLike(
        claim="general-4nv74",
        pool="general",
        zone="test-zone-a",
        requests=(("cpu", "3"), ("memory", "4Gi")),
    ),
    LikeForLike(claim="general-4nv74", pool="general", template_only=True),
    TemplateExcludes("general", "node-1", ZONE, "test-zone-a"),
    TemplateExcludes("general", "node-1", "example.com/disk", "fast", "default/web-1"),
    TemplateExcludes("general", "node-1", "kubernetes.io/arch", "arm64"),
    PodAsksForNode("default/web-1", "node-1"),
    LimitInTheWay("general", "cpu", "2", "4"),
    PodsCameSince("node-1"),
    ReplicasLaunched("general"),
    ReplicasNotLaunched("general"),
    ReplicasNotLaunched("general", known=False),
    NoReboots("node-1"),
    CommandNotOurs("general-4nv74"),
    ReplacementReserved("node-2", ("general-4nv74",)),
    NodeIsReplaced("node-1", ("general-26szh",)),
    NodeIsReplaced("node-1", ()),
    OnNodeAlready("general-26szh", "node-2"),
    ReplacementDone("general-26szh"),
)
