"""Garbage collection: dependents follow their owners, in the way that was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.resource import CONFIG_MAPS
from tests.contract.backends import Backend, Json


@pytest.fixture(autouse=True)
def _needs_controllers(api: Backend) -> None:
    if not api.has_controllers:
        pytest.skip("this backend collects no garbage")


async def owner(api: Backend, name: str = "owner") -> Json:
    return await api.created(CONFIG_MAPS, {"metadata": {"name": name}})


def owned_by(*owners: Json, **fields: Any) -> list[Json]:
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": obj["metadata"]["name"],
            "uid": obj["metadata"]["uid"],
            **fields,
        }
        for obj in owners
    ]


async def dependent(
    api: Backend, references: list[Json], name: str = "dependent", **metadata: Any
) -> Json:
    body = {"metadata": {"name": name, "ownerReferences": references, **metadata}}
    return await api.created(CONFIG_MAPS, body)


async def test_a_dependent_goes_after_its_owner(api: Backend) -> None:
    await dependent(api, owned_by(await owner(api)))
    await api.delete(CONFIG_MAPS, "owner")
    assert (await api.get(CONFIG_MAPS, "owner")).status == 404
    await api.gone(CONFIG_MAPS, "dependent")


async def test_a_dependent_of_two_owners_stays_with_the_last_one(api: Backend) -> None:
    one, two = await owner(api, "one"), await owner(api, "two")
    created = await dependent(api, owned_by(one, two))
    version = created["metadata"]["resourceVersion"]
    watch = await api.watch(
        CONFIG_MAPS, fieldSelector="metadata.name=dependent", resourceVersion=version
    )
    await api.delete(CONFIG_MAPS, "one")
    type_, obj = await watch.event()
    assert (type_, obj["metadata"]["ownerReferences"]) == ("MODIFIED", owned_by(two))
    await api.delete(CONFIG_MAPS, "two")
    await api.gone(CONFIG_MAPS, "dependent")


async def test_a_dependent_of_a_missing_owner_is_garbage(api: Backend) -> None:
    former = await owner(api)
    await api.delete(CONFIG_MAPS, "owner")
    await dependent(api, owned_by(former))
    await api.gone(CONFIG_MAPS, "dependent")


async def test_an_owner_of_the_same_name_is_another_owner(api: Backend) -> None:
    former = await owner(api)
    await api.delete(CONFIG_MAPS, "owner")
    await owner(api)
    await dependent(api, owned_by(former))
    await api.gone(CONFIG_MAPS, "dependent")


async def test_orphans_lose_their_owner_and_stay(api: Backend) -> None:
    await dependent(api, owned_by(await owner(api)))
    await api.delete(CONFIG_MAPS, "owner", propagationPolicy="Orphan")
    await api.gone(CONFIG_MAPS, "owner")
    # The collector has not stopped: it takes another one meanwhile.
    await dependent(api, owned_by(await owner(api, "late")), "taken")
    await api.delete(CONFIG_MAPS, "late")
    await api.gone(CONFIG_MAPS, "taken")
    left = await api.get(CONFIG_MAPS, "dependent")
    assert left.status == 200
    assert "ownerReferences" not in left.body["metadata"]


async def test_in_the_foreground_the_owner_waits_for_what_blocks_it(api: Backend) -> None:
    references = owned_by(await owner(api), blockOwnerDeletion=True)
    await dependent(api, references, finalizers=["example.com/hold"])
    marked = await api.delete(CONFIG_MAPS, "owner", propagationPolicy="Foreground")
    assert marked.body["metadata"]["finalizers"] == ["foregroundDeletion"]
    await api.until_seen(
        CONFIG_MAPS,
        "dependent",
        lambda held: "deletionTimestamp" in held.body.get("metadata", {}),
    )
    assert (await api.get(CONFIG_MAPS, "owner")).status == 200
    await api.patch(CONFIG_MAPS, "dependent", {"metadata": {"finalizers": None}})
    await api.gone(CONFIG_MAPS, "owner")


async def test_in_the_foreground_what_does_not_block_is_not_waited_for(api: Backend) -> None:
    await dependent(api, owned_by(await owner(api)), finalizers=["example.com/hold"])
    await api.delete(CONFIG_MAPS, "owner", propagationPolicy="Foreground")
    await api.gone(CONFIG_MAPS, "owner")
    held = await api.get(CONFIG_MAPS, "dependent")
    assert held.status == 200
    await api.patch(CONFIG_MAPS, "dependent", {"metadata": {"finalizers": None}})
    await api.gone(CONFIG_MAPS, "dependent")
