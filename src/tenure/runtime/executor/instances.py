"""The verbs of the cloud: start an instance for a claim, reboot one, end one, ask whether it is there.

A refusal is an answer that the next look decides on: sold-out offerings are left alone for
a while, a node class that the cloud cannot use is left alone until it changes, anything
else is asked again later. A call whose answer was lost is repeated: launches and ends are
idempotent by the claim's UID, reboots by their operation's id.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Final

from tenure.core.claim.garbage import INSTANCE
from tenure.core.decision import Inspect, Launch, Reboot, Subject, Terminate
from tenure.core.pool.lookup import node_class_key
from tenure.core.provision.supply import could_fit
from tenure.errors import (
    InstanceGone,
    Misconfigured,
    NotLeader,
    OutOfCapacity,
    ProviderError,
    RebootFailed,
    RebootNotSupported,
)
from tenure.kube.cache.cache import Cache
from tenure.model.api.names import CAPACITY_TYPE, ZONE
from tenure.model.api.nodeclaim import NodeClassRef
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.cloud.instance import InstanceState, LaunchRequest
from tenure.model.cloud.offering import InstanceType, OfferingKey
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import (
    InspectionAnswer,
    LaunchFailure,
    LaunchProblem,
    RebootAnswer,
    TerminationAnswer,
)
from tenure.model.values.quantity import format_resources
from tenure.ports.clock import Clock
from tenure.ports.cloud import Cloud
from tenure.ports.outcome import OK, Ended, Outcome
from tenure.runtime.clock.backoff import BackOff, Bucket
from tenure.runtime.observe.nodeclasses import state_of
from tenure.runtime.observe.store import ObservationStore

#: How often instances are asked for one by one: per second over all nodes, and so many at once.
#: Where a zone fails all its leaving nodes are asked about, and each once.
INSPECTION_RATE: Final = 20.0
INSPECTION_BURST: Final = 20
#: So many of the longest pauses between two calls: whatever is longer was a hold of our own.
_IN_A_ROW: Final = 3


class Instances:
    def __init__(
        self,
        *,
        cloud: Cloud,
        cache: Cache,
        observations: ObservationStore,
        clock: Clock,
        settings: Settings,
        random: Random,
    ) -> None:
        self._cloud = cloud
        self._cache = cache
        self._observations = observations
        self._clock = clock
        self._settings = settings
        self._launches = BackOff(settings.retry_min, settings.retry_max, random)
        self._inspections = Bucket(INSPECTION_RATE, INSPECTION_BURST, clock)

    def tidy(self, now: float) -> None:
        """``now`` is on the monotonic clock."""
        self._launches.forget_before(now - 10 * self._settings.retry_max.total_seconds())

    async def launch(self, action: Launch) -> Outcome:
        request = action.request
        claim = Subject(NODE_CLAIMS.kind, request.claim_name, "", request.claim_uid)
        try:
            instance = await self._cloud.launch(request)
        except OutOfCapacity as error:
            until = self._clock.now() + self._settings.offering_dry
            types = self._types_of(request)
            dry = error.offerings or asked_for(request, types)
            self._observations.node_classes.sold_out(dry, until)
            why = "" if dry else too_much(request, types)
            return self._not_launched(claim, LaunchProblem.OUT_OF_CAPACITY, error, why)
        except Misconfigured as error:
            now, state = self._clock.now(), self._state_of(request.node_class)
            key = node_class_key(request.node_class)
            self._observations.node_classes.misconfigured(key, state, now, str(error))
            return self._not_launched(claim, LaunchProblem.MISCONFIGURED, error)
        except ProviderError as error:
            return self._not_launched(claim, LaunchProblem.FAILED, error)
        self._launches.succeeded(claim.uid)
        self._observations.node_classes.usable(node_class_key(request.node_class))
        if self._is_known(claim):
            self._observations.launches.launched(claim, instance)
        return OK

    def _not_launched(
        self, claim: Subject, problem: LaunchProblem, error: ProviderError, why: str = ""
    ) -> Outcome:
        now = self._clock.now()
        message = f"{error}; {why}" if why else str(error)
        retry_at = None
        if problem is LaunchProblem.FAILED:
            retry_at = now + self._launches.failed(claim.uid, self._clock.monotonic())
        if self._is_known(claim):
            failure = LaunchFailure(problem=problem, message=message, at=now, retry_at=retry_at)
            self._observations.launches.failed(claim, failure)
        return Outcome(Ended.REFUSED, message)

    def _types_of(self, request: LaunchRequest) -> Sequence[InstanceType]:
        return self._observations.node_classes.instance_types.get(
            node_class_key(request.node_class), ()
        )

    def _state_of(self, ref: NodeClassRef) -> str:
        for resource, table in self._cache.tables.objects.items():
            if (resource.group, resource.kind) == (ref.group, ref.kind) and ref.name in table:
                return state_of(table[ref.name])
        return state_of(None)

    async def reboot(self, claim: Subject, action: Reboot) -> Outcome:
        """A refusal is final; whatever else goes wrong is asked for again."""
        refusal, left_at = "", self._clock.now()
        try:
            await self._cloud.reboot(action.provider_id, action.operation_id)
        except (RebootNotSupported, RebootFailed, InstanceGone) as error:
            refusal = str(error) or type(error).__name__
        except NotLeader:
            raise  # No call has left.
        except Exception as error:
            if self._is_known(claim):
                self._observations.instances.rebooted(
                    claim, self._unanswered(claim, action, left_at, error)
                )
            raise
        if self._is_known(claim):
            answer = RebootAnswer(
                operation_id=action.operation_id, at=self._clock.now(), refusal=refusal
            )
            self._observations.instances.rebooted(claim, answer)
        return Outcome(Ended.REFUSED, refusal) if refusal else OK

    def _unanswered(
        self, claim: Subject, action: Reboot, left_at: datetime, error: Exception
    ) -> RebootAnswer:
        """Calls are in a row as long as nothing but the pause between tries lies between them."""
        known = self._observations.instances.reboots.get(claim.uid)
        first_at = left_at
        if known is not None and known.operation_id == action.operation_id and known.failed_at:
            pause = left_at - known.failed_at
            if timedelta() <= pause <= _IN_A_ROW * self._settings.retry_max:
                first_at = known.at
        return RebootAnswer(
            operation_id=action.operation_id,
            at=first_at,
            failed_at=self._clock.now(),
            failure=str(error) or type(error).__name__,
        )

    async def inspect(self, subject: Subject, action: Inspect) -> Outcome:
        """One that is terminating counts as gone, as in the lists."""
        await self._inspections.take()
        try:
            instance = await self._cloud.get(action.provider_id)
            gone = instance.state is InstanceState.TERMINATING
        except InstanceGone:
            gone = True
        if (claim := self._claim(subject, action)) is not None:
            self._observations.instances.inspected(
                claim, InspectionAnswer(asked_at=self._clock.now(), gone=gone)
            )
        return OK

    async def terminate(self, subject: Subject, action: Terminate) -> Outcome:
        gone = False
        try:
            provider_id = action.provider_id or await self._instance_of(action.claim_uid)
            await self._cloud.terminate(provider_id)
        except InstanceGone:
            gone = True
        told = self._claim(subject, action)
        if told is not None:
            before = self._observations.instances.terminations.get(action.claim_uid)
            lost = gone and (before is None or before.lost)
            answer = TerminationAnswer(asked_at=self._clock.now(), gone=gone, lost=lost)
            self._observations.instances.terminated(told, action.claim_uid, answer)
        return OK

    async def _instance_of(self, claim_uid: str) -> str:
        """A launch whose answer was lost is found by the claim's UID."""
        for instance in await self._cloud.list_instances(self._settings.cluster_name):
            if instance.claim_uid == claim_uid:
                return instance.provider_id
        raise InstanceGone(f"no instance carries claim UID {claim_uid}")

    def _claim(self, subject: Subject, action: Terminate | Inspect) -> Subject | None:
        """Both the Node's and the claim's verdict terminate the instance; the claim is told."""
        if subject.kind == INSTANCE:
            return subject
        for claim in self._cache.tables.table(NODE_CLAIMS).values():
            if claim.uid == action.claim_uid:
                return Subject.of(NODE_CLAIMS.kind, claim)
        return None

    def _is_known(self, claim: Subject) -> bool:
        """Observations of what is gone would never be forgotten."""
        known = self._cache.tables.table(NODE_CLAIMS).get(claim.name)
        return known is not None and known.uid == claim.uid


def asked_for(request: LaunchRequest, types: Iterable[InstanceType]) -> list[OfferingKey]:
    """Every offering that would have done: what a cloud means that has nothing and names none.

    One that could not have held the claim was not tried, and says nothing about the offering.
    """
    wanted = request.requirements
    return [
        (kind.name, offering.zone, offering.capacity_type)
        for kind in types
        if could_fit(kind, wanted, request.requests)
        for offering in kind.offerings
        if wanted.allowed(ZONE).has(offering.zone)
        and wanted.allowed(CAPACITY_TYPE).has(offering.capacity_type)
    ]


def too_much(request: LaunchRequest, types: Sequence[InstanceType]) -> str:
    """Why no offering would have done, with the numbers; empty where nothing is known."""
    if not types:
        return ""
    matching = [kind for kind in types if could_fit(kind, request.requirements, {})]
    key = node_class_key(request.node_class)
    if not matching:
        return f"none of the {len(types)} instance types of {key} satisfies its requirements"
    asked = format_resources(request.requests)
    for name, amount in sorted(request.requests.items()):
        largest = max(kind.allocatable.get(name, 0) for kind in matching)
        if amount > largest:
            there = format_resources({name: largest})[name]
            return (
                f"it requests {asked[name]} {name}, the largest instance type of {key} has {there}"
            )
    return f"no instance type of {key} has all that it requests, or none is sold where it asks"
