"""What is kept of objects spares work and nothing else: the verdicts are the same without it."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.policy.deciders import decide_all, deciders
from tenure.core.poolpolicy.govern import govern
from tenure.core.provision.knownnodes import closed_nodes, in_service_since, nodes_with_capacity
from tenure.kube.cache.cache import Cache
from tenure.model.api.meta import ApiObject
from tenure.model.api.resource import NODES, Resource
from tenure.model.snapshot.derived import Derived
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Snapshot, Tables
from tenure.model.snapshot.twin import Twin
from tenure.providers.kwok.repairs import kwok_statements
from tests.core.build import a_claim, a_node, a_pool, ago, condition
from tests.properties.clusters import Cluster, clusters
from tests.properties.deciderchecks import SETTINGS
from tests.properties.drawn.basics import NOW
from tests.properties.thoroughness import tried
from tests.snapshots import RESOURCE_OF, SERVED

Story = tuple[Cluster, Cluster]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """A cluster, and the same after some of its objects have changed, come or gone."""
    before, other = draw(clusters()), draw(clusters())
    chance = draw(st.randoms(use_true_random=False))
    old, new = ({(type(i), i.key): i for i in one.objects} for one in (before, other))
    chosen = (chance.choice((old, old, new)).get(name) for name in sorted({*old, *new}, key=str))
    objects = tuple(item for item in chosen if item is not None)
    return before, Cluster(objects, before.observations)


class Forgetting(Derived):
    """Admits nothing, so that everything is derived anew."""

    def admit(self, item: ApiObject, former: ApiObject | None = None) -> None:
        pass


class Confusing(Derived):
    """Takes every version for the one before."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, ApiObject] = {}

    def admit(self, item: ApiObject, former: ApiObject | None = None) -> None:
        super().admit(item, self._last.get(item.uid))
        self._last[item.uid] = item


def take_in(cluster: Cluster, cache: Cache, version: int) -> None:
    """As the informers do: every Node has a new version, other objects only if they differ."""
    listed: dict[Resource, list[ApiObject]] = {resource: [] for resource in cache.tables.objects}
    for item in cluster.objects:
        resource = RESOURCE_OF[type(item)]
        there = cache.tables.table(resource).get(item.key)
        if there is None or resource == NODES or of_version(there, 0) != of_version(item, 0):
            there = of_version(item, version)
        listed.setdefault(resource, []).append(there)
    for resource, items in listed.items():
        cache.replace(resource, items, str(version))


def of_version(item: ApiObject, version: int) -> ApiObject:
    metadata = msgspec.structs.replace(item.metadata, resource_version=str(version))
    return msgspec.structs.replace(item, metadata=metadata)


def verdicts(tables: Tables, observations: Observations) -> list[str]:
    snapshot = Snapshot(tables, observations, ours=SERVED)
    found = (v for d in deciders() for v in decide_all(d, snapshot, SETTINGS, NOW))
    return sorted(map(repr, found))


def without_memory(tables: Tables) -> Tables:
    made = Tables(derived=Forgetting(), govern=govern)
    for resource, table in tables.objects.items():
        for item in table.values():
            made.put(resource, item)
    return made


def differences(story: Story, cache: Cache) -> list[str]:
    """Verdicts that are given only with what was kept before, or only without.

    Each cluster is taken in twice: the second time, all that changes is the Nodes' versions.
    """
    before, after = story
    found: list[str] = []
    for version, cluster in enumerate((before, before, after, after), start=100):
        take_in(cluster, cache, version)
        kept = verdicts(cache.tables, cluster.observations)
        anew = verdicts(without_memory(cache.tables), cluster.observations)
        found += set(kept) ^ set(anew)
    return found


@tried(50)
@given(story=stories())
def test_verdicts_are_the_same_with_and_without_what_is_kept(
    story: Story,
) -> None:
    cache = Cache(govern=govern)
    assert differences(story, cache) == []
    assert len(cache.tables.derived) == sum(map(len, cache.tables.objects.values()))


def places(tables: Tables, observations: Observations) -> tuple[object, ...]:
    snapshot = Snapshot(tables, observations, ours=SERVED)
    nodes = nodes_with_capacity(snapshot), closed_nodes(snapshot)
    return *nodes, in_service_since(snapshot)


@tried(100)
@given(story=stories())
def test_nodes_that_are_kept_over_turns_are_those_that_would_be_read_anew(story: Story) -> None:
    cache = Cache(govern=govern)
    before, after = story
    for version, cluster in enumerate((before, before, after, after, before), start=100):
        take_in(cluster, cache, version)
        kept = places(cache.tables, cluster.observations)
        assert kept == places(without_memory(cache.tables), cluster.observations)


@tried(50)
@given(story=stories())
def test_a_twin_that_catches_up_gives_the_verdicts_of_the_tables(story: Story) -> None:
    cache, twin = Cache(govern=govern), Twin()
    before, after = story
    for version, cluster in enumerate((before, after, after, before), start=100):
        take_in(cluster, cache, version)
        known = cluster.observations
        found = twin.look(Snapshot(cache.tables, known, ours=SERVED))()
        assert verdicts(found.tables, known) == verdicts(cache.tables, known)
        assert {kind: table for kind, table in found.tables.objects.items() if table} == {
            kind: table for kind, table in cache.tables.objects.items() if table
        }


def test_what_is_kept_too_long_is_noticed() -> None:
    """Else the property above could hold of a cluster that nothing is kept of."""
    healthy = a_node()
    conditions = (condition("Ready", "False", at=ago(60)),)
    unhealthy = a_node(status={"conditions": conditions}, ready=None)
    statements = kwok_statements(ready=timedelta(minutes=30))
    before, after = (
        Cluster((a_pool(), a_claim(), node), Observations(repair_statements=statements))
        for node in (healthy, unhealthy)
    )
    assert differences((before, after), Cache(govern=govern)) == []
    cache = Cache(govern=govern)
    cache.tables.derived = Confusing()
    assert differences((before, after), cache) != []
