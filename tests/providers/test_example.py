"""The example in the documents is a whole provider: installed, found, and held to the contract."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tenure.errors import SpecError
from tenure.providers.registry import GROUP, find, names
from tests.folders import ROOT

EXAMPLE = ROOT / "examples" / "provider"
PAGE = ROOT / "docs" / "providers.md"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``pip install`` leaves it: the module, and a folder that says what it is."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    about = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir()
    lines = [f"{name} = {value}" for name, value in project["entry-points"][GROUP].items()]
    (about / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines]))
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    shutil.copy(EXAMPLE / "acme.py", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    monkeypatch.delitem(sys.modules, "acme", raising=False)


@pytest.mark.usefixtures("installed")
def test_a_strangers_provider_is_found_by_the_name_of_its_entry_point() -> None:
    acme = find("acme")
    assert acme.name == "acme"
    assert [str(kind) for kind in acme.node_classes] == ["acmenodeclasses.acme.example.com"]
    assert find("kwok").name == "kwok", "ours is still there"


@pytest.mark.usefixtures("installed")
def test_an_unknown_name_is_answered_with_the_strangers_too() -> None:
    assert {"acme", "kwok"} <= set(names())
    with pytest.raises(SpecError, match=r"'azme', expected one of the providers .*: acme, kwok"):
        find("azme")


def test_the_example_keeps_the_contract(tmp_path: Path) -> None:
    for file in ("acme.py", "test_acme.py"):
        shutil.copy(EXAMPLE / file, tmp_path)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert re.search(r"\b3\d passed, 2 skipped", ended.stdout), ended.stdout


def test_the_page_on_providers_shows_the_example_as_it_is() -> None:
    files = [(EXAMPLE / name).read_text() for name in ("acme.py", "test_acme.py", "pyproject.toml")]
    blocks = re.findall(r"^```(?:python|toml)\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    assert len(blocks) >= 3
    assert [block for block in blocks if not any(block in text for text in files)] == []
