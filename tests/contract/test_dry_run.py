"""A dry run: everything is evaluated and answered, and nothing is stored."""

from __future__ import annotations

import pytest

from tenure.model.api.resource import CONFIG_MAPS, NODE_POOLS, POD_DISRUPTION_BUDGETS, PODS
from tests.contract.backends import Backend, a_pod
from tests.contract.test_custom_kinds import a_pool


async def test_nothing_is_created(api: Backend) -> None:
    answer = await api.create(PODS, a_pod("a"), dryRun="All")
    assert (answer.status, answer.body["spec"]["restartPolicy"]) == (201, "Always")
    assert "uid" in answer.body["metadata"]
    assert "resourceVersion" not in answer.body["metadata"]
    assert (await api.get(PODS, "a")).status == 404


async def test_what_is_wrong_is_refused_all_the_same(api: Backend) -> None:
    answer = await api.create(NODE_POOLS, a_pool(api, weight=500), dryRun="All")
    assert (answer.status, answer.fields) == (422, ["spec.weight"])


async def test_a_patch_shows_what_would_be(api: Backend) -> None:
    created = await api.created(NODE_POOLS, a_pool(api))
    name = created["metadata"]["name"]
    tried = (await api.patch(NODE_POOLS, name, {"spec": {"weight": 5}}, dryRun="All")).body
    assert (tried["spec"]["weight"], tried["metadata"]["generation"]) == (5, 2)
    assert tried["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]
    assert (await api.get(NODE_POOLS, name)).body == created


async def test_nothing_is_deleted(api: Backend) -> None:
    await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert (await api.delete(CONFIG_MAPS, "a", dryRun=["All"])).status == 200
    answer = await api.send("DELETE", api.path(CONFIG_MAPS, "a"), dryRun="All")
    assert answer.status == 200
    assert (await api.get(CONFIG_MAPS, "a")).status == 200


async def test_no_pod_is_evicted(api: Backend) -> None:
    await api.running_pod("a")
    assert (await api.evict("a", dryRun=["All"])).status == 201
    assert "deletionTimestamp" not in (await api.get(PODS, "a")).body["metadata"]


async def test_a_refused_eviction_is_refused_in_a_dry_run_too(api: Backend) -> None:
    await api.running_pod("a")
    await api.budget("b", disruptionsAllowed=0)
    assert (await api.evict("a", dryRun=["All"])).status == 429


async def test_a_dry_eviction_does_not_charge_the_budget(api: Backend) -> None:
    await api.running_pod("a")
    before = await api.budget("b", disruptionsAllowed=1)
    assert (await api.evict("a", dryRun=["All"])).status == 201
    assert (await api.get(POD_DISRUPTION_BUDGETS, "b")).body == before


@pytest.mark.parametrize("wish", ["Some", "true"])
async def test_it_is_all_or_nothing(api: Backend, wish: str) -> None:
    answer = await api.create(PODS, a_pod("a"), dryRun=wish)
    assert (answer.status, answer.fields) == (422, ["dryRun"])
