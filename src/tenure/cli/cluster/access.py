"""Which cluster, and as whom: the kubeconfig that is named, the pod's account, or the usual file.

The order is that of other controllers: ``--kubeconfig`` (or ``KUBECONFIG``), then the account
that Kubernetes gives to a pod, then ``~/.kube/config``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from tenure.errors import SpecError
from tenure.kube.client.kubeconfig import Access, in_cluster_access, load_access

USUAL: Final = Path("~/.kube/config")


class Reached(msgspec.Struct, frozen=True):
    access: Access
    #: Where it was found, for messages.
    source: str
    in_pod: bool = False


def trust_notes(access: Access) -> Iterator[str]:
    """What is not safe about the way to the API server, a sentence each."""
    if access.server.startswith("http://"):
        yield (
            f"the connection to {access.server} is not encrypted: anything on the way can read the "
            "token and change answers; use https"
        )
    elif access.insecure:
        yield (
            f"the certificate of {access.server} is not verified (insecure-skip-tls-verify): "
            "anything on the way can read the token; set certificate-authority-data instead"
        )


def find_access(kubeconfig: str, context: str, environment: Mapping[str, str]) -> Reached:
    """Raises ``SpecError``."""
    if kubeconfig:
        path = Path(kubeconfig).expanduser()
        if os.pathsep in kubeconfig and not path.exists():
            hint = "kubectl config view --flatten makes one of several."
            raise SpecError("--kubeconfig", kubeconfig, "one file", hint)
        return Reached(load_access(path, context), str(path))
    pod = in_cluster_access(environment) if not context else None
    if pod is not None:
        return Reached(pod, "the pod's service account", in_pod=True)
    path = USUAL.expanduser()
    if not path.exists():
        raise SpecError(
            "--kubeconfig",
            None,
            f"a kubeconfig, as there is no {USUAL} and this is not a pod",
            "For example --kubeconfig cluster.yaml; tenure up makes a cluster to try, and writes .tenure/kubeconfig.",
        )
    return Reached(load_access(path, context), str(path))
