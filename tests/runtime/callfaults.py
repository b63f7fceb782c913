"""A story in which something is done to one of the calls that leave Tenure's process.

Counted are writes to the API (events apart: they are news, not state) and calls that change the
cloud. Tenure dies right after the call, its answer is lost, or it is refused. Or another leader takes
over while the call is on its way: it arrives when the new leader is at work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from tenure.errors import ProviderError, TenureError, Unavailable
from tenure.model.api.names import REPLACED_BY, REPLACES
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.world import WorldOptions
from tests.builders import SECOND
from tests.runtime.taps import Tap
from tests.runtime.worlds import Tapped

#: A new leader takes over so long after the last renewal; the call of the old one arrives later.
LEASE: Final = timedelta(seconds=15)
ARRIVES_AFTER: Final = 25.0


class Way:
    """The way of calls to the API or the cloud; one of them may take very long."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        #: The next call arrives late, and its answer nowhere.
        self.long = False
        self._late: list[asyncio.Task[Any]] = []

    def __getattr__(self, name: str) -> Any:
        given = getattr(self._inner, name)
        if name not in ("request", "launch", "terminate", "get", "acknowledge"):
            return given

        async def call(*args: Any) -> Any:
            if not self.long:
                return await given(*args)
            self.long = False
            self._late.append(asyncio.ensure_future(_later(given(*args))))
            return await asyncio.Event().wait()

        return call


async def _later(call: Awaitable[Any]) -> None:
    await asyncio.sleep(ARRIVES_AFTER)
    with suppress(TenureError):  # Nothing hears a refusal.
        await call


class FaultyStory(Tapped):
    """The story, with something done to its ``fatal`` call."""

    def __init__(
        self,
        fatal: int,
        do: Callable[[FaultyStory, Tap, bool], object] | None,
        *manifests: dict[str, Any],
        options: WorldOptions | None = None,
    ) -> None:
        super().__init__(*manifests, options=options)
        self.count_of_calls = 0
        self.happened = ""
        self.ways: dict[Tap, Way] = {}
        #: How long after a death Tenure, or a new leader, begins.
        self.down_for = timedelta()
        self._fatal, self._do = fatal, do
        for tap in (self.api_tap, self.cloud_tap):
            self.ways[tap] = tap.detour(Way)
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
                self.crash(stay_down=True)
                self.run(self.down_for)
                self.api_tap.thaw()
                self.cloud_tap.thaw()
                self.start()


def is_marked(claim: Obj, claims: Iterable[Obj]) -> bool:
    """Whether it still has a command, or was launched to replace one that is still there."""
    marks = claim["metadata"].get("annotations", {})
    uids = {one["metadata"]["uid"] for one in claims}
    return REPLACED_BY in marks or bool(uids & set(marks.get(REPLACES, "").split(",")))


def dies(faulty: FaultyStory, tap: Tap, done: bool) -> object:
    """The call is carried out, and nothing ever leaves this process again."""
    if done:
        faulty.happened = "died"
        faulty.api_tap.freeze()
        faulty.cloud_tap.freeze()
    return None


def loses_the_lease(faulty: FaultyStory, tap: Tap, done: bool) -> object:
    """The call is on its way, and nothing else ever leaves this process; a new leader takes over."""
    if not done:
        faulty.happened = "lost the lease"
        faulty.ways[tap].long = True
        faulty.down_for = LEASE
        faulty.loop.call_later(0, faulty.api_tap.freeze)
        faulty.loop.call_later(0, faulty.cloud_tap.freeze)
    return None


def loses(faulty: FaultyStory, tap: Tap, done: bool) -> object:
    """The call is carried out, and its answer says that it was not."""
    if done:
        faulty.happened = "lost"
    return done or None


def refuses(faulty: FaultyStory, tap: Tap, done: bool) -> object:
    faulty.happened = "refused"
    return Unavailable("not now") if tap is faulty.api_tap else ProviderError("not now")
