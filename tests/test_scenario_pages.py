"""The page of reference has every word that a scenario may have, and each of its examples runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenure.sim.scenario.expectations import CHECKS
from tenure.sim.scenario.findings import ExpectationState
from tenure.sim.scenario.load import FIELDS, load_scenario
from tenure.sim.scenario.run import Simulation
from tenure.sim.scenario.steps import VERBS
from tenure.sim.scenario.tallies import TALLIES
from tenure.sim.scenario.targets import TARGETING
from tenure.sim.scenario.words import checks
from tenure.sim.scenario.worldoptions import CLOUD, FAULTS, KUBELET, PODS, VOLUMES
from tests.folders import ROOT
from tests.scenarios.files import written

PAGE = (ROOT / "docs" / "scenario-reference.md").read_text()
START, *REST = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)
#: By word, with its section: several sections have a word of the same name.
EXAMPLES = dict(
    zip(
        (
            f"{section.partition(chr(10))[0]} {name}"
            for section in PAGE.split("\n## ")[1:]
            for name in re.findall(r"^### .*`(.+)`$", section, re.M)
        ),
        REST,
        strict=True,
    )
)


def play(tmp_path: Path, example: str) -> Simulation:
    fragment: dict[str, Any] = yaml.safe_load(
        example.replace("2026-11-27T17:00:00Z", "'2026-11-27T17:00:00Z'")
    )
    simulation = Simulation(load_scenario(written(tmp_path, {**yaml.safe_load(START), **fragment})))
    try:
        result = simulation.run()
    finally:
        simulation.close()
    wrong = [f for f in result.findings if f.held is not ExpectationState.MET]
    assert wrong == []
    assert result.violations == ()
    assert not simulation.scenario.notes, "an example shows the form of today"
    return simulation


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_every_example_runs(tmp_path: Path, example: str) -> None:
    play(tmp_path, example)


def test_every_word_has_its_example() -> None:
    names = {name.split(" ")[-1] for name in EXAMPLES}
    options = [name for one in (CLOUD, KUBELET, PODS, VOLUMES, FAULTS) for name in one.fields]
    times = [word.name for word in checks.TIMES]
    assert {*FIELDS, *VERBS, *CHECKS, *TARGETING, *options, *times} <= names


@pytest.mark.parametrize("what", TALLIES)
def test_every_state_that_can_be_counted_is_explained(what: str) -> None:
    _, states = TALLIES[what]
    assert set(states) <= set(CHECKS[what].names)


def test_an_option_without_a_word_does_not_load() -> None:
    from tenure.sim.scenario.read.options import Options

    with pytest.raises(ValueError, match="words and fields of PodPace differ: stop-takes"):
        Options(PODS.into, [word for word in PODS.words.values() if word.name != "stop-takes"])
