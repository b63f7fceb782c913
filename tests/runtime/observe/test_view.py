"""One view, several controllers after one another: a replica that stands by knows all."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

from tenure.kube.client.client import Client
from tenure.model.api.resource import (
    DAEMON_SETS,
    EVENTS,
    LIMIT_RANGES,
    NAMESPACES,
    PODS,
    Resource,
)
from tenure.ports.transport import Request, Response, Stream, Transport
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.runtime.controller import Controller
from tenure.runtime.observe.view import View
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, a_cluster, a_deployment, a_pod


class StandBy:
    """Tenure's view of a story's cluster, apart from any controller."""

    def __init__(self, story: Story) -> None:
        self._story = story
        story.crash(stay_down=True)
        clock = story.environment.clock
        self.view = View(
            Client(story.transport),
            node_classes=(KWOK_NODE_CLASSES,),
            clock=clock,
            random=Random(1),
            settings=story.options.settings,
        )
        self._watching = story.loop.create_task(self.view.run())

    def lead(self) -> None:
        """One term of three minutes."""
        controller = Controller(
            transport=self._story.transport,
            cloud=self._story.cloud_api,
            clock=self._story.environment.clock,
            journal=self._story.history,
            settings=self._story.options.settings,
            random=Random(1),
            view=self.view,
        )
        term = self._story.loop.create_task(controller.run())
        self._story.run(3 * MINUTE)
        self._end(term)

    def end(self) -> None:
        self._end(self._watching)

    def _end(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            self._story.loop.run_until_complete(task)


def test_a_view_that_no_loop_reads_keeps_no_changes() -> None:
    with Story(*a_cluster(a_deployment(replicas=3))) as story:
        standby = StandBy(story)
        story.run(MINUTE)
        assert standby.view.synced
        assert len(standby.view.cache.tables.table(PODS)) == 3
        assert standby.view.cache.take_changes() == []
        standby.end()


def test_each_term_evaluates_what_the_view_already_knows_and_leaves_it_running() -> None:
    with Story(*a_cluster(a_deployment("first", replicas=3))) as story:
        standby = StandBy(story)
        story.run(MINUTE)
        standby.lead()
        assert story.running("first") == 3
        story.apply(a_deployment("second", replicas=40, cpu="900m"))
        story.run(MINUTE)
        assert story.running("second") < 40, "no replica leads"
        standby.lead()
        assert story.running("second") == 40
        standby.end()


class Forbidding:
    """A server whose roles know nothing of one kind."""

    def __init__(self, inner: Transport, resource: Resource) -> None:
        self._inner, self._path = inner, resource.path()
        self.forbids = True

    async def request(self, request: Request) -> Response:
        if self.forbids and request.path == self._path:
            body = b'{"kind":"Status","reason":"Forbidden","code":403,"message":"no such right"}'
            return Response(status=403, body=body)
        return await self._inner.request(request)

    async def stream(self, request: Request) -> Stream | Response:
        return await self._inner.stream(request)


def story_without_right_to(resource: Resource) -> Story:
    story = Story(*a_cluster(a_deployment(replicas=3)))
    story.transport = Forbidding(story.transport, resource)
    story.crash()
    return story


def test_nodes_are_launched_although_limit_ranges_may_not_be_listed() -> None:
    """A role of an older release lacks the right: less is known, but nothing stands still."""
    with story_without_right_to(LIMIT_RANGES) as story:
        story.run(3 * MINUTE)
        assert story.running("web") == 3
        assert story.controller.view.outdated == ""
        assert any("no such right" in str(error) for error in story.errors)


def test_nothing_is_decided_without_a_kind_that_is_needed() -> None:
    with story_without_right_to(DAEMON_SETS) as story:
        story.run(3 * MINUTE)
        assert story.running("web") == 0


def test_without_namespaces_only_pods_that_select_them_wait_and_are_told() -> None:
    """A role of an older release lacks the right."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {},
        "namespaceSelector": {"matchLabels": {"team": "red"}},
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    shy = a_pod("shy", affinity={"podAntiAffinity": required})
    with story_without_right_to(NAMESPACES) as story:
        story.apply(shy)
        story.run(3 * MINUTE)
        assert story.running("web") == 3
        assert "FailedScheduling" in story.reasons("Pod/default/shy")
        messages = [event["message"] for event in story.all(EVENTS)]
    assert any("Namespaces cannot be listed" in message for message in messages)
