"""What a plugin raises, or never answers, becomes an error of ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from examples.provider.acme import ACME_CLASSES, Acme, AcmeCloud
from tenure.errors import InstanceGone, OutOfCapacity, ProviderError, TenureError
from tenure.model.api.nodeclass import NodeClass
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance
from tenure.model.cloud.notice import Notice, NoticeKind
from tenure.providers.boundary import BoundedCloud
from tenure.providers.contract import ClassesOnly, outside
from tests.kube.transports import in_time

CLASSES = ClassesOnly(ACME_CLASSES, {"default": {"network": "n-1"}})

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


class Odd(AcmeCloud):
    """Does something else instead of each call."""

    def __init__(self, instead: Callable[[], Awaitable[Any]]) -> None:
        super().__init__(Acme(), outside("c", CLASSES))
        self._instead = instead

    async def get(self, provider_id: str) -> Instance:
        await self._instead()
        raise AssertionError("it went on")

    async def terminate(self, provider_id: str) -> None:
        await self._instead()


def raised(error: BaseException) -> Callable[[], Awaitable[None]]:
    async def instead() -> None:
        raise error

    return instead


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (KeyError("Reservations"), "acme: read of instance m-1: KeyError: 'Reservations'"),
        (OSError("no route\nto host"), "acme: read of instance m-1: OSError: no route"),
        (TimeoutError("the SDK's own"), "acme: read of instance m-1: it timed out"),
    ],
)
def test_what_escapes_from_a_provider_is_an_error_that_is_asked_about_again(
    error: Exception, sentence: str
) -> None:
    async def story() -> None:
        with pytest.raises(ProviderError) as refusal:
            await BoundedCloud(Odd(raised(error))).get("m-1")
        assert str(refusal.value) == sentence
        assert refusal.value.__cause__ is error

    in_time(story)


@pytest.mark.parametrize("error", [InstanceGone("gone"), OutOfCapacity("dry")])
def test_what_a_provider_says_in_our_words_is_passed_on(error: TenureError) -> None:
    async def story() -> None:
        with pytest.raises(TenureError) as refusal:
            await BoundedCloud(Odd(raised(error))).terminate("m-1")
        assert refusal.value is error

    in_time(story)


def test_a_call_that_hangs_is_given_up() -> None:
    async def story() -> None:
        hangs = BoundedCloud(Odd(asyncio.Event().wait))
        with pytest.raises(
            ProviderError, match="termination of instance m-1: no answer within 60 s"
        ):
            await hangs.terminate("m-1")
        assert asyncio.get_running_loop().time() == pytest.approx(60)

    in_time(story)


def test_a_call_that_is_cancelled_stays_so() -> None:
    async def story() -> None:
        call = asyncio.ensure_future(BoundedCloud(Odd(asyncio.Event().wait)).terminate("m-1"))
        await asyncio.sleep(1)
        call.cancel()
        await asyncio.wait({call})
        assert call.cancelled()

    in_time(story)


class Drifts(AcmeCloud):
    def __init__(self, reason: str) -> None:
        super().__init__(Acme(), outside("c", CLASSES))
        self._reason = reason

    async def drift(self, provider_id: str, node_class: NodeClass) -> Drift | None:
        return Drift(self._reason, "another network")


@pytest.mark.parametrize("reason", ["", "another network", "networkDrift", "N" * 1025, "Drift\n"])
def test_a_drift_for_a_reason_that_no_condition_can_have_is_an_error(reason: str) -> None:
    async def story() -> None:
        assert await BoundedCloud(Drifts("NetworkDrift")).drift("m-1", NodeClass()) is not None
        with pytest.raises(ProviderError, match="expected CamelCase such as ImageDrift"):
            await BoundedCloud(Drifts(reason)).drift("m-1", NodeClass())

    in_time(story)


class Announces(AcmeCloud):
    """Announces one interruption; then the stream ends, or breaks."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__(Acme(), outside("c", CLASSES))
        self._error = error

    async def notices(self, cluster: str) -> AsyncIterator[Notice]:
        yield Notice(kind=NoticeKind.INTERRUPTION, provider_id="m-1", at=NOON)
        if self._error is not None:
            raise self._error


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (KeyError("detail"), "acme: notices: KeyError: 'detail'"),
        (ProviderError("no queue"), "no queue"),
        (None, "acme: notices: the stream has ended"),
    ],
)
def test_notices_last_until_the_provider_fails(error: Exception | None, sentence: str) -> None:
    async def story() -> None:
        notices = BoundedCloud(Announces(error)).notices("c")
        assert (await anext(notices)).provider_id == "m-1"
        with pytest.raises(ProviderError) as refusal:
            await anext(notices)
        assert str(refusal.value) == sentence

    in_time(story)
