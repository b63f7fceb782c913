"""``docs/up.md`` is the test: its commands, run by the real kubectl, say what it promises."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path
from typing import Final

import pytest

from tests.folders import ROOT
from tests.up.page import Step, mentions, says, steps
from tests.up.running import LOOK_EVERY, PATIENCE, Up, running

PAGE: Final = ROOT / "docs" / "up.md"
SPEED: Final = "30"
_ASSIGNMENT: Final = re.compile(r"(?:export )?(?P<name>[A-Z]+)=(?P<value>.*)")
#: What only reads is asked again until it says what was promised: the cluster lives on meanwhile.
_READS: Final = re.compile(r"kubectl (get|describe|events|explain|cluster-info)\b")


class Terminal:
    """A shell in which the page is typed, line by line."""

    def __init__(self, up: Up) -> None:
        self._up = up
        self._environment = {**up.environment, "PWD": str(up.folder)}

    def type(self, step: Step) -> None:
        if step.file:
            (self._up.folder / step.file).write_text(step.content)
        elif assignment := _ASSIGNMENT.fullmatch(step.command):
            value = self._run(f"echo {assignment['value']}").stdout.strip()
            assert value, step.command
            self._environment[assignment["name"]] = value
        elif step.command.endswith(" -w"):
            self._watch(step)
        else:
            self._say(step)

    def _run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603  # our own page
            ["/bin/bash", "-c", command],
            cwd=self._up.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=5 * PATIENCE,
        )

    def _say(self, step: Step) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            ended = self._run(step.command)
            if says(ended.stdout, step.said):
                return
            again = _READS.match(step.command) and time.monotonic() < deadline
            assert again, _difference(step, ended.stdout)
            time.sleep(LOOK_EVERY)

    def _watch(self, step: Step) -> None:
        """Watch until everything promised has come."""
        output = self._up.folder / "watch.txt"
        with output.open("w") as file:
            watching = subprocess.Popen(  # noqa: S603  # our own page
                ["/bin/bash", "-c", f"exec {step.command}"],
                cwd=self._up.folder,
                env=self._environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        try:
            deadline = time.monotonic() + PATIENCE
            while not mentions(output.read_text(), step.said):
                assert time.monotonic() < deadline, _difference(step, output.read_text())
                time.sleep(LOOK_EVERY)
        finally:
            watching.kill()
            watching.wait()


def _difference(step: Step, output: str) -> str:
    promised = "\n".join(step.said)
    return f"$ {step.command}\nsaid\n{output}\nand the page promises\n{promised}"


def test_every_command_of_the_page_says_what_the_page_promises(tmp_path: Path) -> None:
    typed = list(steps(PAGE.read_text()))
    assert len(typed) > 40
    with running(tmp_path, "--speed", SPEED) as up:
        terminal = Terminal(up)
        for step in typed:
            terminal.type(step)
        assert "a fault of ours" not in up.screen


@pytest.mark.parametrize(
    ("output", "promised", "same"),
    [
        ("web-8kfvb96cgk-8g5p6   1/1   55s", ("web-aaaaaaaaaa-bbbbb  1/1  3m12s",), True),
        ("web-8kfvb96cgk-8g5p6   0/1   55s", ("web-aaaaaaaaaa-bbbbb  1/1  3m12s",), False),
        ("a\nb\nc", ("a", "…"), True),
        ("a\nb\nc", ("…", "b"), False),
        ("one two three", ("one …",), True),
        ("a", (), False),
        ("", (), True),
    ],
)
def test_only_what_matters_is_compared(output: str, promised: tuple[str, ...], same: bool) -> None:
    assert says(output, promised) is same
