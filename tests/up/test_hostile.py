"""What is sent to ``tenure up`` costs what it weighs: no body takes the memory or the process."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from tenure.ports.transport import (
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    Request,
    Response,
)
from tenure.sim.serve.answers import YAML
from tenure.sim.serve.proto import MEDIA_TYPE
from tests.contract.backends import ServedStore, a_pod
from tests.parse.test_yamltext import BOMB
from tests.real.cluster import connected

PODS = "/api/v1/namespaces/default/pods"
#: Bytes that one request may take beside its own.
MEMORY_MAX = 60 * 2**20


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedStore]:
    found = ServedStore(tmp_path_factory.mktemp("served"))
    found.start()
    yield found
    found.stop()


Ask = Callable[..., Response]


@pytest.fixture
def ask(served: ServedStore) -> Ask:
    def asked(body: bytes, media: str, method: str = "POST", path: str = PODS) -> Response:
        async def main() -> Response:
            async with connected(served.kubeconfig) as transport:
                request = Request(method=method, path=path, body=body, content_type=media)
                return await transport.request(request)

        response = served.loop.run_until_complete(main())
        assert served.faults == []
        return response

    return asked


def said(response: Response) -> str:
    status: Any = msgspec.json.decode(response.body)
    return str(status["message"])


def patch(*operations: dict[str, Any]) -> bytes:
    return msgspec.json.encode(list(operations))


HOSTILE = {
    "a YAML bomb": (BOMB.encode(), YAML, 400, "values', expected at most 100000 values"),
    "deep YAML": (b"[" * 100_000, YAML, 400, "got '101 levels of nesting'"),
    "deep JSON": (b'{"a":' * 100_000, JSON, 400, "body:1: got '101 levels of nesting'"),
    "half YAML": (b"a: [", YAML, 400, "expected YAML"),
    "YAML that is no text": (b"a: \xff", YAML, 400, "cannot be read"),
    "two documents": (b"a: 1\n---\nb: 1\n", YAML, 400, "got '2 documents'"),
    "a number of 5,000 digits": (b'{"a":' + b"9" * 5000 + b"}", JSON, 400, "at most 100 char"),
    "protobuf that is longer than it is": (
        b"k8s\x00\x0a\x0a\x0a\x02v1\x12\x04\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        MEDIA_TYPE,
        415,
        "cut short",
    ),
}


@pytest.mark.parametrize(("body", "media", "status", "words"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_body_over_a_limit_is_refused_and_costs_little(
    ask: Ask, body: bytes, media: str, status: int, words: str
) -> None:
    tracemalloc.start()
    try:
        response = ask(body, media)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert response.status == status
    assert words in said(response)
    assert peak < MEMORY_MAX


COPY = {"op": "copy", "from": "/metadata/annotations", "path": "/metadata/annotations/a"}
PATCHES = {
    "copies that double": [COPY] * 60,
    "operations without end": [{"op": "test", "path": "/kind", "value": "Pod"}] * 10_001,
    "depth by and by": [
        {"op": "add", "path": "/metadata/annotations" + "/a" * n, "value": {"a": {}}}
        for n in range(1, 150)
    ],
}


@pytest.mark.parametrize("operations", PATCHES.values(), ids=PATCHES.keys())
def test_a_patch_does_not_grow_an_object_without_bound(
    ask: Ask, operations: list[dict[str, Any]]
) -> None:
    name = f"pod-{len(operations)}"
    pod = a_pod(name, metadata={"name": name, "annotations": {"long": "x" * 10_000}})
    assert ask(msgspec.json.encode(pod), JSON).status == 201
    response = ask(patch(*operations), JSON_PATCH, "PATCH", f"{PODS}/{name}")
    assert response.status == 413, said(response)


def nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("media", [JSON, YAML])
@pytest.mark.parametrize("path", [PODS, "/apis/karpenter.sh/v1/nodepools"])
def test_what_is_as_deep_as_allowed_is_answered(ask: Ask, path: str, media: str) -> None:
    """Whatever the answer: it is no fault of ours."""
    kind = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool"} if "karpenter" in path else {}
    for field in ("spec", "metadata", "status", "other"):
        body = msgspec.json.encode({**kind, "metadata": {"name": "deep"}, field: nested(97)})
        assert ask(body, media, "POST", path).status < 500
        for patch_media in (MERGE_PATCH, STRATEGIC_MERGE_PATCH):
            assert ask(body, patch_media, "PATCH", f"{path}/deep").status < 500


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "9" * 4500},
        {"limit": "²"},
        {"resourceVersion": "9" * 4500},
        {"watch": "true", "timeoutSeconds": "9" * 4500},
        {"watch": "true", "timeoutSeconds": "9" * 20},
        {"watch": "true", "resourceVersion": "9" * 4500},
        {"continue": "e30="},
        {"continue": "W" * 4000},
    ],
    ids=lambda query: " ".join(f"{key}={value[:6]}" for key, value in query.items()),
)
def test_odd_numbers_in_a_query_are_refused(served: ServedStore, query: dict[str, str]) -> None:
    async def main() -> int:
        async with connected(served.kubeconfig) as transport:
            return (await transport.request(Request(method="GET", path=PODS, query=query))).status

    # A watch from a version that is no number is a 500 on a real server, too.
    assert served.loop.run_until_complete(main()) >= 400
    assert served.faults == [], "and no fault of ours"
