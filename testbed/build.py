"""``make bed``: builds what the cache lacks, from the versions that are committed.

One binary after the other, each put into the cache in one step when it is whole. A build
that is interrupted goes on where it was: finished binaries stay, and Go keeps every
package it has compiled. Two builds at once are one build and one that waits.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from testbed.binaries import BINARIES, NAMES, SOURCES, Binary, cache

#: Seconds between two lines of progress.
PROGRESS_EVERY: Final = 15
#: Not in the way of other work; the first build takes minutes anyway.
NICENESS: Final = 19


class BuildFailed(Exception):
    """The sentence says what, and shows what the compiler said last."""


def build(names: Sequence[str], into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    with _alone(into):
        wanted = [b for b in BINARIES if b.name in names and not (into / b.name).exists()]
        if not wanted:
            print(f"bed: everything is there, in {into}")
            return
        go = shutil.which("go")
        if go is None:
            raise BuildFailed("no `go` program on the PATH; see https://go.dev/doc/install")
        print(f"bed: building {', '.join(b.name for b in wanted)} into {into}")
        for number, binary in enumerate(wanted, start=1):
            _build_one(go, binary, into, f"bed: {binary.name} ({number} of {len(wanted)})")
        print("bed: all built")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("bed: waiting for another build of the same versions")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left_over in folder.glob(".building-*"):  # Of a build that was killed.
            shutil.rmtree(left_over)
        yield


def _build_one(go: str, binary: Binary, into: Path, title: str) -> None:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=into, prefix=".building-") as folder:
        whole = Path(folder) / binary.name
        command = [go, "build", "-v", "-ldflags", binary.linker_flags, "-o", str(whole)]
        said = _watched([*command, binary.package], SOURCES / binary.module, title, started)
        if not whole.exists():
            raise BuildFailed("\n".join([f"{title}: go build failed", *said]))
        whole.replace(into / binary.name)
    print(f"{title}: done after {time.monotonic() - started:.0f} s", flush=True)


def _watched(command: list[str], folder: Path, title: str, started: float) -> list[str]:
    """Run it, and show how far it is; what it said last comes back."""
    flags = "-buildvcs=false -mod=readonly -trimpath"
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": flags, "GOWORK": "off"}
    said: list[str] = []
    packages, told_at = 0, started
    print(f"{title}: fetching modules and compiling", flush=True)
    with subprocess.Popen(  # noqa: S603  # our own words
        command,
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            said = [*said[-20:], line.rstrip()]
            packages += not line.startswith("go: ")
            if time.monotonic() - told_at >= PROGRESS_EVERY:
                told_at = time.monotonic()
                print(f"{title}: {packages} packages, {told_at - started:.0f} s", flush=True)
    return said


def main(arguments: Sequence[str]) -> int:
    unknown = [name for name in arguments if name not in NAMES]
    if unknown:
        print(f"bed: unknown {', '.join(unknown)}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    os.nice(NICENESS)
    try:
        build(arguments or NAMES, cache())
    except BuildFailed as failed:
        print(f"bed: {failed}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bed: interrupted; `make bed` goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
