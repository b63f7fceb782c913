"""Logs of pods that are played: one line says that there are none, also to a client that follows them."""

from __future__ import annotations

import pytest

from tenure.model.api.resource import PODS
from tenure.ports.transport import Request
from tenure.sim.apiserver.api import Api
from tenure.sim.world import World
from tests.builders import a_pod


@pytest.mark.parametrize(("query", "status"), [({}, 400), ({"follow": "true"}, 200)])
def test_a_client_that_follows_a_log_is_not_left_to_ask_for_ever(
    query: dict[str, str], status: int
) -> None:
    with World() as world:
        world.apply(a_pod("web", nodeName="n"))
        path = PODS.path("default", "web", "log")
        answer = Api(world.store).handle(Request(method="GET", path=path, query=query))
    assert answer.status == status
    assert b"pod default/web has no log: pods of the embedded cluster are played" in answer.body
