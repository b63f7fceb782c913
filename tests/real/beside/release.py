"""Tenure as helm installs it beside Karpenter: what is typed, and the program as the chart starts it.

kwok plays the pods of the Deployment; the program runs in their place, as their account.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from testbed.controlplane import ControlPlane
from tests.builders import Manifest, a_node_class
from tests.folders import ROOT
from tests.real.account import account
from tests.real.process import LOOK_EVERY as LOOK_EVERY
from tests.real.process import Process, tenure_run
from tests.real.programs import KUBECTL, PATIENCE, environment, said
from tests.real.test_getting_started import NODE
from tests.real.voluntary import a_small_pool

Json = dict[str, Any]
#: What Tenure may leave on an object.
MARK: Final = re.compile(r"tenure\.dev/|do-not-(disrupt|repair)")


class Cluster:
    """What an administrator types and sees there."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self._folder = folder
        self._starts = 0

    def type(
        self, command: str, kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """In a shell, in the repository, with the programs of this checkout."""
        told = environment(kubeconfig or self.plane.kubeconfig)
        return subprocess.run(  # noqa: S603  # our own page
            ["/bin/bash", "-ec", command],
            env={**told, "PATH": f"{KUBECTL.parent}:{told['PATH']}"},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def typed(self, *commands: str) -> None:
        """Each has to succeed."""
        for command in commands:
            ended = self.type(command)
            assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"

    def apply(self, *manifests: Manifest) -> None:
        text = yaml.safe_dump_all(manifests)
        said(
            self.plane.kubeconfig, "kubectl", "apply", "--namespace=default", "-f", "-", stdin=text
        )

    def kubectl(self, *words: str) -> str:
        return said(self.plane.kubeconfig, "kubectl", *words)

    def all(self, kinds: str) -> list[Json]:
        found: list[Json] = json.loads(self.kubectl("get", kinds, "-A", "-o", "json"))["items"]
        return found

    def fleet(self, pods: int = 1) -> None:
        """A node for Tenure's pods, a pool whose nodes one pod fills each, and so many pods there that run."""
        pool, deployment = a_small_pool("web")
        deployment["spec"]["replicas"] = pods
        self.apply(NODE, a_node_class(), pool, deployment)
        self.rolled_out("web")

    def rolled_out(self, deployment: str) -> None:
        self.kubectl("rollout", "status", "--namespace=default", f"deployment/{deployment}")

    @contextmanager
    def tenure(self, **more: str) -> Iterator[Process]:
        """A replica with what the pods of the Deployment are told, and more."""
        text = self.kubectl("get", "deployment/tenure", "--namespace=tenure", "-o", "json")
        (container,) = json.loads(text)["spec"]["template"]["spec"]["containers"]
        told = {each["name"]: each["value"] for each in container["env"]} | more
        self._starts += 1
        name = f"tenure-{self._starts}"
        with tenure_run(account(self.plane), self._folder, name=name, **told) as process:
            yield process

    def everything(self) -> dict[str, Json]:
        """Every object of the cluster, without what changes by itself; events go by themselves, too."""
        kinds = self.kubectl("api-resources", "--verbs=list", "--output=name").split()
        kept = ",".join(kind for kind in kinds if not kind.startswith(("events", "leases")))
        items = [*self.all(kept), *map(_named, self.all("leases"))]
        return {_key(each): _lasting(each) for each in items}

    # -- what stands on objects --------------------------------------------------------

    def nodes(self) -> list[Json]:
        """Those of the pool."""
        labelled = ("-l", "karpenter.sh/nodepool=web")
        found: list[Json] = json.loads(self.kubectl("get", "nodes", *labelled, "-o", "json"))[
            "items"
        ]
        return found

    def levers(self) -> int:
        return sum(
            annotation(node, "tenure.dev/do-not-disrupt-by") == "tenure" for node in self.nodes()
        )

    def marks(self) -> list[str]:
        """Object and annotation, of all that Tenure may have left on Karpenter's objects."""
        return [
            f"{each['kind']} {each['metadata']['name']}: {key}"
            for each in self.all("nodes,nodeclaims.karpenter.sh,nodepools.karpenter.sh")
            for key in each["metadata"].get("annotations", {})
            if MARK.search(key)
        ]


def _key(thing: Json) -> str:
    metadata = thing["metadata"]
    return (
        f"{thing['apiVersion']} {thing['kind']} {metadata.get('namespace', '')}/{metadata['name']}"
    )


def _named(thing: Json) -> Json:
    return {**thing, "spec": {}}


def _lasting(thing: Json) -> Json:
    kept = ("annotations", "labels", "finalizers", "ownerReferences", "uid")
    metadata = {key: value for key, value in thing["metadata"].items() if key in kept and value}
    return {"metadata": metadata, "spec": thing.get("spec"), "data": thing.get("data")}


def blocks(page: Path, title: str) -> list[tuple[str, ...]]:
    """The commands of each block under that heading."""
    sections = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.M)
    section = next(part for part in sections if part.startswith(title))
    found = re.findall(r"^```sh\n(.*?)^```", section, re.S | re.M)
    return [tuple(block.replace("\\\n", "").strip().splitlines()) for block in found]


def annotation(thing: Json, key: str) -> str:
    return str(thing["metadata"].get("annotations", {}).get(key, ""))
