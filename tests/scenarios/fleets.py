"""Clusters of stories about nodes that go by choice, what is changed in them, and who leaves when."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tenure.model.api.names import REPLACED_BY
from tenure.model.api.resource import DEPLOYMENTS, NODE_CLAIMS, NODE_POOLS
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.scenario.dsl import Story
from tests.builders import Manifest, a_deployment, a_node_class, a_pool, a_requirement
from tests.scenarios.signs import says

ANY = [{"nodes": "100%"}]
#: One pod of 1500m fills a node of this type.
SMALL = a_requirement("node.kubernetes.io/instance-type", "m7i.large")
#: From 08:00 to 09:00.
MORNING = {"cron": "0 8 * * *", "duration": "1h"}


def a_cluster(*more: Manifest, budgets: Any = ANY, **disruption: Any) -> list[Manifest]:
    template = disruption.pop("template", None)
    block = {"budgets": budgets, **disruption}
    return [
        a_node_class(),
        a_pool(requirements=[SMALL], disruption=block, template=template),
        *more,
    ]


def a_fleet(nodes: int) -> Manifest:
    """A pod for each node."""
    return a_deployment(replicas=nodes, cpu="1500m")


def a_window(name: str = "freeze", **spec: Any) -> Manifest:
    kind = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "MaintenanceWindow"}
    usual = {"actions": ["Repair"], "schedules": [MORNING]}
    return {**kind, "metadata": {"name": name}, "spec": usual | spec}


def scale(story: Story, replicas: int, name: str = "web") -> None:
    story.store.patch(DEPLOYMENTS, "default", name, {"spec": {"replicas": replicas}})


def set_pool(story: Story, name: str = "general", **disruption: Any) -> None:
    story.store.patch(NODE_POOLS, "", name, {"spec": {"disruption": disruption}})


def label_template(story: Story, value: str, name: str = "general") -> None:
    """A change of the template: every node of the pool has drifted."""
    labels = {"metadata": {"labels": {"example.com/release": value}}}
    story.store.patch(NODE_POOLS, "", name, {"spec": {"template": labels}})


def claims(story: Story) -> list[Obj]:
    return story.store.list(NODE_CLAIMS)


def names(story: Story) -> set[str]:
    return {claim["metadata"]["name"] for claim in claims(story)}


def uids(story: Story) -> set[str]:
    """Names are given again."""
    return {claim["metadata"]["uid"] for claim in claims(story)}


def leaving(story: Story) -> set[str]:
    """Those that terminate or have a command, until their instance terminates: as budgets count."""
    mark = "karpenter.sh/replaced-by"
    return {
        claim["metadata"]["uid"]
        for claim in claims(story)
        if (
            "deletionTimestamp" in claim["metadata"]
            or mark in (claim["metadata"].get("annotations") or {})
        )
        and says(story, claim["metadata"]["name"], "InstanceTerminating") is None
    }


class Watched:
    """When each claim began to leave, after the start, and how many did so at once."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self.started: dict[str, timedelta] = {}
        self.most = 0
        story.store.subscribe(NODE_CLAIMS, self._on_claim)

    def _on_claim(self, *_: object) -> None:
        now = leaving(self._story)
        self.started = dict.fromkeys(now, self._story.elapsed) | self.started
        self.most = max(self.most, len(now))


def the_claim(story: Story) -> tuple[str, str]:
    claim = story.the(NODE_CLAIMS)
    return claim["status"]["nodeName"], claim["metadata"]["name"]


def of_pool(story: Story, pool: str) -> dict[str, Obj]:
    label = "karpenter.sh/nodepool"
    return {
        c["metadata"]["name"]: c for c in claims(story) if c["metadata"]["labels"][label] == pool
    }


class Begun:
    """When commands begin: by the mark on the claim, whatever Tenure records."""

    def __init__(self, story: Story) -> None:
        self.at: list[datetime] = []
        self._story = story
        story.store.subscribe(NODE_CLAIMS, self._changed, replay=True)

    def _changed(self, _type: str, new: Any, old: Any) -> None:
        before = ((old or {}).get("metadata") or {}).get("annotations") or {}
        after = new["metadata"].get("annotations") or {}
        if REPLACED_BY in after and REPLACED_BY not in before:
            self.at.append(self._story.environment.now())
