"""docs/termination.md, docs/protection.md and docs/lint.md: what they show is what is so."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenure.cli.main import run
from tenure.cli.settings.table import TABLE
from tenure.core.protect.protection import protection_of
from tenure.core.reasons import Reason
from tenure.core.terminate.schedule import timetable
from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.settings import Settings
from tenure.schema.findings import CODES
from tests.core.build import HOUR_AGO, NOW, a_claim, a_node, a_pod
from tests.folders import ROOT
from tests.snapshots import snapshot_with

DOCS = ROOT / "docs"
STORY = ROOT / "examples" / "scenarios" / "deadline.yaml"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def explained(page: str) -> list[str]:
    """The words after ``tenure`` of the one ``tenure explain`` that the page shows in a block."""
    (command,) = (block for block in blocks(page, "console") if " explain " in block)
    words = command.split()[2:]
    scenario = words.index("--in") + 1
    words[scenario] = str(DOCS.parent / words[scenario])
    return words


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table under a line of headings."""
    _, _, table = (DOCS / page).read_text().partition(f"{heading}\n")
    lines = table.partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.mark.parametrize("page", ["termination.md", "protection.md", "repair.md"])
def test_every_manifest_is_valid(
    page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "all.yaml").write_text("\n---\n".join(blocks(page, "yaml")))
    assert run(["lint", str(tmp_path / "all.yaml"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["objects"] == len(blocks(page, "yaml")) > 0


def test_every_reason_and_setting_that_is_named_exists() -> None:
    pages = "".join((DOCS / name).read_text() for name in ("termination.md", "protection.md"))
    reasons = {
        "FailedDraining",
        "TerminationGracePeriodExpiring",
        "DrainNotGraceful",
        "Disrupted",
        "DoNotDisruptUntil",
        "DoNotDisruptGracePeriodElapsed",
        "InvalidDoNotDisruptAnnotation",
    }
    assert reasons <= {str(reason) for reason in Reason}
    assert [reason for reason in reasons if f"`{reason}`" not in pages] == []
    assert "protection-clock" in {setting.flag for setting in TABLE}


# -- termination.md ----------------------------------------------------------------------


def test_the_timetable_is_the_one_that_explain_shows(capsys: pytest.CaptureFixture[str]) -> None:
    shown = next(block for block in blocks("termination.md", "text") if "Drain of" in block)
    assert run(explained("termination.md")) == 0
    out = capsys.readouterr().out
    assert out[out.index("Drain of") :] == shown


def test_what_then_happens_happens(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", str(STORY), "--json"]) == 0
    entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    heard = {
        (entry["at"][11:19], entry["subject"].rpartition("/")[2], entry["reason"])
        for entry in entries
        if entry["type"] == "event" and entry["subject"].startswith("Pod/")
    }
    words = {"evicted": "Evicted", "force deleted": "Disrupted", "stopped": "Gone"}
    told = 0
    for at, what in rows("termination.md", "| at | what |"):
        for word, reason in words.items():
            pods = re.findall(r"db-\d|report|service", what) if word in what else []
            told += len(pods)
            assert [pod for pod in pods if (at, pod, reason) not in heard] == [], (at, reason)
    assert told == 8


# -- protection.md -----------------------------------------------------------------------


def test_the_table_of_values_is_how_they_are_read() -> None:
    for cell, meaning, *_ in rows("protection.md", "| value | what it means |"):
        for value in re.findall(r'`"([^`]*)"`', cell):
            protection = protection_of(a_pod(protected=value))
            if meaning.startswith("not protected"):
                assert protection is None, value
                continue
            assert protection is not None, value
            assert protection.unreadable == meaning.startswith("means nothing"), value
            assert (protection.ends_at is None) == ("for ever" in meaning), value


def test_the_three_examples_protect_for_as_long_as_they_say() -> None:
    spans: list[timedelta | None] = []
    for text in blocks("protection.md", "yaml")[:3]:
        manifest: Any = yaml.safe_load(text)
        pod = manifest["spec"].get("template", manifest)
        value = pod["metadata"]["annotations"][DO_NOT_DISRUPT]
        protection = protection_of(a_pod(protected=value))
        assert protection is not None
        spans.append(protection.ends_at - HOUR_AGO if protection.ends_at else None)
    assert spans == [timedelta(hours=2), timedelta(hours=24), None]


def test_a_protection_together_with_a_deadline() -> None:
    claim = a_claim(spec={"termination_grace_period": "72h"})
    snapshot = snapshot_with(claim, a_node(), a_pod(protected="4h", creation_timestamp=HOUR_AGO))
    table = timetable(snapshot.nodes["node-a"], snapshot, Settings(), NOW)
    assert table.pods[0].asked_at == NOW + timedelta(hours=3)
    assert table.deadline is not None
    assert table.deadline.at == NOW + timedelta(hours=72)


# -- lint.md -----------------------------------------------------------------------------


def test_the_example_says_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "all.yaml").write_text(blocks("lint.md", "yaml")[0])
    monkeypatch.chdir(tmp_path)
    assert run(["lint", "all.yaml"]) == 1
    assert capsys.readouterr().out == blocks("lint.md", "text")[0]


def test_every_code_is_listed_with_what_the_program_says_of_it() -> None:
    told = [
        [f"`{code}`", str(info.severity), info.meaning, info.advice] for code, info in CODES.items()
    ]
    shown = rows("lint.md", "| code | severity | what it means | what to do |")
    assert [[cell.rstrip(" |") for cell in row] for row in shown] == told
