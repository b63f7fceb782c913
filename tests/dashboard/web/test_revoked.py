"""A token that was revoked reads the stream for two looks at the most, whatever others ask meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import aiohttp
import pytest

from tenure.cli.page.source import PageSource
from tenure.cli.page.worldpage import WorldProgram
from tenure.dashboard.web import review
from tenure.dashboard.web.guards import BearerGuard
from tenure.dashboard.web.review import BURST, DENIED_KEPT, KEPT, Reviewer
from tenure.dashboard.web.server import PLACEHOLDER, PageServer
from tenure.dashboard.web.source import NotNow
from tenure.dashboard.web.stream import CHECK_EVERY, COMMENT_EVERY
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import World
from tests.dashboard.web import site
from tests.dashboard.web.site import GOOD, Json, Reviews

#: A minute of the page is 0.6 s.
SPEED = 0.01


class Revoked(Reviews):
    """Knows the token until it is revoked."""

    revoked = False

    def _of(self, request: object, body: Json) -> Json:
        if self.revoked and body["spec"].get("token") == GOOD:
            return {"authenticated": False}
        return super()._of(request, body)  # type: ignore[arg-type]


async def _seconds_until_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch, *, flooded: bool
) -> float:
    """Of the page, from the revocation to the end of the stream."""
    reviews = Revoked()
    reviewer = Reviewer(reviews, speed=SPEED)
    server = PageServer(
        PageSource(WorldProgram(world, SPEED), speed=SPEED),
        PLACEHOLDER,
        BearerGuard(reviewer),
        speed=SPEED,
        failed=lambda _: None,
    )
    port = await server.open("127.0.0.1", 0)
    loop = asyncio.get_running_loop()

    try:
        async with aiohttp.ClientSession() as session:
            answer = await session.get(
                f"http://127.0.0.1:{port}/api/stream", headers={"Authorization": f"Bearer {GOOD}"}
            )
            assert answer.status == 200
            reviews.revoked = True
            if flooded:  # By anybody who reaches the port: whatever the rate gives is used up.
                monkeypatch.setattr(review, "RATE", 0.0)
                for number in range(BURST):
                    with suppress(NotNow):
                        await reviewer.answer(f"junk-{number}", "127.0.0.1")
            began = loop.time()
            with suppress(aiohttp.ClientError, TimeoutError):
                async with asyncio.timeout(10 * CHECK_EVERY * SPEED):
                    while await answer.content.read(2**16):
                        pass
            return (loop.time() - began) / SPEED
    finally:
        await server.close()


@pytest.mark.parametrize("flooded", [False, True])
def test_a_revoked_token_reads_the_stream_for_a_minute_or_two(
    flooded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(world: Story) -> None:
        took = await _seconds_until_the_end(world, monkeypatch, flooded=flooded)
        assert took < KEPT + CHECK_EVERY + COMMENT_EVERY + DENIED_KEPT

    site.told(story)
