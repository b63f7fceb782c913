"""Shells complete commands, options and files, by the lines of the page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.folders import ROOT
from tests.shells import SHELLS, last_line, missing

PAGE: Final = (ROOT / "docs" / "upgrading.md").read_text()
PATH: Final = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

pytestmark = getattr(pytest.mark, SHELLS)
needs_shells = pytest.mark.skipif(bool(missing()), reason="no zsh or fish: make shells gets them")

#: What is asked: the words as typed, and what has to be offered.
ASKED: Final = {
    "tenure ": ("simulate", "snapshot", "forecast"),
    "tenure sna": ("snapshot",),
    "tenure simulate --from": ("--from", "--from-cluster"),
    "tenure lint --format ": ("github", "sarif"),
    "tenure new ": ("examples", "scenario"),
}


def line_for(shell: str) -> str:
    """What the page tells to put into the shell's file."""
    (found,) = re.findall(rf"^\| {shell} \| `([^`]+)` \|", PAGE, re.M)
    return str(found).replace("\\|", "|")


def said(*command: str, cwd: Path) -> str:
    environment = {"PATH": PATH, "HOME": str(cwd), "TERM": "dumb", "LANG": "C.UTF-8"}
    run = subprocess.run(  # noqa: S603  # our own words
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert not run.stderr
    return run.stdout


def in_bash(words: str, cwd: Path) -> list[str]:
    script = f"""{line_for("bash")}
read -ra COMP_WORDS <<< "{words}"; [[ "{words}" == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
complete -p tenure > /dev/null
compopt() {{ echo "as files"; }}
_tenure_completion tenure
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return said("bash", "--norc", "-ec", script, cwd=cwd).split("\n")


@pytest.mark.parametrize("words", ASKED)
def test_bash(words: str, tmp_path: Path) -> None:
    assert set(ASKED[words]) <= set(in_bash(words, tmp_path))


@pytest.mark.parametrize(
    "words", ["tenure lint ", "tenure plan --kubeconfig ", "tenure up --from "]
)
def test_names_of_files_are_left_to_the_shell(words: str, tmp_path: Path) -> None:
    assert "as files" in in_bash(words, tmp_path)


def test_a_word_that_is_no_command_is_not_complained_about(tmp_path: Path) -> None:
    in_bash("tenure nope ", tmp_path)


@needs_shells
@pytest.mark.parametrize("words", ASKED)
def test_fish(words: str, tmp_path: Path) -> None:
    script = f"{line_for('fish')}; complete --do-complete '{words}'"
    offered = [
        line.split("\t")[0] for line in said("fish", "-c", script, cwd=tmp_path).splitlines()
    ]
    assert set(ASKED[words]) <= set(offered)


@needs_shells
@pytest.mark.parametrize("words", ASKED)
def test_zsh(words: str, tmp_path: Path) -> None:
    """The function that zsh calls, with what it offers printed in place of a menu."""
    typed = " ".join(f"'{word}'" for word in words.split(" "))
    script = f"""autoload -Uz compinit; compinit -u
{line_for("zsh")}
(( $+functions[_tenure_completion] ))
_describe() {{ print -l -- ${{(P)3}} ${{(P)2}} }}; compadd() {{ print -l -- ${{(P)@[-1]}} }}; _path_files() {{ print as files }}
words=({typed}); CURRENT=${{#words}}
_tenure_completion
"""
    offered = re.findall(r"^(-*[a-z][a-z-]*)", said("zsh", "-fc", script, cwd=tmp_path), re.M)
    assert set(ASKED[words]) <= set(offered)


def test_shells_that_are_missing_are_told() -> None:
    assert last_line({}, ("zsh",)) == "shell suite: LEFT OUT, it lacks zsh: `make shells` gets it"
    assert last_line({}, ()) == ""
