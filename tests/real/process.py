"""``tenure run`` as a process of its own: started, asked, paused, killed, and its log read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.real.account import PROVIDER_NAMESPACE
from tests.real.cluster import PATIENCE as PATIENCE

Json = dict[str, Any]
LOOK_EVERY: Final = 0.05


def program(module: str = "tenure.cli.main") -> tuple[str, ...]:
    """What ``main`` of that module does as ``tenure run``. It ends with the tests: PR_SET_PDEATHSIG."""
    lines = "import ctypes, signal; ctypes.CDLL(None).prctl(1, signal.SIGKILL); "
    return (sys.executable, "-c", f"{lines}from {module} import main; main()", "run")


_PROGRAM: Final = program()


class Process:
    """One replica. Its ports are free ones; its log is a file, an object on each line."""

    def __init__(
        self,
        kubeconfig: Path,
        log: Path,
        *flags: str,
        program: Sequence[str] = _PROGRAM,
        **environment: str,
    ) -> None:
        self.log_file = log
        ports = ("--metrics-port=0", "--health-probe-port=0", "--journal-port=0")
        place = f"--provider-namespace={PROVIDER_NAMESPACE}"
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603  # our own program
                [
                    *program,
                    f"--kubeconfig={kubeconfig}",
                    *ports,
                    place,
                    "--log-format=json",
                    *flags,
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**_inherited(), **environment},
            )

    # -- what it says ------------------------------------------------------------------

    def lines(self) -> list[Json]:
        """What it has logged, as far as that is JSON."""
        found = []
        for line in self.log_file.read_bytes().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return found

    def said(self, message: str, **fields: Any) -> list[Json]:
        """Lines whose message contains that, with these fields."""
        return [
            line
            for line in self.lines()
            if message in line["message"] and fields.items() <= line.items()
        ]

    def until_said(self, message: str, *, times: int = 1, **fields: Any) -> Json:
        self.until(lambda: len(self.said(message, **fields)) >= times, f"{message!r} in the log")
        return self.said(message, **fields)[-1]

    def until(self, holds: Callable[[], bool], what: str, within: float = PATIENCE) -> None:
        """Look until it holds; the end of the log is in the complaint."""
        deadline = time.monotonic() + within
        while not holds():
            end = "\n".join(self.log_file.read_text(errors="replace").splitlines()[-30:])
            assert self._process.poll() is None, f"it has ended before {what}:\n{end}"
            assert time.monotonic() < deadline, f"no {what} within {within:.0f} s:\n{end}"
            time.sleep(LOOK_EVERY)

    # -- what it answers ---------------------------------------------------------------

    def get(self, page: str) -> tuple[int, str]:
        """Status and body; health, metrics and the journal each have their port."""
        ports = self.until_said("serving")
        pages = {"/metrics": "metricsPort", "/debug/journal": "journalPort"}
        port = ports[pages.get(page.partition("?")[0], "healthPort")]
        try:
            with urlopen(f"http://127.0.0.1:{port}{page}", timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    def until_ready(self) -> None:
        self.until(lambda: self.get("/readyz")[0] == 200, "readiness")

    def until_leading(self) -> None:
        self.until_said("leading: the Lease")

    # -- what is done to it ------------------------------------------------------------

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def pause(self) -> None:
        self.send(signal.SIGSTOP)

    def wake(self) -> None:
        self.send(signal.SIGCONT)

    def kill(self) -> None:
        """As in a crash: it does not get to say anything."""
        self._process.kill()
        self._process.wait()

    def stop(self, within: float = PATIENCE) -> int:
        """Politely; the exit code."""
        self.send(signal.SIGTERM)
        return self.ended(within)

    def ended(self, within: float = PATIENCE) -> int:
        return self._process.wait(within)


@contextmanager
def tenure_run(
    kubeconfig: Path,
    folder: Path,
    *flags: str,
    name: str = "tenure",
    program: Sequence[str] = _PROGRAM,
    **environment: str,
) -> Iterator[Process]:
    """A replica for as long as the block lasts; whatever happens, it does not outlive it."""
    process = Process(kubeconfig, folder / f"{name}.log", *flags, program=program, **environment)
    try:
        yield process
    finally:
        process.kill()


def _inherited() -> Mapping[str, str]:
    """Nothing that would configure it."""
    kept = ("PATH", "HOME", "LANG", "PYTHONPATH", "COVERAGE_PROCESS_START", "VIRTUAL_ENV")
    return {name: os.environ[name] for name in kept if name in os.environ}
