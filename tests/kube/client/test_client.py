"""What the API server says, in the words of our own tree of errors."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tenure import errors
from tenure.kube.client.client import Client
from tenure.model.api.resource import NODE_CLAIMS, PODS
from tenure.ports.transport import JSON_PATCH, MERGE_PATCH, Response
from tenure.sim.virtual.loop import run_virtually
from tests.kube.transports import Scripted, Silent, a_list, answered, refused


async def get(answer: Response) -> bytes:
    return await Client(Scripted(answer)).get(PODS, "web", "default")


def refusal(answer: Response) -> errors.ApiError:
    with pytest.raises(errors.ApiError) as caught:
        run_virtually(get(answer))
    return caught.value


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(refused(404, "NotFound"), errors.NotFound, id="not found"),
        pytest.param(refused(409, "AlreadyExists"), errors.AlreadyExists, id="the name is taken"),
        pytest.param(refused(409, "Conflict"), errors.Conflict, id="it moved under us"),
        pytest.param(refused(410, "Expired"), errors.Gone, id="the version is too old"),
        pytest.param(refused(422, "Invalid"), errors.Invalid, id="invalid"),
        pytest.param(refused(400, "BadRequest"), errors.Invalid, id="a bad request"),
        pytest.param(refused(415, "UnsupportedMediaType"), errors.Invalid, id="a bad type"),
        pytest.param(refused(401, "Unauthorized"), errors.Forbidden, id="who are you"),
        pytest.param(refused(403, "Forbidden"), errors.Forbidden, id="you may not"),
        pytest.param(refused(429, "TooManyRequests"), errors.TooManyRequests, id="too many"),
        pytest.param(refused(500, "InternalError"), errors.Unavailable, id="internal error"),
        pytest.param(refused(504, "Timeout"), errors.Unavailable, id="time-out"),
    ],
)
def test_the_class_of_an_error_says_what_to_do_next(
    answer: Response, kind: type[errors.ApiError]
) -> None:
    error = refusal(answer)
    assert type(error) is kind
    assert error.status == answer.status


def test_an_unknown_group_answers_in_plain_text() -> None:
    error = refusal(answered(b"404 page not found\n", 404))
    assert str(error) == "404 NotFound: 404 page not found"


def test_a_page_of_html_is_an_error_with_its_first_words() -> None:
    error = refusal(answered(b"<html>" + b"x" * 1000, 502))
    assert isinstance(error, errors.Unavailable)
    assert len(error.message) == 300


def test_causes_name_the_fields() -> None:
    cause = {"reason": "FieldValueInvalid", "field": "spec.weight", "message": "too much"}
    error = refusal(refused(422, "Invalid", causes=[cause]))
    assert error.causes == (errors.Cause("FieldValueInvalid", "too much", "spec.weight"),)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(refused(429, "TooManyRequests", retryAfterSeconds=10), id="in the status"),
        pytest.param(
            answered(b"Too many requests", 429, **{"Retry-After": "10"}), id="in the header"
        ),
    ],
)
def test_when_to_ask_again_is_read_from_the_status_or_the_header(answer: Response) -> None:
    assert refusal(answer).retry_after == timedelta(seconds=10)


@pytest.mark.parametrize(
    ("said", "waits"),
    [
        ("9" * 400, timedelta(days=1)),
        ("\u00b2", None),
        ("-5", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_nonsense_about_when_to_ask_again_is_no_trouble(said: str, waits: timedelta | None) -> None:
    assert refusal(answered(b"busy", 429, **{"Retry-After": said})).retry_after == waits


@pytest.mark.parametrize(("said", "waits"), [(10**15, timedelta(days=1)), (-5, None)])
def test_nonsense_in_the_status_is_no_trouble_either(said: int, waits: timedelta | None) -> None:
    assert refusal(refused(429, retryAfterSeconds=said)).retry_after == waits


def test_no_answer_at_all_is_unavailable() -> None:
    transport = Scripted(errors.Unavailable("connection refused"))
    with pytest.raises(errors.Unavailable, match="connection refused"):
        run_virtually(Client(transport).get(PODS, "web", "default"))


def test_no_call_waits_longer_than_five_seconds_for_an_answer() -> None:
    with pytest.raises(errors.Unavailable, match=r"no answer to PATCH .*/pods/web within 5 s"):
        run_virtually(Client(Silent()).patch(PODS, "web", {}, namespace="default"))


def test_no_call_waits_for_ever_for_a_watch_to_open() -> None:
    with pytest.raises(errors.Unavailable, match="no answer to GET"):
        run_virtually(Client(Silent()).watch(PODS, "5"))


def test_a_list_is_read_page_by_page_and_its_version_is_the_last_pages() -> None:
    transport = Scripted(
        a_list({"metadata": {"name": "a"}}, version="7", continue_="next"),
        a_list({"metadata": {"name": "b"}}, version="7"),
    )
    items, version = run_virtually(Client(transport).list_all(NODE_CLAIMS))
    assert [bytes(item) for item in items] == [
        b'{"metadata":{"name":"a"}}',
        b'{"metadata":{"name":"b"}}',
    ]
    assert version == "7"
    assert [dict(request.query) for request in transport.requests] == [
        {"limit": "500"},
        {"limit": "500", "continue": "next"},
    ]


def test_the_next_page_is_asked_for_before_this_one_is_read() -> None:
    transport = Scripted(
        a_list({"metadata": {"name": "a"}}, version="7", continue_="next"),
        a_list({"metadata": {"name": "b"}}, version="7"),
    )

    async def read() -> list[int]:
        return [len(transport.requests) async for _ in Client(transport).pages(NODE_CLAIMS)]

    assert run_virtually(read()) == [2, 2]


def test_who_stops_reading_leaves_no_question_behind() -> None:
    first = a_list({"metadata": {"name": "a"}}, version="7", continue_="next")

    async def read() -> set[Any]:
        pages = Client(Scripted(first, errors.Unavailable("gone"))).pages(NODE_CLAIMS)
        await anext(pages)
        await pages.aclose()
        await asyncio.sleep(0)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert run_virtually(read()) == set()


async def pods_of_a_node(transport: Scripted | Silent) -> list[bytes]:
    items = await Client(transport).list_now(PODS, field_selector="spec.nodeName=node-1")
    return [bytes(item) for item in items]


def test_what_is_listed_now_is_no_cached_state_and_no_page() -> None:
    transport = Scripted(answered({"items": [{"a": 1}, {"b": 2}]}))
    assert run_virtually(pods_of_a_node(transport)) == [b'{"a":1}', b'{"b":2}']
    (request,) = transport.requests
    assert request.path == "/api/v1/pods"
    assert dict(request.query) == {"fieldSelector": "spec.nodeName=node-1"}


def test_what_is_listed_now_is_whole_or_an_outage() -> None:
    part = answered({"metadata": {"continue": "abc"}, "items": [{"a": 1}]})
    with pytest.raises(errors.Unavailable, match="not complete"):
        run_virtually(pods_of_a_node(Scripted(part)))


def test_what_is_listed_now_comes_within_five_seconds() -> None:
    with pytest.raises(errors.Unavailable, match="no answer to GET /api/v1/pods within 5 s"):
        run_virtually(pods_of_a_node(Silent()))


@pytest.mark.parametrize("body", [b"<html>sorry</html>", b'{"items": 5}', b"\xff"])
def test_a_list_that_cannot_be_read_is_an_outage(body: bytes) -> None:
    with pytest.raises(errors.Unavailable, match="cannot be read"):
        run_virtually(Client(Scripted(answered(body))).list_all(PODS))


def sent(call: Any) -> Any:
    transport = Scripted(answered({}))
    run_virtually(call(Client(transport)))
    return transport


def test_an_eviction_insists_on_the_uid() -> None:
    transport = sent(
        lambda client: client.evict("web", "default", uid="u1", grace_period_seconds=1)
    )
    assert transport.requests[0].path == "/api/v1/namespaces/default/pods/web/eviction"
    assert transport.body()["deleteOptions"] == {
        "preconditions": {"uid": "u1"},
        "gracePeriodSeconds": 1,
    }


def test_a_plain_eviction_leaves_the_grace_to_the_pod() -> None:
    transport = sent(lambda client: client.evict("web", "default", uid="u1"))
    assert transport.body()["deleteOptions"] == {"preconditions": {"uid": "u1"}}


def test_a_deletion_insists_on_uid_and_version_and_leaves_orphans_to_the_collector() -> None:
    transport = sent(lambda client: client.delete(NODE_CLAIMS, "a", uid="u1", resource_version="9"))
    assert transport.requests[0].method == "DELETE"
    assert transport.body()["preconditions"] == {"uid": "u1", "resourceVersion": "9"}
    assert transport.body()["propagationPolicy"] == "Background"


def test_a_patch_is_a_merge_patch_of_the_object_or_its_status() -> None:
    transport = sent(lambda client: client.patch(NODE_CLAIMS, "a", {"x": 1}, subresource="status"))
    assert transport.requests[0].path == "/apis/karpenter.sh/v1/nodeclaims/a/status"
    assert transport.requests[0].content_type == MERGE_PATCH


def test_a_json_patch_is_its_steps() -> None:
    steps = [{"op": "remove", "path": "/metadata/finalizers/0"}]
    transport = sent(lambda client: client.patch_json(NODE_CLAIMS, "a", steps))
    assert (transport.requests[0].content_type, transport.body()) == (JSON_PATCH, steps)
