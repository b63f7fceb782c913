"""Eviction: what disruption budgets allow, refuse and remember."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.resource import POD_DISRUPTION_BUDGETS, PODS
from tests.contract.backends import Answer, Backend, a_pod


def is_refused_by_budget(answer: Answer) -> bool:
    causes = [cause["reason"] for cause in answer.causes]
    return (answer.status, answer.reason, causes) == (429, "TooManyRequests", ["DisruptionBudget"])


async def leaving(api: Backend, name: str) -> bool:
    answer = await api.get(PODS, name)
    return answer.status == 404 or "deletionTimestamp" in answer.body["metadata"]


async def test_without_a_budget_an_eviction_is_a_graceful_deletion(api: Backend) -> None:
    await api.running_pod("a")
    answer = await api.evict("a")
    assert (answer.status, answer.body["kind"], answer.body["status"]) == (201, "Status", "Success")
    assert (await api.get(PODS, "a")).body["metadata"]["deletionGracePeriodSeconds"] == 30


async def test_an_eviction_can_bring_its_own_grace(api: Backend) -> None:
    await api.running_pod("a")
    await api.evict("a", gracePeriodSeconds=5)
    assert (await api.get(PODS, "a")).body["metadata"]["deletionGracePeriodSeconds"] == 5


async def test_a_pod_whose_own_grace_is_zero_is_gone_at_once(api: Backend) -> None:
    await api.running_pod("a", terminationGracePeriodSeconds=0)
    await api.evict("a")
    assert (await api.get(PODS, "a")).status == 404


async def test_an_eviction_of_another_uid_is_a_conflict(api: Backend) -> None:
    await api.running_pod("a")
    answer = await api.evict("a", preconditions={"uid": "another"})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert not await leaving(api, "a")


async def test_an_eviction_of_a_missing_pod_is_not_found(api: Backend) -> None:
    assert (await api.evict("missing")).status == 404


async def test_an_exhausted_budget_refuses(api: Backend) -> None:
    await api.running_pod("a")
    await api.budget("b", disruptionsAllowed=0)
    answer = await api.evict("a")
    assert is_refused_by_budget(answer)
    assert "b needs 1 healthy pods and has 1 currently" in answer.causes[0]["message"]
    assert not await leaving(api, "a")


async def test_an_allowed_eviction_charges_the_budget(api: Backend) -> None:
    await api.running_pod("a")
    await api.running_pod("c")
    await api.budget("b", disruptionsAllowed=1, currentHealthy=2, expectedPods=2)
    assert (await api.evict("a")).status == 201
    status = (await api.get(POD_DISRUPTION_BUDGETS, "b")).body["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["a"]
    condition = status["conditions"][0]
    assert (condition["type"], condition["status"]) == ("DisruptionAllowed", "False")
    assert is_refused_by_budget(await api.evict("c"))


async def test_a_budget_whose_status_is_behind_its_spec_asks_for_patience(api: Backend) -> None:
    await api.running_pod("a")
    await api.budget("b", disruptionsAllowed=1)
    await api.patch(POD_DISRUPTION_BUDGETS, "b", {"spec": {"minAvailable": 2}})
    answer = await api.evict("a")
    assert is_refused_by_budget(answer)
    assert answer.body["details"]["retryAfterSeconds"] == 10
    assert "still being processed" in answer.causes[0]["message"]


async def test_two_budgets_over_one_pod_are_an_error_of_the_server(api: Backend) -> None:
    await api.running_pod("a")
    for name in ("b", "c"):
        await api.budget(name, disruptionsAllowed=5)
    answer = await api.evict("a")
    assert (answer.status, answer.reason) == (500, "")
    assert not await leaving(api, "a")


async def test_a_budget_of_other_pods_does_not_matter(api: Backend) -> None:
    await api.running_pod("a")
    await api.budget("b", spec={"selector": {"matchLabels": {"app": "db"}}})
    assert (await api.evict("a")).status == 201


async def test_a_budget_with_an_empty_selector_covers_every_pod(api: Backend) -> None:
    await api.running_pod("a")
    await api.budget("b", spec={"selector": {}})
    assert is_refused_by_budget(await api.evict("a"))


async def test_a_budget_selects_by_expressions_too(api: Backend) -> None:
    await api.running_pod("a")
    expression = {"key": "app", "operator": "In", "values": ["web", "db"]}
    await api.budget("b", spec={"selector": {"matchExpressions": [expression]}})
    assert is_refused_by_budget(await api.evict("a"))


@pytest.mark.parametrize(
    ("spec", "status", "allowed"),
    [
        pytest.param({}, {"currentHealthy": 1}, True, id="enough others are healthy"),
        pytest.param({}, {"currentHealthy": 0}, False, id="too few others are healthy"),
        pytest.param({}, {"currentHealthy": 0, "desiredHealthy": 0}, False, id="none is desired"),
        pytest.param(
            {"unhealthyPodEvictionPolicy": "AlwaysAllow"},
            {"currentHealthy": 0},
            True,
            id="unhealthy pods may always go",
        ),
        pytest.param(
            {"unhealthyPodEvictionPolicy": "IfHealthyBudget"},
            {"currentHealthy": 0},
            False,
            id="unhealthy pods may go if the budget is healthy",
        ),
    ],
)
async def test_an_unready_pod_asks_its_budget_differently(
    api: Backend, spec: dict[str, Any], status: dict[str, int], allowed: bool
) -> None:
    await api.running_pod("a", ready=False)
    before = await api.budget("b", spec=spec, **status)
    answer = await api.evict("a")
    assert (answer.status == 201) is allowed
    assert await leaving(api, "a") is allowed
    after = (await api.get(POD_DISRUPTION_BUDGETS, "b")).body
    assert after == before, "an unready pod is not charged to the budget"


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
async def test_a_pod_that_does_not_run_needs_no_budget(api: Backend, phase: str) -> None:
    await api.running_pod("a")
    await api.patch(PODS, "a", {"status": {"phase": phase}}, subresource="status")
    await api.budget("b", disruptionsAllowed=0)
    assert (await api.evict("a")).status == 201
    assert await leaving(api, "a")


async def test_a_pod_that_is_leaving_already_needs_no_budget(api: Backend) -> None:
    await api.running_pod("a")
    await api.budget("b", disruptionsAllowed=0)
    await api.delete(PODS, "a")
    answer = await api.evict("a", gracePeriodSeconds=5)
    assert answer.status == 201
    assert (await api.get(PODS, "a")).body["metadata"]["deletionGracePeriodSeconds"] == 5


async def test_a_charge_stays_even_if_the_deletion_then_fails(api: Backend) -> None:
    await api.running_pod("a")
    await api.budget("b", disruptionsAllowed=1)
    answer = await api.evict("a", preconditions={"uid": "another"})
    assert answer.status == 409
    status = (await api.get(POD_DISRUPTION_BUDGETS, "b")).body["status"]
    assert status["disruptionsAllowed"] == 0


async def test_the_eviction_must_name_the_pod_of_its_path(api: Backend) -> None:
    await api.created(PODS, a_pod("a"))
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b"}}
    answer = await api.send("POST", api.path(PODS, "a", "eviction"), body)
    assert (answer.status, answer.reason) == (400, "BadRequest")
