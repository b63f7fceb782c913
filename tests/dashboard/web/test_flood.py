"""Unknown tokens without end keep no user out who has not sent them, and are not asked about without end."""

from __future__ import annotations

import asyncio

import pytest

from tenure.dashboard.web import review
from tenure.dashboard.web.review import (
    ANSWERS_MAX,
    BURST,
    BURST_OF_ALL,
    Answer,
    Reviewer,
    sender_of,
)
from tenure.dashboard.web.source import NotNow
from tests.dashboard.web.site import GOOD, Reviews

HERE, THERE = "10.0.0.1", "10.0.0.2"


async def flood(reviewer: Reviewer, sender: str, tokens: int) -> int:
    """How many are refused without an answer of the API server."""
    refused = 0
    for number in range(tokens):
        try:
            await reviewer.answer(f"junk-{sender}-{number}", sender)
        except NotNow:
            refused += 1
    return refused


def asked_about(reviews: Reviews) -> int:
    return sum(one["kind"] == "TokenReview" for one in reviews.asked)


def test_a_new_user_gets_in_while_another_address_sends_unknown_tokens() -> None:
    reviews = Reviews()

    async def story() -> None:
        reviewer = Reviewer(reviews)
        assert await flood(reviewer, HERE, 10 * BURST) >= 8 * BURST
        assert await reviewer.answer(GOOD, THERE) is Answer.ALLOWED
        with pytest.raises(NotNow, match="too many unknown tokens"):
            await reviewer.answer("another", HERE)

    asyncio.run(story())


def test_from_very_many_addresses_the_api_server_is_not_flooded_either() -> None:
    reviews = Reviews()

    async def story() -> None:
        reviewer = Reviewer(reviews)
        for number in range(50):
            await flood(reviewer, f"10.0.1.{number}", BURST)

    asyncio.run(story())
    assert asked_about(reviews) <= 2 * BURST_OF_ALL


def test_what_is_refused_pushes_out_no_user_who_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review, "BURST_OF_ALL", 10 * ANSWERS_MAX)
    reviews = Reviews()

    async def story() -> None:
        reviewer = Reviewer(reviews)
        assert await reviewer.answer(GOOD, HERE) is Answer.ALLOWED
        for number in range(2 * ANSWERS_MAX):
            assert await reviewer.answer(f"junk-{number}", f"s-{number}") is Answer.UNKNOWN
        asked = len(reviews.asked)
        assert await reviewer.answer(GOOD, HERE) is Answer.ALLOWED
        assert len(reviews.asked) == asked, "its answer was kept"

    asyncio.run(story())


@pytest.mark.parametrize(
    ("address", "sender"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2::9", "2001:db8:1:2::"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80::"),
        (None, ""),
        ("unix", ""),
    ],
    ids=["ipv4", "ipv6", "short", "mapped", "scoped", "none", "no-address"],
)
def test_who_has_a_whole_network_is_one_sender(address: str | None, sender: str) -> None:
    assert sender_of(address) == sender
