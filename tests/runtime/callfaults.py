"""A story in which something is done to one of the calls that leave Tenure's process.

Counted are writes to the API (events apart: they are news, not state) and calls that change the
cloud. Tenure dies right after the call, its answer is lost, or it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tenure.errors import ProviderError, Unavailable
from tests.builders import SECOND
from tests.runtime.taps import Tap
from tests.runtime.worlds import Tapped


class FaultyStory(Tapped):
    """The story, with something done to its ``fatal`` call."""

    def __init__(
        self,
        fatal: int,
        do: Callable[[FaultyStory, Tap, bool], object] | None,
        *manifests: dict[str, Any],
    ) -> None:
        super().__init__(*manifests)
        self.count_of_calls = 0
        self.happened = ""
        self._fatal, self._do = fatal, do
        for tap in (self.api_tap, self.cloud_tap):
            self._watch(tap)

    def _watch(self, tap: Tap) -> None:
        tap.spoil = lambda verb, what: self._called(tap, verb, what, done=False)
        tap.lose = lambda verb, what: bool(self._called(tap, verb, what, done=True))

    def _called(self, tap: Tap, verb: str, what: str, *, done: bool) -> object:
        if verb in ("GET", "WATCH", "types", "list", "drift", "image") or "/events" in what:
            return None
        self.count_of_calls += not done
        if self.count_of_calls != self._fatal or self._do is None or self.happened:
            return None
        return self._do(self, tap, done)

    def play(self, for_: timedelta) -> None:
        end = self.now + for_
        while self.now < end:
            self.run(5 * SECOND)
            if self.api_tap.frozen:
                self.crash()
                self.api_tap.thaw()
                self.cloud_tap.thaw()


def dies(faulty: FaultyStory, tap: Tap, done: bool) -> object:
    """The call is carried out, and nothing ever leaves this process again."""
    if done:
        faulty.happened = "died"
        faulty.api_tap.freeze()
        faulty.cloud_tap.freeze()
    return None


def loses(faulty: FaultyStory, tap: Tap, done: bool) -> object:
    """The call is carried out, and its answer says that it was not."""
    if done:
        faulty.happened = "lost"
    return done or None


def refuses(faulty: FaultyStory, tap: Tap, done: bool) -> object:
    faulty.happened = "refused"
    return Unavailable("not now") if tap is faulty.api_tap else ProviderError("not now")
