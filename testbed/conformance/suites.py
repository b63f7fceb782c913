"""The suites, and Karpenter's own controller for KWOK, compiled into the cache of the bed.

They lie in a folder named after a hash of what they are built from, beside the other binaries;
``make bed`` does not build them. One that is there is whole: it is moved in when it is done.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from testbed.binaries import SOURCES, cache
from testbed.build import BuildFailed, alone, watched
from testbed.conformance import source
from testbed.conformance.overlay import write_overlay

#: Not that of DRA.
SUITES: Final = ("regression", "disruption")
#: Takes hours, and is compiled with an overlay: ``performance.py``.
PERFORMANCE: Final = "performance"
CONTROLLER: Final = "karpenter-kwok"
#: Raised when what is built or how changes without another version of Karpenter.
RECIPE: Final = 1


@dataclass(frozen=True)
class Suites:
    """What is built, and the source it was built from."""

    home: Path

    def suite(self, name: str) -> Path:
        return self.home / f"{name}.test"

    def folder(self, name: str) -> Path:
        """Where ``go test`` would run it: specs read files beside them."""
        return self.source / "test" / "suites" / name

    @property
    def controller(self) -> Path:
        return self.home / CONTROLLER

    @property
    def source(self) -> Path:
        return self.home / "source"

    @property
    def stages(self) -> list[Path]:
        """kwok's first; of two with the same name the later one counts."""
        own = self.source / "hack" / "kwok" / "stages"
        return [*sorted((self.home / "stages").glob("*.yaml")), *sorted(own.glob("*.yaml"))]


def home(environment: Mapping[str, str] = os.environ) -> Path:
    pinned = source.pin()
    kwok = (SOURCES / "kwok" / "go.sum").read_text()
    made_of = f"{platform.system()} {platform.machine()} {RECIPE} {pinned} {kwok}"
    return cache(environment) / f"karpenter-{sha256(made_of.encode()).hexdigest()[:16]}"


def built(*, controller: bool) -> Suites:
    """Build what is missing; quick where everything is there. Raises ``BuildFailed``."""
    suites = Suites(home())
    missing = [name for name in SUITES if not suites.suite(name).exists()]
    lacks_controller = controller and not suites.controller.exists()
    if not missing and not lacks_controller:
        return suites
    go = shutil.which("go")
    if go is None:
        raise BuildFailed("no `go` program on the PATH; see https://go.dev/doc/install")
    suites.home.mkdir(parents=True, exist_ok=True)
    with alone(suites.home):
        _build(go, suites, missing, controller=lacks_controller)
    return suites


def built_performance() -> Suites:
    """The performance suite, beside the others. Raises ``BuildFailed``."""
    suites = built(controller=False)
    if suites.suite(PERFORMANCE).exists():
        return suites
    go = shutil.which("go")
    if go is None:
        raise BuildFailed("no `go` program on the PATH; see https://go.dev/doc/install")
    with (
        alone(suites.home),
        tempfile.TemporaryDirectory(dir=suites.home, prefix=".building-") as name,
    ):
        folder, into = Path(name), suites.suite(PERFORMANCE)
        overlay = write_overlay(suites.source, folder)
        command = [go, "test", "-c", "-overlay", str(overlay)]
        title = f"conformance: Karpenter {source.pin().version}"
        _link(command, f"./test/suites/{PERFORMANCE}", into, folder, title)
    return suites


def _build(go: str, suites: Suites, missing: list[str], *, controller: bool) -> None:
    title = f"conformance: Karpenter {source.pin().version}"
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=suites.home, prefix=".building-") as name:
        folder = Path(name)
        log = folder / "log"
        if not suites.source.exists():
            print(f"{title}: fetching its module", flush=True)
            source.fetch(go, folder)
            shutil.rmtree(suites.home / "stages", ignore_errors=True)  # Of a build that was killed.
            (folder / "stages").replace(suites.home / "stages")
            (folder / "source").replace(suites.source)
        print(f"{title}: fetching what it requires", flush=True)
        packages = [f"./test/suites/{suite}" for suite in missing]
        watched([go, "list", "-deps", "-test", "./kwok", *packages], suites.source, log, title,
                "fetched")  # fmt: skip
        print(f"{title}: compiling (5 to 10 minutes on two cores, once)", flush=True)
        # First as packages: these say how far they are, and a test binary does not.
        watched([go, "build", "-v", "./kwok/...", "./test/pkg/..."], suites.source, log, title,
                "compiled")  # fmt: skip
        for suite in missing:
            _link([go, "test", "-c"], f"./test/suites/{suite}", suites.suite(suite), folder, title)
        if controller:
            _link([go, "build"], "./kwok", suites.controller, folder, title)
    print(f"{title}: built after {time.monotonic() - started:.0f} s", flush=True)


def _link(command: list[str], package: str, into: Path, folder: Path, title: str) -> None:
    whole = folder / into.name
    arguments = [*command, "-ldflags", "-s -w", "-o", str(whole), package]
    watched(arguments, into.parent / "source", folder / "log", f"{title}: {into.name}", "compiled")
    whole.replace(into)
