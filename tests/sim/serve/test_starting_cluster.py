"""What ``tenure up`` begins with: a window for drift, and a ConfigMap in which images are released.

The same objects in virtual time; ``tests/up`` runs them as a process, with the real kubectl.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure.model.api.resource import CONFIG_MAPS, NODE_CLAIMS, NODE_POOLS, NODES
from tenure.sim.scenario.dsl import Story
from tenure.sim.serve.notices import LabelledNodes
from tenure.sim.serve.welcome import NAMESPACE, WELCOME, PublishedImages
from tests.builders import MINUTE, SECOND, a_deployment
from tests.scenarios.fleets import Watched, uids

#: Every pod has a node of its own.
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    }
}


def starting_cluster(nodes: int) -> Story:
    return Story(*WELCOME, a_deployment(replicas=nodes, affinity=APART))


def release(story: Story, images: str) -> None:
    story.store.patch(CONFIG_MAPS, NAMESPACE, "kwok-images", {"data": {"images": images}})


def test_a_changed_template_waits_for_the_window_and_rolls_one_node_at_a_time() -> None:
    with starting_cluster(3) as story:
        story.run(3 * MINUTE + 30 * SECOND)
        first, watch = uids(story), Watched(story)
        assert len(first) == 3
        labels = {"metadata": {"labels": {"release": "two"}}}
        story.store.patch(NODE_POOLS, "", "default", {"spec": {"template": labels}})
        story.run(89 * SECOND)
        assert not watch.started, "the window has closed at 3m"
        said = {entry.message for entry in story.history.entries}
        assert any(
            "MaintenanceWindow drift only, which is not active before 2026-01-05T08:05:00Z" in one
            for one in said
        )
        story.run(20 * MINUTE)
        assert not uids(story) & first
        assert watch.most == 1, "10% of three nodes, rounded up"
        starts = sorted(watch.started[uid] for uid in first)
        assert 5 * MINUTE <= starts[0] < 5 * MINUTE + SECOND, "as soon as it opens"
        assert all(start % (5 * MINUTE) < 3 * MINUTE for start in starts), "inside of a window"
        assert story.running("web") == 3
        story.checkers.assert_kept()


def test_a_line_in_the_configmap_releases_an_image_and_every_node_is_replaced() -> None:
    with starting_cluster(1) as story:
        PublishedImages(story, report=pytest.fail)
        story.run(2 * MINUTE)
        (listed,) = story.store.list(CONFIG_MAPS)
        assert listed["data"] == {"images": f"{story.cloud.newest_image}\n"}
        first = uids(story)
        release(story, "embedded-linux-1\nv2\n")
        story.run(SECOND)
        assert story.cloud.newest_image == "v2"
        assert ("Cloud", "ImageReleased", "image v2 is released") in {
            (e.subject, e.reason, e.message) for e in story.history.entries
        }
        story.run(10 * MINUTE)
        assert not uids(story) & first
        assert story.the(NODE_CLAIMS)["status"]["imageID"] == "v2"


def test_other_writes_release_nothing_and_a_name_that_is_too_long_is_reported() -> None:
    reported: list[str] = []
    with starting_cluster(1) as story:
        PublishedImages(story, report=reported.append)
        newest = story.cloud.newest_image
        other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kwok-images"}}
        story.apply(other | {"data": {"images": "of another namespace"}})
        for images in ("", "  \n", newest, "x" * 254):
            release(story, images)
            story.run(timedelta(seconds=1))
        story.store.patch(CONFIG_MAPS, NAMESPACE, "kwok-images", {"data": None})
        story.store.delete(CONFIG_MAPS, NAMESPACE, "kwok-images")
        story.run(SECOND)
        assert story.cloud.newest_image == newest
        assert len(reported) == 1
        assert "254 characters" in reported[0]


def test_what_a_scenario_lists_is_there_from_the_beginning() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    listed = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kwok-images", "namespace": NAMESPACE},
        "data": {"images": "v1\nv7"},
    }
    with Story(*WELCOME, namespace, listed) as story:
        PublishedImages(story, report=pytest.fail)
        story.run(SECOND)
        assert story.cloud.newest_image == "v7"


def label(story: Story, value: str) -> None:
    name = story.the(NODES)["metadata"]["name"]
    labels = {"karpenter.kwok.sh/notice": value}
    story.store.patch(NODES, "", name, {"metadata": {"labels": labels}})


def test_a_label_on_a_node_is_a_notice_of_the_cloud_as_with_kwok() -> None:
    with starting_cluster(1) as story:
        LabelledNodes(story, report=pytest.fail)
        story.run(2 * MINUTE)
        first = uids(story)
        label(story, "rebalance")
        story.run(2 * SECOND)
        said = {
            one["type"]: one["status"] for one in story.the(NODE_CLAIMS)["status"]["conditions"]
        }
        assert said["RebalanceRecommended"] == "True"
        label(story, "interrupt-2m")
        story.run(2 * SECOND)
        assert "karpenter.kwok.sh/notice" not in story.the(NODES)["metadata"]["labels"]
        assert "Interrupted" in story.reasons("NodeClaim/*")
        story.run(5 * MINUTE)
        assert not uids(story) & first
        assert story.running("web") == 1
        story.checkers.assert_kept()


@pytest.mark.parametrize("value", ["interupt", "interrupt-2d"])
def test_a_label_that_is_no_notice_is_reported(value: str) -> None:
    reported: list[str] = []
    with starting_cluster(1) as story:
        LabelledNodes(story, report=reported.append)
        story.run(2 * MINUTE)
        label(story, value)
        story.run(2 * SECOND)
    (line,) = reported
    assert f"got '{value}', expected rebalance, interrupt or interrupt- and a Go duration" in line
