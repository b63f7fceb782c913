"""The provider is asked about drift: when, how often, and what a failure costs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tenure.core.reasons import Reason
from tenure.errors import ProviderError
from tenure.model.api.resource import EVENTS, NODE_CLAIMS, NODE_POOLS
from tenure.model.settings import Settings
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.runtime.telemetry import metricnames as names
from tenure.runtime.telemetry.scrape import _drifts
from tenure.sim.world import WorldOptions
from tests.builders import HOUR, MINUTE, SECOND, a_cluster, a_deployment, apart
from tests.runtime.worlds import Tapped


def several(replicas: int = 3) -> list[Any]:
    """A node for each pod."""
    return a_cluster(a_deployment(replicas=replicas, affinity=apart()))


def a_story(nodes: int = 3) -> Tapped:
    """What has drifted stays: this is about who is asked, not about who goes."""
    settings = Settings(voluntary_disruption=False)
    return Tapped(*several(nodes), options=WorldOptions(settings=settings))


def drifted(story: Tapped) -> dict[str, str]:
    """By claim: the reason of its condition, where it has drifted."""
    return {
        claim["metadata"]["name"]: condition["reason"]
        for claim in story.all(NODE_CLAIMS)
        for condition in claim["status"]["conditions"]
        if (condition["type"], condition["status"]) == ("Drifted", "True")
    }


def asked(story: Tapped) -> Counter[str]:
    return Counter(call.what for call in story.cloud_tap.questions if call.verb == "drift")


def test_each_instance_is_asked_about_once_and_then_every_hour() -> None:
    with a_story() as story:
        story.run(5 * MINUTE)
        assert sorted(asked(story).values()) == [1, 1, 1]
        story.run(2 * HOUR)
        assert sorted(asked(story).values()) == [3, 3, 3]
        assert drifted(story) == {}


def test_a_released_image_drifts_the_fleet_within_a_minute_or_so() -> None:
    with a_story() as story:
        story.run(10 * MINUTE)
        story.cloud.release_image()
        story.run(2 * MINUTE)
        assert list(drifted(story).values()) == ["ImageDrift"] * 3
        (said,) = {
            condition["message"]
            for claim in story.all(NODE_CLAIMS)
            for condition in claim["status"]["conditions"]
            if condition["type"] == "Drifted"
        }
        assert said == (
            "the instance runs image embedded-linux-1, its node class asks for embedded-linux-2 "
            "(ImageDrift)"
        )
        story.apply(a_deployment("more", replicas=1, cpu="7"))
        story.run(5 * MINUTE)
        assert len(drifted(story)) == 3, "a new node has the new image"


def test_drifted_claims_are_counted_and_have_an_event() -> None:
    with a_story() as story:
        story.run(10 * MINUTE)
        bad = story.cloud.instances()[0]
        story.cloud_tap.spoil = lambda verb, what: (
            ProviderError("down") if (verb, what) == ("drift", bad.provider_id) else None
        )
        story.cloud.release_image()
        story.run(2 * MINUTE)
        series = dict(_drifts(story.controller.snapshot()))
        assert series[names.DRIFTED] == [(("general", "ImageDrift"), 2)]
        assert series[names.DRIFT_UNKNOWN] == [(("general",), 1)]
        told = [event for event in story.all(EVENTS) if event["reason"] == "Drifted"]
        assert len(told) == 2
        assert all("embedded-linux-2" in event["message"] for event in told)


def test_a_changed_class_is_asked_about_at_once_and_undrifts() -> None:
    with a_story() as story:
        story.run(10 * MINUTE)
        story.store.patch(KWOK_NODE_CLASSES, "", "default", {"spec": {"image": "v2"}})
        story.run(5 * SECOND)
        assert len(drifted(story)) == 3
        story.store.patch(KWOK_NODE_CLASSES, "", "default", {"spec": {"image": "embedded-linux-1"}})
        story.run(5 * SECOND)
        assert drifted(story) == {}
        story.cloud.release_image()
        story.run(5 * MINUTE)
        assert drifted(story) == {}, "it is pinned"


def test_a_restart_forgets_no_drift_and_asks_again() -> None:
    with a_story() as story:
        story.run(10 * MINUTE)
        story.cloud.release_image()
        story.run(2 * MINUTE)
        before, questions = drifted(story), sum(asked(story).values())
        writes = len(story.api_tap.of("patch", "nodeclaims"))
        story.crash()
        story.run(2 * MINUTE)
        assert drifted(story) == before
        assert sum(asked(story).values()) == questions + 3
        assert len(story.api_tap.of("patch", "nodeclaims")) == writes, "nothing was unset meanwhile"


def test_an_instance_that_fails_drifts_nothing_says_so_and_stops_no_other() -> None:
    with a_story() as story:
        story.run(10 * MINUTE)
        bad = story.cloud.instances()[0]
        fails = ProviderError("InternalError")
        story.cloud_tap.spoil = lambda verb, what: (
            fails if (verb, what) == ("drift", bad.provider_id) else None
        )
        story.cloud.release_image()
        story.run(30 * MINUTE)
        assert bad.claim_name not in drifted(story)
        assert len(drifted(story)) == 2
        assert Reason.DRIFT_UNKNOWN in story.reasons(f"NodeClaim/{bad.claim_name}")
        assert 4 <= asked(story)[bad.provider_id] <= 8, "less and less often"
        story.cloud_tap.spoil = lambda verb, what: None
        story.run(31 * MINUTE)
        assert len(drifted(story)) == 3


def test_a_fleet_is_asked_about_at_a_bounded_rate() -> None:
    with a_story(40) as story:
        story.run(10 * MINUTE)
        story.cloud_tap.questions.clear()
        story.store.patch(KWOK_NODE_CLASSES, "", "default", {"spec": {"image": "v2"}})
        story.run(MINUTE)
        times = sorted(call.at for call in story.cloud_tap.questions if call.verb == "drift")
        assert len(times) == 40
        assert all(late - early >= 0.99 for early, late in zip(times, times[20:], strict=False))
        assert len(drifted(story)) == 40


def test_images_that_cannot_be_read_change_nothing() -> None:
    with a_story() as story:
        story.run(10 * MINUTE)
        fails = ProviderError("InternalError")
        story.cloud_tap.spoil = lambda verb, what: fails if verb == "image" else None
        story.cloud.release_image()
        story.run(30 * MINUTE)
        assert drifted(story) == {}
        story.run(HOUR)
        assert len(drifted(story)) == 3, "every hour the instances are asked about all the same"


def test_a_template_that_is_changed_and_changed_back() -> None:
    with a_story() as story:
        story.run(10 * MINUTE)
        labelled = {"spec": {"template": {"metadata": {"labels": {"team": "b"}}}}}
        story.store.patch(NODE_POOLS, "", "general", labelled)
        story.run(5 * SECOND)
        assert list(drifted(story).values()) == ["NodePoolDrifted"] * 3
        story.store.patch(NODE_POOLS, "", "general", {"spec": {"template": {"metadata": None}}})
        story.run(5 * SECOND)
        assert drifted(story) == {}
