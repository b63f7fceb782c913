"""The pre-commit hook, the GitHub Action and the examples of docs/lint.md, as they are used."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenure.cli.main import run
from tests.cli.commands.test_lint_ignores import a_pool
from tests.folders import ROOT

BIN = Path(sys.executable).parent
HOOKS = ROOT / ".pre-commit-hooks.yaml"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
PAGE = (ROOT / "docs" / "lint.md").read_text()


def command(*words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    given = {**os.environ, "PATH": path, "PRE_COMMIT_HOME": str(cwd / "home"), **env}
    return subprocess.run(  # noqa: S603
        words, cwd=cwd, env=given, capture_output=True, text=True, check=False
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "pool.yaml").write_text(a_pool())
    (tmp_path / "other.yaml").write_text("a: [")
    command("git", "init", "-q", cwd=tmp_path)
    return tmp_path


def test_pre_commit_takes_the_hook(tmp_path: Path) -> None:
    checked = command("pre-commit", "validate-manifest", str(HOOKS), cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout


def test_pre_commit_runs_the_hook_on_the_files_of_a_commit(repository: Path) -> None:
    """The hook itself is installed from a package index, which tests do without: ``tenure`` is that of this checkout."""
    (hook,) = yaml.safe_load(HOOKS.read_text())
    local = {**hook, "language": "system", "files": "^deploy/"}
    config = {"repos": [{"repo": "local", "hooks": [local]}]}
    (repository / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    command("git", "add", "-A", ":!home", cwd=repository)
    ended = command("pre-commit", "run", cwd=repository)
    assert ended.returncode == 1, ended.stderr
    assert "deploy/pool.yaml:8: warning RepairByForce" in ended.stdout
    assert "other.yaml" not in ended.stdout
    text = a_pool(block="# tenure: ignore RepairByForce because it is tried")
    (repository / "deploy" / "pool.yaml").write_text(text)
    command("git", "add", "deploy", cwd=repository)
    assert command("pre-commit", "run", cwd=repository).returncode == 0


@pytest.mark.parametrize(
    "name", ["values.yaml", "values-prod.yml", "Chart.yaml", "kustomization.yaml"]
)
def test_the_hook_passes_a_commit_of_files_that_are_no_manifests(tmp_path: Path, name: str) -> None:
    """They stand beside manifests; alone in a commit, lint would find no Kubernetes object in them and end with 2."""
    command("git", "init", "-q", cwd=tmp_path)
    (hook,) = yaml.safe_load(HOOKS.read_text())
    local = {**hook, "language": "system", "files": "^deploy/"}
    config = {"repos": [{"repo": "local", "hooks": [local]}]}
    (tmp_path / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / name).write_text("replicas: 3\n")
    command("git", "add", "-A", ":!home", cwd=tmp_path)
    ended = command("pre-commit", "run", cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout


def action(cwd: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The step that lints, with the program where the step before it would have put it."""
    step: dict[str, Any] = ACTION["runs"]["steps"][1]
    given = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | inputs
    env = {
        name: re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda match: given[match[1]], value)
        for name, value in step["env"].items()
    }
    folder = cwd / "temp" / "tenure" / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(BIN / "tenure", folder)
    shell = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
    return command(*shell, step["run"], cwd=cwd, RUNNER_TEMP=str(cwd / "temp"), **env)


def test_the_action_annotates_the_pull_request(repository: Path) -> None:
    ended = action(repository, files="deploy")
    assert ended.returncode == 1, ended.stderr
    assert ended.stdout.startswith(
        "::warning file=deploy/pool.yaml,line=8,col=3,title=RepairByForce"
    )


def test_the_action_takes_its_inputs_as_words_and_never_as_a_script(repository: Path) -> None:
    ended = action(repository, files="deploy $(touch made); touch made", ignore="RepairByForce")
    assert not (repository / "made").exists()
    assert ended.returncode == 2
    fine = action(repository, files="deploy", ignore="RepairByForce PeriodDriftsNodes")
    assert (fine.returncode, fine.stdout) == (0, "1 object: 0 errors, 0 warnings, 0 info\n")


def test_the_action_writes_a_file_for_code_scanning(repository: Path) -> None:
    wishes = {"format": "sarif", "output": "lint.sarif", "fail-on": "error"}
    assert action(repository, files="deploy", **wishes).returncode == 0
    assert json.loads((repository / "lint.sarif").read_text())["version"] == "2.1.0"


def test_the_action_installs_from_its_own_checkout() -> None:
    (install, _) = ACTION["runs"]["steps"]
    assert '"$GITHUB_ACTION_PATH"' in install["run"]
    assert ACTION["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" for step in ACTION["runs"]["steps"])


def test_the_page_shows_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)
    pool, hook, step = (
        next(one for one in blocks if sign in one) for sign in ("batch", "hooks:", "uses:")
    )
    (tmp_path / "pool.yaml").write_text(pool)
    assert run(["lint", str(tmp_path / "pool.yaml")]) == 0
    assert (
        capsys.readouterr().out == "1 object: 0 errors, 0 warnings, 0 info; 2 ignored by comments\n"
    )
    (shown,) = yaml.safe_load(hook)["repos"][0]["hooks"]
    assert shown["id"] == yaml.safe_load(HOOKS.read_text())[0]["id"]
    assert set(yaml.safe_load(step)[0]["with"]) <= set(ACTION["inputs"])
