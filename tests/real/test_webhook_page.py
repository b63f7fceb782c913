"""docs/webhook.md, command by command, on a real control plane."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Final

import pytest

from testbed.controlplane import ControlPlane
from tests.folders import ROOT
from tests.real.programs import run
from tests.real.webhooking import PROBE, Site, site, until_asked

PAGE: Final = ROOT / "docs" / "webhook.md"
EARLIER: Final = """
kubectl delete --ignore-not-found validatingwebhookconfiguration tenure-outside
"""


def blocks(title: str) -> list[tuple[str, str]]:
    """Language and text of each block under that heading."""
    section = re.split(r"^#+ ", PAGE.read_text(), flags=re.M)
    text = next(part for part in section if part.startswith(title))
    return re.findall(r"^```(\w+)\n(.*?)^```", text, re.M | re.S)


@pytest.fixture
def here(cluster: ControlPlane, tmp_path: Path) -> Iterator[Site]:
    with site(cluster, tmp_path) as made:
        yield made
        shell(made, EARLIER)


def shell(here: Site, script: str) -> CompletedProcess[str]:
    return run(here.plane.kubeconfig, "bash", "-e", "-c", script)


def fine(here: Site, title: str) -> str:
    """Every command under the heading does what it says; what they print."""
    printed = ""
    for language, script in blocks(title):
        assert language == "sh"
        ended = shell(here, script)
        assert ended.returncode == 0, ended.stderr
        printed += ended.stdout
    return printed


def test_the_page_is_true_from_top_to_bottom(here: Site) -> None:
    (_, mistake), (_, refusal) = blocks("The webhook")
    assert "working-hours created" in shell(here, mistake).stdout, "as no replica serves"
    with here.replica("a", None, "--disable-leader-election") as replica:
        replica.until(lambda: "61 6 * * 1-5" in fine(here, "When it is down"), "a status")
        until_asked(here, replica)
        here.kubectl("delete", "maintenancewindow", "working-hours")
        assert shell(here, mistake).stderr == refusal
        before = here.certificate()
        fine(here, "Ports")
        fine(here, "Outside a cluster")
    fine(here, "Certificates")
    with here.replica("b") as replica:  # Sooner than the next look of the first one.
        until_asked(here, replica)
        assert here.certificate() != before
        fine(here, "Turn it off")
        replica.until(lambda: here.passes(PROBE), "write that is not reviewed")
