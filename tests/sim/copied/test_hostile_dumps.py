"""Dumps with one thing wrong: it is named, with where, what and what was expected, and the rest is the same cluster."""

from __future__ import annotations

import copy as copies
import gzip
import json
import os
import tracemalloc
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tenure.errors import SpecError
from tenure.model.api import resource as r
from tenure.model.api.names import DO_NOT_DISRUPT, ZONE
from tenure.parse.unpacked import unpacked
from tenure.sim.copied.copy import ClusterCopy, copied, read_copy
from tenure.sim.copied.leftout import LeftOut, Problem, told
from tenure.sim.copied.load import load, options_for
from tenure.sim.world import World
from tests.sim.copied.clusters import KARPENTER, Obj, a_copy, a_node, a_pool

HOUR = timedelta(hours=1)
AMOUNT = 'an amount like "500m" or "2Gi"'


def dump() -> list[Obj]:
    """What Karpenter left behind, in pools whose nodes nothing consolidates."""
    objects: list[Obj] = [json.loads(line) for line in KARPENTER.read_text().splitlines()]
    for one in objects:
        if one["kind"] == "NodePool":
            one["spec"]["disruption"].update(a_pool()["spec"]["disruption"])
    return objects


def of(objects: list[Obj], kind: str, at: int = 0) -> Obj:
    return [one for one in objects if one["kind"] == kind][at]


def copy_of(objects: list[Obj]) -> ClusterCopy:
    return copied((f"dump.jsonl:{number}", one) for number, one in enumerate(objects, 1))


def played(copy: ClusterCopy, minutes: int = 1) -> tuple[World, tuple[str, ...]]:
    world = World(options_for(copy))
    notes = load(copy, world)
    world.run(timedelta(minutes=minutes))
    return world, notes


def counts(world: World) -> tuple[int, int]:
    return len(world.store.list(r.NODES)), len(world.store.list(r.PODS))


WHOLE = (6, 43)


def test_the_dump_itself_is_whole() -> None:
    world, notes = played(copy_of(dump()))
    with world:
        assert counts(world) == WHOLE
        assert notes == ()


@pytest.mark.parametrize("part", ["capacity", "allocatable"])
def test_a_node_with_one_amount_that_cannot_be_read_keeps_its_pods(part: str) -> None:
    objects = dump()
    node = of(objects, "Node")
    node["status"][part]["cpu"] = "lots"
    world, notes = played(copy_of(objects))
    with world:
        assert counts(world) == WHOLE
        (note,) = notes
        assert note.startswith(f"Node {node['metadata']['name']} is taken without a field")
        assert f"status.{part}.cpu: got 'lots', expected a Kubernetes quantity" in note


def test_a_workload_that_cannot_be_read_takes_no_pods_along() -> None:
    objects = dump()
    template = of(objects, "Deployment")["spec"]["template"]["spec"]
    template["containers"][0]["resources"] = {"requests": {"cpu": "lots"}}
    world, notes = played(copy_of(objects))
    with world:
        assert counts(world) == WHOLE
        where = "spec.template.spec.containers[0].resources.requests.cpu"
        told_ = f'Deployment default/web is left out: {where}: got "lots", expected {AMOUNT}'
        assert notes == (told_,)


def lots_of_cpu(pod: Obj) -> None:
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "lots"}}


def of_an_odd_form(pod: Obj) -> None:
    pod["spec"]["containers"] = {"web": "image"}


@pytest.mark.parametrize("spoil", [lots_of_cpu, of_an_odd_form])
def test_a_node_is_not_disrupted_whose_pods_are_not_all_there(
    spoil: Callable[[Obj], None],
) -> None:
    """Without its pods a node looks empty, and would be the first to go."""
    objects = dump()
    name = next(one["spec"]["nodeName"] for one in objects if one["kind"] == "Pod")
    for pod in objects:
        if pod["kind"] == "Pod" and pod["spec"].get("nodeName") == name:
            spoil(pod)
    world, notes = played(copy_of(objects), minutes=60)
    with world:
        node = world.store.get(r.NODES, "", name)
        assert node["metadata"]["annotations"][DO_NOT_DISRUPT] == "true"
    told_ = f"{DO_NOT_DISRUPT} is set on 1 Node ({name}): pods that run there are left out"
    assert told_ in notes


def test_a_pod_that_has_ended_and_cannot_be_read_protects_no_node() -> None:
    objects = dump()
    pod = of(objects, "Pod")
    pod["status"]["phase"] = "Succeeded"
    lots_of_cpu(pod)
    world, notes = played(copy_of(objects))
    with world:
        assert not [note for note in notes if DO_NOT_DISRUPT in note]


@pytest.mark.parametrize(
    "path",
    [("spec", "resources", "requests"), ("status", "capacity"), ("status", "allocatable")],
    ids=".".join,
)
def test_a_claim_with_an_amount_that_cannot_be_read_is_named(path: tuple[str, ...]) -> None:
    objects = dump()
    claim = of(objects, "NodeClaim")
    part = claim
    for key in path:
        part = part.setdefault(key, {})
    part["cpu"] = "lots"
    world, notes = played(copy_of(objects))
    with world:
        assert counts(world) == WHOLE
        said = (
            f"NodeClaim {claim['metadata']['name']} is taken as it is, though an API server would"
        )
        (note,) = [note for note in notes if note.startswith(said)]
        assert f"{'.'.join(path)}.cpu: got 'lots', expected a Kubernetes quantity" in note


def test_a_pool_that_the_api_server_would_refuse_is_taken_and_named() -> None:
    objects = dump()
    of(objects, "NodePool")["spec"]["limits"] = {"cpu": "lots"}
    world, notes = played(copy_of(objects))
    with world:
        assert counts(world) == WHOLE
        assert "spec.limits.cpu: got 'lots', expected a quantity" in notes[0]


@pytest.mark.parametrize(
    "requirements",
    [
        pytest.param(["x"], id="a text"),
        pytest.param({"a": 1}, id="fields"),
        pytest.param([{"key": ZONE, "operator": "In", "values": 5}], id="a number of zones"),
        pytest.param([{"key": ZONE, "operator": "In", "values": [{}]}], id="zones that are none"),
    ],
)
def test_requirements_of_an_odd_form_leave_the_nodes_where_they_are(requirements: Any) -> None:
    objects = dump()
    of(objects, "NodePool")["spec"]["template"]["spec"]["requirements"] = requirements
    world, _ = played(copy_of(objects))
    with world:
        assert counts(world) == WHOLE


def test_a_null_is_nothing_as_for_the_api_server() -> None:
    objects = dump()
    limits = next(
        one["spec"]["containers"][0]["resources"]["limits"]
        for one in objects
        if one["kind"] == "Pod" and one["spec"]["containers"][0]["resources"].get("limits")
    )
    limits["memory"] = None
    world, notes = played(copy_of(objects))
    with world:
        assert counts(world) == WHOLE
        assert notes == ()


def test_an_amount_that_is_a_number_is_one() -> None:
    """As in a file that was written by hand: cpu: 1."""
    objects = dump()
    for one in objects:
        if one["kind"] == "Pod":
            one["spec"]["containers"][0]["resources"] = {"requests": {"cpu": 1, "memory": 1e6}}
    world, notes = played(copy_of(objects))
    with world:
        assert counts(world) == WHOLE
        (cpu,) = {
            pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            for pod in world.store.list(r.PODS)
            if pod["spec"].get("nodeName")
        }
        assert cpu == "1"
        assert notes == ()


@pytest.mark.parametrize("owner", [None, "x", {}, {"apiVersion": {}, "kind": "ReplicaSet"}])
def test_an_owner_of_an_odd_form_is_none(owner: Any) -> None:
    objects = dump()
    of(objects, "ReplicaSet")["metadata"]["ownerReferences"][0] = owner
    copy = copy_of(objects)
    assert copy.of(r.REPLICA_SETS)[0]["metadata"]["ownerReferences"] == []
    world, _ = played(copy, minutes=0)
    with world:
        assert len(world.store.list(r.NODES)) == WHOLE[0]


def test_a_node_class_by_a_name_that_cannot_be_is_named() -> None:
    objects = dump()
    ref = of(objects, "NodePool")["spec"]["template"]["spec"]["nodeClassRef"]
    ref["name"] = "Not A Name"
    world, notes = played(copy_of(objects))
    with world:
        assert counts(world) == WHOLE
    assert any("Not A Name" in note for note in notes)


def test_workloads_without_a_generation_are_played() -> None:
    """As tools that clean dumps leave them."""
    objects = dump()
    for one in objects:
        one["metadata"].pop("generation", None)
    world, notes = played(copy_of(objects))
    with world:
        assert counts(world) == WHOLE
        assert notes == ()


def test_a_condition_without_a_type_or_status_says_nothing() -> None:
    objects = dump()
    of(objects, "Node")["status"]["conditions"][:2] = [{"a": 1}, {"type": "Ready"}]
    world, _ = played(copy_of(objects))
    with world:
        assert counts(world) == WHOLE


def test_objects_of_a_namespace_that_cannot_be_are_named_and_the_others_are_taken() -> None:
    objects = dump()
    of(objects, "PodDisruptionBudget")["metadata"]["namespace"] = "Not A Name"
    world, _ = played(copy_of(objects))
    with world:
        assert counts(world) == WHOLE


@pytest.mark.parametrize(("written", "is_"), [(5, "5"), (True, "true"), ("b", "b")])
def test_a_label_that_is_no_text_is_read_as_it_is_written(written: Any, is_: str) -> None:
    objects = dump()
    of(objects, "Node")["metadata"]["labels"][ZONE] = written
    copy = copy_of(objects)
    assert is_ in copy.zones()
    world, _ = played(copy)
    with world:
        assert counts(world) == WHOLE


def test_of_many_objects_of_a_kind_the_first_is_named() -> None:
    objects = dump()
    for at in range(20):
        of(objects, "Pod", at)["spec"]["tolerations"] = "yes"
    world, notes = played(copy_of(objects))
    with world:
        protected, note = notes
        assert protected.startswith(f"{DO_NOT_DISRUPT} is set on ")
        assert note.startswith("20 Pods are left out, the first of them default/db-0: ")
        assert note.endswith('spec.tolerations: got "yes", expected a list')


@pytest.mark.parametrize(
    "instant",
    ["9999-12-31T23:59:59Z", "2040-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "yesterday", 5, None],
)
@pytest.mark.parametrize("kind", ["Pod", "Node"])
def test_one_odd_instant_does_not_move_the_copy(kind: str, instant: Any) -> None:
    objects = dump()
    of(objects, kind)["metadata"]["creationTimestamp"] = instant
    copy = copy_of(objects)
    assert copy.at == read_copy(KARPENTER).at
    world, _ = played(copy)
    with world:
        assert counts(world) == WHOLE


def test_an_odd_heartbeat_does_not_move_the_copy_either() -> None:
    objects = dump()
    of(objects, "Node")["status"]["conditions"][0]["lastHeartbeatTime"] = "9999-12-31T23:59:59Z"
    assert copy_of(objects).at == read_copy(KARPENTER).at


def test_an_object_of_the_future_is_as_old_as_the_copy() -> None:
    objects = dump()
    pod = of(objects, "Pod")
    pod["metadata"]["creationTimestamp"] = "2040-01-01T00:00:00Z"
    copy = copy_of(objects)
    (note,) = copy.notes
    assert note.startswith("created after the copy was taken: 1 object, the first of them Pod db-0")
    (taken,) = [one for one in copy.of(r.PODS) if one["metadata"]["name"] == "db-0"]
    assert taken["metadata"]["creationTimestamp"] == "2026-11-15T08:25:06Z"


def without_uids(objects: list[Obj]) -> None:
    for one in objects:
        del one["metadata"]["uid"]


def cleaned(objects: list[Obj]) -> None:
    for one in objects:
        for key in ("uid", "creationTimestamp", "resourceVersion"):
            one["metadata"].pop(key, None)
        for owner in one["metadata"].get("ownerReferences", ()):
            del owner["uid"]


def all_alike(objects: list[Obj]) -> None:
    for one in objects:
        one["metadata"]["uid"] = "same"


@pytest.mark.parametrize("change", [without_uids, cleaned, all_alike])
def test_objects_without_uids_of_their_own_do_not_delete_each_other(
    change: Callable[[list[Obj]], None],
) -> None:
    objects = dump()
    change(objects)
    copy = copy_of(objects)
    world, notes = played(copy)
    with world:
        assert counts(world) == WHOLE
        assert any(note.startswith("no UID of its own: ") for note in notes)
        uids = [one["metadata"]["uid"] for one in world.store.list(r.PODS)]
        assert len(set(uids)) == len(uids)
        (deployment,) = world.store.list(r.DEPLOYMENTS)
        (owner,) = {
            one["metadata"]["ownerReferences"][0]["uid"] for one in world.store.list(r.REPLICA_SETS)
        }
        assert owner == deployment["metadata"]["uid"]


def test_pods_on_nodes_that_are_not_there_are_named() -> None:
    objects = dump()
    name = of(objects, "Node")["metadata"]["name"]
    objects = [one for one in objects if one is not of(objects, "Node")]
    world, notes = played(copy_of(objects))
    with world:
        lost = sum(one["spec"].get("nodeName") == name for one in objects if one["kind"] == "Pod")
        assert f"{lost} pods on Nodes that are not among the objects ({name}): lost with them" in (
            notes
        )


def test_owners_in_a_circle_stay() -> None:
    objects = dump()
    one, two = of(objects, "Pod", 0), of(objects, "Pod", 1)
    for pod, owner in ((one, two), (two, one)):
        pod["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "controller": True}
            | {key: owner["metadata"][key] for key in ("name", "uid")}
        ]
    world, _ = played(copy_of(objects))
    with world:
        assert world.store.find(r.PODS, "default", one["metadata"]["name"]) is not None


ODD: list[tuple[Obj, Problem]] = [
    ({"apiVersion": "v1", "kind": "Pod"}, Problem("metadata.name", "nothing", "a name")),
    (
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 5}},
        Problem("metadata.name", "a value of another form", "a text"),
    ),
    (
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": []}},
        Problem("metadata.uid", "a list", "a text"),
    ),
    (
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": []}},
        Problem("metadata.labels", "a list", "an object"),
    ),
    (
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": [1]},
        Problem("status", "a list", "an object"),
    ),
]


@pytest.mark.parametrize(("odd", "problem"), ODD)
def test_an_object_of_an_odd_form_says_where_and_what_was_expected(
    odd: Obj, problem: Problem
) -> None:
    copy = a_copy(copies.deepcopy(odd), a_node("n1"))
    assert [one.problem for one in copy.left_out] == [problem]
    assert len(copy.of(r.NODES)) == 1


def test_a_value_that_is_not_redacted_yet_is_not_shown() -> None:
    container = {"name": "c", "image": "c", "env": [{"name": "PASSWORD", "value": 12345}]}
    spec = {"containers": [container], "volumes": 5}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    (line,) = told(a_copy(pod, a_node("n1")).left_out)
    assert "12345" not in line


def test_a_kind_that_is_no_text_is_left_out() -> None:
    copy = a_copy({"apiVersion": "v1", "kind": ["Pod"]}, a_node("n1"))
    assert len(copy.of(r.NODES)) == 1


def test_lines_that_are_cut_short_are_counted() -> None:
    cut = SpecError("dump.jsonl:7", "{", "JSON")
    copy = copied([("dump.jsonl:7", cut), ("dump.jsonl:8", cut), ("here", a_node("n1"))])
    assert list(told(copy.left_out)) == [
        "2 lines are left out, the first of them dump.jsonl:7: got '{', expected JSON"
    ]


def test_one_line_for_each_kind_of_what_is_left_out() -> None:
    problem = Problem("spec", "nothing", "fields")
    kinds = ("StorageClass", "NodePoolPolicy", "StorageClass", "NodePoolPolicy", "Pod")
    assert list(told(LeftOut(kind, "a", problem) for kind in kinds)) == [
        "2 StorageClasses are left out, the first of them a: spec: got nothing, expected fields",
        "2 NodePoolPolicies are left out, the first of them a: spec: got nothing, expected fields",
        "Pod a is left out: spec: got nothing, expected fields",
    ]


def test_a_file_that_begins_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    file = tmp_path / "dump.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + KARPENTER.read_bytes())
    assert len(read_copy(file).of(r.NODES)) == 6


def _as_list(data: bytes) -> bytes:
    items = [json.loads(line) for line in data.splitlines()]
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": items}, indent=4).encode()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "lines in gzip": gzip.compress,
    "a list in gzip": lambda data: gzip.compress(_as_list(data)),
    "lines in UTF-16": lambda data: data.decode().encode("utf-16"),
    "a list in UTF-16 with the ends of lines of Windows": lambda data: (
        _as_list(data).decode().replace("\n", "\r\n").encode("utf-16")
    ),
    "UTF-16 of the other order": lambda data: b"\xfe\xff" + data.decode().encode("utf-16-be"),
    "UTF-16 in gzip": lambda data: gzip.compress(data.decode().encode("utf-16")),
    "more than one part in gzip": lambda data: (
        gzip.compress(data[:999]) + gzip.compress(data[999:])
    ),
}


@pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED.keys())
def test_a_dump_that_is_compressed_or_in_utf_16_is_read(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    file = tmp_path / "dump"
    file.write_bytes(pack(KARPENTER.read_bytes()))
    plain, packed = read_copy(KARPENTER), read_copy(file)
    assert packed.objects == plain.objects
    assert packed.at == plain.at


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x1f\x8b\x08rest", "expected a whole file that gzip wrote"),
        (gzip.compress(b'{"kind": "Node"}' * 99)[:-9], "expected a whole file that gzip wrote"),
        (b"\xff\xfe{", "expected text in UTF-16"),
    ],
    # gzip writes the second into the header, so the bytes name another test in each worker.
    ids=["no gzip after its header", "cut off", "half a character of UTF-16"],
)
def test_a_dump_that_cannot_be_unpacked_says_why(tmp_path: Path, data: bytes, words: str) -> None:
    file = tmp_path / "dump.json.gz"
    file.write_bytes(data)
    with pytest.raises(SpecError, match=words):
        read_copy(file)


def test_a_dump_is_unpacked_up_to_a_bound(tmp_path: Path) -> None:
    file = tmp_path / "bomb.gz"
    file.write_bytes(gzip.compress(bytes(1 << 26)))
    assert file.stat().st_size < 1 << 17
    tracemalloc.start()
    try:
        with pytest.raises(SpecError, match="more than 4194304 bytes, unpacked"):
            unpacked(file, longest=1 << 22)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 23


def test_a_folder_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="expected one file, not a folder"):
        read_copy(tmp_path)


def through_a_pipe(data: bytes, folder: Path) -> ClusterCopy:
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    try:
        return read_copy(pipe)
    finally:
        writer.join()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, _as_list], ids=["lines", "gzip", "a list"])
def test_a_dump_through_a_pipe_is_read(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """As ``--from <(command)`` and ``--from -`` are."""
    plain, piped = read_copy(KARPENTER), through_a_pipe(pack(KARPENTER.read_bytes()), tmp_path)
    assert (piped.objects, piped.at) == (plain.objects, plain.at)


def test_a_pipe_without_a_word_says_so(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="and it is empty"):
        through_a_pipe(b"", tmp_path)


def test_a_line_is_read_up_to_a_bound_and_the_next_one_after_it(tmp_path: Path) -> None:
    first, *others = KARPENTER.read_bytes().splitlines(keepends=True)
    file = tmp_path / "dump.jsonl"
    with file.open("wb") as writing:
        writing.write(first)
        for _ in range(40):
            writing.write(b"[" * (1 << 20))
        writing.write(b"\n")
        writing.writelines(others)
    tracemalloc.start()
    try:
        copy = read_copy(file)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 26
    assert copy.objects == read_copy(KARPENTER).objects
    (left_out,) = copy.left_out
    assert "a line of more than 16777216 bytes" in left_out.problem.got
