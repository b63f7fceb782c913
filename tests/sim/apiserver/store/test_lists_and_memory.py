"""A list leaves nothing behind: of 100,000 pods, their JSON would be 220 MiB."""

from __future__ import annotations

import tracemalloc

from tenure.model.api.resource import PODS
from tenure.ports.transport import Request
from tenure.sim.apiserver.api import Api
from tenure.sim.world import World
from tests.builders import a_pod

COUNT = 300
#: Of each, a small part of its JSON.
LEFT_BEHIND_MAX = 200


def test_the_json_of_a_list_is_not_kept() -> None:
    with World() as world:
        for index in range(COUNT):
            world.apply(a_pod(f"pod-{index}"))
        api = Api(world.store)
        api.handle(
            Request(method="GET", path=PODS.path(), query={"limit": "1"})
        )  # Imports, caches.
        tracemalloc.start()
        try:
            answer = api.handle(Request(method="GET", path=PODS.path()))
            size = len(answer.body)
            assert answer.body.count(b'"podIP"') + answer.body.count(b'"phase"') >= COUNT
            del answer
            left_behind, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert size > COUNT * 2 * LEFT_BEHIND_MAX
    assert left_behind < COUNT * LEFT_BEHIND_MAX
