"""Whose pod it is, by what the pod says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.launchbreaker.owners import (
    family_of,
    in_words,
    namespace_of,
    owner_of,
    revision_of,
)
from tenure.model.api.meta import OwnerReference
from tenure.model.api.pod import Pod
from tests.core.build import a_pod


def owned(kind: str = "", name: str = "", **metadata: Any) -> str:
    return owner_of(a_pod_of(kind, name, **metadata))


def a_pod_of(kind: str = "", name: str = "", **metadata: Any) -> Pod:
    pod = a_pod("web-x", owner="", **metadata)
    if kind:
        owners = (OwnerReference(kind=kind, name=name, uid="1", controller=True),)
        meta = msgspec.structs.replace(pod.metadata, owner_references=owners)
        pod = msgspec.structs.replace(pod, metadata=meta)
    return pod


HASH = {"pod-template-hash": "5d8f"}
OWNERS = [
    (owned("ReplicaSet", "web-5d8f", labels=HASH), "Deployment/default/web"),
    (
        owned("ReplicaSet", "web-5d8f", labels={"rollouts-pod-template-hash": "5d8f"}),
        "Rollout/default/web",
    ),
    (owned("ReplicaSet", "by-hand", labels=HASH), "ReplicaSet/default/by-hand"),
    (owned("Job", "report-28930121"), "CronJob/default/report"),
    (owned("Job", "report"), "Job/default/report"),
    (owned("StatefulSet", "db"), "StatefulSet/default/db"),
    (owned("Workflow", "etl-x2x4z"), "Workflow/default/etl-x2x4z"),
    (owned(), "Pod/default/web-x"),
    (owned(generate_name="web-"), "Pod/default/web-*"),
]


@pytest.mark.parametrize(("found", "expected"), OWNERS)
def test_the_owner_is_the_top_controller_as_far_as_names_tell(found: str, expected: str) -> None:
    assert found == expected


def test_a_revision_counts_only_where_a_controller_makes_it() -> None:
    assert revision_of(a_pod_of("ReplicaSet", "web-5d8f", labels=HASH)) == "5d8f"
    written = {"controller-revision-hash": "h1"}
    assert revision_of(a_pod_of("StatefulSet", "db", labels=written)) == "h1"
    assert revision_of(a_pod_of(labels=written)) == ""
    assert revision_of(a_pod_of("Thing", "mine", labels=written)) == ""


def test_owners_that_differ_by_a_generated_end_are_a_family() -> None:
    assert family_of("Workflow/default/etl-x2x4z") == family_of("Workflow/default/etl-bbbbb")
    assert family_of("Workflow/default/etl-x2x4z") != family_of("Workflow/other/etl-x2x4z")
    assert family_of("Deployment/default/web") == "Deployment/default/web"
    assert family_of("StatefulSet/default/db-1") == "StatefulSet/default/db-1"
    assert family_of("Job/default/build-1767600000") == "Job/default/build-*"
    assert family_of("Pod/default/0b5cbd4c-6c53-4b5f-9b1e-3b4f7d1c2a90") == "Pod/default/*"


def test_an_owner_in_words() -> None:
    assert in_words("Deployment/default/web") == "Deployment default/web"


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("X/invented", "y"),
        ("X", "y/z"),
        ("X/a/b/c", "/y/"),
        ("X", "n" * 70_000),
        ("X" * 300_000, "y"),
        ("X", "\x00\U0001f4a5" * 100),
        ("X", "*"),
        ("X", "y~0123456789abcdef"),
    ],
)
def test_what_no_object_can_be_called_is_shortened_and_leaves_the_namespace_alone(
    kind: str, name: str
) -> None:
    owner = owned(kind, name)
    assert namespace_of(owner) == namespace_of(family_of(owner)) == "default"
    assert len(owner) < 150
    assert owner.isascii()
    assert owner.count("/") == 2
    assert owner == owned(kind, name)
    assert owner != owned(kind, f"{name}x") != owned(f"{kind}x", name)


def test_the_longest_names_of_kubernetes_stay_as_they_are() -> None:
    name = "d" * 253
    assert owned("StatefulSet", name) == f"StatefulSet/default/{name}"
    assert owned(generate_name="g" * 253) == f"Pod/default/{'g' * 253}*"
