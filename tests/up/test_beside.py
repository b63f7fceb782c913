"""``tenure run --beside-karpenter`` as a process; ``tenure up`` stands for Karpenter. And the real kubectl."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

from tests.folders import ROOT
from tests.real.process import tenure_run
from tests.up.running import BIN, Up, running

PAGE: Final = ROOT / "docs" / "beside-karpenter.md"
BY: Final = r"{.items[*].metadata.annotations.tenure\.dev/do-not-disrupt-by}"
BESIDE: Final = ("--beside-karpenter", "--karpenter-version=1.15")


def marked(up: Up) -> int:
    return len(up.kubectl("get", "nodes", "-o", f"jsonpath={BY}").stdout.split())


def nodes(up: Up) -> int:
    return len(up.kubectl("get", "nodes", "-o", "name").stdout.split())


def typed(up: Up, command: str) -> subprocess.CompletedProcess[str]:
    environment = {**up.environment, "KUBECONFIG": str(up.kubeconfig)}
    return subprocess.run(  # noqa: S603  # our own page
        ["/bin/bash", "-c", command],
        env=environment,
        cwd=up.folder,
        capture_output=True,
        text=True,
        check=False,
    )


def the_line_of_the_page() -> str:
    found = re.search(r"^for one in repair disrupt; do kubectl .*$", PAGE.read_text(), re.M)
    assert found is not None
    return found[0]


def test_levers_go_on_and_each_way_to_take_them_back_leaves_none(tmp_path: Path) -> None:
    with running(tmp_path) as up:
        for name in ("getting-started", "freeze"):
            assert up.kubectl("apply", "-f", str(ROOT / f"examples/{name}.yaml")).returncode == 0
        up.until(lambda: nodes(up) > 0, "Node")

        with tenure_run(up.kubeconfig, tmp_path, *BESIDE, "--release", name="first") as run:
            up.until(lambda: marked(up) == nodes(up), "levers")
            refused = typed(up, f"{BIN}/tenure release")
            assert (refused.returncode, "a replica runs" in refused.stderr) == (1, True)
            assert run.stop() == 0
            assert run.said("levers taken back")
        assert marked(up) == 0

        with tenure_run(up.kubeconfig, tmp_path, *BESIDE, name="second") as run:
            up.until(lambda: marked(up) == nodes(up), "levers again")
            assert run.stop() == 0
        assert marked(up) == nodes(up), "they stay"
        released = typed(up, f"{BIN}/tenure release")
        assert (released.returncode, released.stderr) == (0, "")
        assert marked(up) == 0

        with tenure_run(up.kubeconfig, tmp_path, *BESIDE, name="third"):
            up.until(lambda: marked(up) == nodes(up), "levers for a third time")
        assert typed(up, the_line_of_the_page()).returncode == 0
        assert "do-not-disrupt" not in up.kubectl("get", "nodes", "-o", "yaml").stdout
