"""The pages on windows, budgets, drift and voluntary disruption: what they show is what is so."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tenure.cli.main import run
from tenure.cli.settings.table import TABLE
from tenure.core.reasons import Reason
from tenure.model.api.window import ACTIONS
from tests.folders import ROOT
from tests.test_termination_pages import blocks

PAGES = ("maintenance-windows.md", "voluntary-disruption.md", "budgets.md", "drift.md")


@pytest.mark.parametrize("page", [page for page in PAGES if page != "drift.md"])
def test_every_manifest_is_valid(
    page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = blocks(page, "yaml")
    (tmp_path / "all.yaml").write_text("\n---\n".join(shown))
    assert run(["lint", str(tmp_path / "all.yaml"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["objects"] == len(shown) > 0
    assert [one for one in found["findings"] if one["severity"] != "info"] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_setting_and_file_that_is_named_exists(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    settings = set(re.findall(r"`--([a-z-]+)", text)) - {"kubeconfig"}
    assert settings <= {setting.flag for setting in TABLE}
    for name in re.findall(r"examples/\S+?\.yaml", text):
        assert (ROOT / name).exists(), name


def test_every_reason_that_is_asked_for_exists() -> None:
    for page in PAGES:
        text = (ROOT / "docs" / page).read_text()
        assert set(re.findall(r"reason=(\w+)", text)) <= set(Reason)


def test_the_page_on_windows_names_every_action() -> None:
    text = (ROOT / "docs" / "maintenance-windows.md").read_text()
    assert [action for action in ACTIONS if f"`{action}`" not in text] == []


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])
def test_a_link_into_a_page_leads_to_one_of_its_headings(page: Path) -> None:
    for name, anchor in re.findall(r"\]\(([\w.-]+\.md)?#([\w-]+)\)", page.read_text()):
        target = page.parent / name if name else page
        headings = re.findall(r"^#+ (.*)$", target.read_text(), re.M)
        assert anchor in {anchor_of(heading) for heading in headings}, f"{name}#{anchor}"


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])
def test_no_heading_stands_twice_on_a_page(page: Path) -> None:
    """A link leads to the first of them, and what the second says is not found."""
    outside = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    headings = Counter(re.findall(r"^#+ (.*)$", outside, re.M))
    assert [heading for heading, count in headings.items() if count > 1] == []


def anchor_of(heading: str) -> str:
    """As GitHub makes it."""
    plain = re.sub(r"[^\w\- ]", "", heading.lower())
    return plain.replace(" ", "-")
