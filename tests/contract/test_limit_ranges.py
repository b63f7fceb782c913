"""What a LimitRange does to the pods of its namespace."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.resource import LIMIT_RANGES, PODS
from tests.contract.backends import Answer, Backend, Json, a_pod


async def a_range(
    api: Backend, type_: str = "Container", name: str = "range", **item: Json
) -> Json:
    spec = {"limits": [{"type": type_, **item}]}
    stored = await api.created(LIMIT_RANGES, {"metadata": {"name": name}, "spec": spec})
    (limit,) = stored["spec"]["limits"]
    return dict(limit)


async def admitted(api: Backend, **resources: Json) -> Json:
    """The resources of a new pod's container; a real API server hears of a LimitRange a moment
    after it is created."""

    def completed(answer: Answer) -> bool:
        assert answer.status == 201, answer
        return "kubernetes.io/limit-ranger" in answer.body["metadata"].get("annotations", {})

    answer = await api.until_answered(lambda: tried(api, resources), completed)
    (container,) = answer.body["spec"]["containers"]
    return dict(container["resources"])


async def refused(api: Backend, **resources: Json) -> str:
    answer = await api.until_answered(lambda: tried(api, resources), lambda a: a.status != 201)
    assert (answer.status, answer.reason) == (403, "Forbidden"), answer
    return str(answer.body["message"]).lower()


async def tried(api: Backend, resources: Json) -> Answer:
    """A pod that is admitted, or not, and in no case stored."""
    return await api.create(PODS, pod_with(resources), dryRun="All")


def pod_with(resources: Json) -> Json:
    container = {"name": "main", "image": "registry.example/app:1", "resources": resources}
    return a_pod("pod", containers=[container])


COMPLETED: list[tuple[Json, Json]] = [
    (
        {"default": {"cpu": "2"}},
        {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "2"}},
    ),
    (
        {"max": {"cpu": "4"}},
        {"max": {"cpu": "4"}, "default": {"cpu": "4"}, "defaultRequest": {"cpu": "4"}},
    ),
    (
        {"min": {"cpu": "100m"}},
        {"min": {"cpu": "100m"}, "defaultRequest": {"cpu": "100m"}},
    ),
    (
        {"max": {"cpu": "4"}, "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}},
        {"max": {"cpu": "4"}, "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}},
    ),
]


@pytest.mark.parametrize(("given", "stored"), COMPLETED)
async def test_a_limit_range_is_completed_when_it_is_stored(
    api: Backend, given: Json, stored: Json
) -> None:
    assert await a_range(api, **given) == {"type": "Container", **stored}


async def test_nothing_is_completed_for_pods_as_a_whole(api: Backend) -> None:
    assert await a_range(api, "Pod", max={"cpu": "4"}) == {"type": "Pod", "max": {"cpu": "4"}}


async def test_a_container_gets_what_it_does_not_say(api: Backend) -> None:
    await a_range(api, default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "1"})
    assert await admitted(api, requests={"memory": "512Mi"}) == {
        "limits": {"cpu": "2", "memory": "1Gi"},
        "requests": {"cpu": "1", "memory": "512Mi"},
    }


async def test_a_limit_of_its_own_is_the_request_and_no_default_is(api: Backend) -> None:
    await a_range(api, default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "1"})
    assert await admitted(api, limits={"cpu": "4"}) == {
        "limits": {"cpu": "4", "memory": "1Gi"},
        "requests": {"cpu": "4", "memory": "1Gi"},
    }


REFUSED: list[Any] = [
    pytest.param(
        *("Container", {"max": {"cpu": "1"}}, {"limits": {"cpu": "2"}}),
        "maximum cpu usage per container is 1, but limit is 2",
        id="too much",
    ),
    pytest.param(
        *("Container", {"min": {"cpu": "1"}}, {"requests": {"cpu": "500m"}}),
        "minimum cpu usage per container is 1, but request is 500m",
        id="too little",
    ),
    pytest.param(
        *("Pod", {"max": {"memory": "1Gi"}}, {"requests": {"memory": "1Gi"}}),
        "maximum memory usage per pod is 1gi.  no limit is specified",
        id="no limit",
    ),
    pytest.param(
        "Container",
        {"maxLimitRequestRatio": {"cpu": "2"}},
        {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
        "cpu max limit to request ratio per container is 2, but provided ratio is 3.0",
        id="limit too far above the request",
    ),
]


@pytest.mark.parametrize(("type_", "item", "resources", "why"), REFUSED)
async def test_a_pod_outside_the_range_is_refused(
    api: Backend, type_: str, item: Json, resources: Json, why: str
) -> None:
    await a_range(api, type_, **item)
    assert why in await refused(api, **resources)
