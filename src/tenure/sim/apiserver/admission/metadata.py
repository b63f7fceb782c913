"""What the server makes of an object's metadata, on creation and on update.

Creation fills in name (from generateName), namespace, uid, creationTimestamp and
generation, whatever the client put there. An update first settles which object is meant
and which version of it (409), then restores what a client may not change, then refuses
what it may not even ask for (422).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import Any
from uuid import UUID

from tenure.errors import Cause
from tenure.schema.structure.shape import METADATA_FIELDS
from tenure.sim.apiserver.objects.kinds import Kind
from tenure.sim.apiserver.objects.refusals import (
    Unexplained,
    bad_request,
    conflict,
    invalid,
    malformed,
    required,
    untouchable,
)
from tenure.sim.apiserver.objects.tree import Obj

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

#: No vowels and no look-alikes, as the API server draws them.
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED_BASE_MAX = 58

_EMPTY: tuple[object, ...] = (None, "", {}, [])
_STANDARD_FINALIZERS = (
    *("kubernetes", "orphan", "foregroundDeletion"),
    "customresourcecleanup.apiextensions.k8s.io",
)
#: What is kept of metadata: links are not played here.
_KNOWN = frozenset(METADATA_FIELDS) - {"selfLink"}
_SET_BY_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation")


def for_creation(
    kind: Kind, given: Obj, *, namespace: str, random: Random, now: str
) -> dict[str, Any]:
    """The metadata of a new object; raises 422 for what cannot be accepted."""
    if given.get("resourceVersion"):
        raise Unexplained("resourceVersion should not be set on objects to be created")
    metadata = {
        key: value
        for key, value in given.items()
        if value not in _EMPTY and key in _KNOWN and key not in _SET_BY_SERVER
    }
    metadata.pop("deletionTimestamp", None)
    metadata.pop("deletionGracePeriodSeconds", None)
    metadata.pop("managedFields", None)
    base = metadata.get("generateName", "")
    if not metadata.get("name") and base:
        suffix = "".join(random.choices(_SUFFIX_LETTERS, k=5))
        metadata["name"] = base[:_GENERATED_BASE_MAX] + suffix
    if kind.resource.namespaced:
        metadata["namespace"] = namespace
    metadata["uid"] = str(UUID(int=random.getrandbits(128), version=4))
    metadata["creationTimestamp"] = now
    if kind.generation:
        metadata["generation"] = 1
    if causes := [*_name_causes(kind, metadata), *_content_causes(kind, metadata)]:
        raise invalid(kind.resource, metadata.get("name", ""), causes)
    return metadata


def check_version(kind: Kind, old: Obj, given: Obj, *, put: bool) -> None:
    """Is the caller talking about the version we have? A PUT of some kinds must say which."""
    version, current = given.get("resourceVersion"), old["resourceVersion"]
    if version and version != current:
        raise conflict(kind.resource, old["name"])
    if put and not version and not kind.overwrite:
        cause = malformed("metadata.resourceVersion", "must be specified for an update")
        raise invalid(kind.resource, old["name"], [cause])


def for_update(kind: Kind, old: Obj, given: Obj) -> dict[str, Any]:
    """The metadata after an update, still with the old resourceVersion and generation."""
    metadata = {k: v for k, v in given.items() if v not in _EMPTY and k in _KNOWN}
    for key in ("resourceVersion", "creationTimestamp", "generation"):
        if key in old:
            metadata[key] = old[key]
        else:
            metadata.pop(key, None)
    metadata.setdefault("uid", old["uid"])
    metadata.setdefault("name", old["name"])
    if kind.resource.namespaced:
        metadata.setdefault("namespace", old["namespace"])
    for key in ("name", "namespace"):
        if metadata.get(key) != old.get(key):
            raise bad_request(f"the {key} of the object does not match the {key} on the URL")
    if "deletionTimestamp" in old:
        metadata["deletionTimestamp"] = old["deletionTimestamp"]
        if "deletionGracePeriodSeconds" in old:  # A namespace has none.
            metadata.setdefault("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"])
    if causes := list(_update_causes(kind, old, metadata)):
        raise invalid(kind.resource, old["name"], causes)
    return metadata


def _update_causes(kind: Kind, old: Obj, new: Obj) -> Iterator[Cause]:
    for key in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if new.get(key) != old.get(key):
            yield malformed(f"metadata.{key}", "field is immutable")
    if "deletionTimestamp" in old:
        added = set(new.get("finalizers", ())) - set(old.get("finalizers", ()))
        if added:
            message = (
                f"no new finalizers can be added if the object is being deleted: {sorted(added)}"
            )
            yield untouchable("metadata.finalizers", message)
    # What is unchanged was checked when it came in.
    changed = {key: value for key, value in new.items() if value is not old.get(key)}
    yield from _content_causes(kind, changed)


def _name_causes(kind: Kind, metadata: Obj) -> Iterator[Cause]:
    name = metadata.get("name", "")
    if not name:
        yield required("metadata.name", "name or generateName is required")
        return
    pattern, limit = (_DNS_LABEL, 63) if kind.label_name else (_DNS_SUBDOMAIN, 253)
    if len(name) > limit or not pattern.fullmatch(name):
        yield malformed("metadata.name", f"{name!r} is not a lowercase RFC 1123 name")


def _content_causes(kind: Kind, metadata: Obj) -> Iterator[Cause]:
    labels = metadata.get("labels", {})
    for key, value in labels.items():
        if not _qualified(key):
            yield malformed("metadata.labels", f"{key!r} is not a qualified name")
        if not isinstance(value, str):
            raise bad_request(f"metadata.labels: {key!r} must be a string, got {value!r}")
        if value and (len(value) > 63 or not _NAME_PART.fullmatch(value)):
            yield malformed("metadata.labels", f"{value!r} is not a label value")
    for key, value in metadata.get("annotations", {}).items():
        if not _qualified(key.lower()):
            yield malformed("metadata.annotations", f"{key!r} is not a qualified name")
        if not isinstance(value, str):
            raise bad_request(f"metadata.annotations: {key!r} must be a string, got {value!r}")
    for index, finalizer in enumerate(metadata.get("finalizers", ())):
        if not _qualified(finalizer):
            yield malformed("metadata.finalizers", f"{finalizer!r} is not a qualified name")
        if not kind.custom and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            at = f"metadata.finalizers[{index}]"
            yield malformed(at, f"{finalizer!r} is neither a standard finalizer nor has a domain")
    yield from _owner_causes(metadata.get("ownerReferences", ()))


def _owner_causes(owners: list[Obj]) -> Iterator[Cause]:
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                # The API server does not say which owner, and calls it invalid, not missing.
                yield malformed(f"metadata.ownerReferences.{field}", "must not be empty")
    if sum(owner.get("controller") is True for owner in owners) > 1:
        yield malformed("metadata.ownerReferences", "only one reference can be the controller")


def _qualified(key: str) -> bool:
    """``name`` or ``dns.prefix/name``."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _DNS_SUBDOMAIN.fullmatch(prefix)):
        return False
    return len(name) <= 63 and _NAME_PART.fullmatch(name) is not None
