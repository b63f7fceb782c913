"""``make bed``: builds what the cache lacks, from the versions that are committed.

One binary after the other, each put into the cache in one step when it is whole. A build
that is interrupted goes on where it was: finished binaries stay, and Go keeps every
package it has compiled. Two builds at once are one build and one that waits. What lies in
``KUBEBUILDER_ASSETS`` is not built.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from testbed import clients, faketime, karpentersource
from testbed.binaries import BINARIES, NAMES, SOURCES, Binary, cache, home, place
from testbed.binaries import BuildFailed as BuildFailed

#: Seconds between two lines of progress.
PROGRESS_EVERY: Final = 15
#: How many lines of the compiler a failure shows.
LAST_WORDS: Final = 20
#: Not in the way of other work; the first build takes minutes anyway.
NICENESS: Final = 19


def build(names: Sequence[str], environment: Mapping[str, str] = os.environ) -> None:
    wanted = [b for b in BINARIES if b.name in names and place(b, environment) is None]
    if not wanted:
        print(f"bed: everything is there, in {cache(environment)}")
        return
    go = shutil.which("go")
    if go is None:
        raise BuildFailed("no `go` program on the PATH; see https://go.dev/doc/install")
    print(f"bed: building {', '.join(b.name for b in wanted)} into {cache(environment)}")
    for number, binary in enumerate(wanted, start=1):
        title = f"bed: {binary.name} ({number} of {len(wanted)})"
        into = home(binary, environment)
        into.mkdir(parents=True, exist_ok=True)
        with alone(into):
            if place(binary, environment) is None:
                _build_one(go, binary, into, title)
            else:
                print(f"{title}: another build has made it")
    print("bed: all built")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("bed: waiting for another build of the same versions", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left_over in folder.glob(".building-*"):  # Of a build that was killed.
            shutil.rmtree(left_over)
        yield


def _build_one(go: str, binary: Binary, into: Path, title: str) -> None:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=into, prefix=".building-") as folder:
        needed, whole = Path(folder) / "packages", Path(folder) / binary.name
        print(f"{title}: fetching its modules", flush=True)
        source = SOURCES / binary.module
        if binary.unpacked:
            source = karpentersource.unpacked(go, into, Path(folder))
        tags = ["-tags", binary.tags] if binary.tags else []
        watched([go, "list", "-deps", *tags, binary.package], source, needed, title, "fetched")
        most = len(needed.read_text().splitlines())
        print(f"{title}: compiling what is new of its {most} packages", flush=True)
        command = [go, "build", "-v", *tags, "-ldflags", binary.linker_flags, "-o", str(whole)]
        watched([*command, binary.package], source, needed, title, "compiled")
        whole.replace(into / binary.name)
    print(f"{title}: done after {time.monotonic() - started:.0f} s", flush=True)


def watched(command: list[str], folder: Path, output: Path, title: str, done: str) -> None:
    """Run it, and show how far it is. Raises ``BuildFailed`` with what it said last."""
    flags = "-buildvcs=false -mod=readonly -trimpath"
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": flags, "GOWORK": "off"}
    with (
        output.open("wb") as listing,
        subprocess.Popen(  # noqa: S603  # our own words
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=listing,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        assert process.stderr is not None
        said = _tell(process.stderr.fileno(), title, done)
    if process.returncode != 0:
        raise BuildFailed("\n".join([f"{title}: go {command[1]} failed", *said]))


def _tell(pipe: int, title: str, done: str) -> list[str]:
    """A line of progress now and then, also while the linker says nothing for minutes."""
    said: list[str] = []
    rest, count = b"", 0
    started = told_at = time.monotonic()
    while True:
        readable, _, _ = select.select([pipe], [], [], PROGRESS_EVERY)
        if readable:
            if not (data := os.read(pipe, 65536)):
                return said
            *lines, rest = (rest + data).split(b"\n")
            count += len(lines)
            said = [*said, *(line.decode(errors="replace") for line in lines)][-LAST_WORDS:]
        if time.monotonic() - told_at >= PROGRESS_EVERY:
            told_at = time.monotonic()
            print(f"{title}: {count} {done}, {told_at - started:.0f} s", flush=True)


def main(arguments: Sequence[str]) -> int:
    unknown = [name for name in arguments if name not in NAMES]
    if unknown:
        print(f"bed: unknown {', '.join(unknown)}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    os.nice(NICENESS)
    try:
        build(arguments or NAMES)
        faketime.build()
        clients.build()
    except (BuildFailed, faketime.NoFakeTime, clients.NoClient) as failed:
        print(f"bed: {failed}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bed: interrupted; `make bed` goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
