"""The numbers of a Deployment's templates, as ``kubectl rollout history`` and ``undo`` read them.

Each ReplicaSet says which revision its template is. One whose template comes back gets a new number, and keeps
its earlier ones in its history.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tenure.sim.apiserver.objects.tree import Obj

REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
#: What a user says about a change; it stays with the template that it was said of.
CAUSE: Final = "kubernetes.io/change-cause"


def revision_of(obj: Obj) -> int:
    """0 for one that has none."""
    text = _annotations(obj).get(REVISION, "")
    return int(text) if text.isdecimal() else 0


def cause_of(obj: Obj) -> str:
    return _annotations(obj).get(CAUSE, "")


def next_revision(old: Iterable[Obj]) -> int:
    """The number of the present template; ``old``: the ReplicaSets of the others."""
    return max(map(revision_of, old), default=0) + 1


def numbered(replica_set: Obj, deployment: Obj, number: int) -> dict[str, str]:
    """The annotations of the ReplicaSet once its template has this number."""
    annotations = {**_annotations(replica_set), REVISION: str(number)}
    before = _annotations(replica_set).get(REVISION)
    if before is not None and before != str(number):
        history = annotations.get(HISTORY, "")
        annotations[HISTORY] = f"{history},{before}" if history else before
    if cause := cause_of(deployment):
        annotations[CAUSE] = cause
    return annotations


def with_revision(deployment: Obj, number: int) -> Obj:
    """The Deployment, which says the number of its present template; itself if it says so already."""
    if not number or revision_of(deployment) == number:
        return deployment
    annotations = {**_annotations(deployment), REVISION: str(number)}
    return {**deployment, "metadata": {**deployment["metadata"], "annotations": annotations}}


def _annotations(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}
