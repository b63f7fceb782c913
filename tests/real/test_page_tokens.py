"""The web page behind tokens: the API server reviews them, with no right of Tenure's more than that needs."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import msgspec

from tenure.errors import AlreadyExists
from tenure.ports.transport import Request
from testbed.controlplane import ControlPlane
from tests.real.account import NAMESPACE, RESOURCES, USER, account
from tests.real.cluster import PATIENCE, SERVICE_ACCOUNTS, connected, patient
from tests.real.process import tenure_run

Json = dict[str, Any]
_RBAC: Final = "rbac.authorization.k8s.io"
_REVIEWS: Final = [
    {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
    {
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["subjectaccessreviews"],
        "verbs": ["create"],
    },
]
_LISTS: Final = [
    {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["list"]},
    {"apiGroups": ["karpenter.sh"], "resources": ["nodepools"], "verbs": ["list"]},
]


def asked(port: int, path: str, token: str = "") -> tuple[int, Json]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = HttpRequest(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
            return answer.status, json.loads(answer.read())
    except HTTPError as error:
        return error.code, json.loads(error.read())


async def _user(plane: ControlPlane, name: str, rules: list[Json]) -> str:
    """A token of a ServiceAccount with these rights."""
    async with patient(plane.kubeconfig) as client:
        made = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        with suppress(AlreadyExists):
            await client.create(SERVICE_ACCOUNTS, made, "default")
        if rules:
            subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
            await _grant(plane, name, rules, subject)
    path = SERVICE_ACCOUNTS.path("default", name, "token")
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    async with connected(plane.kubeconfig) as transport:
        answer = await transport.request(
            Request(method="POST", path=path, body=msgspec.json.encode(body))
        )
    token: str = msgspec.json.decode(answer.body)["status"]["token"]
    return token


async def _grant(plane: ControlPlane, name: str, rules: list[Json], subject: Json) -> None:
    named = {"apiVersion": f"{_RBAC}/v1", "metadata": {"name": f"page-{name}"}}
    role = {**named, "kind": "ClusterRole", "rules": rules}
    binding = {
        **named,
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": f"page-{name}"},
        "subjects": [subject],
    }
    async with patient(plane.kubeconfig) as client:
        for kind, made in (("ClusterRole", role), ("ClusterRoleBinding", binding)):
            with suppress(AlreadyExists):
                await client.create(RESOURCES[kind], {**made, "kind": kind})


def test_the_api_server_says_who_may_read(cluster: ControlPlane, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("0.0.0.0", 0))  # noqa: S104
        port = free.getsockname()[1]
    reader = asyncio.run(_user(cluster, "reader", _LISTS))
    poor = asyncio.run(_user(cluster, "poor", _LISTS[:1]))
    place = f"--leader-election-namespace={NAMESPACE}"
    flags = (place, f"--ui-port={port}", "--ui-address=0.0.0.0")
    with tenure_run(account(cluster), tmp_path, *flags) as tenure:
        tenure.until_said("the web page is open")
        tenure.until_ready()
        status, body = asked(port, "/api/fleet", reader)
        assert status == 503
        assert "lacks create on tokenreviews and subjectaccessreviews" in body["error"]
        me = {"kind": "User", "apiGroup": _RBAC, "name": USER}
        asyncio.run(_grant(cluster, "reviews", _REVIEWS, me))
        tenure.until(lambda: asked(port, "/api/fleet", reader)[0] == 200, "answer for the reader")
        assert asked(port, "/api/fleet", reader)[1]["totals"]["running"] == 0
        assert asked(port, "/api/about", reader)[1]["authentication"] == "bearer"
        assert asked(port, "/api/about") == (200, {"authentication": "bearer"})
        assert asked(port, "/api/fleet")[0] == 401
        assert asked(port, "/api/fleet", "x.y.z")[0] == 401
        status, body = asked(port, "/api/fleet", poor)
        assert (status, list(body)) == (403, ["error"])
        log = tenure.log_file.read_text()
        assert reader not in log
        assert poor not in log
        assert tenure.stop() == 0
