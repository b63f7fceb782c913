"""Karpenter's source, from the Go module registry, at the version that is pinned.

A module whose ``go`` line is newer than the local toolchain cannot be required by another module,
but it can be downloaded, unpacked and built in its own folder once that line is lowered. That line
is the only thing that is changed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from testbed.binaries import SOURCES, BuildFailed, karpenter_module

MODULE: Final = "sigs.k8s.io/karpenter"
PINNED: Final = SOURCES / karpenter_module()
KWOK: Final = "sigs.k8s.io/kwok"
#: kwok's stages that the suites begin with, in kwok's own module; Karpenter's replace some by name.
KWOK_STAGES: Final = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)


@dataclass(frozen=True)
class Pin:
    version: str
    #: The hash of the module's files, as ``go.sum`` writes it.
    sum: str


def pin(folder: Path = PINNED) -> Pin:
    """Which Karpenter: the version of ``go.mod``, and its hash of ``go.sum``."""
    required = re.search(rf"^require {MODULE} (\S+)$", (folder / "go.mod").read_text(), re.M)
    assert required is not None, f"{folder}/go.mod requires no {MODULE}"
    version = required[1]
    sums = (folder / "go.sum").read_text()
    hashed = re.search(rf"^{MODULE} {re.escape(version)} (h1:\S+)$", sums, re.M)
    assert hashed is not None, f"{folder}/go.sum has no line for {MODULE} {version}"
    return Pin(version, hashed[1])


def unpacked(go: str, home: Path, scratch: Path) -> Path:
    """The folder ``source`` in ``home``; what is there is whole, and is not fetched again."""
    if not (home / "source").exists():
        _fetch(go, scratch / "source")
        (scratch / "source").replace(home / "source")
    return home / "source"


def copy_stages(go: str, into: Path, scratch: Path) -> None:
    """kwok's stages, from the module that its binary is built from."""
    kwok = Path(_downloaded(go, KWOK, SOURCES / "kwok")["Dir"])
    copied = scratch / "stages"
    copied.mkdir()
    for stage in KWOK_STAGES:
        shutil.copyfile(kwok / "kustomize" / "stage" / stage, copied / Path(stage).name)
    copied.replace(into)


def _fetch(go: str, into: Path) -> None:
    pinned = pin()
    got = _downloaded(go, f"{MODULE}@{pinned.version}", PINNED)
    if got.get("Sum") != pinned.sum:
        raise BuildFailed(
            f"{MODULE} {pinned.version}: got hash {got.get('Sum')}, expected {pinned.sum} of go.sum"
        )
    prefix = f"{MODULE}@{pinned.version}/"
    with zipfile.ZipFile(got["Zip"]) as archive:
        for member in archive.namelist():
            target = into / member.removeprefix(prefix)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(member))
    module = into / "go.mod"
    module.write_text(lowered(module.read_text(), _toolchain(go)))


def lowered(go_mod: str, toolchain: str) -> str:
    """The same file with a ``go`` line that this toolchain accepts."""
    wanted = re.search(r"^go (\S+)$", go_mod, re.M)
    if wanted is None or _version(wanted[1]) <= _version(toolchain):
        return go_mod
    without = re.sub(r"^toolchain .*\n", "", go_mod, flags=re.M)
    return re.sub(r"^go \S+$", f"go {toolchain}", without, flags=re.M)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text.partition("rc")[0]))


def _toolchain(go: str) -> str:
    return _output([go, "env", "GOVERSION"], PINNED).strip().removeprefix("go")


def _downloaded(go: str, module: str, folder: Path) -> dict[str, str]:
    """What ``go mod download`` says. It fails on a newer ``go`` line, and has downloaded it then."""
    got = json.loads(_output([go, "mod", "download", "-json", module], folder) or "{}")
    if "Zip" not in got:
        raise BuildFailed(f"go mod download {module}: {got.get('Error', 'no answer')}")
    return dict(got)


def _output(command: list[str], folder: Path) -> str:
    run = subprocess.run(  # noqa: S603  # our own words
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    return run.stdout
