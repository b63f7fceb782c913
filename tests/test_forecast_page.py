"""docs/forecast.md: what it shows is what is so."""

from __future__ import annotations

import re
import shlex

import pytest

from tenure.cli.main import run
from tests.cli.commands.test_forecast import FIELDS
from tests.folders import ROOT

PAGE = (ROOT / "docs" / "forecast.md").read_text()


def test_the_example_is_what_the_command_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = re.search(r"^```console\n\$ .venv/bin/tenure (.*?)\n(.*?)^```", PAGE, re.M | re.S)
    assert shown is not None
    monkeypatch.chdir(ROOT)
    assert run(shlex.split(shown[1])) == 0
    said = capsys.readouterr().out.splitlines()
    lines = [line for line in shown[2].splitlines() if line != "…"]
    assert len(lines) > 20
    assert [line for line in lines if line not in said] == []


def test_every_field_of_the_json_is_explained() -> None:
    rows = PAGE.partition("## JSON")[2]
    fields = {field for names in FIELDS.values() for field in names}
    assert [field for field in sorted(fields) if not re.search(rf"`{field}(\[\])?`", rows)] == []
