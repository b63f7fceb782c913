"""Carries out one action: a small handler per verb, each safe to repeat.

Nothing here judges. What an answer *means* is put into the cache or the knowledge, for
the next look to decide on; an error that is not an answer is left to the executor, which
pauses the target. A budget that refuses an eviction and a cloud that refuses a launch are
answers.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any, Final

import msgspec

from tenure.core.decision import (
    Action,
    Create,
    Delete,
    Evict,
    Launch,
    Patch,
    Subject,
    Terminate,
)
from tenure.core.garbage import INSTANCE
from tenure.errors import (
    AlreadyExists,
    ApiError,
    InstanceGone,
    Misconfigured,
    NotFound,
    OutOfCapacity,
    ProviderError,
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
from tenure.ports.clock import Clock
from tenure.ports.cloud import Cloud
from tenure.runtime.backoff import BackOff
from tenure.runtime.knowledge import Knowledge

#: The API answers 500 with these words when several budgets cover one pod.
_SEVERAL_BUDGETS: Final = "more than one PodDisruptionBudget"
#: The cause that tells a budget's no from a server that is merely busy.
_BUDGET_CAUSE: Final = "DisruptionBudget"


class Outcome(msgspec.Struct, frozen=True):
    """How an action ended, in one word, with the rest of the sentence and the HTTP status."""

    word: str
    detail: str = ""
    status: int = 200

    def __str__(self) -> str:
        return f"{self.word}: {self.detail}" if self.detail else self.word


OK: Final = Outcome("ok")
NO_EFFECT: Final = Outcome("no effect", "the server had nothing to change")


class Verbs:
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
    ) -> None:
        self._client = client
        self._cloud = cloud
        self._cache = cache
        self._knowledge = knowledge
        self._clock = clock
        self._settings = settings
        self._random = random
        self._launches = BackOff(settings.retry_min, settings.retry_max, random)

    async def carry_out(self, subject: Subject, action: Action) -> Outcome:
        match action:
            case Patch():
                return await self._patch(action)
            case Create():
                return await self._create(action)
            case Delete():
                return await self._delete(action)
            case Evict():
                return await self._evict(subject, action)
            case Launch():
                return await self._launch(action)
            case Terminate():
                return await self._terminate(subject, action)

    async def look(
        self, resource: Resource, name: str, namespace: str = "", *, uid: str = ""
    ) -> None:
        """Read the object itself; if there is none, the one with that UID is gone."""
        try:
            self._put(resource, await self._client.get(resource, name, namespace))
        except NotFound:
            current = self._known(resource, name, namespace)
            if current is not None and current.uid == uid:
                self._cache.remove(resource, current)

    def tidy(self, now: datetime) -> None:
        self._launches.forget_before(now - 10 * self._settings.retry_max)

    # -- the API -----------------------------------------------------------------------

    async def _patch(self, action: Patch) -> Outcome:
        answer = await self._client.patch(
            action.resource,
            action.name,
            stamped(action.body, self._clock.now()),
            namespace=action.namespace,
            subresource=action.subresource,
        )
        item = decode(action.resource, answer)
        if item.deleting and not item.metadata.finalizers:
            # The last finalizer's end is the object's end: there is no newer version of it.
            self._cache.remove(action.resource, item)
            return OK
        self._cache.upsert(action.resource, item)
        return OK if item.metadata.resource_version != action.resource_version else NO_EFFECT

    async def _create(self, action: Create) -> Outcome:
        try:
            answer = await self._client.create(action.resource, action.body, action.namespace)
        except AlreadyExists:
            # Most likely our own, created by a call whose answer was lost.
            await self.look(action.resource, action.name, action.namespace)
            raise
        self._put(action.resource, answer)
        return OK

    async def _delete(self, action: Delete) -> Outcome:
        await self._client.delete(
            action.resource,
            action.name,
            uid=action.uid,
            namespace=action.namespace,
            resource_version=action.resource_version,
        )
        return OK

    async def _evict(self, pod: Subject, action: Evict) -> Outcome:
        try:
            await self._client.evict(
                action.name,
                action.namespace,
                uid=action.uid,
                grace_period_seconds=action.grace_period_seconds,
            )
        except ApiError as error:
            if not _is_budgets_no(error):
                raise
            self._refused(pod, error)
            return Outcome("refused", error.message, error.status)
        return OK

    def _refused(self, pod: Subject, error: ApiError) -> None:
        known = self._known(PODS, pod.name, pod.namespace)
        if known is None or known.uid != pod.uid:
            return  # It is gone: nobody would ever forget the answer.
        now = self._clock.now()
        answer = EvictionAnswer(
            at=now, retry_at=now + self._eviction_pause(pod, error), message=error.message
        )
        self._knowledge.eviction_refused(pod, answer)

    def _eviction_pause(self, pod: Subject, error: ApiError) -> timedelta:
        """What the server asks for; else twice the last pause, within bounds, with jitter."""
        if error.retry_after is not None:
            return error.retry_after
        settings = self._settings
        pause = settings.eviction_retry_min
        if (last := self._knowledge.evictions.get(pod.uid)) is not None:
            pause = min(max((last.retry_at - last.at) * 2, pause), settings.eviction_retry_max)
        return pause * (0.75 + self._random.random() / 4)

    # -- the cloud ---------------------------------------------------------------------

    async def _launch(self, action: Launch) -> Outcome:
        request = action.request
        claim = Subject(NODE_CLAIMS.kind, request.claim_name, "", request.claim_uid)
        try:
            instance = await self._cloud.launch(request)
        except OutOfCapacity as error:
            until = self._clock.now() + self._settings.offering_dry
            self._knowledge.sold_out(error.offerings, until)
            return self._not_launched(claim, LaunchProblem.OUT_OF_CAPACITY, error)
        except Misconfigured as error:
            return self._not_launched(claim, LaunchProblem.MISCONFIGURED, error)
        except ProviderError as error:
            return self._not_launched(claim, LaunchProblem.FAILED, error)
        self._launches.succeeded(claim.uid)
        if self._is_known(claim):
            self._knowledge.launched(claim, instance)
        return OK

    def _not_launched(
        self, claim: Subject, problem: LaunchProblem, error: ProviderError
    ) -> Outcome:
        now = self._clock.now()
        retry_at = None
        if problem is LaunchProblem.FAILED:
            retry_at = self._launches.failed(claim.uid, now)
        if self._is_known(claim):
            failure = LaunchFailure(problem=problem, message=str(error), at=now, retry_at=retry_at)
            self._knowledge.launch_failed(claim, failure)
        return Outcome("refused", str(error))

    async def _terminate(self, subject: Subject, action: Terminate) -> Outcome:
        gone = False
        try:
            provider_id = action.provider_id or await self._instance_of(action.claim_uid)
            await self._cloud.terminate(provider_id)
        except InstanceGone:
            gone = True
        told = self._claim(subject, action)
        if told is not None:
            answer = TerminationAnswer(asked_at=self._clock.now(), gone=gone)
            self._knowledge.termination(told, action.claim_uid, answer)
        return OK

    async def _instance_of(self, claim_uid: str) -> str:
        """A launch whose answer was lost is found by the claim's UID."""
        for instance in await self._cloud.list_instances(self._settings.cluster_name):
            if instance.claim_uid == claim_uid:
                return instance.provider_id
        raise InstanceGone(f"no instance carries claim UID {claim_uid}")

    def _claim(self, subject: Subject, action: Terminate) -> Subject | None:
        """Both the Node's and the claim's verdict end the instance; the claim is told."""
        if subject.kind == INSTANCE:
            return subject
        for claim in self._cache.tables.table(NODE_CLAIMS).values():
            if claim.uid == action.claim_uid:
                return Subject.of(NODE_CLAIMS.kind, claim)
        return None

    # -- what we know ------------------------------------------------------------------

    def _put(self, resource: Resource, answer: bytes) -> None:
        """The answer to a write is the newest look at the object that anybody has."""
        self._cache.upsert(resource, decode(resource, answer))

    def _known(self, resource: Resource, name: str, namespace: str) -> ApiObject | None:
        key = f"{namespace}/{name}" if namespace else name
        known: ApiObject | None = self._cache.tables.table(resource).get(key)
        return known

    def _is_known(self, claim: Subject) -> bool:
        """Knowledge about what is gone would never be forgotten."""
        known = self._known(NODE_CLAIMS, claim.name, "")
        return known is not None and known.uid == claim.uid


def _is_budgets_no(error: ApiError) -> bool:
    return _SEVERAL_BUDGETS in error.message or any(
        cause.reason == _BUDGET_CAUSE for cause in error.causes
    )


def stamped(body: Any, now: datetime) -> Any:
    """The body with the instant of the write in every condition that lacks one."""
    conditions = body.get("status", {}).get("conditions")
    if not conditions or all("lastTransitionTime" in entry for entry in conditions):
        return body
    at = format_time(now)
    filled = [{"lastTransitionTime": at, **entry} for entry in conditions]
    return {**body, "status": {**body["status"], "conditions": filled}}
