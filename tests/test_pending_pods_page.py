"""The page on pending pods shows what explain says, and its scenario plays as it tells."""

from __future__ import annotations

import pytest

from tenure.cli.main import run
from tests.folders import ROOT
from tests.test_termination_pages import blocks, explained

PAGE = "pending-pods.md"


def test_explain_says_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(explained(PAGE)) == 0
    (shown,) = blocks(PAGE, "text")
    assert shown == capsys.readouterr().out


@pytest.mark.parametrize(
    ("pod", "change"),
    [
        ("limited", "raise spec.limits.cpu to 8 in NodePool db"),
        ("far", "let the pod's node selector or affinity allow topology.kubernetes.io/zone=zone-a"),
        ("near", "remove the pod's required affinity over topology.kubernetes.io/zone"),
    ],
)
def test_the_other_pods_of_the_scenario_are_told_what_would_place_them(
    pod: str, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = str(ROOT / "examples" / "scenarios" / "pending-pods.yaml")
    assert run(["explain", f"pod/{pod}", "--in", scenario, "--at", "2m"]) == 0
    assert f"  to fit    {change}" in capsys.readouterr().out
