"""Reads a real cluster once: everything is listed, and evaluated as the loop would evaluate it.

Only reads leave the process. In order: the version of the API server; every kind that
deciders read; the Lease, which says which replica acts and in which namespace the provider has its objects;
the cloud's types, drifts and instances; refusals of evictions are predicted; then one run of the evaluator.
Without the lists there is no answer; what else is missing is a note beside the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Final, TypeVar

import msgspec

from tenure.cli.cluster.access import Reached
from tenure.cli.cluster.evaluated import ClockBlocker, EvaluatedCluster
from tenure.cli.cluster.evictions import foresee_refusals
from tenure.cli.cluster.gone import Said, last_words
from tenure.cli.cluster.greeting import EMBEDDED, advice, cluster_uid, server_time, server_version
from tenure.cli.cluster.question import Question
from tenure.cli.view.instants import span
from tenure.core.decision import Subject
from tenure.core.policy.deciders import PATIENCE, UNMOVED, deciders
from tenure.core.policy.readers import READERS
from tenure.errors import ApiError, Forbidden, NotFound, SpecError, TenureError, Unavailable
from tenure.kube.cache.cache import Cache
from tenure.kube.cache.informer import in_words
from tenure.kube.client.client import Client
from tenure.kube.client.credentials import credentials_for
from tenure.kube.client.http import HttpTransport
from tenure.kube.client.servertime import in_words as skew_in_words
from tenure.kube.lease.record import held_last_by_tenure, skew_of
from tenure.model.api.meta import format_time, later
from tenure.model.api.resource import EVENTS, LEASES, NAMESPACES, NODES, Resource
from tenure.model.api.workload import Event, Lease
from tenure.model.settings import Settings
from tenure.model.snapshot.kinds import decode, decode_list
from tenure.model.snapshot.snapshot import Snapshot
from tenure.ports.clock import Clock
from tenure.ports.provider import DEFAULT_NAMESPACE, Provider, Surroundings
from tenure.ports.transport import Transport
from tenure.providers.boundary import BoundedCloud
from tenure.runtime.clock.system import SystemClock
from tenure.runtime.cloud.drifts import AskedOnce, ask_once
from tenure.runtime.cloud.inventory import Inventory
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.observe.store import ObservationStore
from tenure.runtime.observe.view import FORBIDDING, HELPFUL, WATCHED
from tenure.runtime.readonly import LookOnlyCloud, LookOnlyTransport
from tenure.runtime.telemetry.events import DEFAULT_NAMESPACE as EVENTS_NAMESPACE
from tenure.sim.cloud.remote import LEADER, EmbeddedCloud

#: For all of it; a hundred thousand pods take a fraction.
READ_MAX: Final = timedelta(seconds=90)
#: A server says its time to the second, and an answer takes a moment.
_SAME_CLOCK: Final = timedelta(seconds=5)

T = TypeVar("T")


class CannotRead(TenureError):
    """There is no answer; ``problems`` has a sentence for each cause."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "; ".join(self.problems)


class ClusterReading(msgspec.Struct, frozen=True, kw_only=True):
    evaluated: EvaluatedCluster
    #: Which replica acts on the cluster, in words.
    leader: str
    #: What could not be read, a sentence each.
    notes: tuple[str, ...]
    #: What the events say of an object that was asked for and is not there.
    last_word: str = ""


def read_cluster(
    settings: Settings, reached: Reached, provider: Provider, about: Question | None = None
) -> ClusterReading:
    """Raises ``CannotRead``, or ``SpecError`` for input that cannot be used."""
    return asyncio.run(_read_cluster(settings, reached, provider, about))


async def _read_cluster(
    settings: Settings, reached: Reached, provider: Provider, about: Question | None
) -> ClusterReading:
    clock = SystemClock()
    credentials = credentials_for(reached.access, clock)
    try:
        async with (
            asyncio.timeout(READ_MAX.total_seconds()),
            HttpTransport(reached.access, credentials) as transport,
        ):
            door = LookOnlyTransport(transport)
            return await read(door, settings, provider, clock, about)
    except TimeoutError:
        seconds = READ_MAX // timedelta(seconds=1)
        raise CannotRead(f"{_whom(reached)} did not list everything within {seconds} s") from None
    except Unavailable as error:
        raise CannotRead(
            f"{_whom(reached)} cannot be reached: {error.message}. "
            "Is it up, and is this the right context?"
        ) from None
    except ApiError as error:
        why = "; ".join(filter(None, (str(error), advice(error))))
        raise CannotRead(f"{_whom(reached)} refuses: {why}") from None


def _whom(reached: Reached) -> str:
    return f"the API server at {reached.access.server} ({reached.source})"


async def read(
    transport: Transport,
    settings: Settings,
    provider: Provider,
    clock: Clock,
    about: Question | None = None,
) -> ClusterReading:
    """``about``: the object in question; if it does not exist, its last event is added."""
    try:
        version = await server_version(transport)
    except TimeoutError:
        raise Unavailable("no answer") from None
    embedded = version.endswith(EMBEDDED)
    if embedded:
        provider = EmbeddedCloud()
    server: datetime | None = None
    with suppress(TimeoutError, TenureError):  # The lists say what is wrong.
        server = await server_time(transport)
    clock, which = _clock_of(clock, server, settings, embedded=embedded)
    client = Client(transport)
    notes: list[str] = []
    cache = await _everything(client, (*WATCHED, *provider.node_classes), notes)
    no_lease: list[Lease] = []
    leases = await _or_note(
        lambda: _leases(client, settings), no_lease, "which replica acts", notes
    )
    name = settings.cluster_name or await _or_note(
        lambda: cluster_uid(client), "", "the cluster's name", notes
    )
    settings = msgspec.structs.replace(settings, cluster_name=name)
    observations = ObservationStore()
    ours = frozenset(kind.group_kind for kind in provider.node_classes)

    def snapshot() -> Snapshot:
        return Snapshot(cache.tables, observations.current(), ours=ours)

    namespace = await _namespace(client, settings, provider, leases)
    surroundings = _surroundings(client, clock, settings, namespace, notes)
    async with provider.open(surroundings) as cloud:
        observations.repair_statements = cloud.repair_statements
        looked_at = LookOnlyCloud(BoundedCloud(cloud))
        inventory = Inventory(
            client=client,
            cloud=looked_at,
            observations=observations,
            clock=clock,
            settings=settings,
            snapshot=snapshot,
            report=lambda error: notes.append(f"instance types are not known: {error}"),
        )

        async def drifts() -> None:
            if not embedded:  # Its instances are known to the process that serves it alone.
                first = _claim_asked_about(about, snapshot())
                asked = await ask_once(looked_at, observations, snapshot(), first=first)
                notes.extend(_drift_notes(asked))

        async def instances() -> None:
            await inventory.refresh_types()
            if name:  # Without it the cluster's own instances cannot be told from others.
                await _or_note(inventory.compare, None, "the cloud's instances", notes)

        await asyncio.gather(instances(), drifts())
    evaluator, now = Evaluator(deciders(settings), settings, PATIENCE, UNMOVED), clock.now()
    foresee_refusals(snapshot(), observations, settings, now)
    evaluator.evaluate(snapshot(), (), (), now)
    evaluated = EvaluatedCluster(
        at=now,
        snapshot=snapshot(),
        evaluator=evaluator,
        settings=settings,
        clock=which,
        clock_blocker=next(_clock_blockers(leases, now), None),
    )
    last_word = ""
    if about is not None and evaluated.find(about.resource, about.namespace, about.name) is None:
        last_word = await _or_note(lambda: _last_word(client, about), "", "its events", notes)
    leader = LEADER if embedded else _leader(leases, clock)
    return ClusterReading(
        evaluated=evaluated, leader=leader, notes=tuple(notes), last_word=last_word
    )


def _claim_asked_about(about: Question | None, snapshot: Snapshot) -> str:
    if about is None:
        return ""
    node = snapshot.nodes.get(about.name) if about.resource == NODES else None
    claim = snapshot.claim_of(node) if node is not None else None
    return claim.name if claim is not None else about.name


def _drift_notes(asked: AskedOnce) -> Iterator[str]:
    """What the provider was not asked, or did not say."""
    if asked.answers == asked.instances:
        return
    why = f" ({asked.error})" if asked.error else ""
    yield (
        f"the provider said of {asked.answers} of {asked.instances} instances whether they have "
        f"drifted{why}; of the others the condition Drifted of their NodeClaims counts"
    )


class _Ahead:
    """The server's clock, as far ahead of this process's as it was a moment ago."""

    def __init__(self, clock: Clock, by: timedelta) -> None:
        self._clock = clock
        self._by = by

    def now(self) -> datetime:
        return self._clock.now() + self._by

    def monotonic(self) -> float:
        return self._clock.monotonic()


def _clock_of(
    own: Clock, server: datetime | None, settings: Settings, *, embedded: bool
) -> tuple[Clock, str]:
    """The clock by which the cluster is evaluated; in words where it is not ours.

    A replica goes by the API server's time where its own clock is too far from it, and so do we.
    """
    by = server - own.now() if server is not None else timedelta()
    if abs(by) <= (_SAME_CLOCK if embedded else settings.clock_skew_max):
        return own, ""
    seconds = timedelta(seconds=round(abs(by).total_seconds()))
    away = f"{span(seconds)} {'ahead of' if by > timedelta() else 'behind'} this host's"
    whose = "the cluster's, which tenure up runs" if embedded else "the API server's, which is"
    return _Ahead(own, by), f"{whose} {away}"


async def _everything(client: Client, kinds: tuple[Resource, ...], notes: list[str]) -> Cache:
    """``notes``: where it is said which kinds are done without."""
    cache = Cache(readers=READERS)

    async def fill(resource: Resource) -> None:
        raw, version = await client.list_all(resource)
        cache.replace(resource, decode_list(resource, raw), version)

    answers = await asyncio.gather(*map(fill, kinds), return_exceptions=True)
    unlisted: dict[Resource, str] = {}
    for resource, error in zip(kinds, answers, strict=True):
        if isinstance(error, TenureError):
            said = f"{resource} cannot be listed: {in_words(error)}"
            what = advice(error, resource)
            refused = isinstance(error, Forbidden | NotFound)
            if refused and resource in FORBIDDING:
                cache.list_failed(resource, in_words(error))
            unlisted[resource] = f"{said}; {what}" if what else said
        elif error is not None:
            raise error
    missed = [kind for kind in unlisted if kind not in HELPFUL | cache.tables.unlisted.keys()]
    if missed:
        raise CannotRead(*(said for kind, said in unlisted.items() if kind not in HELPFUL))
    notes += unlisted.values()
    return cache


async def _or_note(
    attempt: Callable[[], Awaitable[T]], otherwise: T, what: str, notes: list[str]
) -> T:
    try:
        return await attempt()
    except SpecError:
        raise
    except TenureError as error:
        notes.append(f"{what} could not be found out: {error}")
        return otherwise


async def _last_word(client: Client, about: Question) -> str:
    """Kubernetes keeps events for an hour."""
    where = about.namespace or EVENTS_NAMESPACE
    wanted = f"involvedObject.kind={about.resource.kind},involvedObject.name={about.name}"
    raw, _ = await client.list_all(EVENTS, where, field_selector=wanted)
    heard = [event for item in raw if isinstance(event := decode(EVENTS, item), Event)]
    dated = sorted(
        ((event.last_timestamp or event.created_at, event) for event in heard),
        key=itemgetter(0),
    )
    return last_words([Said(format_time(at), one.reason, one.message) for at, one in dated])


async def _leases(client: Client, settings: Settings) -> list[Lease]:
    raw, _ = await client.list_all(LEASES, field_selector=f"metadata.name={settings.lease_name}")
    found = [decode(LEASES, item) for item in raw]
    return [lease for lease in found if isinstance(lease, Lease)]


async def _namespace(
    client: Client, settings: Settings, provider: Provider, leases: list[Lease]
) -> str:
    """Of the provider's objects: the setting, else the chart's, else where the Lease is."""
    if settings.provider_namespace:
        return settings.provider_namespace
    if provider.namespace:
        with suppress(ApiError):
            await client.get(NAMESPACES, provider.namespace)
            return provider.namespace
    if settings.lease_namespace:
        return settings.lease_namespace
    ours = [lease.namespace for lease in leases if held_last_by_tenure(lease)]
    return ours[0] if len(ours) == 1 else DEFAULT_NAMESPACE


def _leader(leases: list[Lease], clock: Clock) -> str:
    """By what the Leases say; only their holders know whether that is true."""
    said = []
    for lease in sorted(leases, key=lambda lease: lease.key):
        holder, renewed = lease.spec.holder_identity, lease.spec.renew_time
        if not holder or renewed is None:
            continue
        old = "" if _is_renewed(lease, clock.now()) else "; that is too long ago to count"
        who = holder if held_last_by_tenure(lease) else f"{holder}, which is not Tenure"
        said.append(f"{who} (Lease {lease.key}, renewed at {format_time(renewed)}{old})")
    return " and ".join(said) or "none: no replica holds the Lease"


def _is_renewed(lease: Lease, now: datetime) -> bool:
    """By what it says. A holder whose clock is wrong says by how much."""
    renewed = lease.spec.renew_time
    seconds = timedelta(seconds=lease.spec.lease_duration_seconds or 0)
    return renewed is not None and later(renewed, seconds) >= later(now, skew_of(lease))


def _clock_blockers(leases: list[Lease], now: datetime) -> Iterator[ClockBlocker]:
    """Of replicas that hold a Lease, and take nothing away because of their clock."""
    for lease in sorted(leases, key=lambda lease: lease.key):
        holder, skew = lease.spec.holder_identity, skew_of(lease)
        if holder and skew and _is_renewed(lease, now):
            off = skew_in_words(skew, f"replica {holder}")
            yield ClockBlocker(off, Subject.of(LEASES.kind, lease))


def _surroundings(
    client: Client, clock: Clock, settings: Settings, namespace: str, notes: list[str]
) -> Surroundings:
    return Surroundings(
        api=client,
        clock=clock,
        cluster=settings.cluster_name,
        report=lambda error: notes.append(f"the provider says: {error}"),
        namespace=namespace,
        read_only=True,
        options=settings.provider_options,
    )
