"""The same commands of kubectl, typed against the served store and a real API server.

Where the two differ, the served store is wrong. What differs from run to run is not compared.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from testbed.controlplane import control_plane
from tests import bed
from tests.contract.backends import ServedStore
from tests.contract.conftest import CONTROLLERS
from tests.real.cluster import install_crds
from tests.up.running import BIN, PATIENCE

HERE: Final = Path(__file__).parent
FILES: Final = ("objects.yaml", "nodes.yaml", "kinds.yaml")
_MASKS: Final = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "INSTANT"),
    (re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} \+0000"), "INSTANT"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"(resourceVersion: |Resource Version: +)\S+"), r"\1VERSION"),
    (re.compile(r"\b(\d+[ydhms])+\b"), "AGE"),
    (re.compile(r"127\.0\.0\.1:\d+"), "SERVER"),
    (re.compile(r"Invalid value: \".*\": strict"), "Invalid value: strict"),
    # A patch that cannot be read is about the request; only a real server repeats all of it.
    (re.compile(r"patch: Invalid value: strict"), "patch: strict"),
    (re.compile(r"[ \t]+"), " "),
)


@contextmanager
def served(folder: Path) -> Iterator[Path]:
    """A bare store that only its clients write to; yields its kubeconfig."""
    store = ServedStore(folder)
    store.start()
    stop = asyncio.Event()
    serving = threading.Thread(target=lambda: store.loop.run_until_complete(stop.wait()))
    serving.start()
    try:
        yield store.kubeconfig
    finally:
        store.loop.call_soon_threadsafe(stop.set)
        serving.join()
        store.stop()
    assert store.faults == []


def typed(command: str, folder: Path, kubeconfig: Path) -> str:
    """What it says and how it ends, without what differs from run to run."""
    environment = {
        **os.environ,
        "KUBECONFIG": str(kubeconfig),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
    }
    ended = subprocess.run(  # noqa: S603  # our own commands
        ["/bin/bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    said = ended.stdout
    for pattern, instead in _MASKS:
        said = pattern.sub(instead, said)
    return f"{said}(exit code {ended.returncode})"


def commands() -> list[str]:
    lines = (HERE / "agreement.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.real
@pytest.mark.skipif(bool(bed.missing()), reason="the real API server is not built")
def test_kubectl_is_told_the_same_by_both(tmp_path: Path) -> None:
    differences: list[str] = []
    folders = [tmp_path / "real", tmp_path / "served"]
    for folder in folders:
        folder.mkdir()
        for name in FILES:
            (folder / name).write_text((HERE / name).read_text())
    with control_plane(controllers=CONTROLLERS) as plane, served(tmp_path) as kubeconfig:
        install_crds(plane)
        backends = list(zip(folders, (plane.kubeconfig, kubeconfig), strict=True))
        for command in commands():
            real, ours = (typed(command, *backend) for backend in backends)
            if ours != real:
                differences.append(f"$ {command}\nreal:\n{real}\nours:\n{ours}\n")
    assert not differences, "\n".join(differences)
