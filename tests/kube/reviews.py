"""AdmissionReviews as API servers send them."""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.kube.webhook.admission import Admission
from tenure.providers.kwok.nodeclass import KWOK_KIND

Json = dict[str, Any]

KWOK = ("karpenter.kwok.sh", "KWOKNodeClass")


def admission(*watched: str) -> Admission:
    """``watched``: what the provider states; nothing: unknown."""
    return Admission({KWOK}, (KWOK_KIND,), watched=watched or None)


def a_review(new: Json | None, old: Json | None = None, **request: Any) -> bytes:
    about = new or old
    assert about is not None
    group, _, version = about["apiVersion"].partition("/")
    kind = {"group": group, "version": version, "kind": about["kind"]}
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "review-1",
            "kind": kind,
            "name": about["metadata"]["name"],
            "operation": "UPDATE" if old else "CREATE",
            "userInfo": {"username": "jane"},
            "object": new,
            "oldObject": old,
            "dryRun": False,
            **request,
        },
    }
    return msgspec.json.encode(review)
