"""Carries out actions: one small handler per verb, each safe to repeat.

The executor owns the in-flight set. While a call about a target is on its way, or its
effect has not been seen in the watch yet, the target is not acted upon again, however
often the same verdict comes. A failure pauses its own target only. Nothing here judges:
what an error *means* is put into the knowledge or left to the next look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Any

from tenure.core.decision import (
    Action,
    Create,
    Delete,
    Evict,
    Launch,
    Patch,
    Subject,
    Terminate,
    Verdict,
)
from tenure.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    InstanceGone,
    Misconfigured,
    NotFound,
    OutOfCapacity,
    ProviderError,
    TenureError,
    TooManyRequests,
)
from tenure.kube.cache import Cache
from tenure.kube.client import Client
from tenure.model.kinds import decode
from tenure.model.meta import ApiObject, format_time
from tenure.model.observations import (
    EvictionAnswer,
    LaunchFailure,
    LaunchProblem,
    TerminationAnswer,
)
from tenure.model.resource import NODE_CLAIMS, PODS, Resource
from tenure.model.settings import Settings
from tenure.model.snapshot import Snapshot
from tenure.ports.clock import Clock
from tenure.ports.cloud import Cloud
from tenure.runtime.backoff import BackOff, Bucket
from tenure.runtime.guard import veto
from tenure.runtime.knowledge import Knowledge

#: The API answers 500 with these words when several budgets cover one pod.
_SEVERAL_BUDGETS = "more than one PodDisruptionBudget"


class Executor:
    def __init__(
        self,
        *,
        client: Client,
        cloud: Cloud,
        cache: Cache,
        knowledge: Knowledge,
        clock: Clock,
        settings: Settings,
        random: Random,
        snapshot: Callable[[], Snapshot],
        finished: Callable[[Verdict, str], None],
    ) -> None:
        self._client = client
        self._cloud = cloud
        self._cache = cache
        self._knowledge = knowledge
        self._clock = clock
        self._settings = settings
        self._snapshot = snapshot
        self._finished = finished
        self._back_off = BackOff(settings.retry_min, settings.retry_max, random)
        self._evictions = Bucket(settings.eviction_rate, settings.eviction_burst, clock)
        self._in_flight: dict[str, asyncio.Task[None]] = {}
        # Deletions that were accepted and that the watch has not shown yet, with their instant.
        self._awaited: dict[str, datetime] = {}

    def submit(self, verdict: Verdict) -> datetime | None:
        """Start the verdict's action, unless it is under way or must wait.

        Returns when to submit it again if it has to wait for a reason of its own.
        """
        action = verdict.action
        assert action is not None
        target = target_of(action)
        if target in self._in_flight or len(self._in_flight) >= self._settings.actions_max:
            return None  # Its end wakes the loop.
        now = self._clock.now()
        waits_until = self._back_off.wait_until(target, now, _version(action))
        if waits_until is None:
            waits_until = self._awaited_until(target, action, now)
        if waits_until is not None:
            return waits_until
        task = asyncio.get_running_loop().create_task(self._run(verdict, action, target))
        self._in_flight[target] = task
        return None

    async def close(self) -> None:
        """Cancel what is under way and wait for it."""
        tasks = list(self._in_flight.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def tidy(self, now: datetime) -> None:
        """Forget what nobody asks about any more, so that memory does not grow with age."""
        self._back_off.forget_before(now - 10 * self._settings.retry_max)
        oldest = now - 6 * self._settings.expectation_max
        for target in [t for t, since in self._awaited.items() if since < oldest]:
            del self._awaited[target]

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    async def _run(self, verdict: Verdict, action: Action, target: str) -> None:
        outcome = "ok"
        try:
            refusal = veto(action, self._snapshot())
            if refusal is not None:
                outcome = f"vetoed: {refusal}"
                self._back_off.failed(target, self._clock.now(), _version(action))
            else:
                effective = await self._do(verdict.subject, action, target)
                if effective:
                    self._back_off.succeeded(target)
                else:
                    outcome = "no effect"
                    self._back_off.failed(target, self._clock.now(), _version(action))
        except (Conflict, NotFound, AlreadyExists) as error:
            # The object moved under us. The next look decides; the pause is for a stale one.
            outcome = f"dropped: {error}"
            self._back_off.failed(target, self._clock.now(), _version(action))
        except TenureError as error:
            retry_at = self._back_off.failed(target, self._clock.now(), _version(action))
            outcome = f"failed: {error}; again at {format_time(retry_at)}"
        finally:
            self._in_flight.pop(target, None)
            self._finished(verdict, outcome)

    async def _do(self, subject: Subject, action: Action, target: str) -> bool:
        """Whether it had an effect; one without is not repeated at once."""
        match action:
            case Patch():
                return await self._patch(action)
            case Create():
                self._put(
                    action.resource,
                    await self._client.create(action.resource, action.body, action.namespace),
                )
            case Delete():
                await self._delete(action, target)
            case Evict():
                await self._evict(subject, action, target)
            case Launch():
                await self._launch(action)
            case Terminate():
                await self._terminate(subject, action)
        return True

    async def _patch(self, action: Patch) -> bool:
        answer = await self._client.patch(
            action.resource,
            action.name,
            stamped(action.body, self._clock.now()),
            namespace=action.namespace,
            subresource=action.subresource,
        )
        item = self._put(action.resource, answer)
        # The last finalizer's end is the object's end: there is no newer version of it.
        removed = item.deleting and not item.metadata.finalizers
        return removed or item.metadata.resource_version != action.resource_version

    async def _delete(self, action: Delete, target: str) -> None:
        await self._client.delete(
            action.resource,
            action.name,
            uid=action.uid,
            namespace=action.namespace,
            resource_version=action.resource_version,
        )
        self._awaited[target] = self._clock.now()

    async def _evict(self, subject: Subject, action: Evict, target: str) -> None:
        await self._evictions.take()
        try:
            await self._client.evict(
                action.name,
                action.namespace,
                uid=action.uid,
                grace_period_seconds=action.grace_period_seconds,
            )
        except TooManyRequests as error:
            self._refused(subject, error)
        except ApiError as error:
            if _SEVERAL_BUDGETS not in error.message:
                raise
            self._refused(subject, error)
        else:
            self._awaited[target] = self._clock.now()

    def _refused(self, pod: Subject, error: ApiError) -> None:
        """A budget's no is an answer, not a failure."""
        now = self._clock.now()
        pause = error.retry_after or self._knowledge.eviction_pause(
            pod.uid, now, self._settings.eviction_retry_min, self._settings.eviction_retry_max
        )
        answer = EvictionAnswer(at=now, retry_at=now + pause, message=error.message)
        self._knowledge.eviction_refused(pod, answer)

    async def _launch(self, action: Launch) -> None:
        request = action.request
        claim = Subject(NODE_CLAIMS.kind, request.claim_name, "", request.claim_uid)
        try:
            instance = await self._cloud.launch(request)
        except OutOfCapacity as error:
            now = self._clock.now()
            self._knowledge.sold_out(error.offerings, now + self._settings.offering_dry)
            self._fail_launch(claim, LaunchProblem.OUT_OF_CAPACITY, error)
        except Misconfigured as error:
            self._fail_launch(claim, LaunchProblem.MISCONFIGURED, error)
        except ProviderError as error:
            self._fail_launch(claim, LaunchProblem.FAILED, error)
        else:
            self._back_off.succeeded(f"launch/{claim.uid}/answer")
            self._knowledge.launched(claim, instance)

    def _fail_launch(self, claim: Subject, problem: LaunchProblem, error: ProviderError) -> None:
        now = self._clock.now()
        retry_at = None
        if problem is LaunchProblem.FAILED:
            retry_at = self._back_off.failed(f"launch/{claim.uid}/answer", now)
        failure = LaunchFailure(problem=problem, message=str(error), at=now, retry_at=retry_at)
        self._knowledge.launch_failed(claim, failure)

    async def _terminate(self, subject: Subject, action: Terminate) -> None:
        gone = False
        try:
            provider_id = action.provider_id or await self._instance_of(action.claim_uid)
            await self._cloud.terminate(provider_id)
        except InstanceGone:
            gone = True
        answer = TerminationAnswer(asked_at=self._clock.now(), gone=gone)
        self._knowledge.termination(self._claim(subject, action), action.claim_uid, answer)

    async def _instance_of(self, claim_uid: str) -> str:
        """A launch whose answer was lost is found by the claim's UID."""
        for instance in await self._cloud.list_instances(self._settings.cluster_name):
            if instance.claim_uid == claim_uid:
                return instance.provider_id
        raise InstanceGone(f"no instance carries claim UID {claim_uid}")

    def _claim(self, subject: Subject, action: Terminate) -> Subject:
        """Both the Node's and the claim's verdict end the instance; the claim is told."""
        for claim in self._snapshot().claims.values():
            if claim.uid == action.claim_uid:
                return Subject.of(NODE_CLAIMS.kind, claim)
        return subject

    def _put(self, resource: Resource, answer: bytes) -> ApiObject:
        """The answer to a write is the newest look at the object that anybody has."""
        item = decode(resource, answer)
        self._cache.upsert(resource, item)
        return item

    def _awaited_until(self, target: str, action: Action, now: datetime) -> datetime | None:
        since = self._awaited.get(target)
        if since is None:
            return None
        assert isinstance(action, Evict | Delete)
        current = self._current(action)
        if current is None or current.uid != action.uid or current.deleting:
            del self._awaited[target]
            return None
        if now < since + self._settings.expectation_max:
            return since + self._settings.expectation_max
        self._awaited.pop(target)
        self._in_flight[target] = asyncio.get_running_loop().create_task(
            self._look_again(action, target)
        )
        return now + self._settings.retry_min

    async def _look_again(self, action: Evict | Delete, target: str) -> None:
        """The watch owes us an event for too long: read the object itself."""
        resource = PODS if isinstance(action, Evict) else action.resource
        try:
            self._put(resource, await self._client.get(resource, action.name, action.namespace))
        except NotFound:
            if (current := self._current(action)) is not None and current.uid == action.uid:
                self._cache.remove(resource, current)
        except TenureError:
            self._back_off.failed(target, self._clock.now())
        finally:
            self._in_flight.pop(target, None)

    def _current(self, action: Evict | Delete) -> Any:
        resource = PODS if isinstance(action, Evict) else action.resource
        key = f"{action.namespace}/{action.name}" if action.namespace else action.name
        return self._cache.tables.table(resource).get(key)


def target_of(action: Action) -> str:
    """What must not be acted upon twice at once."""
    match action:
        case Patch() | Create() | Delete():
            verb = "delete" if isinstance(action, Delete) else "write"
            return f"{verb}/{action.resource}/{action.namespace}/{action.name}"
        case Evict():
            return f"evict/{action.uid}"
        case Launch():
            return f"launch/{action.request.claim_uid}"
        case Terminate():
            return f"terminate/{action.claim_uid or action.provider_id}"


def _version(action: Action) -> str:
    return action.resource_version if isinstance(action, Patch | Delete) else ""


def stamped(body: Any, now: datetime) -> Any:
    """The body with the instant of the write in every condition that lacks one."""
    conditions = body.get("status", {}).get("conditions")
    if not conditions or all("lastTransitionTime" in entry for entry in conditions):
        return body
    at = format_time(now)
    filled = [{"lastTransitionTime": at, **entry} for entry in conditions]
    return {**body, "status": {**body["status"], "conditions": filled}}
