"""One of three zones dies: who is repaired, where new nodes come up, and what is left alone.

Sixty nodes of two pools. A fifth of each pool is in the zone that dies, so the pools' own breakers
(20 %) let all of it be replaced: what they would do is told beside what the zone's breaker does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from tenure.model.api.names import INSTANCE_TYPE, NODEPOOL, REPAIR_PROBE, ZONE
from tenure.model.api.resource import EVENTS, NODE_CLAIMS, NODE_POOLS, NODES
from tenure.model.settings import Settings
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Manifest,
    a_deployment,
    a_node_class,
    a_pool,
    a_requirement,
)

#: The one that is the cheapest otherwise, by its name; with its nodes in each of the two pools.
DEAD = "zone-a"
SHARES = {DEAD: 6, "zone-b": 12, "zone-c": 12}
POOLS = ("red", "blue")
PLAIN = Settings(repair_domain_breaker=False)


def a_claim(pool: str, zone: str, number: int) -> Manifest:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": f"{pool}-{zone[-1]}{number:02d}", "labels": {NODEPOOL: pool}},
        "spec": {
            "nodeClassRef": {
                "group": "karpenter.kwok.sh",
                "kind": "KWOKNodeClass",
                "name": "default",
            },
            "requirements": [
                a_requirement(ZONE, zone),
                a_requirement(INSTANCE_TYPE, "m7i.large"),
                a_requirement("karpenter.sh/capacity-type", "on-demand"),
            ],
        },
    }


class Outage:
    """What was done to nodes, and where new ones were launched, since the zone died."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.died_at = story.now
        self.dead = [node for node in story.all(NODES) if zone_of(node) == DEAD]
        self.over = False
        self.deleted: dict[str, datetime] = {}
        #: Claims that carry the mark of a probe.
        self.marked: set[str] = set()
        #: Claims that came since, with their zone once they have one.
        self.created: dict[str, str] = {}
        story.store.subscribe(NODE_CLAIMS, self._on_claim)
        story.store.subscribe(NODES, self._on_node)
        for node in self.dead:
            story.kubelets.silence(node["metadata"]["name"])

    def _on_claim(self, type_: str, claim: Any, old: Any) -> None:
        name = claim["metadata"]["name"]
        if "deletionTimestamp" in claim["metadata"]:
            self.deleted.setdefault(name, self.story.now)
        if mark_of(claim):
            self.marked.add(name)
        if type_ == "ADDED" or name in self.created:
            self.created[name] = zone_of(claim)

    def _on_node(self, type_: str, node: Any, old: Any) -> None:
        """Nothing comes up in a dead zone."""
        if type_ == "ADDED" and zone_of(node) == DEAD and not self.over:
            self.story.environment.soon(
                partial(self.story.kubelets.silence, node["metadata"]["name"])
            )

    def launched_there(self) -> int:
        return sum(zone == DEAD for zone in self.created.values())

    def recover(self, pause: timedelta) -> None:
        """The kubelets come back one after the other."""
        self.over = True
        kubelets, begin = self.story.kubelets, self.story.elapsed
        for number, node in enumerate(self.dead):
            name = node["metadata"]["name"]
            if self.story.store.find(NODES, "", name) is not None:
                self.story.at(begin + number * pause, partial(kubelets.resume, name))

    def repaired(self) -> list[timedelta]:
        """How long after the zone died each of its claims was deleted."""
        claims = {node["metadata"]["ownerReferences"][0]["name"] for node in self.dead}
        return sorted(at - self.died_at for name, at in self.deleted.items() if name in claims)


def zone_of(thing: Any) -> str:
    return str((thing["metadata"].get("labels") or {}).get(ZONE, ""))


def mark_of(thing: Any) -> str:
    return str((thing["metadata"].get("annotations") or {}).get(REPAIR_PROBE, ""))


def uids(things: list[Any]) -> set[str]:
    return {thing["metadata"]["uid"] for thing in things}


@contextmanager
def sixty_nodes(settings: Settings | None = None, mode: str = "Forceful") -> Iterator[Story]:
    repair = {"defaultTolerationDuration": "10m", "terminationMode": mode}
    # Most nodes have no pods: they are there to be counted.
    stay = {"consolidateAfter": "Never"}
    pools = [a_pool(name, repair=repair, disruption=stay) for name in POOLS]
    claims = [
        a_claim(pool, zone, number)
        for pool in POOLS
        for zone, count in SHARES.items()
        for number in range(count)
    ]
    options = WorldOptions(settings=settings or Settings())
    with Story(a_node_class(), *pools, *claims, options=options) as story:
        story.run(5 * MINUTE)
        assert story.count("claims", "in-service") == 60
        for pool in POOLS:
            story.apply(a_deployment(pool, replicas=60, cpu="900m", nodeSelector={NODEPOOL: pool}))
        story.run(5 * MINUTE)
        assert (story.running(), story.count("nodes")) == (120, 60)
        yield story


def minutes(spans: list[timedelta]) -> list[int]:
    return [span // MINUTE for span in spans]


@pytest.mark.parametrize("mode", ["Forceful", "Graceful"])
def test_a_zone_that_comes_back_loses_two_nodes_and_no_other_is_touched(mode: str) -> None:
    with sixty_nodes(mode=mode) as story:
        outage = Outage(story)
        story.run(15 * MINUTE)
        assert story.running() == 120, "elsewhere, on new nodes"
        story.run(30 * MINUTE)
        assert minutes(outage.repaired()) == [10, 40], "ten minutes after it was held, then 30"
        assert outage.marked == set(outage.deleted)
        assert outage.launched_there() == 0
        outage.recover(pause=15 * SECOND)
        story.run(3 * HOUR)
        assert len(outage.repaired()) == 2, "also while half of them were back and half were not"
        back = [node for node in story.all(NODES) if zone_of(node) == DEAD]
        assert len(back) == 10
        assert uids(back) < uids(outage.dead), "the very same nodes"
        assert story.count("nodes", "not-ready") == 0
        assert set(outage.deleted) == {name for name in outage.deleted if "-a" in name}


def test_by_the_plain_rule_of_20_percent_all_of_it_is_replaced_again_and_again() -> None:
    with sixty_nodes(PLAIN) as story:
        outage = Outage(story)
        story.run(45 * MINUTE)
        replaced, there = len(outage.repaired()), outage.launched_there()
        outage.recover(pause=15 * SECOND)
        story.run(3 * HOUR)
        assert (replaced, len(outage.repaired())) == (12, 12), "2 with the zone's breaker"
        assert there > 5, "none with it; the dead zone is as cheap as ever"
        assert not uids(outage.dead) & uids(story.all(NODES))


def test_it_says_what_it_does_and_why() -> None:
    with sixty_nodes() as story:
        Outage(story)
        story.run(12 * MINUTE)
        said = {(e["involvedObject"]["kind"], e["reason"]): e for e in story.store.list(EVENTS)}
        for kind in ("Node", "NodeClaim", "NodePool"):
            message = said[kind, "NodeRepairBlocked"]["message"]
            # As it is now: the first is being tried, and has left.
            assert "the replacement of probe NodeClaim blue-a01 is not initialized yet" in message
            assert " is the probe since " in message
        assert (
            "repairing NodeClaim blue-a01 as a probe"
            in said["NodePool", "NodeRepairProbe"]["message"]
        )
        news = [e["message"] for e in story.store.list(EVENTS) if e["reason"] == "NeededForPods"]
        avoiding = [message for message in news if "avoiding zone-a: 12 of 12" in message]
        # For the 24 pods of all twelve, however few nodes they share; the last fit what the first leave free.
        needed = [int(re.findall(r"needed for (\d+) pod", message)[0]) for message in avoiding]
        assert 16 <= sum(needed) <= 24


def test_a_zone_that_never_comes_back_has_one_probe_at_a_time_and_its_pods_run_elsewhere() -> None:
    with sixty_nodes() as story:
        outage = Outage(story)
        story.run(8 * HOUR)
        tried, rest = outage.repaired()[:10], outage.repaired()[10:]
        assert minutes(tried) == [10 + 30 * n for n in range(10)]
        pools = [
            name.split("-")[0] for name in sorted(outage.deleted, key=outage.deleted.__getitem__)
        ]
        assert set(pools[:2]) == set(pools[2:4]) == {"red", "blue"}, "by turns"
        assert len(rest) == 2, "two are no outage: they go as the pools' breakers let them"
        assert {at // MINUTE for at in rest} == {310}, "half an hour after the last probe, too"
        assert outage.launched_there() == 0
        assert story.running() == 120
        assert story.count("nodes", "not-ready") == 0


def test_the_next_probe_comes_as_soon_as_a_new_node_of_that_pool_is_up() -> None:
    with sixty_nodes() as story:
        outage = Outage(story)
        story.run(12 * MINUTE)
        (first,) = outage.deleted
        pool = first.split("-")[0]
        story.apply({**a_deployment(pool), "spec": {"replicas": 62}})
        story.run(3 * MINUTE)
        assert len(outage.repaired()) == 2
        assert outage.launched_there() == 0


def test_a_crash_at_any_write_of_a_probe_makes_no_second_one() -> None:
    with sixty_nodes() as story:
        outage = Outage(story)
        story.run(10 * MINUTE)
        marked: list[str] = []
        story.store.subscribe(NODE_POOLS, lambda _, new, old: marked.append(mark_of(new)))
        story.store.subscribe(NODE_CLAIMS, lambda _, new, old: marked.append(mark_of(new)))
        crashes = 0
        for _ in range(600):
            before = len(list(filter(None, marked)))
            story.run(SECOND / 5)
            if len(list(filter(None, marked))) > before:
                story.crash()
                crashes += 1
        story.run(25 * MINUTE)
        assert crashes >= 3, "the pool's mark, the claim's stamp, its deletion"
        assert len(outage.repaired()) == 1
        (name,) = outage.deleted
        permit = next(filter(None, map(mark_of, story.all(NODE_POOLS))))
        assert permit.split(" ")[:2] == [f"zone={DEAD}", name]
