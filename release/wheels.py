"""Fetches the wheels of the libraries that the program needs, so that an index of our own can serve them.

    python -m release.wheels

Once for each lock, into ``.venv``; each file is held to its hash in uv.lock. Needs a registry of Python packages.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from release.sbom import UV
from release.version import ROOT

_KEPT: Final = Path(sys.prefix) / "wheels"


def folder() -> Path:
    """Named after the lock: another lock has others."""
    lock = (ROOT / "uv.lock").read_bytes()
    return _KEPT / hashlib.sha256(lock).hexdigest()[:16]


def fetch() -> Path:
    if (kept := folder()).is_dir():
        return kept
    shutil.rmtree(_KEPT, ignore_errors=True)
    with tempfile.TemporaryDirectory() as place:
        named, fetched = Path(place) / "requirements.txt", Path(place) / "wheels"
        words = ("export", "--quiet", "--frozen", "--no-dev", "--no-emit-project")
        _run(UV, *words, "--output-file", named)
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check")
        _run(*pip, "--no-deps", "--only-binary=:all:", "--requirement", named, "--dest", fetched)
        _KEPT.mkdir()
        shutil.move(fetched, kept)
    return kept


def _run(*words: str | Path) -> None:
    ended = subprocess.run(  # noqa: S603  # our own words
        words, cwd=ROOT, stdout=subprocess.DEVNULL, check=False
    )
    if ended.returncode:
        raise SystemExit("wheels: the libraries could not be fetched; is a registry in reach?")


if __name__ == "__main__":
    print(f"{len(list(fetch().iterdir()))} wheels in {folder().relative_to(ROOT)}")
