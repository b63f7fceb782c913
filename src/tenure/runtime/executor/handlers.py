"""Carries out one action: a small handler per verb, each safe to repeat.

Nothing here decides. What an answer *means* is put into the cache or the observation store, for
the next look to decide on; an error that is not an answer is left to the executor, which
pauses the target. A budget that refuses an eviction and a cloud that refuses a launch are
answers. Instances have a module of their own.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from http import HTTPStatus
from random import Random
from typing import Any, Final

from tenure.core.decision import (
    Action,
    Create,
    Delete,
    DeletePod,
    Evict,
    Inspect,
    Launch,
    Patch,
    Reboot,
    Subject,
    Terminate,
)
from tenure.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    NotFound,
)
from tenure.kube.cache.cache import Cache
from tenure.kube.client.client import Client
from tenure.model.api.meta import ApiObject, format_time
from tenure.model.api.names import NOMINATED_PODS
from tenure.model.api.resource import PODS, Resource
from tenure.model.settings import Settings
from tenure.model.snapshot.kinds import decode
from tenure.model.snapshot.observations import (
    EvictionAnswer,
)
from tenure.ports.clock import Clock
from tenure.ports.outcome import NO_EFFECT, OK, Ended, Outcome
from tenure.runtime.executor.instances import Instances
from tenure.runtime.executor.nodepods import changed_pods, unknown_pods
from tenure.runtime.observe.store import ObservationStore

#: Lists of a status, and the field of their entries that the instant of the write is set in.
_INSTANTS: Final = {"conditions": "lastTransitionTime", "disruptionStarts": "at"}
#: The API answers 500 with these words when several budgets cover one pod.
_SEVERAL_BUDGETS: Final = "more than one PodDisruptionBudget"
#: The cause that tells a budget's no from a server that is merely busy.
_BUDGET_CAUSE: Final = "DisruptionBudget"

_REFUSALS: Final = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    }
)
#: Tell a policy's 403 from that of missing rights.
_ADMISSION: Final = ("admission webhook", "ValidatingAdmissionPolicy")


#: The API answers 500 with these words when an admission webhook that must agree cannot be asked.
_WEBHOOK_FAILED: Final = "failed calling webhook"


class Verbs:
    def __init__(
        self,
        *,
        client: Client,
        instances: Instances,
        cache: Cache,
        observations: ObservationStore,
        clock: Clock,
        settings: Settings,
        random: Random,
    ) -> None:
        self._client = client
        self._instances = instances
        self._cache = cache
        self._observations = observations
        self._clock = clock
        self._settings = settings
        self._random = random

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
            case DeletePod():
                return await self._delete_pod(subject, action)
            case Launch():
                return await self._instances.launch(action)
            case Terminate():
                return await self._instances.terminate(subject, action)
            case Reboot():
                return await self._instances.reboot(subject, action)
            case Inspect():
                return await self._instances.inspect(subject, action)

    def refused(self, action: Action, why: str) -> None:
        """By the API server or the guard, and it may well be so again."""
        if isinstance(action, Patch) and action.begins:
            self._observations.refused_starts.refused(action, why, self._clock.now())

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

    async def version_of(self, resource: Resource, name: str, *, uid: str = "") -> str:
        """The version that the object has by now; empty when there is none."""
        await self.look(resource, name, uid=uid)
        known = self._known(resource, name, "")
        return known.metadata.resource_version if known is not None else ""

    async def changed_pods(self, node: str) -> list[str]:
        """Takes in the pods of the Node as they are now; which of them are not as they were here."""
        return await changed_pods(node, self._client, self._cache)

    async def unknown_pods(self, node: str) -> list[str]:
        """The same; which of them were not known here."""
        return await unknown_pods(node, self._client, self._cache)

    # -- the API -----------------------------------------------------------------------

    async def _patch(self, action: Patch) -> Outcome:
        now = self._clock.now()
        try:
            answer = await self._client.patch(
                action.resource,
                action.name,
                _dated(action, now),
                namespace=action.namespace,
                subresource=action.subresource,
            )
        except ApiError as error:
            if _is_about_the_object(error):
                self.refused(action, error.message)
            raise
        if action.begins:
            self._observations.refused_starts.written(action)
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
        except ApiError as error:
            if (pods := _nominated(action)) and _is_about_the_object(error):
                now = self._clock.now()
                self._observations.refused_claims.refused(action.name, pods, error.message, now)
            raise
        self._put(action.resource, answer)
        self._observations.refused_claims.created(_nominated(action))
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
            return Outcome(Ended.REFUSED, error.message, error.status)
        return OK

    async def _delete_pod(self, pod: Subject, action: DeletePod) -> Outcome:
        try:
            await self._client.delete(
                PODS,
                action.name,
                uid=action.uid,
                namespace=action.namespace,
                grace_period_seconds=action.grace_at(self._clock.now()),
            )
        except ApiError as error:
            if _is_refusal(error) and self._is_known(pod):
                self._observations.pods.deletion_failed(pod, self._clock.now())
            raise
        return OK

    def _is_known(self, pod: Subject) -> bool:
        """Of a pod that is gone nothing is noted: that would never be forgotten."""
        known = self._known(PODS, pod.name, pod.namespace)
        return known is not None and known.uid == pod.uid

    def _refused(self, pod: Subject, error: ApiError) -> None:
        if not self._is_known(pod):
            return
        now = self._clock.now()
        # The cause has the numbers; the message is the same for every budget.
        causes = [one.message for one in error.causes if one.reason == _BUDGET_CAUSE]
        why = "; ".join(filter(None, causes)) or error.message
        answer = EvictionAnswer(
            at=now,
            retry_at=now + self._eviction_pause(pod, error),
            message=f"the last eviction was refused: {why}",
        )
        self._observations.pods.eviction_refused(pod, answer)

    def _eviction_pause(self, pod: Subject, error: ApiError) -> timedelta:
        """What the server asks for; else twice the last pause, within bounds, with jitter."""
        if error.retry_after is not None:
            return error.retry_after
        settings = self._settings
        pause = settings.eviction_retry_min
        if (last := self._observations.pods.evictions.get(pod.uid)) is not None:
            pause = min(max((last.retry_at - last.at) * 2, pause), settings.eviction_retry_max)
        return pause * (0.75 + self._random.random() / 4)

    # -- what we know ------------------------------------------------------------------

    def _put(self, resource: Resource, answer: bytes) -> None:
        """The answer to a write is the newest version of the object that is known."""
        self._cache.upsert(resource, decode(resource, answer))

    def _known(self, resource: Resource, name: str, namespace: str) -> ApiObject | None:
        key = f"{namespace}/{name}" if namespace else name
        known: ApiObject | None = self._cache.tables.table(resource).get(key)
        return known


def _is_budgets_no(error: ApiError) -> bool:
    return _SEVERAL_BUDGETS in error.message or any(
        cause.reason == _BUDGET_CAUSE for cause in error.causes
    )


def _is_refusal(error: ApiError) -> bool:
    """The API is there, and does not delete this pod; an API that is out or busy refuses nothing."""
    if isinstance(error, NotFound | Conflict) or error.retry_after is not None:
        return False
    return 400 <= error.status < 500 or _WEBHOOK_FAILED in error.message


def stamped(body: Any, now: datetime) -> Any:
    """The body with the instant of the write where it is missing: in conditions and starts."""
    status = body.get("status", {})
    at = format_time(now)
    filled = {
        field: [{instant: at, **entry} for entry in status[field]]
        for field, instant in _INSTANTS.items()
        if any(instant not in entry for entry in status.get(field) or ())
    }
    return {**body, "status": {**status, **filled}} if filled else body


def _dated(action: Patch, now: datetime) -> Any:
    body = stamped(action.body, now)
    for annotation in (action.dated, action.dated_mark):
        body = dated(body, annotation, now + action.ahead)
    return body


def dated(body: Any, annotation: str, now: datetime) -> Any:
    """The body with the instant of the write behind the value of that annotation."""
    if not annotation:
        return body
    metadata = body["metadata"]
    value = f"{metadata['annotations'][annotation]} {format_time(now)}".lstrip()
    noted = {**metadata, "annotations": {**metadata["annotations"], annotation: value}}
    return {**body, "metadata": noted}


def _nominated(action: Create) -> list[str]:
    """UIDs of the pods that a new claim is for."""
    annotations = action.body["metadata"].get("annotations") or {}
    return [uid for uid in annotations.get(NOMINATED_PODS, "").split(",") if uid]


def _is_about_the_object(error: ApiError) -> bool:
    """Whether the same object will be refused again: not valid, too large, or against a policy.

    What we may not do at all, or not now, is no object's fault.
    """
    if error.status == HTTPStatus.FORBIDDEN:
        return any(policy in error.message for policy in _ADMISSION)
    return error.status in _REFUSALS
