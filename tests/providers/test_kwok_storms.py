"""Whatever the way to the API server loses, each claim has one instance, and none is left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import TypeVar

import pytest

from tenure.errors import InstanceGone, ProviderError, Unavailable
from tenure.model.api.resource import CONFIG_MAPS
from tenure.model.cloud.instance import Instance
from tenure.ports.transport import Request, Response, Stream, Transport
from tenure.providers.kwok.cloud import KwokCloud
from tests.providers.benches import StoreBench

Answer = TypeVar("Answer")
CLAIMS = 12
DELAY = timedelta(seconds=20)


class Stormy:
    """Loses a third of what passes: half of it before it is carried out, half of it after."""

    def __init__(self, inner: Transport, random: Random) -> None:
        self._inner = inner
        self._random = random

    async def request(self, request: Request) -> Response:
        fate = self._random.random()
        await asyncio.sleep(self._random.random() * 4)
        if fate < 1 / 6:
            raise Unavailable("lost on its way there")
        answer = await self._inner.request(request)
        if fate < 1 / 3:
            raise Unavailable("lost on its way back")
        return answer

    async def stream(self, request: Request) -> Stream | Response:
        return await self._inner.stream(request)


class Storm:
    """Controllers that come and go; each call is made until it is answered."""

    def __init__(self, bench: StoreBench, random: Random) -> None:
        self._bench = bench
        self._random = random

    async def all(self, ask: Callable[[KwokCloud, int], Awaitable[Answer]]) -> list[Answer]:
        """Ask for each claim, by one controller after the other."""
        answers: dict[int, Answer] = {}
        while len(answers) < CLAIMS:
            async with self._bench.kwok() as cloud:
                life = self._random.uniform(1, 30)
                asked = {
                    asyncio.ensure_future(self._one(cloud, number, ask, answers))
                    for number in range(CLAIMS)
                    if number not in answers
                }
                _, unanswered = await asyncio.wait(asked, timeout=life)
                for call in unanswered:
                    call.cancel()
                if unanswered:
                    await asyncio.wait(unanswered)
        return [answers[number] for number in range(CLAIMS)]

    async def _one(
        self,
        cloud: KwokCloud,
        number: int,
        ask: Callable[[KwokCloud, int], Awaitable[Answer]],
        answers: dict[int, Answer],
    ) -> None:
        while number not in answers:
            try:
                answers[number] = await ask(cloud, number)
            except ProviderError:
                await asyncio.sleep(1)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("delay", ["", f"{DELAY.seconds}s"], ids=["at once", "late"])
def test_each_claim_has_one_instance_in_any_weather(seed: int, delay: str) -> None:
    bench = StoreBench(delay=delay)

    async def launch(cloud: KwokCloud, number: int) -> Instance:
        return await cloud.launch(bench.request(f"n{number}"))

    async def end(cloud: KwokCloud, number: int) -> None:
        try:
            while True:
                await cloud.terminate(ids[number])
                await asyncio.sleep(1)
        except InstanceGone:
            return

    ids: list[str] = []

    async def story() -> None:
        sound, random = bench.transport, Random(seed)
        bench.transport = Stormy(sound, random)
        storm = Storm(bench, random)
        launched = await storm.all(launch)
        ids.extend(instance.provider_id for instance in launched)

        bench.transport = sound
        async with bench.kwok() as calm:
            # Every other time they end while some of them have not registered.
            await asyncio.sleep(seed % 2 * 2 * DELAY.seconds)
            assert {each.provider_id for each in await calm.list_instances("contract")} == set(ids)
        assert len(set(ids)) == CLAIMS
        assert seed % 2 == 0 or len(await bench.nodes()) == CLAIMS

        bench.transport = Stormy(sound, random)
        await storm.all(end)
        bench.transport = sound
        async with bench.kwok() as calm:
            await asyncio.sleep(2 * DELAY.seconds)
            assert await calm.list_instances("contract") == ()
        assert await bench.nodes() == []
        assert (await bench.client.list_all(CONFIG_MAPS))[0] == []
        bench.errors.clear()

    bench.run(story())
