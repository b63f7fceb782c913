"""The example in the documents is a whole provider: installed, found, and held to the contract."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
import yaml

from tenure.cli.main import run
from tenure.errors import SpecError
from tenure.kube.webhook.admission import Admission
from tenure.providers.contract import ClassesOnly, outside
from tenure.providers.registry import GROUP, find, names
from tests.folders import ROOT
from tests.kube.reviews import a_review

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
def test_another_provider_is_found_by_the_name_of_its_entry_point() -> None:
    acme = find("acme")
    assert acme.name == "acme"
    assert [str(kind) for kind in acme.node_classes] == ["acmenodeclasses.acme.example.com"]
    assert find("kwok").name == "kwok", "ours is still there"


@pytest.mark.usefixtures("installed")
def test_an_unknown_name_is_answered_with_every_provider() -> None:
    assert {"acme", "kwok"} <= set(names())
    with pytest.raises(SpecError, match=r"'azme', expected one of the providers .*: acme, kwok"):
        find("azme")


@pytest.mark.usefixtures("installed")
def test_the_plugins_kind_is_printed_with_the_crds(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["crds", "--provider", "acme"]) == 0
    printed = yaml.safe_load_all(capsys.readouterr().out)
    kinds = [one["spec"]["names"]["kind"] for one in printed]
    assert kinds == [
        "NodePool",
        "NodeClaim",
        "MaintenanceWindow",
        "NodePoolPolicy",
        "AcmeNodeClass",
    ]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("spec", "remark"),
    [
        ({"network": "n-1"}, ""),
        ({"network": "blue"}, "expected the id of a network"),
        ({"netwrk": "n-1"}, 'Did you mean "network"?'),
        ({}, "spec.network"),
    ],
)
def test_lint_checks_the_plugins_kind(
    spec: dict[str, str], remark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = {
        "apiVersion": "acme.example.com/v1",
        "kind": "AcmeNodeClass",
        "metadata": {"name": "default"},
        "spec": spec,
    }
    file = tmp_path / "class.yaml"
    file.write_text(yaml.safe_dump(manifest))
    assert (run(["lint", str(file)]) != 0) is bool(remark)
    assert remark in capsys.readouterr().out


@pytest.mark.usefixtures("installed")
def test_the_webhook_checks_the_plugins_kind() -> None:
    acme = find("acme")
    served = [kind.group_kind for kind in acme.node_classes]
    bad = msgspec.structs.replace(acme.kinds[0], problems=lambda _: [SpecError("spec", 1, "two")])
    obj = {
        "apiVersion": "acme.example.com/v1",
        "kind": "AcmeNodeClass",
        "metadata": {"name": "default"},
        "spec": {"network": "n-1"},
    }
    now = datetime(2026, 3, 2, tzinfo=UTC)
    for kind, allowed in ((acme.kinds[0], True), (bad, False)):
        _, reviewed = Admission(served, (kind,)).answer(a_review(obj), now)
        assert reviewed.allowed is allowed
        assert not reviewed.warnings


def tenure(*arguments: str, path: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own: the flags of ``run`` are made when it starts."""
    program = "from tenure.cli.main import main; main()"
    return subprocess.run(  # noqa: S603  # only what a test has written
        [sys.executable, "-c", program, *arguments],
        env={"PYTHONPATH": str(path), "HOME": str(path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.usefixtures("installed")
def test_the_plugins_option_is_a_setting_of_run(tmp_path: Path) -> None:
    shown = tenure("run", "--help", path=tmp_path).stdout
    assert re.search(r"--acme-account NUMBER +Whose instances\. For provider acme\.", shown), shown
    assert "TENURE_ACME_ACCOUNT" in shown
    bad = tenure("run", "--provider=acme", "--acme-account=mine", path=tmp_path)
    assert bad.returncode == 2
    assert "--acme-account: got 'mine', expected the number of an account at Acme" in bad.stderr
    others = tenure("run", "--acme-account=4711", path=tmp_path)
    assert others.returncode == 2
    assert "provider kwok does not have it, acme does" in others.stderr


@pytest.mark.usefixtures("installed")
def test_what_was_set_reaches_the_plugin() -> None:
    acme = find("acme")
    (kind,) = acme.node_classes
    acme.open(outside("c", ClassesOnly(kind, {}), acme_account="4711"))
    with pytest.raises(SpecError, match="an account that is not closed"):
        acme.open(outside("c", ClassesOnly(kind, {}), acme_account="0815"))


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
    assert re.search(r"\b4\d passed, 6 skipped", ended.stdout), ended.stdout


def test_the_page_on_providers_shows_the_example_as_it_is() -> None:
    files = [(EXAMPLE / name).read_text() for name in ("acme.py", "test_acme.py", "pyproject.toml")]
    blocks = re.findall(r"^```(?:python|toml)\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    assert len(blocks) >= 3
    assert [block for block in blocks if not any(block in text for text in files)] == []
