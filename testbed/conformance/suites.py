"""The suites, compiled into the cache of the bed.

They lie beside Karpenter's controller for KWOK, and are built from the same source; ``make bed`` builds
the controller and not them. One that is there is whole: it is moved in when it is done.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from testbed import karpentersource as source
from testbed.binaries import BINARIES, home, pins
from testbed.build import BuildFailed, alone, watched
from testbed.conformance.overlay import write_overlay

#: Not that of DRA.
SUITES: Final = ("regression", "disruption")
#: Takes hours, and is compiled with an overlay: ``performance.py``.
PERFORMANCE: Final = "performance"
#: Raised when what is built or how changes without another version of Karpenter.
RECIPE: Final = 2


@dataclass(frozen=True)
class Suites:
    """What is built, and the source it was built from."""

    home: Path

    def suite(self, name: str) -> Path:
        return self.home / f"{name}-{RECIPE}.test"

    def folder(self, name: str) -> Path:
        """Where ``go test`` would run it: specs read files beside them."""
        return self.source / "test" / "suites" / name

    @property
    def source(self) -> Path:
        return self.home / "source"

    @property
    def stages(self) -> list[Path]:
        """kwok's first; of two with the same name the later one counts."""
        own = self.source / "hack" / "kwok" / "stages"
        return [*sorted(self.kwok_stages.glob("*.yaml")), *sorted(own.glob("*.yaml"))]

    @property
    def kwok_stages(self) -> Path:
        return self.home / f"stages-{pins('kwok')}"


def built() -> Suites:
    """Build what is missing; quick where everything is there. Raises ``BuildFailed``."""
    (karpenter,) = (binary for binary in BINARIES if binary.unpacked)
    suites = Suites(home(karpenter))
    missing = [name for name in SUITES if not suites.suite(name).exists()]
    if not missing and suites.kwok_stages.exists():
        return suites
    go = shutil.which("go")
    if go is None:
        raise BuildFailed("no `go` program on the PATH; see https://go.dev/doc/install")
    suites.home.mkdir(parents=True, exist_ok=True)
    with alone(suites.home):
        _build(go, suites, missing)
    return suites


def built_performance() -> Suites:
    """The performance suite, beside the others. Raises ``BuildFailed``."""
    suites = built()
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


def _build(go: str, suites: Suites, missing: list[str]) -> None:
    title = f"conformance: Karpenter {source.pin().version}"
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=suites.home, prefix=".building-") as name:
        folder = Path(name)
        log = folder / "log"
        print(f"{title}: fetching it and what it requires", flush=True)
        source.unpacked(go, suites.home, folder)
        if not suites.kwok_stages.exists():
            source.copy_stages(go, suites.kwok_stages, folder)
        packages = [f"./test/suites/{suite}" for suite in missing]
        watched([go, "list", "-deps", "-test", "./kwok", *packages], suites.source, log, title,
                "fetched")  # fmt: skip
        print(f"{title}: compiling (5 to 10 minutes on two cores, once)", flush=True)
        # First as packages: these say how far they are, and a test binary does not.
        watched([go, "build", "-v", "./kwok/...", "./test/pkg/..."], suites.source, log, title,
                "compiled")  # fmt: skip
        for suite in missing:
            _link([go, "test", "-c"], f"./test/suites/{suite}", suites.suite(suite), folder, title)
    print(f"{title}: built after {time.monotonic() - started:.0f} s", flush=True)


def _link(command: list[str], package: str, into: Path, folder: Path, title: str) -> None:
    whole = folder / into.name
    arguments = [*command, "-ldflags", "-s -w", "-o", str(whole), package]
    watched(arguments, into.parent / "source", folder / "log", f"{title}: {into.name}", "compiled")
    whole.replace(into)
