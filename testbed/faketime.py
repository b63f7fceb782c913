"""libfaketime for the test bed: sets the wall clock of one process while it runs.

It is looked for where distributions put it, then in the cache of the bed. ``make bed`` builds it
into the cache if it is nowhere: from the sources in a package of the Python registry, pinned by
their hash, with the machine's C compiler.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from testbed.binaries import cache

NAME: Final = "libfaketimeMT.so.1"
PACKAGE: Final = "libfaketime==3.0.1"
HASH: Final = "sha256:49c2b06250bd5a1206efe5ecfdc575850517081b50b42c6c58718be1a4a09fbd"
_SOURCES: Final = "libfaketime/vendor/libfaketime/src"
_KNOWN: Final = (
    "/usr/lib/*/faketime",
    "/usr/lib/faketime",
    "/usr/lib64/faketime",
    "/usr/local/lib/faketime",
)


class NoFakeTime(Exception):
    """It is nowhere, or cannot be built; the sentence says how to get it."""


def home(environment: Mapping[str, str] = os.environ) -> Path:
    return cache(environment) / PACKAGE.replace("==", "-")


def found(environment: Mapping[str, str] = os.environ) -> Path:
    """Where it lies. Raises ``NoFakeTime``."""
    folders = [folder for pattern in _KNOWN for folder in Path("/").glob(pattern[1:])]
    for folder in (*folders, home(environment)):
        if (path := folder / NAME).is_file():
            return path
    raise NoFakeTime(f"the test bed lacks {NAME}: run `make bed`, or install libfaketime")


def build(environment: Mapping[str, str] = os.environ) -> None:
    """Unless it is there."""
    try:
        found(environment)
    except NoFakeTime:
        pass
    else:
        return
    print(f"bed: building {NAME}", flush=True)
    into = home(environment)
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into, prefix=".building-") as folder:
        sources = _fetched(Path(folder))
        make = shutil.which("make")
        if make is None:
            raise NoFakeTime(f"no `make` program on the PATH, which builds {NAME}")
        _run([make, NAME], sources)
        (sources / NAME).replace(into / NAME)


def _fetched(folder: Path) -> Path:
    pinned = folder / "pinned.txt"
    pinned.write_text(f"{PACKAGE} --hash={HASH}\n")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download"]
    # The build isolation of pip would fetch a build backend, too; nothing of it is needed.
    _run([*pip, "--no-deps", "--no-binary=:all:", "--require-hashes", "-r", str(pinned)], folder)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    (sources,) = folder.glob(f"*/{_SOURCES}")
    return sources


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise NoFakeTime(f"{NAME} cannot be built: {' '.join(command[:4])} failed\n{said}")
