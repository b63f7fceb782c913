"""A control plane as the suites want it, with the controller that is tried on it.

Nothing has to be a pod: the suites talk to the cluster alone. Besides the controller's own kinds they
need those of NodeOverlay and CapacityBuffer, because their clean-up lists them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from tenure.cli.settings.table import TABLE
from testbed.binaries import found
from testbed.conformance.suites import Suites
from testbed.controlplane import ControlPlane, NotReady, control_plane
from testbed.karpenter import KUBE_CONTROLLERS, PROGRAM, kinds
from testbed.kubectl import apply, documents
from testbed.manifests import MANIFEST

Json = dict[str, Any]
TENURE: Final = "tenure"
KARPENTER: Final = "karpenter"
CONTROLLERS: Final = (TENURE, KARPENTER)
#: What the suites' own workflow switches on.
GATES: Final = "StaticCapacity=true,NodeRepair=true,CapacityBuffer=true"
NAMESPACE: Final = "tenure"
ACCOUNT: Final = (
    f"system:serviceaccount:{NAMESPACE}:tenure",
    "system:serviceaccounts",
    f"system:serviceaccounts:{NAMESPACE}",
)
#: What of the manifests makes up the kinds and the account; the Deployment would be a pending pod.
INSTALLED: Final = frozenset({
    "CustomResourceDefinition", "Namespace", "ServiceAccount",
    "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
})  # fmt: skip
#: Seconds; a busy machine takes longer than the usual three.
READY_WITHIN: Final = 120.0
LOOK_EVERY: Final = 0.2
#: What each controller logs when it acts.
ACTS: Final = {TENURE: "leading: the Lease", KARPENTER: "Starting workers"}


class Ended(NotReady):
    """The controller has ended by itself; the sentence ends with what it said last."""


@contextmanager
def cluster(suites: Suites, controller: str, scratch: Path) -> Iterator[ControlPlane]:
    """An empty cluster with the controller at work, for as long as the block lasts."""
    stages = scratch / "stages.yaml"
    stages.write_text(merged_stages([path.read_text() for path in suites.stages]))
    with control_plane(controllers=KUBE_CONTROLLERS, kwok=True, stages=stages) as plane:
        _start_scheduler(plane, suites, scratch)
        apply(plane, _kinds(controller))
        command = _karpenter(plane) if controller == KARPENTER else _tenure(plane)
        plane.start_program(controller, command)
        _wait_until_it_acts(plane, controller)
        yield plane


def merged_stages(files: list[str]) -> str:
    """One stream with each stage once: the last of a name counts, as with ``kubectl apply``."""
    stages = {stage["metadata"]["name"]: stage for text in files for stage in documents(text)}
    return yaml.safe_dump_all(stages.values(), sort_keys=False)


def scheduler_config(text: str, kubeconfig: Path) -> str:
    """The suites' configuration of kube-scheduler, for this cluster and a single scheduler."""
    config = yaml.safe_load(text)
    config["clientConnection"] = {"kubeconfig": str(kubeconfig)}
    config["leaderElection"] = {"leaderElect": False}
    return str(yaml.safe_dump(config, sort_keys=False))


def _start_scheduler(plane: ControlPlane, suites: Suites, scratch: Path) -> None:
    testdata = suites.folder("regression") / "testdata" / "kube-scheduler-config.yaml"
    config = scratch / "kube-scheduler.yaml"
    config.write_text(scheduler_config(testdata.read_text(), plane.kubeconfig))
    program = str(found(["kube-scheduler"])["kube-scheduler"])
    plane.start_program("kube-scheduler", [program, f"--config={config}", "--secure-port=0"])


def _kinds(controller: str) -> Iterator[Json]:
    """Kinds and account. Where both have a kind, that of the controller that is tried."""
    theirs = {crd["metadata"]["name"]: crd for crd in kinds()}
    if controller == TENURE:
        ours = [o for o in documents(MANIFEST.read_text()) if o["kind"] in INSTALLED]
        for crd in ours:
            theirs.pop(crd["metadata"]["name"], None)
        yield from ours
    yield from theirs.values()


def _tenure(plane: ControlPlane) -> list[str]:
    """As it is deployed: its own account with the shipped roles, and the shipped settings."""
    user, *groups = ACCOUNT
    return [
        "/usr/bin/env", *shipped_settings(MANIFEST.read_text()),
        str(Path(sys.executable).with_name("tenure")), "run",
        f"--kubeconfig={plane.kubeconfig_for(user, *groups)}", f"--feature-gates={GATES}",
        *(f"--{port}=0" for port in ports()), "--log-format=json",
    ]  # fmt: skip


def ports() -> list[str]:
    """The settings that name a port. Zero is any free one, and for the webhook none: it is not called."""
    return [setting.flag for setting in TABLE if setting.flag.endswith("-port")]


def shipped_settings(manifest: str) -> list[str]:
    """The environment of the shipped Deployment, as far as it is written there."""
    (deployment,) = (o for o in documents(manifest) if o["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return [
        f"{variable['name']}={variable['value']}"
        for variable in container["env"]
        if "value" in variable
    ]


def _karpenter(plane: ControlPlane) -> list[str]:
    return [
        "/usr/bin/env", f"KUBECONFIG={plane.kubeconfig}", "SYSTEM_NAMESPACE=kube-system",
        str(found([PROGRAM])[PROGRAM]), "--disable-leader-election", f"--feature-gates={GATES}",
        "--metrics-port=0", "--health-probe-port=0",
    ]  # fmt: skip


def _wait_until_it_acts(plane: ControlPlane, controller: str) -> None:
    deadline = time.monotonic() + READY_WITHIN
    while ACTS[controller] not in plane.log(controller):
        raise_if_ended(plane, controller)
        if time.monotonic() > deadline:
            raise NotReady(f"{controller} did not act within {READY_WITHIN:.0f} s:\n"
                           f"{last_words(plane, controller)}")  # fmt: skip
        time.sleep(LOOK_EVERY)


def raise_if_ended(plane: ControlPlane, controller: str) -> None:
    if plane.ended(controller):
        raise Ended(f"{controller} has ended:\n{last_words(plane, controller)}")


def last_words(plane: ControlPlane, name: str, count: int = 15) -> str:
    return "\n".join(plane.log(name).splitlines()[-count:])
