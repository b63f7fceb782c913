"""``make release``: headings, dates and versions go together."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest
import yaml

from release.cut import UNRELEASED, as_numbers, cut, cut_changes, releases
from tests.folders import ROOT

DAY = date(2026, 12, 1)
CHANGES = "# Changes\n\n## Unreleased\n\nNew:\n\n- **A thing.**\n"


def test_the_unreleased_changes_get_a_heading_and_a_new_place_is_made() -> None:
    changed = cut_changes(CHANGES, "0.2.0", DAY)
    assert changed == (
        "# Changes\n\n## Unreleased\n\n## 0.2.0 (2026-12-01)\n\nNew:\n\n- **A thing.**\n"
    )
    assert releases(changed) == [("0.2.0", DAY)]


@pytest.mark.parametrize(
    ("version", "changes", "why"),
    [
        ("0.2", CHANGES, "expected three numbers"),
        ("", CHANGES, "expected three numbers"),
        ("0.1.9", CHANGES + "\n## 0.2.0 (2026-11-01)\n", "0.1.9 is not after 0.2.0"),
        ("0.3.0", "# Changes\n\n## Unreleased\n\n## 0.2.0 (2026-11-01)\n", "no unreleased changes"),
    ],
)
def test_what_cannot_be_released(version: str, changes: str, why: str) -> None:
    with pytest.raises(SystemExit, match=why):
        cut_changes(changes, version, DAY)


def test_the_charts_and_the_program_have_one_version(tmp_path: Path) -> None:
    shutil.copy(ROOT / "CHANGELOG.md", tmp_path)
    shutil.copytree(ROOT / "charts", tmp_path / "charts")
    cut("7.8.9", DAY, tmp_path)
    chart = yaml.safe_load((tmp_path / "charts/tenure/Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == ("7.8.9", "7.8.9")
    assert [one["version"] for one in chart["dependencies"]] == ["7.8.9"]
    inside = tmp_path / "charts/tenure/charts/karpenter-crds/Chart.yaml"
    assert yaml.safe_load(inside.read_text())["version"] == "7.8.9"


def test_the_headings_are_in_order_and_the_chart_is_not_behind_them() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert text.count(f"\n{UNRELEASED}\n") == 1
    found = releases(text)
    assert text.count("\n## ") == 1 + len(found), "a heading is Unreleased, or a version and a date"
    numbers = [as_numbers(version) for version, _ in found]
    assert numbers == sorted(numbers, reverse=True)
    assert [day for _, day in found] == sorted((day for _, day in found), reverse=True)
    chart = yaml.safe_load((ROOT / "charts/tenure/Chart.yaml").read_text())["version"]
    assert not numbers or as_numbers(chart) == numbers[0]
