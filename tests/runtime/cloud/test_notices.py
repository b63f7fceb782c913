"""Listening to a cloud that fails, repeats itself, or speaks of instances of others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tenure.errors import ProviderError
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.model.cloud.notice import Notice, NoticeKind
from tenure.ports.cloud import Cloud
from tenure.ports.cloudaround import CloudAround
from tenure.runtime.cloud import notices
from tests.builders import MINUTE, SECOND
from tests.runtime.worlds import Tapped
from tests.scenarios.fleets import a_cluster, a_fleet
from tests.scenarios.signs import is_gone, is_leaving
from tests.scenarios.test_notices import condition_of, interrupt, pending


class Broken(CloudAround):
    """Its stream breaks as soon as it is opened, as often as it is told to."""

    def __init__(self, cloud: Cloud, times: int) -> None:
        super().__init__(cloud)
        self.times = times
        self.opened: list[float] = []

    async def notices(self, cluster: str) -> AsyncIterator[Notice]:
        self.opened.append(asyncio.get_running_loop().time())
        if len(self.opened) <= self.times:
            raise ProviderError("acme: the queue cannot be reached")
        async for notice in self._cloud.notices(cluster):
            yield notice


class Ends(Broken):
    """It ends by itself, without an error."""

    async def notices(self, cluster: str) -> AsyncIterator[Notice]:
        self.opened.append(asyncio.get_running_loop().time())
        if len(self.opened) <= self.times:
            return
        async for notice in self._cloud.notices(cluster):
            yield notice


def restart_with(story: Tapped, cloud: Cloud) -> None:
    story.cloud_api = cloud
    story.crash()


@pytest.mark.parametrize("kind", [Broken, Ends])
def test_a_stream_that_breaks_is_opened_again_later_and_later(kind: Any) -> None:
    with Tapped(*a_cluster(a_fleet(1))) as story:
        broken = kind(story.cloud_api, times=8)
        restart_with(story, broken)
        story.run(5 * MINUTE)
        assert story.running("web") == 1  # Everything else goes on.
        waits = [round(b - a) for a, b in zip(broken.opened, broken.opened[1:], strict=False)]
        assert len(broken.opened) == 9
        assert waits[:5] == sorted(waits[:5])
        assert max(waits) <= notices.RETRY_MAX.total_seconds()
        assert len([error for error in story.errors if "queue" in str(error)]) == (
            8 if kind is Broken else 0
        )
        name, _ = interrupt(story)
        story.run(5 * SECOND)
        assert is_leaving(story, name)


def test_an_acknowledgement_that_fails_is_tried_again_and_then_left_to_the_cloud() -> None:
    with Tapped(*a_cluster(a_fleet(1))) as story:
        story.run(5 * MINUTE)
        refusal = ProviderError("acme: not now")
        story.cloud_tap.spoil = lambda verb, _: refusal if verb == "acknowledge" else None
        name, _ = interrupt(story)
        story.run(5 * MINUTE)
        assert is_gone(story, name)  # It does not wait for that.
        assert len(story.cloud_tap.of("acknowledge")) == notices.ACKNOWLEDGED_TIMES
        assert len(pending(story)) == 1
        story.cloud_tap.spoil = lambda verb, what: None
        story.crash()
        story.run(2 * MINUTE)
        assert pending(story) == ()  # The cloud has said it again.


def test_what_is_not_ours_is_left_alone() -> None:
    """A claim of another provider, with an instance that our cloud speaks of."""
    with Tapped(*a_cluster(a_fleet(1))) as story:
        story.run(5 * MINUTE)
        foreign = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": "theirs"},
            "spec": {
                "requirements": [],
                "nodeClassRef": {"group": "example.com", "kind": "OtherClass", "name": "x"},
            },
        }
        story.apply(foreign)
        status = {"status": {"providerID": "embedded:///zone-a/i-theirs"}}
        story.store.patch(NODE_CLAIMS, "", "theirs", status, subresource="status")
        version = story.the(NODE_CLAIMS, name="theirs")["metadata"]["resourceVersion"]
        for kind in NoticeKind:
            said = Notice(kind=kind, provider_id="embedded:///zone-a/i-theirs", at=story.now)
            story.cloud.announcements.announce(story.options.settings.cluster_name, said)
        story.run(3 * MINUTE)
        assert pending(story) == ()
        assert story.the(NODE_CLAIMS, name="theirs")["metadata"]["resourceVersion"] == version


def test_more_than_can_wait_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "PENDING_MAX", 3)
    with Tapped(*a_cluster(a_fleet(1))) as story:
        story.run(5 * MINUTE)
        for index in range(8):
            said = Notice(
                kind=NoticeKind.REBALANCE, provider_id=f"embedded:///nowhere/{index}", at=story.now
            )
            story.cloud.announcements.announce(story.options.settings.cluster_name, said)
        name, _ = interrupt(story, 20 * MINUTE)
        story.run(10 * MINUTE)
        assert pending(story) == ()
        assert is_leaving(story, name)


def is_rebooting(story: Tapped) -> bool:
    return condition_of(story, story.the(NODE_CLAIMS)["metadata"]["name"], "Rebooting") is not None


def test_an_interruption_ends_a_reboot() -> None:
    with Tapped(*a_cluster(a_fleet(1))) as story:
        story.run(5 * MINUTE)
        node = story.the(NODES)["metadata"]["name"]
        story.kubelets.set_condition(node, "KWOKRebootRequired", "True", "Test")
        story.run_while(lambda: not is_rebooting(story), at_most=2 * MINUTE, step=SECOND)
        assert is_rebooting(story)
        name, _ = interrupt(story)
        story.run(10 * SECOND)
        assert is_leaving(story, name)
        story.run(6 * MINUTE)
        assert is_gone(story, name)
        assert story.running("web") == 1
