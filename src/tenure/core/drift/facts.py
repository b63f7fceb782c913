"""The facts about drift."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, THEN, Fact, some
from tenure.model.api.meta import format_time
from tenure.model.api.names import ZONE


class HashVersionOld(Fact, frozen=True):
    version: str
    current: str
    #: The claim is drifted already, and stays so: its hash is kept.
    kept: bool = False

    def __str__(self) -> str:
        old = self.version or "none"
        if self.kept:
            return (
                f"the hash of version {old} cannot be compared; the claim has drifted already, so the "
                f"hash stays, and is marked as version {self.current}"
            )
        return f"replacing the hash of version {old} by the pool's of version {self.current}"


class FieldChanged(Fact, frozen=True):
    #: Below ``spec.template``.
    path: str
    #: What was there and what is, as far as the claim shows it.
    how: str = ""

    def __str__(self) -> str:
        return f"{self.path} ({self.how})" if self.how else self.path


class TemplateChanged(Fact, frozen=True):
    pool: str
    #: Empty: the claim does not show which.
    fields: tuple[FieldChanged, ...]

    def __str__(self) -> str:
        said = f"spec.template of NodePool {self.pool} has changed since the claim was created: "
        if self.fields:
            return said + ", ".join(map(str, self.fields))
        return (
            f"{said}the claim does not record which field: a label or annotation was removed from the "
            "template, or the claim was edited"
        )


class UnmetRequirement(Fact, frozen=True):
    key: str
    #: All that the pool says of the label.
    requirement: str
    #: None: the claim lacks the label.
    value: str | None

    def __str__(self) -> str:
        has = "the claim lacks it" if self.value is None else f"the claim has {self.value}"
        return f"{self.requirement} ({has})"


class RequirementsUnmet(Fact, frozen=True):
    pool: str
    unmet: tuple[UnmetRequirement, ...]

    def __str__(self) -> str:
        required = some(str(one) for one in self.unmet)
        return f"labels of the claim do not satisfy the requirements of NodePool {self.pool}: {required}"


class InstanceTypeGone(Fact, frozen=True):
    node_class: str
    instance_type: str
    #: Empty where the type itself is gone.
    zone: str = ""
    capacity_type: str = ""

    def __str__(self) -> str:
        if not self.instance_type:
            return f"the claim lacks the label of its instance type, so {self.node_class} offers none for it"
        what = f"instance type {self.instance_type}"
        if self.zone or self.capacity_type:
            what += f" as {self.capacity_type or 'any capacity type'} in {self.zone or 'any zone'}"
        return f"{what} is no longer offered by {self.node_class}"


class CountsFrom(Fact, frozen=True):
    at: datetime

    def __str__(self) -> str:
        return f"the claim drifts at {format_time(self.at)} if nothing changes"


class ProviderSaysDrifted(Fact, frozen=True):
    #: The provider's code.
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.message} ({self.reason})"


class DriftRecorded(Fact, frozen=True):
    """What the condition says; it cannot be checked at the moment."""

    reason: str
    message: str
    since: datetime | None

    def __str__(self) -> str:
        since = f" since {format_time(self.since)}" if self.since is not None else ""
        return f"drifted{since} ({self.reason}), not checked again yet: {self.message}"


class ProviderSilent(Fact, frozen=True):
    since: datetime
    why: str

    def __str__(self) -> str:
        return (
            f"since {format_time(self.since)} the provider has failed to say whether the instance "
            f"has drifted: {self.why}"
        )


class Undrifted(Fact, frozen=True):
    pool: str

    def __str__(self) -> str:
        return f"the claim matches NodePool {self.pool} and its node class"


EXAMPLES: Final[tuple[Fact, ...]] = (
    HashVersionOld("v2", "v3"),
    HashVersionOld("v2", "v3", kept=True),
    FieldChanged("metadata.labels", "team: a → b"),
    FieldChanged("metadata.annotations", "an entry was removed"),
    TemplateChanged(
        "general",
        (
            FieldChanged("metadata.labels", "team: a → b"),
            FieldChanged("spec.taints", "gpu:NoSchedule added"),
        ),
    ),
    TemplateChanged("general", ()),
    UnmetRequirement(ZONE, f"{ZONE} In [zone-b]", "zone-a"),
    RequirementsUnmet(
        "general",
        (
            UnmetRequirement(ZONE, f"{ZONE} In [zone-b]", "zone-a"),
            UnmetRequirement("team", "team Exists", None),
        ),
    ),
    InstanceTypeGone("EC2NodeClass/default", "m7i.large"),
    InstanceTypeGone("EC2NodeClass/default", "m7i.large", "zone-a", "spot"),
    InstanceTypeGone("EC2NodeClass/default", ""),
    CountsFrom(THEN),
    ProviderSaysDrifted("ImageDrift", "the instance runs image v1, its node class asks for v2"),
    DriftRecorded("ImageDrift", "the instance runs image v1, its node class asks for v2", AT),
    ProviderSilent(AT, "drift of instance i-1: no answer within 60 s"),
    Undrifted("general"),
)
