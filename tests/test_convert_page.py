"""docs/convert.md: what it shows is what is so."""

from __future__ import annotations

import re

import pytest

from tenure.cli.convert.report import SEVERITY, Code
from tenure.cli.main import run
from tests.folders import ROOT

PAGE = (ROOT / "docs" / "convert.md").read_text()


def test_the_lines_of_the_report_are_those_of_the_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = re.search(r"^```text\n(.*?)^```", PAGE, re.M | re.S)
    assert shown is not None
    monkeypatch.chdir(ROOT)
    assert run(["convert", "examples/provisioners.yaml"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert [line for line in shown[1].splitlines() if line not in said] == []


def test_every_code_is_explained_with_its_severity() -> None:
    assert set(SEVERITY) == set(Code)
    assert [code for code in Code if f"| `{code}` | {SEVERITY[code]} |" not in PAGE] == []
