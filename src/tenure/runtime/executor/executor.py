"""Decides when an action may leave: not twice at once, not too often, not on old news.

The executor owns the in-flight set. In the order in which the rules bite:

1. while a call about a target is on its way, the target is not acted upon again, however
   often the same verdict comes; launch, reboot and end of one claim's instance are one target;
2. so many actions may be under way at once;
3. a target that failed waits, longer each time; the others do not wait at all. An action
   on a newer version than the one that failed may go at once;
4. a deletion or eviction that was accepted is not repeated before the watch has shown it,
   or, after a while, a read has; what the cache shows as done, or knows in a newer version than the
   action is for, is not sent at all: its decider has yet to be evaluated on that;
5. as long as something is being created, the loop does not ask anew what else should be, and
   what has been created meanwhile is not created again;
6. what an action depends on beside its object is read right before it: the Node, of a
   claim that pods hold back, the pods there, and of a replacement, what its pool's limits leave. If that is
   not as it was evaluated, nothing is sent;
7. a write that was accepted five times within a minute waits: another program undoes it (``repeats``);
8. every action needs an open fence, and the guard's consent; what takes something away
   needs a fresh view, and a clock that agrees with the API server's, too. All of them are
   asked right before the call leaves, and the fence once more as it does. What the clock held is
   tried at once when the clocks agree again: a force delete would else come too late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any

from tenure.core.decision import (
    Action,
    Create,
    Delete,
    DeletePod,
    Evict,
    Inspect,
    Launch,
    Patch,
    Precondition,
    Reboot,
    Terminate,
    Verdict,
    takes_away,
)
from tenure.errors import AlreadyExists, ApiError, Conflict, NotFound, NotLeader, TenureError
from tenure.kube.cache.cache import Cache, number_of, version_of
from tenure.kube.cache.changes import Place
from tenure.model.api.meta import ApiObject, format_time
from tenure.model.api.resource import PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.ports.clock import Clock
from tenure.ports.fence import OPEN, Fence
from tenure.ports.outcome import Ended, Outcome
from tenure.runtime.clock.backoff import BackOff, Bucket
from tenure.runtime.clock.timecheck import TimeCheck
from tenure.runtime.executor.clockblocker import depends_on_time
from tenure.runtime.executor.creations import Creations
from tenure.runtime.executor.guard import veto
from tenure.runtime.executor.handlers import Verbs
from tenure.runtime.executor.repeats import FREE, WINDOW, Repeats

#: Words for outcomes after which the target may be acted upon again at once.
_ANSWERED = (Ended.OK, Ended.REFUSED)


class Executor:
    def __init__(
        self,
        *,
        verbs: Verbs,
        cache: Cache,
        clock: Clock,
        settings: Settings,
        back_off: BackOff,
        snapshot: Callable[[], Snapshot],
        outdated: Callable[[], str],
        finished: Callable[[Verdict, Outcome], None],
        fence: Fence = OPEN,
        times: TimeCheck,
        blocked_by_clock: Callable[[Verdict, str], None] = lambda _, __: None,
    ) -> None:
        """``blocked_by_clock`` hears what is not sent because of our clock, and how that is off."""
        self._verbs = verbs
        self._cache = cache
        self._clock = clock
        self._settings = settings
        self._back_off = back_off
        self._snapshot = snapshot
        #: Says what of our view is too old to take anything away; empty when nothing is.
        self._outdated = outdated
        self._finished = finished
        self._fence = fence
        self._times = times
        self._blocked_by_clock = blocked_by_clock
        self._evictions = Bucket(settings.eviction_rate, settings.eviction_burst, clock)
        self._in_flight: dict[str, asyncio.Task[None]] = {}
        self._creations = Creations()
        self._repeats = Repeats()
        # Deletions that were accepted and that the watch has not shown yet, with their instant.
        self._awaited: dict[str, float] = {}
        #: Targets that our clock alone holds.
        self._held: set[str] = set()

    def submit(self, verdict: Verdict) -> float | None:
        """Start the verdict's action, unless it is under way or must wait.

        Returns when to submit it again, on the monotonic clock, if it has to wait for a reason
        of its own.
        """
        action = verdict.action
        assert action is not None
        target = target_of(action)
        if target in self._creations:
            return None  # Its decider has not been evaluated since.
        if target in self._in_flight:
            return None  # Its end wakes the loop.
        if self._is_overtaken(action):
            return None  # So does the change.
        if len(self._in_flight) >= self._settings.actions_max:
            self._creations.postpone(target, action)
            return None  # The end of any of them does, too.
        now = self._clock.monotonic()
        waits_until = self._back_off.wait_until(target, now, _attempt(action))
        if waits_until is None and isinstance(action, Evict | DeletePod | Delete):
            waits_until = self._awaited_until(target, action, now)
        if waits_until is None:
            waits_until = self._undone_until(verdict, action, now)
        if waits_until is None:
            self._creations.start(target, action)
            self._start(target, self._run(verdict, action, target))
        return waits_until

    @property
    def creates(self) -> bool:
        """Whether something is being created, or about to be, that cannot be seen yet."""
        return bool(self._creations)

    def begin(self) -> None:
        """Everything that is to be done is submitted once more."""
        self._creations.begin()

    def clocks_agree(self) -> None:
        """What a wrong clock held has not failed: it need not wait any more."""
        for target in self._held:
            self._back_off.succeeded(target)
        self._held.clear()

    async def close(self) -> None:
        """Cancel what is under way and wait for it."""
        tasks = list(self._in_flight.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def tidy(self, now: float) -> None:
        """Forget what is not needed any more, so that memory does not grow with age."""
        self._back_off.forget_before(now - 10 * self._settings.retry_max.total_seconds())
        self._repeats.forget_before(now - WINDOW)
        oldest = now - 6 * self._settings.expectation_max.total_seconds()
        for target in [t for t, since in self._awaited.items() if since < oldest]:
            del self._awaited[target]

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def _start(self, target: str, work: Coroutine[Any, Any, None]) -> None:
        self._in_flight[target] = asyncio.get_running_loop().create_task(work)

    # -- one action --------------------------------------------------------------------

    async def _run(self, verdict: Verdict, action: Action, target: str) -> None:
        try:
            outcome = await self._outcome(verdict, action, target)
            if outcome.ended is Ended.OK:
                self._creations.succeeded(target)
        finally:
            self._in_flight.pop(target, None)
            self._creations.ended(target)
        self._finished(verdict, outcome)

    async def _outcome(self, verdict: Verdict, action: Action, target: str) -> Outcome:
        self._held.discard(target)
        try:
            if isinstance(action, Evict | DeletePod):
                await self._evictions.take()
            if depends_on_time(action):
                await self._times.ask_if_needed()
            outcome = await self._changed(target, action) or self._refusal(verdict, action, target)
            outcome = outcome or await self._verbs.carry_out(verdict.subject, action)
        except NotLeader as error:
            outcome = Outcome(Ended.HELD, f"nothing was sent: {error}")
        except (Conflict, NotFound, AlreadyExists) as error:
            # The object moved under us. The next look decides; the pause is for a stale one.
            self._back_off.failed(target, self._clock.monotonic(), _attempt(action))
            return Outcome(Ended.DROPPED, str(error), error.status)
        except Exception as error:  # noqa: BLE001  # one bad call must not stop the others
            return self._failed(target, action, error)
        return self._ended(target, action, outcome)

    async def _changed(self, target: str, action: Action) -> Outcome | None:
        """Whether what the action depends on is no longer as it was evaluated, by reads of its own."""
        what = await self._other_version(action) or await self._other_pods(action)
        what = what or self._creations.over_limits(target, action, self._snapshot())
        if not what:
            return None
        return Outcome(Ended.HELD, f"{what} changed since it was evaluated: evaluating again")

    async def _other_version(self, action: Action) -> str:
        precondition = precondition_of(action)
        if precondition is None:
            return ""
        version = await self._verbs.version_of(
            precondition.resource, precondition.name, uid=precondition.uid
        )
        if version == precondition.resource_version:
            return ""
        return f"{precondition.resource.kind} {precondition.name} has"

    async def _other_pods(self, action: Action) -> str:
        """A list that fails fails the action: its pods are not known."""
        if isinstance(action, Delete) and action.pods_of:
            node, changed = action.pods_of, await self._verbs.changed_pods(action.pods_of)
            return f"Pod {changed[0]} of Node {node} has" if changed else ""
        for node in action.pods_of if isinstance(action, Terminate) else ():
            if unknown := await self._verbs.unknown_pods(node):
                return f"Pod {unknown[0]} was not known: Node {node} has"
        return ""

    def _refusal(self, verdict: Verdict, action: Action, target: str) -> Outcome | None:
        """The last look before the call leaves."""
        if why := self._fence.closed():
            return Outcome(Ended.HELD, f"nothing is done while we may not act: {why}")
        if takes_away(action) and (what := self._outdated()):
            return Outcome(Ended.HELD, f"nothing is taken away while {what}")
        if depends_on_time(action) and (what := self._times.off()):
            self._blocked_by_clock(verdict, what)
            self._held.add(target)
            return Outcome(
                Ended.HELD,
                f"no disruption begins, nothing is taken away, and no deadline is set, while {what}",
            )
        refusal = veto(action, self._snapshot(), self._clock.now(), self._settings)
        if refusal is None:
            return None
        self._verbs.refused(action, refusal)
        return Outcome(Ended.VETOED, refusal)

    def _ended(self, target: str, action: Action, outcome: Outcome) -> Outcome:
        now = self._clock.monotonic()
        if outcome.ended not in _ANSWERED:
            pause = self._back_off.failed(target, now, _attempt(action))
            if target in self._held:
                return outcome  # Until the clocks agree; the pause only paces the questions.
            return _again(outcome, self._clock.now() + pause)
        self._back_off.succeeded(target)
        if outcome.ended is Ended.OK:
            self._repeats.accepted(action, now)
        if outcome.ended is Ended.OK and isinstance(action, Evict | DeletePod | Delete):
            self._awaited[target] = now
        return outcome

    def _failed(self, target: str, action: Action, error: Exception) -> Outcome:
        wait = error.retry_after if isinstance(error, ApiError) else None
        status = error.status if isinstance(error, ApiError) else 500
        now = self._clock.monotonic()
        pause = self._back_off.failed(target, now, _attempt(action), at_least=wait)
        # What is outside our tree is a fault of ours or of a provider's: say which.
        named = str(error) if isinstance(error, TenureError) else f"{type(error).__name__}: {error}"
        return _again(Outcome(Ended.FAILED, named, status), self._clock.now() + pause)

    def _is_overtaken(self, action: Action) -> bool:
        """Whether the API server would refuse it, by what the cache knows already."""
        if not isinstance(action, Patch | Create | Delete | Evict):
            return False
        current = self._current(action)
        if current is None:
            return False  # The cache may not know it yet.
        if isinstance(action, Create):
            return True
        if current.uid != action.uid:
            return False  # The watch says next what became of it.
        if isinstance(action, Delete | Evict) and current.deleting:
            return True
        if isinstance(action, Evict) or not action.resource_version:
            return False
        return version_of(current) > number_of(action.resource_version)

    def _undone_until(self, verdict: Verdict, action: Action, now: float) -> float | None:
        until = self._repeats.wait_until(action, now)
        if until is not None and self._repeats.is_news(action):
            why = f"it was written {FREE} times within a minute, and another program undoes it"
            again = self._clock.now() + timedelta(seconds=until - now)
            self._finished(verdict, _again(Outcome(Ended.HELD, why), again))
        return until

    # -- what was accepted and is not seen yet -----------------------------------------

    def _awaited_until(
        self, target: str, action: Evict | DeletePod | Delete, now: float
    ) -> float | None:
        since = self._awaited.get(target)
        if since is None:
            return None
        current = self._current(action)
        if current is None or current.uid != action.uid or _is_seen(action, current):
            del self._awaited[target]
            return None
        look_at = since + self._settings.expectation_max.total_seconds()
        if now < look_at:
            return look_at
        del self._awaited[target]
        self._start(target, self._look_again(action, target))
        return now + self._settings.retry_min.total_seconds()

    async def _look_again(self, action: Evict | DeletePod | Delete, target: str) -> None:
        """The watch owes us an event for too long: read the object itself."""
        resource, _ = place_of(action)
        try:
            await self._verbs.look(resource, action.name, action.namespace, uid=action.uid)
        except TenureError:
            # Still unknown: neither repeat it nor wait for ever.
            self._awaited[target] = self._clock.monotonic()
        finally:
            self._in_flight.pop(target, None)

    def _current(self, action: Patch | Create | Evict | DeletePod | Delete) -> ApiObject | None:
        resource, key = place_of(action)
        current: ApiObject | None = self._cache.tables.table(resource).get(key)
        return current


def _is_seen(action: Evict | DeletePod | Delete, current: ApiObject) -> bool:
    """Whether the object shows what was accepted."""
    if not isinstance(action, DeletePod):
        return current.deleting
    # One that was terminating already shows it by its grace.
    grace = current.metadata.deletion_grace_period_seconds
    return grace is not None and grace <= action.grace_period_seconds


def _again(outcome: Outcome, at: datetime) -> Outcome:
    return Outcome(outcome.ended, f"{outcome.detail}; again at {format_time(at)}", outcome.status)


def target_of(action: Action) -> str:
    """What must not be acted upon twice at once."""
    match action:
        case Patch() | Create():
            return f"write/{action.resource}/{action.namespace}/{action.name}"
        case Delete():
            return f"delete/{action.uid}"
        case Evict() | DeletePod():
            return f"evict/{action.uid}"
        case Launch():
            return f"instance/{action.request.claim_uid}"
        case Terminate():
            return f"instance/{action.claim_uid or action.provider_id}"
        case Reboot():
            return f"instance/{action.claim_uid}"
        case Inspect():
            return f"inspect/{action.claim_uid}"


def precondition_of(action: Action | None) -> Precondition | None:
    """The object version that it depends on, beside its own."""
    return action.precondition if isinstance(action, Patch | Delete | Reboot) else None


def place_of(action: Patch | Create | Delete | Evict | DeletePod) -> Place:
    """Where the object of the action is kept."""
    resource = PODS if isinstance(action, Evict | DeletePod) else action.resource
    key = f"{action.namespace}/{action.name}" if action.namespace else action.name
    return resource, key


def _attempt(action: Action) -> str:
    """Tells one try from another: after a failure, only the same one has to wait."""
    return action.resource_version if isinstance(action, Patch | Delete) else type(action).__name__
