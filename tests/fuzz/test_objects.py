"""Odd objects that the embedded API accepts: they stop no other object. ``make fuzz-objects`` has more."""

from __future__ import annotations

from itertools import islice
from random import Random

import msgspec
import pytest

from tenure.core.protect import protection
from tenure.errors import ApiError
from tenure.model.api.resource import PODS
from tenure.sim.scenario.dsl import Story
from tests.fuzz.bystanders import Bystanders
from tests.fuzz.oddities import odd_objects

SEED = 11
COUNT = 300


def test_odd_objects_that_the_embedded_api_accepts_stop_no_evaluation() -> None:
    accepted, bystanders = 0, Bystanders()
    found = []
    with Story() as story:
        for odd in islice(odd_objects(Random(SEED)), COUNT):
            try:
                versions = [story.store.create(odd.resource, odd.manifest)]
                if odd.status:
                    namespace, name = odd.manifest["metadata"].get("namespace", ""), versions[0]
                    patch = {"status": odd.status}
                    versions.append(
                        story.store.patch(
                            odd.resource, namespace, name["metadata"]["name"], patch,
                            subresource="status",
                        )
                    )  # fmt: skip
            except ApiError:
                continue
            accepted += 1
            found += bystanders.meet(odd.resource, map(msgspec.json.encode, versions))
    assert not found, "\n".join(map(str, found[:10]))
    assert accepted > COUNT // 4, "else nothing was tried"


def test_an_object_that_stops_an_evaluation_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise nothing would be found because nothing is looked at."""

    def fail(value: str) -> None:
        raise OverflowError(value)

    bystanders = Bystanders()
    monkeypatch.setattr(protection, "positive", fail)
    raw = b"""{"metadata": {"name": "x", "namespace": "default", "uid": "u",
              "annotations": {"karpenter.sh/do-not-disrupt": "4h"}},
              "spec": {"nodeName": "node-b"}, "status": {"phase": "Running"}}"""
    assert any("OverflowError" in str(one) for one in bystanders.meet(PODS, [raw]))
