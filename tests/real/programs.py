"""The programs that people use, on the test bed: kubectl as a person, helm as a person."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from testbed.binaries import found

#: Pinned with the other dependencies of the tests.
KUBECTL: Final = Path(sys.executable).parent / "kubectl"
#: Seconds for one command, those that wait included.
PATIENCE: Final = 660.0


def environment(kubeconfig: Path) -> dict[str, str]:
    """Nothing of the person at this machine: no context, no plugins, no cache of discovery."""
    home = kubeconfig.parent / "home"
    home.mkdir(exist_ok=True)
    places = (KUBECTL.parent, found(["helm"])["helm"].parent, os.environ["PATH"])
    return {
        "PATH": os.pathsep.join(map(str, places)),
        "HOME": str(home),
        "KUBECONFIG": str(kubeconfig),
    }


def run(
    kubeconfig: Path, *command: str | Path, stdin: str = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """How it ended and what it said; it is not checked here."""
    return subprocess.run(  # noqa: S603  # our own words
        list(map(str, command)),
        env=environment(kubeconfig),
        input=stdin,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def said(kubeconfig: Path, *command: str | Path, stdin: str = "") -> str:
    """What it printed; it has to succeed."""
    ended = run(kubeconfig, *command, stdin=stdin)
    words = " ".join(map(str, command))
    assert ended.returncode == 0, f"{words} ended with {ended.returncode}:\n{ended.stderr}"
    return ended.stdout
