"""Asks the provider whether instances have drifted: other image, other network, whatever it knows.

Every instance of ours is asked about when this process has not asked yet (so a restart forgets nothing
for long), when its node class has changed, when the class's current image has, and once in a while. The
answers are observations: ``core/drift`` decides what they mean.

One instance that fails or hangs waits by itself, longer each time, and stops no other. Over all
of them there is a rate: a release drifts a whole fleet, and the provider counts calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Final, NamedTuple

from tenure.core.decision import Subject
from tenure.core.marks.ownership import is_ours
from tenure.core.pool.lookup import node_class_key
from tenure.errors import InstanceGone, NotLeader, TenureError
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.ports.clock import Clock
from tenure.ports.cloud import Cloud
from tenure.runtime.clock.backoff import BackOff, Bucket
from tenure.runtime.observe.store import ObservationStore

#: How often the current images are asked for, and new claims are found.
LOOK_PERIOD: Final = timedelta(minutes=1)
#: For what no class and no image tells: a network, a security group.
ASK_PERIOD: Final = timedelta(hours=1)
#: Calls per second: 5,000 instances take eight minutes.
RATE: Final = 10.0
BURST: Final = 10
#: A call that hangs is given up after a minute; meanwhile the others go on.
AT_ONCE: Final = 32
#: Of a look from outside: how many instances are asked about, and for how many seconds.
LOOK_MAX: Final = 200
LOOK_SECONDS: Final = 10.0
RETRY_MIN: Final = timedelta(minutes=1)
RETRY_MAX: Final = timedelta(minutes=30)

#: What an answer depends on: the node class by UID and generation, and its current image.
About = tuple[str, int, str]


class _Question(NamedTuple):
    claim: NodeClaim
    node_class: NodeClass
    about: About


class _Asked(NamedTuple):
    about: About
    #: On the monotonic clock.
    at: float


class DriftWatch:
    def __init__(
        self,
        *,
        cloud: Cloud,
        observations: ObservationStore,
        clock: Clock,
        snapshot: Callable[[], Snapshot],
        report: Callable[[TenureError], None] = lambda _: None,
    ) -> None:
        self._cloud = cloud
        self._observations = observations
        self._clock = clock
        self._snapshot = snapshot
        self._report = report
        self._bucket = Bucket(RATE, BURST, clock)
        # Its jitter is its own, so that no other choice of the same seed depends on it.
        self._back_off = BackOff(RETRY_MIN, RETRY_MAX, Random("drift"))
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._changed = asyncio.Event()
        #: By node class key.
        self._images: dict[str, str] = {}
        #: By claim UID.
        self._asked: dict[str, _Asked] = {}
        self._asking: set[str] = set()

    def node_classes_changed(self) -> None:
        """Its instances are asked about at once."""
        self._changed.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._changed.clear()
                await self._look(tasks)
                try:
                    async with asyncio.timeout(LOOK_PERIOD.total_seconds()):
                        await self._changed.wait()
                except TimeoutError:
                    pass

    async def _look(self, tasks: asyncio.TaskGroup) -> None:
        await self._refresh_images()
        for question in self._due():
            await self._bucket.take()
            await self._slots.acquire()
            if self._changed.is_set():
                self._slots.release()
                return  # What is asked for has changed: begin anew.
            self._asking.add(question.claim.uid)
            tasks.create_task(self._ask(question))

    async def _refresh_images(self) -> None:
        classes = _classes_in_use(self._snapshot())
        for key in [known for known in self._images if known not in classes]:
            del self._images[key]
        for key, node_class in classes.items():
            try:
                self._images[key] = await self._cloud.current_image(node_class)
            except NotLeader:
                return
            except TenureError as error:
                self._report(error)  # The last answer counts.

    def _due(self) -> list[_Question]:
        """The oldest claims first."""
        now, snapshot = self._clock.monotonic(), self._snapshot()
        self._forget_others(snapshot)
        due = []
        for key, node_class in _classes_in_use(snapshot).items():
            image = self._images.get(key, "")
            about = (node_class.uid, node_class.metadata.generation, image)
            for claim in snapshot.claims_of_class(key).values():
                if claim.uid in self._asking or not _can_be_asked_about(claim, snapshot):
                    continue
                if self._is_due(claim.uid, about, now):
                    due.append(_Question(claim, node_class, about))
        return sorted(due, key=lambda question: (question.claim.created_at, question.claim.name))

    def _is_due(self, uid: str, about: About, now: float) -> bool:
        if self._back_off.wait_until(uid, now, repr(about)) is not None:
            return False
        asked = self._asked.get(uid)
        if asked is None or asked.about != about:
            return True
        return now >= asked.at + ASK_PERIOD.total_seconds()

    async def _ask(self, question: _Question) -> None:
        claim = question.claim
        subject, known = Subject.of(NODE_CLAIMS.kind, claim), self._observations.instances
        try:
            drift = await self._cloud.drift(claim.provider_id, question.node_class)
        except NotLeader:
            return  # Another replica asks.
        except InstanceGone:
            # The inventory finds out what became of it.
            self._asked[claim.uid] = _Asked(question.about, self._clock.monotonic())
        except TenureError as error:
            self._failed(question, subject, error)
        else:
            self._asked[claim.uid] = _Asked(question.about, self._clock.monotonic())
            self._back_off.succeeded(claim.uid)
            known.drift_known(subject, drift)
        finally:
            self._asking.discard(claim.uid)
            self._slots.release()

    def _failed(self, question: _Question, subject: Subject, error: TenureError) -> None:
        """Not asked, as far as it counts: it is due again once the pause is over."""
        uid = question.claim.uid
        self._asked.pop(uid, None)
        self._back_off.failed(uid, self._clock.monotonic(), repr(question.about))
        if self._observations.instances.drift_unknown(subject, str(error), self._clock.now()):
            self._report(error)

    def _forget_others(self, snapshot: Snapshot) -> None:
        for uid in [known for known in self._asked if not snapshot.claims_with_uid(known)]:
            del self._asked[uid]
        self._back_off.forget_before(self._clock.monotonic() - RETRY_MAX.total_seconds())


class AskedOnce(NamedTuple):
    """What came of asking about many instances once."""

    #: How many answers there are, and how many instances there are to ask about.
    answers: int
    instances: int
    #: Of the first that failed.
    error: str = ""


async def ask_once(
    cloud: Cloud,
    observations: ObservationStore,
    snapshot: Snapshot,
    *,
    first: str = "",
    at_most: int = LOOK_MAX,
) -> AskedOnce:
    """For a look from outside: whether instances have drifted, the oldest claims first.

    It is bounded, because the provider counts calls. What is not known stays so: then the condition
    of the claim counts, which the replica that acts has written. ``first``: a claim's name.
    """
    questions = [
        (claim, node_class)
        for key, node_class in _classes_in_use(snapshot).items()
        for claim in snapshot.claims_of_class(key).values()
        if _can_be_asked_about(claim, snapshot)
    ]
    questions.sort(key=lambda one: (one[0].name != first, one[0].created_at, one[0].name))
    slots, errors, answers = asyncio.Semaphore(BURST), list[str](), list[str]()

    async def ask(claim: NodeClaim, node_class: NodeClass) -> None:
        async with slots:
            try:
                drift = await cloud.drift(claim.provider_id, node_class)
            except InstanceGone:
                drift = None
            except TenureError as error:
                errors.append(str(error))
                return
        answers.append(claim.name)
        subject = Subject.of(NODE_CLAIMS.kind, claim)
        observations.instances.drift_known(subject, drift)

    with suppress(TimeoutError):
        async with asyncio.timeout(LOOK_SECONDS), asyncio.TaskGroup() as tasks:
            for question in questions[:at_most]:
                tasks.create_task(ask(*question))
    return AskedOnce(len(answers), len(questions), errors[0] if errors else "")


def _classes_in_use(snapshot: Snapshot) -> dict[str, NodeClass]:
    """The node classes of claims, as far as they exist and can be read, by their keys."""
    refs = {claim.spec.node_class_ref for claim in snapshot.claims.values()}
    found = {
        node_class_key(ref): snapshot.node_class(ref.group, ref.kind, ref.name)
        for ref in sorted(refs, key=node_class_key)
        if (ref.group, ref.kind) in snapshot.ours
    }
    return {
        key: one
        for key, one in found.items()
        if isinstance(one, NodeClass) and not is_unreadable(one)
    }


def _can_be_asked_about(claim: NodeClaim, snapshot: Snapshot) -> bool:
    return (
        not is_unreadable(claim)
        and claim.launched
        and not claim.deleting
        and bool(claim.provider_id)
        and is_ours(claim, snapshot)
    )
