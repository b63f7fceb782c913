"""Installing on a real API server, by helm and by kubectl: what is rendered is accepted, and goes again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from testbed.controlplane import control_plane
from testbed.manifests import ALONE, BESIDE, BESIDE_KARPENTER, CHART, MANIFEST, rendered
from tests.real.programs import run, said

Json = dict[str, Any]
MODES: Final = (BESIDE, ("--set", "mode=full"))
KARPENTERS: Final = CHART / "charts" / "karpenter-crds" / "crds"
KINDS: Final = (
    "kwoknodeclasses.karpenter.kwok.sh",
    "maintenancewindows.karpenter.sh",
    "nodeclaims.karpenter.sh",
    "nodepoolpolicies.tenure.dev",
    "nodepools.karpenter.sh",
)
#: Sets of values that a chart has to stand; each is rendered and shown to the API server.
VALUES: Final[dict[str, Json]] = {
    "its own values": {},
    "one replica, by digest": {
        "replicas": 1,
        "image": {"repository": "registry.example.com/tenure", "digest": f"sha256:{'0' * 64}"},
        "imagePullSecrets": [{"name": "registry"}],
        "priorityClassName": "",
    },
    "an account that is there already": {"serviceAccount": {"create": False, "name": "default"}},
    "a Lease where Karpenter has it": {
        "settings": {"leaderElectionNamespace": "kube-system", "takeOver": True}
    },
    "another provider": {
        "settings": {"provider": "example"},
        "additionalClusterRoleRules": [
            {"apiGroups": ["example.com"], "resources": ["machines"], "verbs": ["list"]}
        ],
    },
    "labels, annotations, places": {
        "fullnameOverride": "node-life",
        "additionalLabels": {"team": "platform"},
        "additionalAnnotations": {"example.com/owner": "platform"},
        "podLabels": {"sidecar": "no"},
        "podAnnotations": {"example.com/scrape": "yes"},
        "nodeSelector": {"pool": "system"},
        "affinity": {},
        "topologySpreadConstraints": [],
        "tolerations": [],
        "podDisruptionBudget": {"maxUnavailable": "50%"},
    },
    "who reaches it, narrowly": {
        "networkPolicy": {
            "enabled": True,
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}],
            "webhookFrom": [{"ipBlock": {"cidr": "10.0.0.0/28"}}],
            "apiServerPorts": [6443],
            "apiServerTo": [{"ipBlock": {"cidr": "10.0.0.0/28"}}],
            "additionalEgress": [{"ports": [{"port": 3128}]}],
        },
        "webhookPolicy": {"enabled": False},
        "settings": {"providerNamespace": "default", "journalPort": 9000},
    },
    "the page, by port-forward": {"ui": {"enabled": True}},
    "the page, with tokens": {
        "ui": {
            "enabled": True,
            "address": "0.0.0.0",  # noqa: S104 - as written in a values file
            "from": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}],
        }
    },
    "beside Karpenter": {
        "mode": "beside-karpenter",
        "settings": {"release": True},
    },
    "types of one's own": {
        "settings": {"instanceTypesFile": "/etc/tenure/types.json"},
        "extraVolumes": [{"name": "types", "configMap": {"name": "types"}}],
        "extraVolumeMounts": [{"name": "types", "mountPath": "/etc/tenure"}],
        "env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        "envFrom": [{"secretRef": {"name": "more", "optional": True}}],
    },
}


@pytest.fixture(scope="module")
def admin() -> Iterator[Path]:
    """The kubeconfig of an administrator; the API server knows nothing of Tenure."""
    with control_plane(controllers=("namespace-controller",)) as plane:
        yield plane.kubeconfig


def values(folder: Path, chosen: Json) -> str:
    path = folder / "values.yaml"
    path.write_text(yaml.safe_dump(chosen))
    return f"--values={path}"


def installed(admin: Path, *which: str) -> set[str]:
    """Kind and name."""
    items = json.loads(said(admin, "kubectl", "get", "-o", "json", *which))["items"]
    return {f"{item['kind']}/{item['metadata']['name']}" for item in items}


def names(text: str) -> set[str]:
    """Kind and name of all that a stream of manifests has."""
    return {f"{each['kind']}/{each['metadata']['name']}" for each in objects(text)}


def objects(text: str) -> list[Json]:
    return [each for each in yaml.safe_load_all(text) if each]


def kinds(text: str) -> str:
    """As kubectl takes them."""
    return ",".join(sorted({each["kind"].lower() for each in objects(text)}))


def wait_for_the_kinds(admin: Path, which: Sequence[str] = KINDS) -> None:
    crds = [f"crd/{kind}" for kind in which]
    said(admin, "kubectl", "wait", "--for=condition=Established", "--timeout=240s", *crds)
    # A kind that is deleted before it could ever be listed holds the API server's own cleaner up:
    # that one asks again after pauses which double each time.
    said(admin, "kubectl", "get", ",".join(which))


@pytest.mark.parametrize("manifest", [MANIFEST, BESIDE_KARPENTER], ids=lambda path: path.stem)
def test_the_plain_manifests_install_at_once_and_a_second_time_would_change_nothing(
    admin: Path, manifest: Path
) -> None:
    said(admin, "kubectl", "apply", "--server-side", "--validate=strict", "-f", manifest)
    wait_for_the_kinds(admin, [kind for kind in KINDS if f" {kind}\n" in manifest.read_text()])
    said(admin, "kubectl", "diff", "--server-side", "-f", manifest)
    assert installed(admin, "-f", str(manifest)) == names(manifest.read_text())
    said(admin, "kubectl", "delete", "--timeout=600s", "-f", manifest)
    gone = run(admin, "kubectl", "get", "-f", manifest)
    assert not gone.stdout


def test_helm_installs_upgrades_and_leaves_nothing_but_the_kinds(
    admin: Path, tmp_path: Path
) -> None:
    where = ("--namespace=elsewhere", "--create-namespace")
    refused = run(admin, "helm", "install", "first", CHART, *where)
    assert "this cluster has no NodePools: set karpenterCRDs.install=true" in refused.stderr
    notes = said(admin, "helm", "install", "first", CHART, *where, *ALONE)
    assert "first-tenure in elsewhere, 2 replicas" in notes
    wait_for_the_kinds(admin)
    everything = ["-l", "app.kubernetes.io/instance=first", "--all-namespaces", kinds(rendered())]
    assert len(installed(admin, *everything)) == len(objects(rendered()))

    chosen = values(tmp_path, {"replicas": 3, "settings": {"logLevel": "debug"}})
    said(admin, "helm", "upgrade", "first", CHART, "--namespace=elsewhere", chosen)
    replicas = ("-n", "elsewhere", "-o", "jsonpath={.spec.replicas}")
    assert said(admin, "kubectl", "get", "deployment/first-tenure", *replicas) == "3"

    said(admin, "helm", "uninstall", "first", "--namespace=elsewhere", "--wait")
    assert installed(admin, *everything) == set()
    assert len(installed(admin, "crd")) == len(KINDS)


@pytest.mark.parametrize("mode", MODES, ids=["beside", "full"])
def test_helm_leaves_karpenters_kinds_as_they_are_in_every_mode(
    admin: Path, mode: tuple[str, ...]
) -> None:
    """Kinds of another release that helm itself has installed, so that no other manager stops it."""
    said(admin, "kubectl", "delete", "--ignore-not-found", "crd", *KINDS)
    for path in sorted(KARPENTERS.glob("karpenter.sh_*.yaml")):
        other = path.read_text().replace("- karpenter\n", "- other\n")
        apply = ("kubectl", "apply", "--server-side", "--field-manager=helm", "-f", "-")
        said(admin, *apply, stdin=other)
    before = generations(admin)
    first = ("first", CHART, "--namespace=elsewhere")

    said(admin, "helm", "install", *first, "--create-namespace", *mode)
    ours = {"maintenancewindows.karpenter.sh", "nodepoolpolicies.tenure.dev"}
    wait_for_the_kinds(admin, sorted(ours))
    installed = generations(admin)
    assert installed.keys() - before.keys() == ours
    assert before.items() <= installed.items()
    said(admin, "helm", "upgrade", *first, *next(other for other in MODES if other != mode))
    said(admin, "helm", "uninstall", "first", "--namespace=elsewhere", "--wait")
    assert generations(admin) == installed


def generations(admin: Path) -> dict[str, int]:
    """What is installed as a kind, and the generation of its spec."""
    items = json.loads(said(admin, "kubectl", "get", "crd", "-o", "json"))["items"]
    return {each["metadata"]["name"]: each["metadata"]["generation"] for each in items}


@pytest.mark.parametrize("name", VALUES)
def test_what_is_rendered_is_accepted(admin: Path, tmp_path: Path, name: str) -> None:
    text = rendered(values(tmp_path, VALUES[name]), namespace="default")
    for each in objects(text):
        if each["kind"] == "Namespace":  # Nothing can be tried in a namespace that is not there.
            said(admin, "kubectl", "apply", "--server-side", "-f", "-", stdin=json.dumps(each))
    apply = ("kubectl", "apply", "--server-side", "--force-conflicts", "--validate=strict")
    ended = run(admin, *apply, "--dry-run=server", "-f", "-", stdin=text)
    assert ended.returncode == 0, ended.stderr
    assert "Warning" not in ended.stderr
    assert len(ended.stdout.splitlines()) == len(objects(text))


def test_the_pods_are_of_the_restricted_kind(admin: Path) -> None:
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": "strict",
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
        },
    }
    said(admin, "kubectl", "apply", "-f", "-", stdin=json.dumps(namespace))
    template = deployment(rendered())["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    pod["metadata"] = {**pod["metadata"], "name": "one", "namespace": "strict"}
    said(admin, "kubectl", "create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))


def deployment(text: str) -> Json:
    return next(each for each in objects(text) if each["kind"] == "Deployment")
