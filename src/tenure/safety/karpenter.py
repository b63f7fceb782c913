"""Which Karpenter is in charge, as safety reads it: by simple text, apart from the deciders' own reading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tenure.model.api.deployment import Deployment
from tenure.model.api.resource import DEPLOYMENTS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

_RELEASE: Final = re.compile(r"(?:^|:)v?1\.([0-9]{1,3})(?:\.|@|$)")
#: The minor releases of 1 that were tried.
_OLDEST, _NEWEST = 6, 15
_VERSION: Final = "app.kubernetes.io/version"
_GATES: Final = "FEATURE_GATES"


def unknown_karpenter(snapshot: Snapshot, settings: Settings) -> str | None:
    """Why nothing may be terminated; None where a Karpenter that was tried is named or runs."""
    if settings.karpenter_version:
        return None
    if why := snapshot.unlisted(DEPLOYMENTS):
        return f"Deployments cannot be listed ({why})"
    for one in _deployments(snapshot):
        texts = [*_images(one), one.labels.get(_VERSION, "")] if not is_unreadable(one) else []
        minors = [int(found[1]) for text in texts if (found := _RELEASE.search(text))]
        if any(_OLDEST <= minor <= _NEWEST for minor in minors):
            return None
    return "it is not known which Karpenter is in charge"


def may_repair(snapshot: Snapshot, settings: Settings) -> bool:
    """Whether its feature gate ``NodeRepair`` is on, or nothing says that it is off."""
    if settings.karpenter_feature_gates:
        return _is_on(settings.karpenter_feature_gates)
    found = list(_deployments(snapshot))
    return not found or any(map(_repairs, found))


def _deployments(snapshot: Snapshot) -> Iterator[Deployment]:
    for one in snapshot.objects(DEPLOYMENTS).values():
        if is_unreadable(one) or one.labels.get("app.kubernetes.io/name") == "karpenter":
            yield one


def _images(deployment: Deployment) -> Iterator[str]:
    return (one.image for one in deployment.spec.template.spec.containers)


def _repairs(deployment: Deployment) -> bool:
    if is_unreadable(deployment):
        return True
    for container in deployment.spec.template.spec.containers:
        if any(map(_is_on, container.args)):
            return True
        for variable in container.env:
            if variable.name == _GATES and (
                variable.value_from is not None or _is_on(variable.value)
            ):
                return True
    return False


def _is_on(text: str) -> bool:
    return "noderepair=true" in text.replace(" ", "").lower()
