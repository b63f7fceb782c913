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
        return missing

    def remedy(self) -> str:
        if self.ephemeral:
            return "Wait; if it does not come, look for its error in the events of the pod."
        return f"Create PersistentVolumeClaim {self.claim}, or name one that exists in the pod."


class VolumeClaimDeleting(Fact, frozen=True):
    claim: str

    def __str__(self) -> str:
        return f"PersistentVolumeClaim {self.claim} is being deleted"

    def remedy(self) -> str:
        return (
            f"Create PersistentVolumeClaim {self.claim} again once it is gone, or delete the pod."
        )


class VolumeClaimLost(Fact, frozen=True):
    claim: str
    volume: str

    def __str__(self) -> str:
        lost = f"PersistentVolumeClaim {self.claim} is bound to PersistentVolume {self.volume}"
        return f"{lost}, which does not exist"

    def remedy(self) -> str:
        return f"Restore PersistentVolume {self.volume}, or delete and create the claim again."


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

    def remedy(self) -> str:
        if not self.storage_class:
            return "Name a StorageClass in the claim, or make one the default."
        return f"Create StorageClass {self.storage_class}, or create the claim again with one that exists."


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

    def remedy(self) -> str:
        return (
            "Look for the provisioner's error in the events of the claim; volumeBindingMode: "
            "WaitForFirstConsumer lets the pod choose the zone."
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

    def remedy(self) -> str:
        return f"Create a PersistentVolume that PersistentVolumeClaim {self.claim} can bind."


class VolumeInUse(Fact, frozen=True):
    claim: str
    #: The other pod, ``namespace/name``.
    by: str
    #: That pod has no node yet, and comes first.
    waits: bool = False

    def __str__(self) -> str:
        by = (
            f"is for Pod {self.by}, which waits, too"
            if self.waits
            else f"is in use by Pod {self.by}"
        )
        return f"PersistentVolumeClaim {self.claim} has access mode ReadWriteOncePod and {by}"

    def remedy(self) -> str:
        return f"Delete Pod {self.by}, or give the pod a claim of its own."


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

    def remedy(self) -> str:
        return "Apply the ClusterRole of this release."


class VolumeUnreadable(Fact, frozen=True):
    claim: str
    problem: str

    def __str__(self) -> str:
        return f"where PersistentVolumeClaim {self.claim} can be used is unknown: {self.problem}"

    def remedy(self) -> str:
        return "Correct the object that is named."


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
    VolumeInUse("shop/data-0", "shop/db-1", waits=True),
    VolumesUnlisted("shop/data-0", "StorageClass", "forbidden"),
    VolumeUnreadable("shop/data-0", "PersistentVolume pv-1 cannot be read"),
)
