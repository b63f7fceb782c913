"""Decoding: each item for itself, node classes of any provider too; the collector is left as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.pod import Pod
from tenure.model.api.resource import PODS, Resource
from tenure.model.snapshot.kinds import Unreadable, decode, decode_list

GOOD = b'{"metadata": {"name": "good", "namespace": "default"}}'
BAD = b'{"metadata": {"name": "bad", "namespace": "default"}, "spec": {"containers": 7}}'


def test_one_unreadable_pod_does_not_hide_the_others() -> None:
    first, bad, last = decode_list(PODS, [GOOD, BAD, GOOD])
    assert isinstance(first, Pod)
    assert isinstance(last, Pod)
    assert isinstance(bad, Unreadable)
    assert bad.name == "bad"
    assert issubclass(type(bad), Pod), "a stand-in takes its place"
    assert (bad.problem, bad.field) == ("Expected `array`, got `int`", "spec.containers")


def test_the_collector_works_again_afterwards_also_after_a_failure() -> None:
    def failing() -> Iterator[bytes]:
        yield GOOD
        assert not gc.isenabled()
        raise OSError("the connection broke")

    with pytest.raises(OSError, match="broke"):
        decode_list(PODS, failing())
    assert gc.isenabled()


def test_the_collector_stays_at_rest_where_it_was() -> None:
    gc.disable()
    try:
        decode_list(PODS, [GOOD])
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("data", "name"),
    [
        pytest.param(b'{"metadata": {"name": "x"}, "spec": 7}', "x", id="a broken spec"),
        pytest.param(
            b'{"metadata": {"name": "x", "namespace": "n", "labels": []}}',
            "n/x",
            id="broken labels: the name is still read",
        ),
        pytest.param(b'{"metadata": {"name": 7}}', "", id="a broken name"),
        pytest.param(b'{"metadata"', "", id="no JSON at all"),
        pytest.param(b'{"metadata": {"name": "\xff"}}', "", id="no text at all"),
    ],
)
def test_an_unreadable_object_is_named_as_far_as_it_can_be(data: bytes, name: str) -> None:
    broken = decode(PODS, data)
    assert isinstance(broken, Unreadable)
    assert (broken.key, broken.kind) == (name, "Pod")
    assert broken.problem


def test_a_node_class_of_a_provider_that_we_do_not_know_keeps_its_spec_and_its_conditions() -> None:
    tiny = Resource("cloud.example.com", "v1", "TinyClass", "tinyclasses", False)
    raw = b"""{"metadata": {"name": "default", "generation": 3}, "spec": {"flavour": ["s", 1]},
             "status": {"conditions": [{"type": "Ready", "status": "True"}], "other": 1}}"""
    decoded = decode(tiny, raw)
    assert isinstance(decoded, NodeClass)
    assert (decoded.name, decoded.metadata.generation) == ("default", 3)
    assert decoded.spec == {"flavour": ["s", 1]}
    assert [(c.type, c.status) for c in decoded.status.conditions] == [("Ready", "True")]
