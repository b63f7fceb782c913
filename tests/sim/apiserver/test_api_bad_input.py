"""Whatever is sent to the API, it is answered: bad input never ends in a fault of ours."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.model.api.resource import DEPLOYMENTS, NODE_POOLS, NODES, PODS, Resource
from tenure.ports.transport import (
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    Request,
    Response,
)
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.objects.kinds import ALL
from tenure.sim.apiserver.store.store import Store
from tenure.sim.serve.answers import TABLE, Form, Presenter
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.loop import VirtualLoop, run_virtually
from tests.contract.backends import WORKLOAD, a_node, a_pod
from tests.schema.objects import an_object

Json = dict[str, Any]

#: Objects that are fine, to be spoilt.
GOOD: dict[Resource, Json] = {
    PODS: a_pod(
        "a",
        tolerations=[{"key": "k", "operator": "Exists"}],
        nodeSelector={"a": "b"},
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
    ),
    NODES: a_node("a", taints=[{"key": "k", "effect": "NoSchedule"}]),
    DEPLOYMENTS: {"metadata": {"name": "a"}, "spec": {**WORKLOAD, "replicas": 1}},
    NODE_POOLS: an_object("NodePool", {"spec.limits": {"cpu": "1"}, "spec.weight": 5}),
}

plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(["1", "1Gi", "-1", "1h", "Never", "50%", "metadata", "spec"]),
)
keys = st.one_of(
    st.sampled_from(["metadata", "spec", "status", "name", "labels", "key", "template", "$patch"]),
    st.text(max_size=4),
)
anything = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at]
    if isinstance(value, dict):
        found += [p for key, item in value.items() for p in places(item, (*at, key))]
    elif isinstance(value, list):
        found += [p for index, item in enumerate(value) for p in places(item, (*at, index))]
    return found


def spoilt(good: Json, where: tuple[Any, ...], what: Any) -> Any:
    if not where:
        return what
    bad = copy.deepcopy(good)
    place: Any = bad
    for step in where[:-1]:
        place = place[step]
    place[where[-1]] = what
    return bad


def answered(ask: Callable[[Api], None]) -> None:
    """Ask a fresh cluster with one good object of each kind in it."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        world = Environment(loop, epoch=datetime(2031, 5, 2, 8, tzinfo=UTC), seed=1)
        api = Api(Store(world.clock, world.random_for("store"), world.at, world.soon))
        for resource, good in GOOD.items():
            assert send(api, "POST", resource, "", typed(resource, good)) == 201
        ask(api)

    run_virtually(main())


def typed(resource: Resource, obj: Json) -> Json:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


def send(
    api: Api, method: str, resource: Resource, name: str, body: Any, content_type: str = JSON
) -> int:
    path = resource.path("default", name)
    raw = msgspec.json.encode(body)
    request = Request(method=method, path=path, body=raw, content_type=content_type)
    response = api.handle(request)
    assert response.status < 500, response
    return response.status


@pytest.mark.parametrize("resource", GOOD, ids=str)
@settings(max_examples=60)
@given(data=st.data())
def test_a_spoilt_object_is_answered(resource: Resource, data: st.DataObject) -> None:
    good = typed(resource, GOOD[resource])
    where = data.draw(st.sampled_from(places(good)))
    bad = spoilt(good, where, data.draw(anything))

    def ask(api: Api) -> None:
        send(api, "POST", resource, "", bad)
        send(api, "PUT", resource, good["metadata"]["name"], bad)
        for content_type in (MERGE_PATCH, STRATEGIC_MERGE_PATCH):
            send(api, "PATCH", resource, good["metadata"]["name"], bad, content_type)

    answered(ask)


@pytest.mark.parametrize("resource", ALL, ids=str)
@settings(max_examples=15)
@given(body=anything)
def test_anything_is_answered(resource: Resource, body: Any) -> None:
    def ask(api: Api) -> None:
        for method, name in (("POST", ""), ("PUT", "a"), ("DELETE", "a"), ("DELETE", "")):
            send(api, method, resource, name, body)

    answered(ask)


OPERATIONS = st.fixed_dictionaries(
    {},
    optional={
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "no", 1]),
        "path": st.sampled_from(["", "/", "/spec", "/spec/x/y", "/metadata/labels/a", "spec", 5])
        | st.sampled_from(["/spec/containers/0", "/spec/containers/-", "/spec/containers/01"]),
        "from": st.sampled_from(["/metadata", "/spec/containers/0", "/nowhere", "", None]),
        "value": anything,
    },
)


@pytest.mark.parametrize("resource", [PODS, NODE_POOLS], ids=str)
@settings(max_examples=60)
@given(patch=st.lists(OPERATIONS, max_size=3) | anything)
def test_any_json_patch_is_answered(resource: Resource, patch: Any) -> None:
    name = GOOD[resource]["metadata"]["name"]

    def ask(api: Api) -> None:
        send(api, "PATCH", resource, name, patch, JSON_PATCH)

    answered(ask)


STATUSES: dict[Resource, Json] = {
    PODS: {
        "phase": "Running",
        "podIPs": [{"ip": "10.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {
                "name": "main",
                "ready": True,
                "restartCount": 1,
                "state": {"running": {"startedAt": "2031-05-02T08:00:00Z"}},
                "lastState": {"terminated": {"finishedAt": "2031-05-02T08:00:00Z"}},
            }
        ],
        "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 0}}}],
    },
    NODES: {
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        "nodeInfo": {"kubeletVersion": "v1"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
    DEPLOYMENTS: {"replicas": 1, "readyReplicas": 1},
    NODE_POOLS: {"nodes": 1, "conditions": [], "resources": {"cpu": "1"}},
}


@pytest.mark.parametrize("resource", STATUSES, ids=str)
@settings(max_examples=80)
@given(data=st.data())
def test_a_spoilt_status_leaves_the_table_whole(resource: Resource, data: st.DataObject) -> None:
    good = {"status": STATUSES[resource]}
    where = data.draw(st.sampled_from(places(good)[1:]))
    bad = spoilt(good, where, data.draw(anything))
    name = GOOD[resource]["metadata"]["name"]

    def ask(api: Api) -> None:
        path = resource.path("default", name, "status")
        raw = msgspec.json.encode(bad)
        patch = Request(method="PATCH", path=path, body=raw, content_type=MERGE_PATCH)
        assert api.handle(patch).status in (200, 400, 422)
        list_ = Request(method="GET", path=resource.path("default"))
        target = api.routes.route(list_.path)
        assert target is not None
        presenter = Presenter(list_, Form(JSON, TABLE, "v1"), target, api.kind_of(resource))
        table = presenter.answer(api.handle(list_), datetime(2031, 5, 2, 9, tzinfo=UTC))
        rows = msgspec.json.decode(table.body)["rows"]
        assert [row["cells"][0] for row in rows] == [name]

    answered(ask)


QUERIES = st.dictionaries(
    st.sampled_from(
        [
            "labelSelector",
            "fieldSelector",
            "limit",
            "continue",
            "resourceVersion",
            "resourceVersionMatch",
            "watch",
            "timeoutSeconds",
            "sendInitialEvents",
            "allowWatchBookmarks",
            "dryRun",
            "fieldValidation",
            "gracePeriodSeconds",
            "propagationPolicy",
        ]
    ),
    st.text(max_size=6)
    | st.sampled_from(["a=b", "a in (b", "!a", "spec.nodeName=a", "-1", "0", "9" * 30, "true"]),
    max_size=4,
)


@settings(max_examples=150)
@given(
    query=QUERIES,
    resource=st.sampled_from(ALL),
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "NO"]),
    end=st.sampled_from(["", "/a", "/a/status", "/a/scale", "/a/log", "/a/eviction", "/a/b/c"]),
)
def test_any_query_is_answered(
    query: dict[str, str], resource: Resource, method: str, end: str
) -> None:
    def ask(api: Api) -> None:
        path = resource.path("default") + end
        response = api.handle(Request(method=method, path=path, query=query, body=b"{}"))
        assert response.status < 500 or msgspec.json.decode(response.body)["kind"] == "Status"
        watch = api.watch(Request(method="GET", path=path, query=query))
        if isinstance(watch, Response):
            assert msgspec.json.decode(watch.body)["kind"] == "Status"

    answered(ask)
