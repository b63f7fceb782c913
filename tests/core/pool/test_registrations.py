"""Whether a pool's new nodes come up, by the last few of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest

from tenure.core.conditions import Wanted
from tenure.core.pool.registrations import HEALTHY, registration_health, registrations_of
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.observations import Arrival
from tests.core.build import TEN_MINUTES_AGO, a_claim, a_pool, ago, condition

NOW_MADE_FROM = (1, 5)


def a_pool_that_says(status: str | None, *, since: datetime = TEN_MINUTES_AGO) -> NodePool:
    said = [] if status is None else [condition(HEALTHY, status, at=since)]
    told = {"nodeClassObservedGeneration": 5, "conditions": msgspec.to_builtins(said)}
    return a_pool(status=told)


def arrivals(outcomes: str, generations: tuple[int, int] = NOW_MADE_FROM) -> tuple[Arrival, ...]:
    """``+`` has registered, ``-`` has failed."""
    return tuple(
        Arrival(
            claim=f"c{index}",
            failure="" if outcome == "+" else "readiness_timeout",
            generations=generations,
        )
        for index, outcome in enumerate(outcomes)
    )


def health(
    status: str | None, outcomes: str = "", *claims: Any, since: datetime = TEN_MINUTES_AGO
) -> Wanted | None:
    known = registrations_of(claims, arrivals(outcomes), NOW_MADE_FROM)
    return registration_health(a_pool_that_says(status, since=since), known, NOW_MADE_FROM)


@pytest.mark.parametrize(
    ("said", "outcomes", "says"),
    [
        (None, "", "Unknown"),
        (None, "+", "True"),
        ("Unknown", "", None),
        ("Unknown", "-", None),
        ("Unknown", "+-", "True"),
        ("Unknown", "--", "False"),
        ("True", "-", None),
        ("True", "+++-", "True"),
        ("True", "++--", "False"),
        ("True", "-++-", "False"),
        # What it said before a restart counts as two failures, and three successes outweigh them.
        ("False", "", None),
        ("False", "++", None),
        ("False", "+++", "True"),
        ("False", "--++", "False"),
        ("False", "-+++", "True"),
    ],
)
def test_two_failures_of_the_last_four_are_too_many(
    said: str | None, outcomes: str, says: str | None
) -> None:
    wanted = health(said, outcomes)
    assert (wanted.status if wanted is not None else None) == says


def test_it_names_the_failed_claims_and_why() -> None:
    assert health("True", "+--") == Wanted(
        HEALTHY,
        "False",
        "RegistrationFailed",
        "of the last 4 new nodes these failed: c1 (readiness_timeout), c2 (readiness_timeout)",
    )


def test_after_a_restart_the_nodes_that_are_there_are_evidence() -> None:
    assert health(None, "", a_claim()) == Wanted(HEALTHY, "True", HEALTHY)


def test_but_not_against_what_has_been_said_since() -> None:
    old = a_claim(conditions=[condition("Registered", at=ago(900))])
    assert health("Unknown", "", old) is None
    assert health("False", "", a_claim()) is None
    assert health("Unknown", "", a_claim(), since=ago(900)) == Wanted(HEALTHY, "True", HEALTHY)


@pytest.mark.parametrize("now_made_from", [(2, 5), (1, 6)], ids=["pool", "node-class"])
def test_what_was_made_from_another_pool_or_class_says_nothing(
    now_made_from: tuple[int, int],
) -> None:
    known = registrations_of([], arrivals("----"), now_made_from)
    assert known.arrivals == ()
    wanted = registration_health(a_pool_that_says("False"), known, now_made_from)
    assert wanted is not None
    assert (wanted.status, wanted.reason) == ("Unknown", "AwaitingReconciliation")
    assert registration_health(a_pool_that_says("True"), known, now_made_from) is None
