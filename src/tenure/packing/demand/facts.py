"""The facts about persistent volumes because of which no node can run a pod now.

``claim`` is the PersistentVolumeClaim, ``namespace/name``.
"""

from __future__ import annotations

from typing import Final

from tenure.model.values.fact import Fact


class VolumeClaimMissing(Fact, frozen=True):
    claim: str
    #: It belongs to a generic ephemeral volume, and Kubernetes creates it.
    ephemeral: bool = False

    def __str__(self) -> str:
        missing = f"PersistentVolumeClaim {self.claim} does not exist"
        if self.ephemeral:
            return f"{missing} yet; kube-controller-manager creates it for the ephemeral volume"
        return f"{missing}; create it"


class VolumeClaimDeleting(Fact, frozen=True):
    claim: str

    def __str__(self) -> str:
        return f"PersistentVolumeClaim {self.claim} is being deleted"


class VolumeClaimLost(Fact, frozen=True):
    claim: str
    volume: str

    def __str__(self) -> str:
        lost = f"PersistentVolumeClaim {self.claim} is bound to PersistentVolume {self.volume}"
        return f"{lost}, which does not exist"


class StorageClassMissing(Fact, frozen=True):
    claim: str
    #: Empty: the claim names none, and no StorageClass is the default.
    storage_class: str

    def __str__(self) -> str:
        if not self.storage_class:
            said = f"PersistentVolumeClaim {self.claim} names no StorageClass"
            return f"{said}, and no StorageClass is the default"
        said = f"StorageClass {self.storage_class} of PersistentVolumeClaim {self.claim}"
        return f"{said} does not exist"


class VolumeNotBound(Fact, frozen=True):
    """Its volume comes first, wherever that is, and the pod after it."""

    claim: str
    storage_class: str

    def __str__(self) -> str:
        mode = "volumeBindingMode: Immediate"
        return (
            f"PersistentVolumeClaim {self.claim} has no volume yet; StorageClass "
            f"{self.storage_class} has {mode}, so the pod waits for the volume"
        )


class NoVolumeMatches(Fact, frozen=True):
    """No volume is made for such a claim, and none that exists suits it."""

    claim: str
    #: Empty: the claim asks for a volume without one.
    storage_class: str

    def __str__(self) -> str:
        of = f"StorageClass {self.storage_class}" if self.storage_class else "no StorageClass"
        return (
            f"no free PersistentVolume of {of} matches PersistentVolumeClaim {self.claim}, "
            "and none is provisioned for it"
        )


class VolumeInUse(Fact, frozen=True):
    claim: str
    #: The other pod, ``namespace/name``.
    by: str

    def __str__(self) -> str:
        return (
            f"PersistentVolumeClaim {self.claim} has access mode ReadWriteOncePod and is in use by "
            f"Pod {self.by}"
        )


class VolumesUnlisted(Fact, frozen=True):
    """The API server does not list what volumes depend on."""

    claim: str
    kind: str
    problem: str

    def __str__(self) -> str:
        return (
            f"{self.kind} objects cannot be listed ({self.problem}), so it is unknown "
            f"where PersistentVolumeClaim {self.claim} can be used"
        )


class VolumeUnreadable(Fact, frozen=True):
    claim: str
    problem: str

    def __str__(self) -> str:
        return f"where PersistentVolumeClaim {self.claim} can be used is unknown: {self.problem}"


#: Why the pod cannot run anywhere now.
VolumeFact = (
    VolumeClaimMissing
    | VolumeClaimDeleting
    | VolumeClaimLost
    | StorageClassMissing
    | VolumeNotBound
    | NoVolumeMatches
    | VolumeInUse
    | VolumesUnlisted
    | VolumeUnreadable
)

EXAMPLES: Final[tuple[Fact, ...]] = (
    VolumeClaimMissing("shop/data-0"),
    VolumeClaimMissing("shop/web-1-scratch", ephemeral=True),
    VolumeClaimDeleting("shop/data-0"),
    VolumeClaimLost("shop/data-0", "pv-1"),
    StorageClassMissing("shop/data-0", "fast"),
    StorageClassMissing("shop/data-0", ""),
    VolumeNotBound("shop/data-0", "standard"),
    NoVolumeMatches("shop/data-0", "local"),
    NoVolumeMatches("shop/data-0", ""),
    VolumeInUse("shop/data-0", "shop/db-1"),
    VolumesUnlisted("shop/data-0", "StorageClass", "forbidden"),
    VolumeUnreadable("shop/data-0", "PersistentVolume pv-1 cannot be read"),
)
