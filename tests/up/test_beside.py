"""``tenure run --beside-karpenter`` as a process, and the real kubectl.

``tenure up`` is the cluster. Its Tenure is in charge until its Lease is taken from it: then it stands for
Karpenter, and leaves levers alone.
"""

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
LEASE: Final = ("lease", "karpenter-leader-election", "--namespace=kube-system")
TAKEN: Final = '{"spec": {"holderIdentity": "karpenter-1", "leaseTransitions": 7}}'


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


def line_of_the_page(start: str) -> str:
    line = re.search(rf"^{re.escape(start)}.*$", PAGE.read_text(), re.M)
    assert line is not None
    return line[0]


def begin(up: Up, *examples: str) -> None:
    for name in ("getting-started", *examples):
        assert up.kubectl("apply", "-f", str(ROOT / f"examples/{name}.yaml")).returncode == 0
    up.until(lambda: nodes(up) > 0, "Node")


def let_karpenter_take_charge(up: Up) -> None:
    """Its Lease is Karpenter's from now on: Tenure in it does not act again."""
    assert up.kubectl("patch", *LEASE, "--type=merge", "--patch", TAKEN).returncode == 0
    up.until_shown("not acting: the Lease kube-system/karpenter-leader-election")


def test_the_lever_of_a_replacement_is_removed_from_its_claim_by_the_line_of_the_page(
    tmp_path: Path,
) -> None:
    """A user's stays; where there is none the line does nothing."""
    line = line_of_the_page("for one in repair disrupt; ")
    lever = [f"tenure.dev/do-not-disrupt-{end}=tenure" for end in ("by", "because", "until")]
    with running(tmp_path) as up:
        assert typed(up, line).returncode == 0
        begin(up)
        let_karpenter_take_charge(up)
        up.kubectl("annotate", "nodeclaims", "--all", "karpenter.sh/do-not-disrupt=true", "a=b")
        assert typed(up, line).returncode == 0
        assert "do-not-disrupt" in up.kubectl("get", "nodeclaims", "-o", "yaml").stdout
        up.kubectl("annotate", "nodeclaims", "--all", *lever)
        assert typed(up, line).returncode == 0
        left = up.kubectl("get", "nodeclaims", "-o", "yaml").stdout
        assert ("do-not-disrupt" in left, "a: b" in left) == (False, True)


def test_levers_go_on_and_each_way_to_take_them_back_leaves_none(tmp_path: Path) -> None:
    with running(tmp_path) as up:
        begin(up, "freeze")
        let_karpenter_take_charge(up)

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
        typed(up, line_of_the_page("for one in repair disrupt; "))
        assert "do-not-disrupt" not in up.kubectl("get", "nodes", "-o", "yaml").stdout


def test_beside_a_tenure_in_charge_it_does_not_act_and_both_are_told_of(tmp_path: Path) -> None:
    """The one in charge takes back levers that are left, and they are not set again."""
    lever = ["karpenter.sh/do-not-disrupt=true"]
    lever += [f"tenure.dev/do-not-disrupt-{end}=tenure" for end in ("by", "because", "until")]
    with running(tmp_path) as up:
        begin(up, "freeze")
        up.kubectl("annotate", "nodes", "--all", *lever)
        with tenure_run(up.kubeconfig, tmp_path, *BESIDE, name="beside") as run:
            up.until(
                lambda: bool(run.said("a Tenure that is in charge of this cluster")), "word of it"
            )
            up.until(lambda: marked(up) == 0, "end of levers")
            plan = typed(up, f"{BIN}/tenure plan --beside-karpenter")
            assert "two Tenures run on this cluster: tenure-up_" in plan.stdout + plan.stderr
            linted = typed(up, f"{BIN}/tenure lint")
            assert "beside Karpenter does not act; stop one of them" in linted.stderr
            assert marked(up) == 0
