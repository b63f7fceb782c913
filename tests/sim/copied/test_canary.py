"""What must never leave a cluster: strings planted wherever a secret may be, in every kind that is taken."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.sim.apiserver.objects.kinds import ALL
from tenure.sim.copied.copy import copied, read_copy, taken
from tenure.sim.copied.leftout import Problem
from tenure.sim.copied.load import load, options_for
from tenure.sim.world import World
from tests.sim.copied.canary import CANARY, EVERY, a_dump, planted
from tests.sim.copied.clusters import a_node


@pytest.mark.parametrize("resource", EVERY, ids=str)
def test_nothing_that_may_be_a_secret_is_taken(resource: Resource) -> None:
    kept = taken(resource, planted(resource))
    assert kept["metadata"]["name"] == "planted"
    assert CANARY not in msgspec.json.encode(kept).decode()


def test_what_is_kept_of_a_pod_still_says_where_and_how_long_it_runs() -> None:
    kept = taken(r.PODS, planted(r.PODS))
    container = kept["spec"]["containers"][0]
    assert container["resources"] == {"requests": {"cpu": "1"}}
    assert container["lifecycle"] == {"preStop": {"sleep": {"seconds": 5}}}
    assert kept["status"]["phase"] == "Running"


def test_a_file_full_of_secrets_leaves_none_in_what_is_served(tmp_path: Path) -> None:
    """Whatever the source did before: a dump of kubectl's is redacted as it is read."""
    copy = read_copy(a_dump(tmp_path))
    assert (
        "left out, as the embedded cluster has no use for them: 1 ConfigMap, 1 Secret" in copy.notes
    )
    with World(options_for(copy)) as world:
        load(copy, world)
        stored = {kind: world.store.list(kind) for kind in ALL}
        assert CANARY not in msgspec.json.encode(list(stored.values())).decode()
        assert {one.kind for one in EVERY} <= {kind.kind for kind, found in stored.items() if found}


def test_an_object_of_an_odd_form_is_named_and_the_others_are_taken() -> None:
    odd = {"apiVersion": "v1", "kind": "Pod", "metadata": "none"}
    copy = copied([("dump.jsonl:3", odd), ("dump.jsonl:4", a_node("n1"))])
    (left_out,) = copy.left_out
    assert (left_out.kind, left_out.name) == ("Pod", "(dump.jsonl:3)")
    assert left_out.problem == Problem("metadata", "a plain value", "an object")
    assert len(copy.of(r.NODES)) == 1
