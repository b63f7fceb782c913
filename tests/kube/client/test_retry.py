"""How the client treats a server that is busy: what it says again, when, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from tenure import errors
from tenure.kube.client.client import Client
from tenure.kube.client.ratelimit import RateLimit
from tenure.model.api.resource import NODE_CLAIMS, PODS
from tenure.ports.transport import Response
from tenure.sim.virtual.loop import run_virtually
from tests.kube.transports import Scripted, Silent, a_list, answered, refused

BUSY = refused(503, "ServiceUnavailable")
FINE = answered({"kind": "Pod"})

Call = Callable[[Client], Awaitable[Any]]


def get(client: Client) -> Awaitable[bytes]:
    return client.get(PODS, "web", "default")


def create(client: Client) -> Awaitable[bytes]:
    return client.create(NODE_CLAIMS, {"metadata": {"name": "a"}})


def create_unnamed(client: Client) -> Awaitable[bytes]:
    return client.create(NODE_CLAIMS, {"metadata": {"generateName": "a-"}})


def patch(client: Client) -> Awaitable[bytes]:
    return client.patch(NODE_CLAIMS, "a", {"metadata": {"resourceVersion": "7"}})


def patch_any(client: Client) -> Awaitable[bytes]:
    return client.patch(NODE_CLAIMS, "a", {"metadata": {"labels": {"x": "y"}}})


VERSION = {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}
STEP = {"op": "add", "path": "/metadata/labels/x", "value": "y"}


def patch_json(client: Client) -> Awaitable[bytes]:
    return client.patch_json(NODE_CLAIMS, "a", [VERSION, STEP])


def patch_json_any(client: Client) -> Awaitable[bytes]:
    return client.patch_json(NODE_CLAIMS, "a", [STEP])


def delete(client: Client) -> Awaitable[bytes]:
    return client.delete(NODE_CLAIMS, "a", uid="u1")


def evict(client: Client) -> Awaitable[bytes]:
    return client.evict("web", "default", uid="u1")


def outcome(transport: Any, call: Call) -> bytes | errors.ApiError:
    async def story() -> bytes | errors.ApiError:
        try:
            body: bytes = await call(Client(transport))
        except errors.ApiError as error:
            return error
        return body

    return run_virtually(story())


@pytest.mark.parametrize("answer", [BUSY, refused(429), refused(500), answered(b"<html>", 502)])
@pytest.mark.parametrize(
    "call",
    [
        pytest.param(get, id="a read"),
        pytest.param(create, id="a create under a name that we chose"),
        pytest.param(patch, id="a patch of one version"),
        pytest.param(patch_json, id="a JSON patch that tests the version"),
        pytest.param(delete, id="a deletion of one UID"),
    ],
)
def test_a_busy_server_is_asked_again(call: Call, answer: Response) -> None:
    transport = Scripted(answer, FINE)
    assert outcome(transport, call) == FINE.body
    assert len(set(map(msgspec.json.encode, transport.requests))) == 1, "the very same request"
    assert 0.125 <= transport.asked_at[1] - transport.asked_at[0] <= 0.25


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        pytest.param(create_unnamed, BUSY, id="a create that would make another"),
        pytest.param(patch_any, BUSY, id="a patch of whatever is there"),
        pytest.param(patch_json_any, BUSY, id="a JSON patch of whatever is there"),
        pytest.param(evict, BUSY, id="an eviction"),
        pytest.param(evict, refused(429, "TooManyRequests", retryAfterSeconds=1), id="a budget"),
        pytest.param(evict, refused(500, "InternalError"), id="several budgets"),
        pytest.param(get, refused(404, "NotFound"), id="an answer that time does not change"),
        pytest.param(create, refused(422, "Invalid"), id="an object that is not valid"),
        pytest.param(patch, refused(409, "Conflict"), id="an object that moved"),
    ],
)
def test_what_could_do_harm_or_is_an_answer_is_not_repeated(call: Call, answer: Response) -> None:
    transport = Scripted(answer, FINE)
    error = outcome(transport, call)
    assert isinstance(error, errors.ApiError)
    assert (error.status, len(transport.requests)) == (answer.status, 1)


def test_the_decider_hears_a_budgets_no_with_its_cause() -> None:
    cause = {"reason": "DisruptionBudget", "message": "needs 2 healthy pods and has 2"}
    error = outcome(Scripted(refused(429, "TooManyRequests", causes=[cause])), evict)
    assert isinstance(error, errors.TooManyRequests)
    assert error.causes[0].reason == "DisruptionBudget"


@pytest.mark.parametrize("call", [create, patch, delete, evict])
def test_a_write_without_an_answer_is_not_repeated_its_author_looks_first(call: Call) -> None:
    transport = Scripted(errors.Unavailable("connection reset"), FINE)
    assert isinstance(outcome(transport, call), errors.Unavailable)
    assert len(transport.requests) == 1


def test_a_read_without_an_answer_is_repeated() -> None:
    transport = Scripted(errors.Unavailable("connection reset"), FINE)
    assert outcome(transport, get) == FINE.body


def test_a_create_that_meets_itself_says_that_the_name_is_taken() -> None:
    transport = Scripted(refused(504, "Timeout"), refused(409, "AlreadyExists"))
    assert isinstance(outcome(transport, create), errors.AlreadyExists)
    assert len(transport.requests) == 2


def test_a_page_of_a_list_is_repeated_and_the_list_goes_on() -> None:
    transport = Scripted(a_list(continue_="next"), BUSY, a_list({"metadata": {}}))
    items, _ = run_virtually(Client(transport).list_all(PODS))
    assert len(items) == 1
    assert [request.query.get("continue") for request in transport.requests] == [
        None,
        "next",
        "next",
    ]


def test_the_server_says_when_and_is_not_asked_before() -> None:
    transport = Scripted(answered(b"", 429, **{"Retry-After": "2"}), FINE)
    outcome(transport, patch)
    assert 2 < transport.asked_at[1] <= 2.25


def test_a_pause_that_does_not_fit_into_the_call_is_left_to_the_caller() -> None:
    transport = Scripted(refused(429, "TooManyRequests", retryAfterSeconds=30), FINE)
    error = outcome(transport, patch)
    assert isinstance(error, errors.TooManyRequests)
    assert error.retry_after is not None
    assert (error.retry_after.total_seconds(), transport.asked_at) == (30, [0.0])


def test_retries_end() -> None:
    transport = Scripted(BUSY)
    assert isinstance(outcome(transport, patch), errors.Unavailable)
    pauses = [b - a for a, b in zip(transport.asked_at, transport.asked_at[1:], strict=False)]
    assert len(pauses) == 3
    assert sum(pauses) < 1.75
    assert pauses == sorted(pauses), "each pause is longer than the one before"


@pytest.mark.parametrize(("call", "longest"), [(patch, 5), (get, 15)], ids=["a write", "a read"])
def test_repeats_do_not_make_a_call_longer_than_it_may_be(call: Call, longest: int) -> None:
    class Slow(Scripted):
        """Busy, and says so only after four seconds."""

        async def request(self, request: Any) -> Response:
            await asyncio.sleep(4)
            return await super().request(request)

    async def story() -> float:
        with pytest.raises(errors.Unavailable):
            await call(Client(Slow(BUSY)))
        return asyncio.get_running_loop().time()

    assert longest - 1 <= run_virtually(story()) <= longest


def test_a_page_of_a_list_may_take_a_minute() -> None:
    async def story() -> float:
        with pytest.raises(errors.Unavailable, match="within 60 s"):
            await Client(Silent()).list_page(PODS)
        return asyncio.get_running_loop().time()

    assert run_virtually(story()) == 60


def test_the_same_seed_pauses_the_same() -> None:
    first, second = Scripted(BUSY), Scripted(BUSY)
    outcome(first, get)
    outcome(second, get)
    assert first.asked_at == second.asked_at


# The pace.


def test_calls_beyond_the_burst_wait_for_their_turn_in_the_order_they_came() -> None:
    async def story() -> list[float]:
        transport = Scripted(FINE)
        client = Client(transport, rate_limit=RateLimit(10, 3))
        await asyncio.gather(*(get(client) for _ in range(6)))
        return transport.asked_at

    assert run_virtually(story()) == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])


def test_what_was_not_used_is_saved_up_to_the_burst_and_no_further() -> None:
    async def story() -> list[float]:
        transport = Scripted(FINE)
        client = Client(transport, rate_limit=RateLimit(10, 2))
        await asyncio.gather(*(get(client) for _ in range(2)))
        await asyncio.sleep(60)
        await asyncio.gather(*(get(client) for _ in range(3)))
        return transport.asked_at

    assert run_virtually(story()) == pytest.approx([0, 0, 60, 60, 60.1])


def test_waiting_for_a_turn_does_not_count_as_waiting_for_an_answer() -> None:
    async def story() -> int:
        transport = Scripted(FINE)
        client = Client(transport, rate_limit=RateLimit(0.1, 1))
        await asyncio.gather(*(patch(client) for _ in range(3)))
        return len(transport.requests)

    assert run_virtually(story()) == 3


@pytest.mark.parametrize(
    ("rate", "burst", "at"), [(0, 5, "rate"), (-1, 5, "rate"), (5, 0, "burst")]
)
def test_a_pace_that_lets_nothing_through_is_a_mistake(rate: float, burst: int, at: str) -> None:
    with pytest.raises(errors.SpecError, match=f"^{at}: got"):
        RateLimit(rate, burst)
