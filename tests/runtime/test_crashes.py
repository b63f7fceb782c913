"""Tenure is killed after each single call of a story, and the story ends as if it had not been.

The story: twenty pods get nodes, a claim is deleted, its pods move, the node goes. Whatever
leaves the process is counted: writes to the API (events apart: they are news, not state) and
calls that change the cloud. For each of them there are three tellings: Tenure dies right
after it, its answer is lost, or it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

import pytest

from tenure.errors import ProviderError, Unavailable
from tenure.model.resource import NODE_CLAIMS, NODES
from tests.builders import (
    MINUTE,
    SECOND,
    a_budget,
    a_deployment,
    a_node_class,
    a_pool,
    a_requirement,
)
from tests.runtime.stage import Tapped
from tests.runtime.taps import Tap

PODS = 20
#: How many calls the story is expected to have; a story that needs more is not covered.
CALLS = 70


class Drama(Tapped):
    """The story, with something done to its ``fatal`` call."""

    def __init__(self, fatal: int, do: Callable[[Drama, Tap, bool], object] | None) -> None:
        big = a_requirement("node.kubernetes.io/instance-type", "m7i.xlarge")
        super().__init__(
            a_node_class(),
            a_pool(requirements=[big]),
            a_deployment(replicas=PODS, cpu="350m"),
            a_budget("web", maxUnavailable=15),
        )
        self.count_of_calls = 0
        self.happened = ""
        self._fatal, self._do = fatal, do
        for tap in (self.api_tap, self.cloud_tap):
            self._watch(tap)

    def _watch(self, tap: Tap) -> None:
        tap.spoil = lambda verb, what: self._called(tap, verb, what, done=False)
        tap.lose = lambda verb, what: bool(self._called(tap, verb, what, done=True))

    def _called(self, tap: Tap, verb: str, what: str, *, done: bool) -> object:
        if verb in ("GET", "WATCH", "types", "list") or "/events" in what:
            return None
        self.count_of_calls += not done
        if self.count_of_calls != self._fatal or self._do is None or self.happened:
            return None
        return self._do(self, tap, done)

    def tell(self) -> None:
        self.play(3 * MINUTE)
        self.delete_claim()
        self.play(6 * MINUTE)

    def play(self, for_: timedelta) -> None:
        end = self.now + for_
        while self.now < end:
            self.run(5 * SECOND)
            if self.api_tap.frozen:
                self.crash()
                self.api_tap.thaw()
                self.cloud_tap.thaw()


def dies(drama: Drama, tap: Tap, done: bool) -> object:
    """The call is carried out, and nothing ever leaves this process again."""
    if done:
        drama.happened = "died"
        drama.api_tap.freeze()
        drama.cloud_tap.freeze()
    return None


def loses(drama: Drama, tap: Tap, done: bool) -> object:
    """The call is carried out, and its answer says that it was not."""
    if done:
        drama.happened = "lost"
    return done or None


def refuses(drama: Drama, tap: Tap, done: bool) -> object:
    drama.happened = "refused"
    return Unavailable("not now") if tap is drama.api_tap else ProviderError("not now")


def ends_well(drama: Drama) -> None:
    assert drama.running("web") == PODS
    claims = drama.store.list(NODE_CLAIMS)
    assert not [c for c in claims if "deletionTimestamp" in c["metadata"]]
    instances = sorted(i.claim_uid for i in drama.cloud.instances())
    assert instances == sorted(c["metadata"]["uid"] for c in claims), "one each, none leaked"
    assert len(drama.store.list(NODES)) == len(claims)
    assert drama.cloud.launch_count == len(claims) + 1, "the deleted one, and no other"
    drama.checkers.assert_kept()


def test_the_story_ends_well_when_nothing_goes_wrong() -> None:
    with closing(Drama(0, None)) as drama:
        drama.tell()
        ends_well(drama)
        assert 40 < drama.count_of_calls <= CALLS


@pytest.mark.parametrize("fatal", range(1, CALLS + 1))
def test_tenure_dies_after_the_call(fatal: int) -> None:
    with closing(Drama(fatal, dies)) as drama:
        drama.tell()
        ends_well(drama)


@pytest.mark.parametrize("fatal", range(1, CALLS + 1))
def test_the_answer_to_the_call_is_lost(fatal: int) -> None:
    with closing(Drama(fatal, loses)) as drama:
        drama.tell()
        ends_well(drama)


@pytest.mark.parametrize("fatal", range(1, CALLS + 1, 5))
def test_the_call_is_refused(fatal: int) -> None:
    with closing(Drama(fatal, refuses)) as drama:
        drama.tell()
        ends_well(drama)
