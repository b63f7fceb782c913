"""Nonsense in a scenario is refused in sentences, whatever it is and wherever it stands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.sim.scenario.load import load_scenario
from tenure.sim.scenario.read.fields import BadInput
from tests.builders import a_pdb, a_pod
from tests.scenarios.files import a_story, written

FULL = a_story(
    start="2026-01-05T08:00:00Z",
    seed=1,
    settings={"garbage-period": "1m"},
    cloud={"boot-for": "5s", "zones": ["north"], "catalogue": ["m7i.large"]},
    kubelet={"pods": {"start-for": "1s"}},
    faults={"cloud-dry": [{"zone": "north"}], "api-error-rate": 0.5},
    events=[
        {"at": "1m", "apply": [a_pod(), a_pdb(maxUnavailable=0)]},
        {"at": "1m", "delete": {"claim": {"pool": "general", "pick": "newest", "index": 1}}},
        {"at": "1m", "patch": {"kind": "pdb", "name": "web", "merge": {"spec": {}}}},
        {"at": "1m", "set-condition": {"node": {}, "type": "Ready", "status": "False"}},
        {"at": "1m", "crash": {"down-for": "1m"}},
    ],
    expect=[
        {"at": "end", "pods": {"app": "web", "running": {"min": 1, "max": 3}}},
        {"never": {"reason": {"is": "Draining", "of": "Node/*", "subjects": 2}}, "after": "1m"},
        {"after": "1m", "within": "1m", "condition": {"node": {}, "type": "Ready"}},
        {"at": "2m", "cost": {"total": {"max": 1}}},
    ],
)

nonsense = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.sampled_from(["", "1d", "5m", "-1s", "x/y/z", "\u2603", "true", "0", "a=b,c in ("]),
    st.just([]),
    st.just({}),
    st.just([None]),
    st.just({"metadata": None}),
    st.just({"kind": "Pod", "apiVersion": "v1", "metadata": [], "spec": 3}),
)


def places(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        if isinstance(value, dict | list):
            yield from places(value, (*at, key))
        else:
            yield (*at, key)


PLACES = list(places(FULL))


def replaced(tree: Any, at: tuple[Any, ...], value: Any) -> Any:
    if not at:
        return value
    head, *rest = at
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[head] = replaced(tree[head], tuple(rest), value)
    return copy


def test_the_full_story_is_right(tmp_path: Path) -> None:
    assert len(load_scenario(written(tmp_path, FULL)).steps) == 5


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(PLACES), nonsense)
def test_nonsense_is_told_in_lines_or_taken(
    tmp_path: Path, at: tuple[Any, ...], value: Any
) -> None:
    path = written(tmp_path, replaced(FULL, at, value))
    try:
        load_scenario(path)
    except BadInput as error:
        lines = [str(problem) for problem in error.problems]
        assert lines
        assert not any("\n" in line for line in lines)


@pytest.mark.parametrize("text", ["\x00", "%", "? [a]: b", "a: !!binary aGk=", "<<: 1", "a: 1e999"])
def test_odd_yaml_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_scenario(written(tmp_path, text))
    assert all("\n" not in str(problem) for problem in caught.value.problems)
