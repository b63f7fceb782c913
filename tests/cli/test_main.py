"""The program: what it prints, what it says when something is wrong, and its exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tenure.cli.main import run
from tests.scenarios.files import SHIPPED, a_story, written


def test_without_a_command_it_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    out = capsys.readouterr().out
    assert "tenure simulate examples/scenarios/fifty-pods.yaml" in out
    for command in ("demo", "run", "up", "simulate", "explain", "plan", "crds"):
        assert f"  {command} " in out


@pytest.mark.parametrize("command", ["run", "simulate", "explain", "plan", "crds"])
def test_each_command_has_help_with_examples(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "--help"]) == 0
    assert f"tenure {command}" in capsys.readouterr().out.partition("Examples:")[2]


def test_a_group_without_a_command_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["new"]) == 0
    said = capsys.readouterr()
    assert "\n  scenario  Write NAME.yaml" in said.out
    assert said.err == ""


@pytest.mark.parametrize("words", [["-h"], ["lint", "-h"]])
def test_the_short_word_for_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 0
    assert capsys.readouterr().out.startswith("Usage: tenure")


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("tenure ")


WRONG = {
    "an unknown command": (
        ["simulat"],
        "tenure: got 'simulat', expected one of demo, run, board, up, simulate,",
    ),
    "a command with a typing error": (["explane"], "Did you mean explain? See tenure --help."),
    "a kind with a typing error": (
        ["explain", "nod/a", "--in", "a.yaml", "--at", "1m"],
        "or pdb. Did you mean node? For example",
    ),
    "a kubeconfig that is not there": (
        ["plan", "--kubeconfig", "nowhere"],
        "--kubeconfig: got 'nowhere', expected a kubeconfig that can be read (No such file",
    ),
    "a missing argument": (
        ["explain"],
        "Missing argument 'KIND/NAME | KIND NAME'. For example: tenure explain pod/web-1 -n team-a. See",
    ),
    "no scenario": (["simulate"], "tenure simulate: FILE: missing, expected a scenario, or --from"),
    "a word of a list": (
        ["lint", "--format", "jsn", "a.yaml"],
        (
            "tenure lint: --format: got 'jsn', expected text, json, github or sarif. "
            "Did you mean json? See tenure lint --help."
        ),
    ),
    "a number that is none": (
        ["demo", "--seed", "x"],
        "tenure demo: --seed: got 'x', expected a whole number. See tenure demo --help.",
    ),
    "a number out of its range": (
        ["demo", "--speed", "0"],
        "tenure demo: --speed: got '0.0', expected a number from 1 to 600. See",
    ),
    "a number that is not one": (
        ["up", "--speed", "nan"],
        "tenure up: --speed: got 'nan', expected a number from 0.1 to 3600. See",
    ),
    "an option like two": (
        ["demo", "--sed", "3"],
        "No such option '--sed'. Did you mean --seed or --speed? See tenure demo --help.",
    ),
    "a command of a group": (
        ["new", "example"],
        "tenure new: got 'example', expected examples or scenario. Did you mean examples? See",
    ),
    "a code that is none": (
        ["lint", "--ignore", "Foo", "a.yaml"],
        "tenure lint: --ignore: got 'Foo', expected a code of lint, for example",
    ),
    "help as a command": (["help"], "Did you mean tenure --help? See tenure --help."),
    "version as a command": (["versoin"], "Did you mean tenure --version? See tenure --help."),
    "an unknown option": (["crds", "--all"], "tenure crds: No such option '--all'"),
    "a file that is not there": (
        ["simulate", "nowhere.yaml"],
        "file: got 'nowhere.yaml', expected a file that exists. Look at its path; tenure new examples writes",
    ),
    "a seed that is none": (["simulate", "a.yaml", "--seed", "x"], "--seed"),
    "a duration that is none": (
        ["simulate", "a.yaml", "--until", "soon"],
        "--until: got 'soon', expected a duration such as 1h30m or 2d.",
    ),
    "a kind that is not explained": (
        ["explain", "foo/bar", "--in", "a.yaml", "--at", "1m"],
        "KIND: got 'foo', expected node, claim, pod, pool, window, policy or pdb. For example",
    ),
    "no name": (
        ["explain", "node", "--in", "a.yaml", "--at", "1m"],
        "NAME: got '', expected the name of a Node. For example node/general-4nv74.",
    ),
    "an instant that is none": (
        ["explain", "node/a", "--in", str(SHIPPED / "fifty-pods.yaml"), "--at", "1x"],
        (
            "--at: got '1x', expected a duration such as 1h30m or 2d. "
            "The units are d, h, m, s, ms, us and ns; for example 90s, 1h30m or 2d."
        ),
    ),
    "an instant that is years away": (
        ["explain", "node/a", "--in", str(SHIPPED / "fifty-pods.yaml"), "--at", "999d"],
        "--at: got '999d', expected at most 366d after the start. For example 1h30m or 2d.",
    ),
    "a kind of Kubernetes that is not explained": (
        ["explain", "pvc/web", "--in", "a.yaml", "--at", "1m"],
        "KIND: got 'pvc', expected node, claim, pod, pool, window, policy or pdb. For example claim/",
    ),
    "a name without its kind": (
        ["explain", "general-x7k2p", "--in", "a.yaml", "--at", "1m"],
        "or pdb. For example node/general-x7k2p, claim/general-x7k2p or pod/general-x7k2p.",
    ),
    "an instant before the start": (
        [
            "explain",
            "node/a",
            "--in",
            str(SHIPPED / "fifty-pods.yaml"),
            "--at",
            "2020-01-01T00:00:00Z",
        ],
        "--at: got '2020-01-01T00:00:00Z', expected an instant from 2026-01-05T08:00:00+00:00 on",
    ),
}


@pytest.mark.parametrize(("args", "sentence"), WRONG.values(), ids=WRONG.keys())
def test_bad_input_is_one_line_and_exit_code_two(
    args: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(args) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_several_mistakes_in_a_file_are_several_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, a_story(until="1w", seed=-1))
    assert run(["simulate", str(path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_very_many_mistakes_are_all_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, a_story(events=[{"at": "1w", "say": "x"}] * 30))
    assert run(["simulate", str(path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 30


def test_crds_are_yaml_for_kubectl(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["crds"]) == 0
    kinds = [d["spec"]["names"]["kind"] for d in yaml.safe_load_all(capsys.readouterr().out)]
    ours = ["NodePool", "NodeClaim", "MaintenanceWindow", "NodePoolPolicy"]
    assert kinds == [*ours, "KWOKNodeClass"]


def _program(*args: str) -> list[str]:
    return [sys.executable, "-c", "from tenure.cli.main import main; main()", *args]


def test_a_reader_that_has_heard_enough_is_no_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(  # noqa: S603  # our own program
        _program("crds"), stdout=write_end, stderr=subprocess.PIPE, check=False
    )
    os.close(write_end)
    assert done.stderr == b""
    assert done.returncode == 141


def test_help_does_not_load_the_simulator() -> None:
    code = (
        "import sys; from tenure.cli.main import run; run(['--help']); "
        "sys.exit(any(name.startswith(('tenure.sim', 'tenure.core')) for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_disk_is_no_fault_of_ours() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(  # noqa: S603
            _program("crds"),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.stderr.startswith("tenure: the output could not be written: No space left")
    assert len(ended.stderr.splitlines()) == 1
    assert ended.returncode == 1


def test_a_question_ends_with_its_own_mark(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--beside-karpeter"]) == 2
    assert "Did you mean --beside-karpenter? See tenure plan --help." in capsys.readouterr().err
