"""The owner of a pod: its top controller as far as the pod shows it, else the pod itself.

Only pods are watched, so the owner of a pod's controller is derived from names, as the controllers
generate them:

* a ReplicaSet is called ``<Deployment>-<pod-template-hash>``, and its pods carry that hash as a
  label (an Argo Rollout's carry ``rollouts-pod-template-hash``);
* a CronJob's Jobs are called ``<CronJob>-<minutes since 1970>``, eight digits;
* any other controller is taken as it is named;
* a pod without a controller is its own owner, by the prefix of a generated name where it has one:
  a pod that is created again is another object, but has the same owner.

An owner is written ``Kind/namespace/name``. The API server takes any text as kind and name of an
ownerReference, slashes and 300,000 characters included, and tenants write them. What no object can
be named is written as its beginning and a digest. So the namespace is always known, every owner is
counted, and no owner is long.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from tenure.model.api.meta import controller_of
from tenure.model.api.pod import Pod
from tenure.model.snapshot.derived import Derivation

#: Label with a hash → what the ReplicaSet that is named after it belongs to.
_HASHES: Final = {"pod-template-hash": "Deployment", "rollouts-pod-template-hash": "Rollout"}
_REVISIONS: Final = (*_HASHES, "controller-revision-hash")
#: Kinds whose pods a rollout replaces; on any other pod the label has no defined meaning.
_ROLLED_OUT: Final = frozenset({"ReplicaSet", "StatefulSet", "DaemonSet", "Job"})
_OF_CRON_JOB: Final = re.compile(r"(?P<name>.+)-\d{8}")
#: As Kubernetes draws the end of a generated name; or an instant or build number, or a UUID.
_GENERATED: Final = re.compile(
    r"(?P<stem>.+-)[bcdfghjklmnpqrstvwxz2456789]{5}"
    r"|(?P<counted>.+[-/])(?:\d{6,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)

_KIND: Final = re.compile(r"[A-Za-z0-9._-]{1,63}")
#: Of an object, or its beginning and ``*``; at most as long as Kubernetes allows.
_NAME: Final = re.compile(r"[A-Za-z0-9._:-]{1,253}\*?")
_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9._:-]")
_BEGINNING_MAX: Final = 40


def owner_of(pod: Pod) -> str:
    meta = pod.metadata
    controller = controller_of(meta)
    if controller is None:
        name = f"{meta.generate_name}*" if meta.generate_name else meta.name
        return f"Pod/{meta.namespace}/{_short(name, _NAME)}"
    kind, name = controller.kind, controller.name
    if kind == "ReplicaSet":
        kind, name = _above_replica_set(name, meta.labels)
    elif kind == "Job" and (found := _OF_CRON_JOB.fullmatch(name)):
        kind, name = "CronJob", found["name"]
    return f"{_short(kind, _KIND)}/{meta.namespace}/{_short(name, _NAME)}"


OWNER: Final = Derivation("owner", owner_of)


def revision_of(pod: Pod) -> str:
    """The revision of the owner's template that made it; empty if no controller records it."""
    controller = controller_of(pod.metadata)
    if controller is None or controller.kind not in _ROLLED_OUT:
        return ""
    return next((pod.labels[label] for label in _REVISIONS if label in pod.labels), "")


REVISION: Final = Derivation("revision", revision_of)


@lru_cache(4096)
def family_of(owner: str) -> str:
    """The owner without a generated suffix: its creator makes others with the same prefix."""
    found = _GENERATED.fullmatch(owner)
    return f"{found['stem'] or found['counted']}*" if found else owner


def in_words(owner: str) -> str:
    """``Deployment default/web``."""
    return owner.replace("/", " ", 1)


@lru_cache(4096)
def namespace_of(owner: str) -> str:
    return owner.split("/", 2)[1] if owner.count("/") > 1 else ""


def _short(text: str, usual: re.Pattern[str]) -> str:
    """The text if it is a valid name; else its beginning and a digest, which keeps it unique."""
    if usual.fullmatch(text):
        return text
    beginning = _UNUSUAL.sub("_", text[:_BEGINNING_MAX])
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
    return f"{beginning}~{digest[:16]}"


def _above_replica_set(name: str, labels: Mapping[str, str]) -> tuple[str, str]:
    for label, kind in _HASHES.items():
        if (hash_ := labels.get(label)) and name.endswith(f"-{hash_}"):
            return kind, name.removesuffix(f"-{hash_}")
    return "ReplicaSet", name
