"""Levers by cause, and those past their end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure.core.beside.levers import LeverDecider
from tenure.core.policy.deciders import decide_all
from tenure.model.api.meta import ApiObject, format_time
from tenure.model.api.resource import NODES
from tenure.runtime.telemetry import metricnames as names
from tenure.runtime.telemetry.leverseries import lever_rows
from tests.core.beside.scenes import SETTINGS, TRUE, marks, node_with
from tests.core.beside.test_levers import HOUR, ON, OPEN
from tests.core.build import NOW, a_claim, a_leaving_claim
from tests.runtime.telemetry.test_scrape import scraped, value
from tests.scenarios.test_beside_karpenter import beside, freeze
from tests.snapshots import snapshot_with

MINUTE = timedelta(minutes=1)


def rows(*objects: ApiObject, after: timedelta = timedelta()) -> dict[str, dict[str, float]]:
    snapshot, now = snapshot_with(*objects), NOW + after
    verdicts = decide_all(LeverDecider(SETTINGS), snapshot, SETTINGS, now)
    found = dict(lever_rows(snapshot, verdicts, now))
    return {named.name: {" ".join(key): value for key, value in found[named]} for named in found}


def test_levers_are_counted_by_cause() -> None:
    found = rows(node_with(ON), a_claim(), OPEN)
    assert found[names.LEVERS.name] == {
        "do-not-disrupt budget": 0,
        "do-not-disrupt protection": 0,
        "do-not-disrupt replacement": 0,
        "do-not-disrupt window": 1,
        "do-not-repair budget": 0,
        "do-not-repair protection": 0,
        "do-not-repair replacement": 0,
        "do-not-repair window": 0,
    }
    assert found[names.LEVERS_PAST_END.name] == {"": 0}


def test_a_lever_is_past_its_end_five_minutes_after_it() -> None:
    soon = rows(node_with(ON), a_claim(), after=HOUR + 5 * MINUTE)
    assert soon[names.LEVERS_PAST_END.name] == {"": 0}
    late = rows(node_with(ON), a_claim(), after=HOUR + 6 * MINUTE)
    assert late[names.LEVERS_PAST_END.name] == {"": 1}


@pytest.mark.parametrize("leaves", ["Node", "NodeClaim"])
def test_on_a_node_whose_drain_takes_long_a_lever_is_not_past_its_end(leaves: str) -> None:
    """It blocks nothing there, and an alert would send an operator to look for it."""
    since = {"deletion_timestamp": NOW} if leaves == "Node" else {}
    claim = a_leaving_claim() if leaves == "NodeClaim" else a_claim()
    found = rows(node_with(ON, **since), claim, after=HOUR + 6 * MINUTE)
    assert found[names.LEVERS_PAST_END.name] == {"": 0}


def test_a_lever_without_a_known_end_and_a_users_are_not() -> None:
    year = timedelta(days=365)
    assert rows(node_with({**TRUE, **marks()}), a_claim(), after=year)[
        names.LEVERS_PAST_END.name
    ] == {"": 0}
    users = {**TRUE, **marks(until=format_time(NOW))}
    users.pop("tenure.dev/do-not-disrupt-by")
    assert rows(node_with(users), a_claim(), after=year)[names.LEVERS_PAST_END.name] == {"": 0}


def test_beside_karpenter_its_own_series_are_left_to_it() -> None:
    with beside(freeze(0 * MINUTE, 60 * MINUTE)) as story:
        samples = scraped(story, settings=story.options.settings)
        assert value(samples, "tenure_levers", lever="do-not-disrupt", cause="window") == len(
            story.all(NODES)
        )
        assert "karpenter_nodepools_usage" not in samples
        assert "karpenter_pods_state" not in samples
