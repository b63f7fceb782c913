"""Decoding lists: each item for itself, and the collector is left as it was found."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tenure.model.kinds import Unreadable, decode_list
from tenure.model.pod import Pod
from tenure.model.resource import PODS

GOOD = b'{"metadata": {"name": "good", "namespace": "default"}}'
BAD = b'{"metadata": {"name": "bad", "namespace": "default"}, "spec": {"containers": 7}}'


def test_one_unreadable_pod_does_not_hide_the_others() -> None:
    first, bad, last = decode_list(PODS, [GOOD, BAD, GOOD])
    assert isinstance(first, Pod)
    assert isinstance(last, Pod)
    assert isinstance(bad, Unreadable)
    assert bad.name == "bad"
    assert "containers" in bad.problem


def test_the_collector_works_again_afterwards_also_after_a_failure() -> None:
    def failing() -> Iterator[bytes]:
        yield GOOD
        assert not gc.isenabled()
        raise OSError("the connection broke")

    with pytest.raises(OSError, match="broke"):
        decode_list(PODS, failing())
    assert gc.isenabled()
