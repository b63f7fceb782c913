"""``tenure up`` as a process of its own, and commands against it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

#: Seconds; an idle machine needs a fraction of it.
PATIENCE: Final = 120.0
LOOK_EVERY: Final = 0.05
BIN: Final = Path(sys.executable).parent
#: It ends with the tests: PR_SET_PDEATHSIG.
_MAIN: Final = (
    "import ctypes, signal; ctypes.CDLL(None).prctl(1, signal.SIGKILL); "
    "from tenure.cli.main import main; main()"
)


class Up:
    """A running one, and its screen."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.folder = folder
        self._screen = folder / "screen.txt"
        with self._screen.open("wb") as screen:
            self._process = subprocess.Popen(  # noqa: S603  # our own program
                [sys.executable, "-c", _MAIN, "up", *flags],
                cwd=folder,
                stdout=screen,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    @property
    def screen(self) -> str:
        return self._screen.read_text()

    @property
    def kubeconfig(self) -> Path:
        return self.folder / ".tenure" / "kubeconfig"

    @property
    def environment(self) -> dict[str, str]:
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "HOME": str(self.folder)}

    def until_shown(self, text: str) -> None:
        self.until(lambda: text in self.screen, f"{text!r} on its screen")

    def until(self, condition: Callable[[], bool], what: str = "change") -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self._process.poll() is None, f"it has ended:\n{self.screen}"
            assert time.monotonic() < deadline, f"no {what}:\n{self.screen}"
            time.sleep(LOOK_EVERY)

    def kubectl(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603  # our own words
            [BIN / "kubectl", f"--kubeconfig={self.kubeconfig}", *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def end(self, number: signal.Signals) -> int:
        """Its exit code."""
        self._process.send_signal(number)
        return self._process.wait(PATIENCE)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def running(folder: Path, *flags: str) -> Iterator[Up]:
    up = Up(folder, *flags)
    try:
        up.until_shown("What Tenure does")
        yield up
    finally:
        up.kill()
