"""Kubernetes' client for Python in its oldest and newest supported release, for tests of ``tenure up``.

Each lies in a folder of its own in the cache of the bed, because only one release can be in an environment. ``make bed``
fills the folders; what is installed is pinned by hashes in ``testbed/pins``.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from testbed.binaries import cache

PINS: Final = Path(__file__).parent / "pins"
VERSIONS: Final = ("31.0.0", "37.0.2")


class NoClient(Exception):
    """It cannot be installed; the sentence says why."""


def pinned(version: str) -> Path:
    return PINS / f"python-client-{version}.txt"


def home(version: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Its folder, whether it is there or not: for ``PYTHONPATH``."""
    digest = hashlib.sha256(pinned(version).read_bytes() + sys.version.encode()).hexdigest()[:16]
    return cache(environment) / f"python-client-{version}-{digest}"


def missing(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    return tuple(
        f"python-client-{version}"
        for version in VERSIONS
        if not home(version, environment).is_dir()
    )


def build(environment: Mapping[str, str] = os.environ) -> None:
    for version in VERSIONS:
        into = home(version, environment)
        if into.is_dir():
            continue
        print(f"bed: installing the Python client {version}", flush=True)
        into.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=into.parent, prefix=".installing-") as folder:
            whole = Path(folder) / "client"
            _install(version, whole)
            # Another build may have made it meanwhile: the folder is not replaced.
            if not into.is_dir():
                whole.rename(into)


def _install(version: str, into: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    pins = ["--require-hashes", "--requirement", str(pinned(version))]
    ended = subprocess.run(  # noqa: S603  # our own words
        [uv, "pip", "install", "--quiet", "--target", into, "--python", sys.executable, *pins],
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode != 0:
        raise NoClient(f"the Python client {version} cannot be installed: {ended.stderr.strip()}")
