"""The pages on Tenure beside Karpenter: short, and what they show is what is so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tenure.cli.main import run
from tenure.cli.settings.table import TABLE
from tenure.core.beside.karpenter import NEWEST, OLDEST, shown_release
from tenure.core.beside.kinds import LEVERS
from tenure.core.marks.command import COMMAND_MARKS
from tenure.core.marks.ownership import LEVER_MARKS
from tenure.core.marks.timeout import NOTES
from tenure.core.protect.protection import since_key
from tenure.core.reasons import Reason
from tenure.model.api.names import CREATED_BY, DO_NOT_DISRUPT, EXPIRED_AT, PROBE_BESIDE, REPLACES
from tenure.runtime import telemetry
from testbed.binaries import SOURCES
from tests.folders import ROOT

PAGE = (ROOT / "docs" / "beside-karpenter.md").read_text()
REFERENCE = (ROOT / "docs" / "beside-karpenter-reference.md").read_text()
EXAMPLE = ROOT / "examples" / "beside-karpenter.yaml"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.M | re.S)


def test_the_page_has_two_screens_at_most() -> None:
    prose = re.sub(r"^```.*?^```\n", "", PAGE, flags=re.M | re.S)
    assert len(prose.splitlines()) <= 62
    assert len(PAGE.splitlines()) <= 93


def test_the_example_of_the_page_is_the_file_and_has_no_mistake(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, _, written = EXAMPLE.read_text().partition("\n")
    assert written == blocks(PAGE, "yaml")[0]
    run(["lint", "--beside-karpenter", str(EXAMPLE), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["objects"] == 2
    # The NodePool, which has to say expireAfter: Never, is not in the file.
    assert {one["code"] for one in found["findings"]} <= {"NoLever"}


@pytest.mark.parametrize("page", [PAGE, REFERENCE], ids=["page", "reference"])
def test_every_setting_that_is_named_exists(page: str) -> None:
    others = {"dry-run", "set", "legacy-node-repair"}
    named = set(re.findall(r"`--([a-z-]+)", page)) - others
    assert named <= {setting.flag for setting in TABLE}


@pytest.mark.parametrize("page", [PAGE, REFERENCE], ids=["page", "reference"])
def test_every_metric_that_is_named_exists(page: str) -> None:
    source = (Path(telemetry.__file__).parent / "metricnames.py").read_text()
    for name in re.findall(r"\b(tenure_[a-z_]+)", page):
        assert f'"{name}"' in source or f'"{name.removeprefix("tenure_")}"' in source, name


def test_the_reference_names_every_lever_and_its_first_release() -> None:
    rows = [line for line in REFERENCE.splitlines() if line.startswith("|")]
    for lever in LEVERS:
        (row,) = [
            row for row in rows if row.split("|")[2].strip().startswith(f"`{lever.annotation}`.")
        ]
        assert row.rstrip("| ").endswith(f"| {shown_release(lever.since)}")
    for mark in LEVERS[0].marks:
        assert mark in REFERENCE


def test_what_tenure_notes_is_removed_by_the_line_of_the_reference() -> None:
    (line,) = [one for one in blocks(REFERENCE, "bash") if "--all" in one]
    removed = {word.removesuffix("-") for word in line.split() if "/" in word}
    of_a_lever = set(LEVER_MARKS) | {DO_NOT_DISRUPT}
    written = {*COMMAND_MARKS, *NOTES, REPLACES, CREATED_BY, EXPIRED_AT, PROBE_BESIDE}
    written |= {since_key(lever.annotation) for lever in LEVERS}
    assert removed >= written
    assert not removed & of_a_lever, "a user's value would go with it"


def test_reasons_that_are_named_exist() -> None:
    for reason in (
        "OnlyLooks",
        "KarpenterNotReady",
        "KarpenterRollsOut",
        "PoliciesUnlisted",
        "NodeRepairOff",
        "NodeRepairLeftToKarpenter",
        "BudgetsAsLevers",
        "LeverImpossible",
    ):
        assert f"`{reason}`" in PAGE + REFERENCE
        assert reason in set(Reason)


def test_the_pages_name_the_releases_that_are_supported_and_those_that_were_tried() -> None:
    supported = f"{shown_release(OLDEST)} to {shown_release(NEWEST)}"
    assert supported in PAGE
    older = [path.name.removeprefix("karpenter-") for path in SOURCES.glob("karpenter-*")]
    for release in (*older, shown_release(NEWEST)):
        assert f"| {release} |" in REFERENCE
