"""What a cluster would refuse is refused beforehand, in a line with an example."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenure.sim.scenario.load import load_scenario
from tenure.sim.scenario.read.fields import BadInput
from tenure.sim.scenario.run import Simulation
from tests.builders import a_deployment, a_node_class, a_pdb, a_pool
from tests.scenarios.files import a_story, written


def bent_deployment(**pod: Any) -> dict[str, Any]:
    deployment = a_deployment()
    deployment["spec"]["template"]["spec"].update(pod)
    return deployment


def with_resources(**resources: Any) -> dict[str, Any]:
    deployment = a_deployment()
    deployment["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    return deployment


def told(folder: Path, **changes: Any) -> str:
    """The one line about what is wrong, from the field on."""
    with pytest.raises(BadInput) as refused:
        load_scenario(written(folder, a_story(**changes)))
    [problem] = refused.value.problems
    return str(problem)


def test_amounts_may_be_numbers(tmp_path: Path) -> None:
    deployment = with_resources(requests={"cpu": 0.5, "memory": 0}, limits={"nvidia.com/gpu": 1})
    scenario = load_scenario(written(tmp_path, a_story(objects=[deployment])))
    assert len(scenario.objects) == 1


@pytest.mark.parametrize(
    ("obj", "sentence"),
    [
        pytest.param(
            with_resources(requests={"cpu": -1}),
            "requests[cpu]: got -1, expected an amount that is not negative. For example 1.",
            id="a negative amount",
        ),
        pytest.param(
            with_resources(requests={"cpu": 1}, limits={"cpu": "500m"}),
            'got {"cpu": 1}, expected at most the cpu limit of 500m. '
            "For example cpu: 500m; or raise the limit.",
            id="a request above its limit",
        ),
        pytest.param(
            bent_deployment(
                topologySpreadConstraints=[
                    {"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
                ]
            ),
            "maxSkew: got 0, expected a whole number of at least 1. For example 1.",
            id="a spread without room",
        ),
        pytest.param(
            a_pdb(maxUnavailable="abc"),
            "spec.maxUnavailable: got 'abc', expected a number from 0 or a percentage. "
            "For example 1 or 10%.",
            id="a budget that is no number",
        ),
        pytest.param(
            a_pdb(maxUnavailable=1, minAvailable=1),
            "expected minAvailable or maxUnavailable, not both. For example maxUnavailable: 1 alone.",
            id="a budget that says both",
        ),
        pytest.param(
            bent_deployment(tolerations=[{"key": "a", "operator": "Foo"}]),
            "operator: got 'Foo', expected one of Equal, Exists. For example Equal.",
            id="a toleration with an unknown operator",
        ),
        pytest.param(
            a_pool(weight=0),
            "spec.weight: got 0, expected 1 or more. For example 1.",
            id="a pool without weight",
        ),
        pytest.param(
            a_pool(weight=3, replicas=1),
            "expected it to have no weight beside replicas: such a pool takes no part in "
            "scheduling. Leave weight out.",
            id="a static pool with a weight",
        ),
        pytest.param(
            a_deployment(replicas=-1),
            "spec.replicas: got -1, expected 0 or more. For example 0.",
            id="fewer than no replicas",
        ),
        pytest.param(
            {**a_deployment(), "metadata": {"name": "Bad_Name"}},
            "metadata.name: got 'Bad_Name', expected lowercase letters, digits, dashes and dots, "
            "with a letter or digit at both ends. For example web-1.",
            id="a name in capitals",
        ),
    ],
)
def test_a_line_says_what_was_expected_and_gives_an_example(
    tmp_path: Path, obj: dict[str, Any], sentence: str
) -> None:
    line = told(tmp_path, objects=[a_node_class(), obj], expect=[])
    assert sentence in line


@pytest.mark.parametrize(
    "start", ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:00Z"]
)
def test_a_start_at_the_ends_of_the_calendar_is_refused_with_the_range(
    tmp_path: Path, start: str
) -> None:
    line = told(tmp_path, start=start)
    expected = "expected an instant from 1970 to 2999. For example 2026-01-05T08:00:00Z."
    assert f"start: got '{start}', {expected}" in line


@pytest.mark.parametrize("start", ["1970-01-01T00:00:00Z", "2999-12-31T23:59:59Z"])
def test_a_story_can_play_at_either_end_of_the_range(tmp_path: Path, start: str) -> None:
    simulation = Simulation(load_scenario(written(tmp_path, a_story(start=start))))
    try:
        assert simulation.run().fine
    finally:
        simulation.close()


def a_patch(merge: dict[str, Any], **target: Any) -> list[dict[str, Any]]:
    return [{"at": "1m", "patch": {**(target or {"pool": "general"}), "merge": merge}}]


@pytest.mark.parametrize(
    ("events", "sentence"),
    [
        pytest.param(
            a_patch({"spec": {"wieght": 1}}),
            'unknown field "events[0].patch.merge.spec.wieght". Did you mean "weight"?',
            id="a field that no pool has",
        ),
        pytest.param(
            a_patch({"spec": {"unschedulabel": True}}, node={"pool": "general"}),
            'unknown field "events[0].patch.merge.spec.unschedulabel". Did you mean "unschedulable"?',
            id="a field that no node has, also of a node that is not there yet",
        ),
        pytest.param(
            a_patch({"spec": {"weight": 900}}),
            "merge.spec.weight: got 900, expected 100 or less. For example 100.",
            id="a value that the pool would not take",
        ),
        pytest.param(
            a_patch({"spec": {"selector": {"matchLabels": {"app": "x"}}}}, deployment="web"),
            "merge.spec.selector: got",
            id="a field that may not change",
        ),
    ],
)
def test_a_patch_is_evaluated_beforehand(
    tmp_path: Path, events: list[dict[str, Any]], sentence: str
) -> None:
    with pytest.raises(BadInput) as refused:
        load_scenario(written(tmp_path, a_story(events=events)))
    assert sentence in str(refused.value.problems[0])


def test_patches_build_on_each_other_and_numbers_are_amounts(tmp_path: Path) -> None:
    limits = a_patch({"spec": {"limits": {"cpu": 10}}}) + a_patch({"spec": {"limits": None}})
    overhead = {"spec": {"template": {"spec": {"overhead": {"cpu": 0.1}}}}}
    events = [*limits, *a_patch(overhead, deployment="web")]
    assert len(load_scenario(written(tmp_path, a_story(events=events))).steps) == 3


@pytest.mark.parametrize(
    ("count", "sentence"),
    [
        (-1, "running: got -1, expected 0 or more: this can never hold. For example 0."),
        ({"max": -1}, "running.max: got -1, expected 0 or more: this can never hold."),
        (
            {"min": 5, "max": 1},
            (
                'running: got {"min": 5, "max": 1}, expected min up to max: this can never hold. '
                "For example {min: 1, max: 5}."
            ),
        ),
    ],
    ids=["fewer than none", "at most fewer than none", "at least more than at most"],
)
def test_an_expectation_that_can_never_hold_is_refused(
    tmp_path: Path, count: Any, sentence: str
) -> None:
    assert sentence in told(tmp_path, expect=[{"at": "1m", "pods": {"running": count}}])


def test_an_object_that_is_there_twice_is_refused_with_both_lines(tmp_path: Path) -> None:
    text = written(tmp_path, a_story(objects=[a_node_class(), a_pool()], expect=[])).read_text()
    story = written(tmp_path, f"{text}---\n{yaml.safe_dump(a_pool())}")
    with pytest.raises(BadInput) as refused:
        load_scenario(story)
    (problem,) = refused.value.problems
    lines = [
        n for n, line in enumerate(story.read_text().splitlines(), 1) if "name: general" in line
    ]
    first, second = lines
    assert str(problem).startswith(f"{story}:{second}: metadata.name: got 'general', expected one")
    assert f"It is there already at {story}:{first};" in str(problem)


def test_an_object_may_be_applied_again_later(tmp_path: Path) -> None:
    events = [{"at": "1m", "apply": a_pool(weight=3)}]
    assert len(load_scenario(written(tmp_path, a_story(events=events))).steps) == 1


@pytest.mark.parametrize(("until", "hours"), [("2d", 48), ("1d12h", 36), ("90m", 1.5)])
def test_a_run_may_be_as_long_as_days(tmp_path: Path, until: str, hours: float) -> None:
    scenario = load_scenario(written(tmp_path, a_story(until=until)))
    assert scenario.until == timedelta(hours=hours)


def test_every_span_of_a_scenario_may_be_said_in_days(tmp_path: Path) -> None:
    events = [{"at": "1d", "say": "hello"}, {"at": "1d12h", "crash": {"down-for": "1d"}}]
    expect = [
        {"by": "2d", "pods": {"running": 0}},
        {"after": "1d", "within": "1d", "claims": {"count": 0}},
    ]
    scenario = load_scenario(written(tmp_path, a_story(until="3d", events=events, expect=expect)))
    assert [step.at for step in scenario.steps] == [timedelta(hours=24), timedelta(hours=36)]
    assert [one.until for one in scenario.expectations] == [timedelta(days=2)] * 2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        pytest.param(
            {"nonsense": 1},
            'unknown field "nonsense". Known here: name,',
            id="a word that is like no other gets no guess",
        ),
        pytest.param(
            {"objects": [{**a_pool(), "kind": "Provisioner"}]},
            "got 'Provisioner', expected a kind the embedded cluster knows. Use NodePool.",
            id="a kind of earlier days has a successor",
        ),
        pytest.param(
            {"events": [{"at": "1m", "delete": {"claim": {"pick": "best"}}}]},
            "got 'best', expected one of oldest, newest, fullest, emptiest. For example oldest.",
            id="a choice that is like no other gets an example",
        ),
        pytest.param(
            {"expect": [{"at": "1m", "reason": "Nope"}]},
            "got 'Nope', expected a word that is known here. Known here: NotOurs,",
            id="a long list of choices is said once",
        ),
    ],
)
def test_guesses_are_made_only_at_slips(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    assert sentence in told(tmp_path, **changes)
