"""Definitions of kinds that the embedded cluster has anyway: stored, and nothing else changes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.model.api.resource import NODE_POOLS
from tenure.ports.transport import Request, Response
from tenure.schema.structure.crd import generate
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.objects.customkinds import SERVED_KINDS
from tenure.sim.apiserver.objects.definition import DEFINITIONS
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
def test_it_is_established_and_a_warning_says_that_it_is_not_used(
    definition: dict[str, Any],
) -> None:
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
