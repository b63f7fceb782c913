"""Definitions of kinds that the embedded cluster has anyway: stored, and nothing else changes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.model.api.resource import NODE_POOLS
from tenure.ports.transport import APPLY_PATCH, Request, Response
from tenure.schema.structure.crd import generate
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.objects.customkinds import SERVED_KINDS
from tenure.sim.apiserver.objects.definition import DEFINITIONS
from tenure.sim.apiserver.objects.tree import put
from tenure.sim.serve.controllers.everycluster import furnish
from tests.sim.workworld import World, a_world

KINDS = [pytest.param(one, id=one["metadata"]["name"]) for one in generate(SERVED_KINDS)]
POOL: dict[str, Any] = {
    "metadata": {"name": "general"},
    "spec": {
        "template": {
            "spec": {
                "nodeClassRef": {
                    "group": "karpenter.kwok.sh",
                    "kind": "KWOKNodeClass",
                    "name": "a",
                },
                "requirements": [],
            }
        }
    },
}


def post(world: World, definition: dict[str, Any]) -> Response:
    query = {"fieldValidation": "Strict", "fieldManager": "kubectl-create"}
    body = msgspec.json.encode(definition)
    request = Request(method="POST", path=DEFINITIONS.path(), query=query, body=body)
    return Api(world.store).handle(request)


@pytest.mark.parametrize("definition", KINDS)
def test_the_one_that_is_served_is_established_without_a_word(definition: dict[str, Any]) -> None:
    with a_world() as world:
        kinds = world.store.kinds
        response = post(world, definition)
        assert (response.status, response.headers.get("Warning")) == (201, None)
        world.run(1)
        stored = world.store.get(DEFINITIONS, "", definition["metadata"]["name"])
        said = {
            one["type"]: (one["status"], one["message"]) for one in stored["status"]["conditions"]
        }
        assert said["Established"] == ("True", "the initial names have been accepted")
        assert world.store.kinds == kinds


@pytest.mark.parametrize("definition", KINDS)
def test_another_is_established_and_a_warning_says_that_it_is_not_used(
    definition: dict[str, Any],
) -> None:
    definition = put(definition, ("spec", "preserveUnknownFields"), False)
    with a_world() as world:
        kinds = world.store.kinds
        response = post(world, definition)
        assert response.status == 201
        kind = definition["spec"]["names"]["kind"]
        told = f"the embedded cluster serves {kind} itself; this definition is stored and not used"
        assert told in response.headers["Warning"]
        world.run(1)
        stored = world.store.get(DEFINITIONS, "", definition["metadata"]["name"])
        conditions = {one["type"]: one for one in stored["status"]["conditions"]}
        assert conditions["Established"]["status"] == "True"
        assert conditions["Established"]["message"] == told
        assert world.store.kinds == kinds


def test_its_deletion_leaves_the_objects() -> None:
    with a_world() as world:
        world.add(NODE_POOLS, POOL)
        (definition,) = (
            one for one in generate(SERVED_KINDS) if "nodepools." in one["metadata"]["name"]
        )
        post(world, definition)
        world.run(1)
        world.store.delete(DEFINITIONS, "", "nodepools.karpenter.sh")
        world.run(1)
        assert world.store.list(DEFINITIONS) == []
        assert [one["metadata"]["name"] for one in world.store.list(NODE_POOLS)] == ["general"]


def furnished(world: World) -> list[str]:
    furnish(world.store)
    world.run(1)
    return [one["metadata"]["name"] for one in world.store.list(DEFINITIONS)]


def test_what_is_served_from_the_start_is_listed() -> None:
    with a_world() as world:
        names = furnished(world)
        custom = [kind.resource for kind in world.store.kinds if kind.custom]
        assert sorted(names) == sorted(f"{one.plural}.{one.group}" for one in custom)
        for one in world.store.list(DEFINITIONS):
            assert {c["type"] for c in one["status"]["conditions"] if c["status"] == "True"} == {
                "NamesAccepted",
                "Established",
            }


def test_a_definition_that_is_deleted_is_there_again_and_so_are_the_objects() -> None:
    with a_world() as world:
        furnished(world)
        world.add(NODE_POOLS, POOL)
        before = world.store.get(DEFINITIONS, "", "nodepools.karpenter.sh")
        world.store.delete(DEFINITIONS, "", "nodepools.karpenter.sh")
        world.run(1)
        after = world.store.get(DEFINITIONS, "", "nodepools.karpenter.sh")
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        assert after["spec"] == before["spec"]
        assert [one["metadata"]["name"] for one in world.store.list(NODE_POOLS)] == ["general"]


def test_another_definition_takes_its_place_and_says_that_it_is_not_used() -> None:
    """As ``kubectl apply`` of Karpenter's files does."""
    with a_world() as world:
        furnished(world)
        other = {"spec": {"names": {"categories": ["karpenter", "all"]}}}
        world.store.patch(DEFINITIONS, "", "nodepools.karpenter.sh", other)
        world.run(1)
        stored = world.store.get(DEFINITIONS, "", "nodepools.karpenter.sh")
        conditions = {one["type"]: one for one in stored["status"]["conditions"]}
        assert conditions["Established"]["status"] == "True"
        assert stored["spec"]["names"]["categories"] == ["karpenter", "all"]


def test_a_client_that_applies_its_own_has_no_conflict() -> None:
    """As helm does, and ``kubectl apply --server-side``."""
    with a_world() as world:
        furnished(world)
        stored = world.store.get(DEFINITIONS, "", "nodeclaims.karpenter.sh")
        assert stored["metadata"]["annotations"]["meta.helm.sh/release-name"] == "karpenter-crd"
        version = {**stored["spec"]["versions"][0], "additionalPrinterColumns": []}
        spec = put(stored["spec"], ("versions",), [version])
        config = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "nodeclaims.karpenter.sh"},
            "spec": spec,
        }
        query = {"fieldManager": "helm"}
        path = DEFINITIONS.path(name="nodeclaims.karpenter.sh")
        body = msgspec.json.encode(config)
        request = Request(
            method="PATCH", path=path, query=query, body=body, content_type=APPLY_PATCH
        )
        assert Api(world.store).handle(request).status == 200
