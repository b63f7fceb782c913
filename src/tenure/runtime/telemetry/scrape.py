"""Gauges over the cluster, made at each scrape and not on every change.

``look`` takes what is needed while the loop stands still, in a moment; ``collect`` turns that
into series, which takes seconds in a large cluster and may therefore run in another thread:
the objects are frozen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from importlib.metadata import version
from platform import python_version
from typing import Final, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tenure.core.decision import Concern, Verdict
from tenure.core.gates.budgets import consuming, limit
from tenure.core.gates.fleet import fleet_of
from tenure.core.gates.reasons import TRAITS
from tenure.core.gates.remaining import by_reason
from tenure.core.health.outage import domains_in, pool_health_of
from tenure.core.launchbreaker.ledger import ledger_of
from tenure.core.launchbreaker.poolrecord import open_owners
from tenure.core.marks.ownership import is_our_pool
from tenure.core.pool.backoff import TIMES, record_of
from tenure.core.pool.lookup import usage_of
from tenure.core.provision.demand import is_provisionable
from tenure.core.reasons import Reason
from tenure.kube.cache.informer import Informer
from tenure.model.api.names import DRIFTED_CONDITION, NODEPOOL
from tenure.model.api.resource import PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.values.quantity import UNIT, readable_amounts
from tenure.packing.demand.problem import NODES
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.telemetry import metricnames as names
from tenure.runtime.telemetry.disruptionseries import disruption_rows
from tenure.runtime.telemetry.leverseries import lever_rows
from tenure.runtime.telemetry.metricnames import Kind, Named
from tenure.runtime.telemetry.objectseries import Objects, object_families

#: Karpenter's name for the part that handles pending pods.
PROVISIONER: Final = "provisioner"

Row = tuple[tuple[str, ...], float]


class ReplicaStatus(Protocol):
    """How this replica stands; what asks for metrics and health looks at."""

    @property
    def snapshot(self) -> Snapshot: ...
    @property
    def informers(self) -> Iterable[Informer]: ...
    @property
    def synced(self) -> bool: ...
    @property
    def leading(self) -> bool: ...
    @property
    def held_back(self) -> bool:
        """Something that is none of our replicas is, or may be, at work."""
        ...

    @property
    def has_second(self) -> bool:
        """A Tenure runs in the other mode on this cluster."""
        ...

    @property
    def role(self) -> str:
        """Leading, waiting, …: in words."""
        ...

    @property
    def waits_for(self) -> str:
        """What it needs before it can do anything, beside the first lists; else empty."""
        ...

    @property
    def evaluator(self) -> Evaluator | None:
        """None while this replica does not lead."""
        ...

    @property
    def provider_problem(self) -> str:
        """Why the provider's instances could not be listed last time; else empty."""
        ...

    @property
    def events_dropped(self) -> int: ...
    @property
    def loop_lag(self) -> float:
        """In seconds."""
        ...

    @property
    def overdue(self) -> float:
        """Seconds for which a turn has been due and did not come."""
        ...

    @property
    def stuck(self) -> str:
        """Why the control loop is taken for stuck, in words; empty while it makes progress."""
        ...

    def now(self) -> datetime: ...
    def monotonic(self) -> float: ...


class ClusterCollector(Collector):
    def __init__(
        self, replica: ReplicaStatus, *, per_object: bool = True, settings: Settings | None = None
    ) -> None:
        self._replica = replica
        self._settings = settings or Settings()
        self._per_object = per_object
        self._rows: dict[Named, list[Row]] = {}
        self._objects: Objects | None = None

    def describe(self) -> Iterable[Metric]:
        return ()  # Else the registry would collect once, before there is anything.

    def look(self) -> None:
        """On the loop: take what ``collect`` will tell."""
        replica = self._replica
        snapshot = replica.snapshot
        self._rows = {
            **dict(_us(replica)),
            **dict(_watching(replica)),
            **dict(_evaluating(replica)),
            **dict(lever_rows(snapshot, _in_force(replica), replica.now())),
        }
        self._rows |= dict(_repair_breakers(snapshot, self._settings, replica.now()))
        if self._settings.beside_karpenter:
            return  # The rest is Karpenter's to tell, by the same names.
        self._rows |= {
            **dict(_waiting(snapshot, replica.now())),
            **dict(_pools(snapshot)),
            **dict(_drifts(snapshot)),
            **dict(_budgets(snapshot, replica.now())),
            **dict(_launch_breakers(snapshot)),
            **dict(disruption_rows(snapshot, _in_force(replica), replica.now())),
        }
        self._objects = Objects.of(snapshot, replica.now())

    def collect(self) -> Iterator[Metric]:
        for named, rows in self._rows.items():
            yield family(named, rows)
        if self._objects is not None:
            yield from object_families(self._objects, per_object=self._per_object)


def _in_force(replica: ReplicaStatus) -> Iterable[Verdict]:
    return replica.evaluator.in_force() if replica.evaluator is not None else ()


def family(named: Named, rows: Iterable[Row]) -> Metric:
    kind = CounterMetricFamily if named.kind is Kind.COUNTER else GaugeMetricFamily
    made = kind(named.name, named.meaning, labels=named.labels)
    for labels, value in rows:
        made.add_metric(labels, value)
    return made


def _us(replica: ReplicaStatus) -> Iterator[tuple[Named, list[Row]]]:
    yield names.BUILD, [((version("tenure"), python_version()), 1)]
    yield names.LEADER, [((), float(replica.leading))]
    yield names.HELD_BACK, [((), float(replica.held_back))]
    yield names.SECOND, [((), float(replica.has_second))]
    yield names.LOOP_LAG, [((), replica.loop_lag)]
    yield names.EVENTS_DROPPED, [((), replica.events_dropped)]


def _watching(replica: ReplicaStatus) -> Iterator[tuple[Named, list[Row]]]:
    now, informers = replica.monotonic(), list(replica.informers)
    yield names.SYNCED, [((), float(replica.synced))]
    yield names.INFORMER_SYNCED, [((str(i.resource),), float(i.synced)) for i in informers]
    yield names.INFORMER_CONNECTED, [((str(i.resource),), float(i.connected)) for i in informers]
    yield names.INFORMER_LISTS, [((str(i.resource),), i.lists) for i in informers]
    yield (
        names.INFORMER_SILENCE,
        [
            ((str(i.resource),), max(now - i.last_heard_at, 0))
            for i in informers
            if i.last_heard_at is not None
        ],
    )
    unreadable = Counter(str(resource) for resource, _ in replica.snapshot.unreadable())
    yield names.UNREADABLE, [((resource,), count) for resource, count in unreadable.items()]


def _evaluating(replica: ReplicaStatus) -> Iterator[tuple[Named, list[Row]]]:
    evaluator = replica.evaluator
    held = (
        Counter((v.concern.value, v.reason.value) for v in evaluator.in_force())
        if evaluator
        else {}
    )
    yield names.IN_FORCE, [(name, count) for name, count in held.items()]
    failed = sum(n for (_, reason), n in held.items() if reason == Reason.FAILED_SCHEDULING)
    yield names.UNSCHEDULABLE, [((PROVISIONER,), failed)]
    failing = Counter(v.concern.value for v in evaluator.failing()) if evaluator else {}
    yield names.FAILING, [((concern.value,), failing.get(concern.value, 0)) for concern in Concern]
    yield names.RECHECK_LAG, [((), replica.overdue)]
    protected = _protected(evaluator, replica.snapshot) if evaluator else {}
    yield names.PROTECTED_PODS, [(name, count) for name, count in protected.items()]


_KINDS: Final = {
    Reason.PROTECTED_FOR_EVER: "forever",
    Reason.PROTECTED_UNTIL: "until",
    Reason.PROTECTION_UNREADABLE: "unreadable",
}


def _protected(evaluator: Evaluator, snapshot: Snapshot) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for verdict in evaluator.in_force():
        if verdict.concern is not Concern.PROTECTION or verdict.subject.kind != PODS.kind:
            continue
        pod = snapshot.pods.get(f"{verdict.subject.namespace}/{verdict.subject.name}")
        node = snapshot.nodes.get(pod.spec.node_name) if pod is not None else None
        if node is not None and (kind := _KINDS.get(verdict.reason)) is not None:
            found[node.labels.get(NODEPOOL, ""), kind] += 1
    return found


def _waiting(snapshot: Snapshot, now: datetime) -> Iterator[tuple[Named, list[Row]]]:
    pods = snapshot.unschedulable_pods()
    waiting = [pod for pod in pods.values() if is_provisionable(pod, snapshot)]
    oldest = max((now - pod.unscheduled_since for pod in waiting), default=timedelta())
    yield names.QUEUE_DEPTH, [((PROVISIONER,), len(waiting))]
    yield names.OLDEST_WAIT, [((), max(oldest.total_seconds(), 0.0))]
    yield names.IGNORED, [((), len(pods) - len(waiting))]
    homeless = sum(not claim.node_name for claim in snapshot.claims.values())
    yield names.NODE_COUNT, [((), len(snapshot.nodes) + homeless)]


def _pools(snapshot: Snapshot) -> Iterator[tuple[Named, list[Row]]]:
    limits: list[Row] = []
    usage: list[Row] = []
    for name, pool in sorted(snapshot.pools.items()):
        limits += amounts((name,), readable_amounts(pool.spec.limits))
        usage += amounts((name,), {NODES: 0, **usage_of(name, snapshot)})
    yield names.POOL_LIMIT, limits
    yield names.POOL_USAGE, usage


def _drifts(snapshot: Snapshot) -> Iterator[tuple[Named, list[Row]]]:
    drifted: Counter[tuple[str, str]] = Counter()
    unknown: Counter[tuple[str]] = Counter()
    for claim in snapshot.claims.values():
        if (said := claim.condition(DRIFTED_CONDITION)) is not None and said.status == "True":
            drifted[claim.pool_name, said.reason] += 1
        answer = snapshot.observations.drifts.get(claim.uid)
        if answer is not None and answer.silence is not None:
            unknown[(claim.pool_name,)] += 1
    yield names.DRIFTED, sorted(drifted.items())
    yield names.DRIFT_UNKNOWN, sorted(unknown.items())


def _budgets(snapshot: Snapshot, now: datetime) -> Iterator[tuple[Named, list[Row]]]:
    allowed: list[Row] = []
    used: list[Row] = []
    left: list[Row] = []
    change: list[Row] = []
    starts: list[Row] = []
    for name, pool in sorted(snapshot.pools.items()):
        if not is_our_pool(pool, snapshot):
            continue
        starts.append(((name,), len(pool.status.disruption_starts)))
        fleet = fleet_of(name, snapshot)
        for reason, traits in TRAITS.items():
            labels = (name, reason.lower())
            allowed.append((labels, limit(pool, traits, fleet, now)))
            used.append((labels, consuming(traits, fleet)))
        for key, found in by_reason(pool, fleet, now):
            left.append(((name, key.lower()), found.nodes))
            if found.changes_at is not None:
                change.append(((name, key.lower()), found.changes_at.timestamp()))
    yield names.ALLOWED_DISRUPTIONS, allowed
    yield names.CONSUMING_BUDGETS, used
    yield names.REMAINING_DISRUPTIONS, left
    yield names.DISRUPTIONS_CHANGE, change
    yield names.DISRUPTION_STARTS, starts


def _repair_breakers(
    snapshot: Snapshot, settings: Settings, now: datetime
) -> Iterator[tuple[Named, list[Row]]]:
    ours = (name for name, pool in sorted(snapshot.pools.items()) if is_our_pool(pool, snapshot))
    yield (
        names.BREAKER_TRIPPED,
        [((name,), float(pool_health_of(name, snapshot).tripped_at(now))) for name in ours],
    )
    held = domains_in(snapshot).at(settings, now).outages
    yield names.DOMAIN_HELD, [((hold.domain.kind, hold.domain.value), 1.0) for hold in held]


def _launch_breakers(snapshot: Snapshot) -> Iterator[tuple[Named, list[Row]]]:
    owners = {name: open_owners(ledger_of(pool)) for name, pool in snapshot.pools.items()}
    yield names.LAUNCH_BREAKER_OPEN, [((n,), float(len(o))) for n, o in sorted(owners.items())]
    timed_out = ((name, len(record_of(pool).claims)) for name, pool in snapshot.pools.items())
    yield (
        names.LAUNCH_BACK_OFF,
        [((name,), float(count if count >= TIMES else 0)) for name, count in sorted(timed_out)],
    )


def amounts(labels: tuple[str, ...], resources: Mapping[str, int]) -> Iterator[Row]:
    for resource, nano in resources.items():
        yield (*labels, resource), nano / UNIT
