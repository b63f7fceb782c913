"""Pods made from a workload's template, and the fingerprint that tells templates apart."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from tenure.model.api.resource import Resource
from tenure.sim.apiserver.objects.tree import Obj

#: The letters that Kubernetes draws names from: no vowels, so no words.
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_FINGERPRINT_LETTERS: Final = 10
#: On a workload that another cluster had: ``fingerprint=revision``, what that cluster called its template.
#: Without it every pod that came along would count as one of an older template.
KNOWN_REVISION: Final = "sim.tenure.dev/known-revision"


def new_pod(template: Obj, owner: Obj, resource: Resource) -> Obj:
    """A pod of this template, controlled by its owner; the store will name it."""
    given = template.get("metadata") or {}
    metadata: Obj = {
        "generateName": f"{owner['metadata']['name']}-",
        "namespace": owner["metadata"]["namespace"],
        "labels": given.get("labels") or {},
        "ownerReferences": [owner_reference(owner, resource)],
    }
    for field in ("annotations", "finalizers"):
        if given.get(field):
            metadata[field] = given[field]
    return {"metadata": metadata, "spec": template["spec"]}


def owner_reference(owner: Obj, resource: Resource) -> Obj:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def fingerprint(template: Obj) -> str:
    """Equal for equal templates. Real clusters use another hash; they must not be compared."""
    digest = hashlib.sha256(msgspec.json.encode(template, order="deterministic")).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:_FINGERPRINT_LETTERS])


def template_revision(owner: Obj, prefix: str = "") -> str:
    """What pods of the workload's present template are labelled with."""
    mark = fingerprint(owner["spec"]["template"])
    annotations = owner["metadata"].get("annotations") or {}
    known, _, revision = annotations.get(KNOWN_REVISION, "").partition("=")
    return revision if known == mark else f"{prefix}{mark}"
