"""Keeps the processes of one test bed, and ends them all when their owner is gone.

It is a process of its own, in a session of its own, that takes orders as JSON lines on
its standard input: ``start`` a named program, ``stop`` one; each is repeated on standard
output when it is carried out. When the input ends, because
the one who gave the orders is done, has crashed or was killed, it kills every process and
removes the state folder: it is not needed again, so there is no graceful end. Should
the keeper itself be killed, the kernel kills its children (``PR_SET_PDEATHSIG``).

A program that ended leaves ``<name>.ended`` with its exit code in the state folder; what
it said is in ``<name>.log``.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

PR_SET_PDEATHSIG: Final = 1
#: Seconds between two looks at who has ended.
LOOK_EVERY: Final = 0.1
#: In place of the exit code of a program that ended by an order.
STOPPED: Final = "stopped"

_LIBC = ctypes.CDLL(None, use_errno=True)


def _die_with_the_keeper() -> None:
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Keeper:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def keep(self) -> None:
        """Until the orders end."""
        pending = b""
        while True:
            readable, _, _ = select.select([0], [], [], LOOK_EVERY)
            self._note_the_ended()
            if not readable:
                continue
            data = os.read(0, 65536)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                self._obey(json.loads(line))
                os.write(1, line + b"\n")

    def end(self) -> None:
        for name in reversed(list(self._running)):
            self._stop(name)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _obey(self, order: dict[str, Any]) -> None:
        name = order["name"]
        self._stop(name)
        if order["do"] == "start":
            (self._folder / f"{name}.ended").unlink(missing_ok=True)
            self._start(name, order["command"])
        else:
            self._note(name, STOPPED)

    def _start(self, name: str, command: list[str]) -> None:
        with (self._folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(  # noqa: S603  # our own words
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_the_keeper,  # noqa: PLW1509  # there are no threads here
            )

    def _stop(self, name: str) -> None:
        process = self._running.pop(name, None)
        if process is None:
            return
        process.kill()
        process.wait()

    def _note_the_ended(self) -> None:
        for name, process in list(self._running.items()):
            if (code := process.poll()) is not None:
                del self._running[name]
                self._note(name, str(code))

    def _note(self, name: str, how: str) -> None:
        """In one step: it is read at any moment, and one that is empty would say that it ended by itself."""
        part = self._folder / f"{name}.part"
        part.write_text(how)
        part.replace(self._folder / f"{name}.ended")


def main() -> None:
    # Ctrl-C is for the parent process; when it ends, this one ends too.
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    keeper = Keeper(Path(sys.argv[1]))
    try:
        keeper.keep()
    finally:
        keeper.end()


if __name__ == "__main__":
    main()
