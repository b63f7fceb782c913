"""Reads a real cluster once: everything is listed, and evaluated as the loop would evaluate it.

Only reads leave the process. In order: the version of the API server; every kind that
deciders read; the Lease, which says which replica acts and in which namespace the provider has its objects;
the cloud's types, drifts and instances; refusals of evictions are predicted; then one run of the evaluator.
Without the lists there is no answer; what else is missing is a note beside the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Final

import msgspec

from tenure.cli.cluster.access import Reached
from tenure.cli.cluster.askcloud import CloudReader
from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.cli.cluster.evictions import foresee_refusals
from tenure.cli.cluster.gone import Said, last_words
from tenure.cli.cluster.greeting import EMBEDDED, advice, cluster_uid, server_time, server_version
from tenure.cli.cluster.leaders import (
    clock_blockers,
    in_place_of,
    leader_of,
    leases_in,
    namespaces_of_tenure,
    no_karpenter,
    second_tenure,
)
from tenure.cli.cluster.listing import CannotRead, everything
from tenure.cli.cluster.question import Question
from tenure.cli.cluster.seen import Seen, or_note
from tenure.cli.cluster.serverclock import clock_of
from tenure.core.disrupt.consolidation.planned import plan_now
from tenure.core.disrupt.consolidation.question import ask
from tenure.core.policy.deciders import PATIENCE, UNMOVED, deciders
from tenure.errors import ApiError, TenureError, Unavailable
from tenure.kube.client.client import Client
from tenure.kube.client.credentials import credentials_for
from tenure.kube.client.http import HttpTransport
from tenure.model.api.meta import format_time
from tenure.model.api.resource import DEPLOYMENTS, EVENTS, NAMESPACES
from tenure.model.api.workload import Event, Lease
from tenure.model.settings import Settings, other_lease
from tenure.model.snapshot.kinds import decode
from tenure.ports.clock import Clock
from tenure.ports.provider import DEFAULT_NAMESPACE, Provider
from tenure.ports.transport import Transport
from tenure.runtime.clock.system import SystemClock
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.observe.crds import read_crds
from tenure.runtime.observe.view import WATCHED, govern_with
from tenure.runtime.readonly import LookOnlyTransport
from tenure.runtime.telemetry.events import DEFAULT_NAMESPACE as EVENTS_NAMESPACE
from tenure.sim.cloud.remote import LEADER, EmbeddedCloud, state_at

#: For all of it; a hundred thousand pods take a fraction.
READ_MAX: Final = timedelta(seconds=90)


class ClusterReading(msgspec.Struct, frozen=True, kw_only=True):
    evaluated: EvaluatedCluster
    #: What could not be read, a sentence each.
    notes: tuple[str, ...]
    #: What the events say of an object that was asked for and is not there.
    last_word: str = ""

    @property
    def leader(self) -> str:
        """Which replica acts on the cluster, in words."""
        return self.evaluated.leader


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
    with plain_errors(reached):
        async with (
            asyncio.timeout(READ_MAX.total_seconds()),
            HttpTransport(reached.access, credentials) as transport,
        ):
            door = LookOnlyTransport(transport)
            return await read(door, settings, provider, clock, about)


@contextmanager
def plain_errors(reached: Reached) -> Iterator[None]:
    """What keeps a cluster from being read, as ``CannotRead``."""
    try:
        yield
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
    served_by_up, server = await greet(transport)
    beside = settings.beside_karpenter
    clock, which = clock_of(clock, server, settings, embedded=served_by_up)
    embedded = served_by_up and not beside
    client, notes = Client(transport), list[str]()
    if embedded:
        told = await or_note(lambda: state_at(transport), None, "the embedded cloud", notes)
        provider = EmbeddedCloud(told)
    kinds = (*WATCHED, DEPLOYMENTS) if beside else (*WATCHED, *provider.node_classes)
    cache = await everything(client, kinds, notes, govern_with(settings))
    if beside:
        await read_crds(client, cache)
    leases = await or_note(
        lambda: leases_in(client, settings.lease_name), list[Lease](), "which replica acts", notes
    )
    others = await other_leases(client, settings)
    notes += filter(None, about_leaders(leases, others, settings, clock.now(), embedded))
    settings = await named(client, settings, notes)
    seen = Seen(cache, provider, notes, beside=beside)
    namespace = await namespace_of(client, settings, provider, leases)
    reader = CloudReader(client, clock, settings, seen)
    async with provider.open(reader.surroundings(namespace)) as cloud:
        if beside:
            seen.observations.repair_statements = cloud.repair_statements
        else:
            # The instances of an embedded cluster are known to the process that serves it alone.
            await reader.ask(cloud, about, drift=not embedded)
    evaluated = _evaluated(seen, settings, clock.now())
    blocker = next(clock_blockers(leases, evaluated.at), None)
    last_word = await _last_word_on(about, evaluated, client, notes)
    leader = LEADER if embedded else leader_of(leases, clock.now())
    return ClusterReading(
        evaluated=msgspec.structs.replace(
            evaluated, clock=which, clock_blocker=blocker, leader=leader
        ),
        notes=tuple(notes),
        last_word=last_word,
    )


async def other_leases(client: Client, settings: Settings) -> list[Lease]:
    """Of a Tenure in the other mode. Where they cannot be listed, our own cannot be, and a note says so."""
    with suppress(TenureError):
        return await leases_in(client, other_lease(settings))
    return []


def about_leaders(
    leases: list[Lease], others: list[Lease], settings: Settings, now: datetime, embedded: bool
) -> Iterator[str]:
    if not settings.beside_karpenter:
        yield second_tenure(leases, others, now)
        yield "" if embedded else in_place_of(leases, now)
    else:
        yield second_tenure(others, leases, now) or no_karpenter(others, now)


async def greet(transport: Transport) -> tuple[bool, datetime | None]:
    """Whether ``tenure up`` serves the cluster, and the server's own time, if it says so."""
    try:
        version = await server_version(transport)
    except TimeoutError:
        raise Unavailable("no answer") from None
    server: datetime | None = None
    with suppress(TimeoutError, TenureError):  # The lists say what is wrong.
        server = await server_time(transport)
    return version.endswith(EMBEDDED), server


async def named(client: Client, settings: Settings, notes: list[str]) -> Settings:
    """With the name of the cluster, by which the cloud marks its instances."""
    name = settings.cluster_name or await or_note(
        lambda: cluster_uid(client), "", "the cluster's name", notes
    )
    return msgspec.structs.replace(settings, cluster_name=name)


async def namespace_of(
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
    ours = namespaces_of_tenure(leases)
    return ours[0] if len(ours) == 1 else DEFAULT_NAMESPACE


def _evaluated(seen: Seen, settings: Settings, now: datetime) -> EvaluatedCluster:
    evaluator = Evaluator(deciders(settings), settings, PATIENCE, UNMOVED)
    foresee_refusals(seen.snapshot(), seen.observations, settings, now)
    if not settings.beside_karpenter:
        _consolidated(seen, settings, now)
    evaluator.evaluate(seen.snapshot(), (), (), now)
    return EvaluatedCluster(
        at=now, snapshot=seen.snapshot(), evaluator=evaluator, settings=settings
    )


def _consolidated(seen: Seen, settings: Settings, now: datetime) -> None:
    """The plan that a replica would make beside its loop, to its end. With voluntary disruption off it has no
    moves, and says so of each node."""
    try:
        asked = ask(seen.snapshot(), settings, now)
        seen.observations.consolidation.planned(plan_now(asked, now))
    except Exception as error:  # noqa: BLE001  # an object that cannot be evaluated: the rest is told
        seen.notes.append(f"what could be consolidated could not be found out: {error!r}")


async def _last_word_on(
    about: Question | None, evaluated: EvaluatedCluster, client: Client, notes: list[str]
) -> str:
    """Of an object that was asked for and is not there."""
    if about is None or evaluated.find(about.resource, about.namespace, about.name) is not None:
        return ""
    return await or_note(lambda: _last_word(client, about), "", "its events", notes)


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
