"""The real kubectl, for what is applied to a test bed as an administrator would."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from testbed.controlplane import ControlPlane, NotReady

Json = dict[str, Any]


def documents(text: str) -> Iterator[Json]:
    yield from filter(None, yaml.safe_load_all(text))


def apply(plane: ControlPlane, objects: Iterable[Json]) -> None:
    """Returns when every kind among them is served."""
    text = yaml.safe_dump_all(objects)
    kubectl(plane, "apply", "--server-side", "--force-conflicts", "--filename=-", stdin=text)
    kubectl(plane, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")


def kubectl(plane: ControlPlane, *arguments: str, stdin: str = "") -> str:
    program = Path(sys.executable).with_name("kubectl")
    run = subprocess.run(  # noqa: S603  # our own words
        [program, f"--kubeconfig={plane.kubeconfig}", *arguments],
        input=stdin, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if run.returncode:
        raise NotReady(f"kubectl {' '.join(arguments)}: {run.stderr.strip()}")
    return run.stdout
