"""A control plane on free loopback ports: up in seconds, gone with the process that started it.

Order: etcd, kube-apiserver (RBAC on, one authority, client certificates), then what was
asked for: controllers, scheduler, kwok, a storage driver. Everything lies in one temporary folder; a
``keeper`` owns the processes, so that no crash and no Ctrl-C leaves one behind.
"""

from __future__ import annotations

import base64
import json
import random
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from testbed.binaries import found
from testbed.keeper import STOPPED
from testbed.keys import Authority, make_rsa_key

#: Seconds; a busy machine takes longer than the usual four.
READY_WITHIN: Final = 120.0
LOOK_EVERY: Final = 0.05
#: How often other ports are tried when another process was faster.
PORT_TRIES: Final = 5
ADDRESS_IN_USE: Final = "address already in use"
ADMINISTRATORS: Final = "system:masters"
#: Nodes that kwok plays the kubelet of.
KWOK_LABEL: Final = "kwok.x-k8s.io/node=fake"
#: Seconds that a node's Lease holds, as a kubelet writes it.
HEARTBEAT: Final = 40
#: After which a node without a heartbeat, also without a first one, is Unknown, and takes no pods.
#: An API server that is away, or a machine that is slow, keeps every node from its heartbeat: that
#: is no story of ours.
MONITOR_GRACE: Final = "30m"
#: A key of etcd that no API server reads, as base64.
FORGOTTEN: Final = base64.b64encode(b"testbed/forgotten").decode()
#: Where ports are looked for: below those that the kernel gives to clients. A client that
#: tries to reach a server that is away would get that server's own port one day, and keep it.
PORTS: Final = range(10_000, 30_000)
#: What is written down in the audit log: what service accounts asked for, and who removed pods.
AUDIT_POLICY: Final = Path(__file__).with_name("audit.yaml")
STAGES: Final = Path(__file__).with_name("stages.yaml")
EVERY_CONTROLLER: Final = ("*",)
#: Those of them that make the accounts without which no pod is admitted.
ACCOUNTANTS: Final = frozenset({"*", "serviceaccount-controller"})


class NotReady(Exception):
    """The control plane did not come up; the sentence ends with what it said last."""


class PortTaken(NotReady):
    """Another process has taken a port between the check and the start: check again."""


class ControlPlane:
    def __init__(self, folder: Path, keeper: subprocess.Popen[bytes]) -> None:
        self._folder = folder
        self._keeper = keeper
        #: Of two threads that wait for an answer, one could read both, and the other would wait for ever.
        self._one_order_at_a_time = threading.Lock()
        self._authority = Authority(folder / "pki")
        self._api_command: list[str] = []
        #: Whether a pod needs the account that a controller makes for each namespace.
        self.accounts = False
        self._choose_ports()

    def _choose_ports(self) -> None:
        self._etcd_port, self._peer_port, self.port = free_ports(3)
        self.kubeconfig = self.kubeconfig_for("admin", ADMINISTRATORS)

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def kubeconfig_for(self, user: str, *groups: str) -> Path:
        """A kubeconfig with a client certificate; may do what RBAC lets this user do."""
        pair = self._authority.client(user, *groups)
        cluster = {"server": self.server, "certificate-authority-data": _encoded(self._ca)}
        identity = {
            "client-certificate-data": _encoded(pair.cert),
            "client-key-data": _encoded(pair.key),
        }
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "bed",
            "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": user}}],
            "clusters": [{"name": "bed", "cluster": cluster}],
            "users": [{"name": user, "user": identity}],
        }
        path = self._folder / f"{user.replace(':', '-')}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(document))  # JSON is YAML.
        return path

    def start(
        self,
        *,
        controllers: Sequence[str] = (),
        scheduler: bool,
        kwok: bool,
        stages: Path = STAGES,
        storage: bool = False,
    ) -> None:
        names = ["etcd", "kube-apiserver"]
        names += ["kube-controller-manager"] if controllers else []
        names += ["kube-scheduler"] if scheduler else []
        names += ["kwok"] if kwok else []
        places = {name: str(place) for name, place in found(names).items()}
        self.accounts = bool(ACCOUNTANTS & set(controllers))
        self._start_api(places)
        if controllers:
            self._start_controllers(places["kube-controller-manager"], controllers)
        common = ["--kubeconfig", str(self.kubeconfig)]
        if scheduler:
            quiet = ["--leader-elect=false", "--secure-port=0"]
            self._order("kube-scheduler", [places["kube-scheduler"], *common, *quiet])
        if kwok:
            kept = [
                f"--manage-nodes-with-label-selector={KWOK_LABEL}",
                f"--config={stages}",
                f"--node-lease-duration-seconds={HEARTBEAT}",
            ]
            self._order("kwok", [places["kwok"], *common, *kept])
        if storage:
            here = f"PYTHONPATH={Path(__file__).parents[1]}"
            driver = [sys.executable, "-m", "testbed.storage", str(self.kubeconfig)]
            self._order("storage", ["/usr/bin/env", here, *driver])

    def _start_api(self, places: Mapping[str, str]) -> None:
        for tries_left in reversed(range(PORT_TRIES)):
            self._start_etcd(places["etcd"])
            self._api_command = self._api_server(places["kube-apiserver"])
            if not self.accounts:  # Then pods must not need one.
                self._api_command.append("--disable-admission-plugins=ServiceAccount")
            try:
                self.start_api_server()
            except PortTaken:
                if not tries_left:
                    raise
                self._order("kube-apiserver", None)
                self._order("etcd", None)
                shutil.rmtree(self._folder / "etcd", ignore_errors=True)
                self._choose_ports()
            else:
                return

    def start_api_server(self) -> None:
        """(Again.) Returns when it is ready."""
        self._order("kube-apiserver", self._api_command)
        self._wait_until_ready()

    def stop_api_server(self) -> None:
        """As in a crash."""
        self._order("kube-apiserver", None)

    def forget_history(self) -> None:
        """Make every version that a client can know too old, for lists and for watches.

        The server is away meanwhile, and one more thing is written behind its back: otherwise a
        client that knows the very last write would go on from there, and would not list again.
        """
        self.stop_api_server()
        written = self._etcd("put", {"key": FORGOTTEN, "value": FORGOTTEN})
        revision = written["header"]["revision"]
        self._etcd("compaction", {"revision": revision, "physical": True})
        self.start_api_server()  # Its watch cache begins anew, too.

    def _etcd(self, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self._etcd_port}/v3/kv/{verb}"
        with urlopen(url, json.dumps(body).encode(), timeout=READY_WITHIN) as answer:
            return dict(json.load(answer))

    def start_program(self, name: str, command: Sequence[str]) -> None:
        """One more process of this control plane: its log is ``log(name)``, and it ends with it."""
        self._order(name, command)

    def kill_program(self, name: str) -> None:
        """As with ``kill -9``."""
        self._order(name, None)

    def ended(self, name: str) -> bool:
        return self._has_ended(name)

    def ended_by_itself(self, name: str) -> bool:
        """And not by an order of ours."""
        note = self._folder / f"{name}.ended"
        return note.exists() and note.read_text() != STOPPED

    @property
    def audit_log(self) -> Path:
        """One JSON object on each line for what a service account asked for, and for each pod that a user removed."""
        return self._folder / "audit.log"

    def log(self, name: str) -> str:
        path = self._folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def _ca(self) -> Path:
        return self._authority.pair.cert

    def _order(self, name: str, command: Sequence[str] | None) -> None:
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        order = {"do": "start" if command else "stop", "name": name, "command": command}
        with self._one_order_at_a_time:
            self._keeper.stdin.write(json.dumps(order).encode() + b"\n")
            self._keeper.stdin.flush()
            self._keeper.stdout.readline()  # Obeyed: from here on no old process answers.

    def _start_etcd(self, program: str) -> None:
        client, peer = (f"http://127.0.0.1:{p}" for p in (self._etcd_port, self._peer_port))
        self._order("etcd", [
            program, "--name=bed", f"--data-dir={self._folder / 'etcd'}", "--unsafe-no-fsync",
            "--log-level=warn", f"--initial-cluster=bed={peer}",
            f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
        ])  # fmt: skip

    def _api_server(self, program: str) -> list[str]:
        pair = self._authority.server("kube-apiserver", "IP:127.0.0.1", "IP:10.0.0.1",
                                      "DNS:localhost", "DNS:kubernetes.default.svc")  # fmt: skip
        make_rsa_key(key := self._service_account_key)
        return [
            program, f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}", "--endpoint-reconciler-type=none",
            f"--tls-cert-file={pair.cert}", f"--tls-private-key-file={pair.key}",
            f"--client-ca-file={self._ca}", "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged",
            f"--audit-policy-file={AUDIT_POLICY}", f"--audit-log-path={self.audit_log}",
        ]  # fmt: skip

    def _start_controllers(self, program: str, controllers: Sequence[str]) -> None:
        self._order("kube-controller-manager", [
            program, f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--secure-port=0",
            f"--controllers={','.join(controllers)}", f"--root-ca-file={self._ca}",
            f"--service-account-private-key-file={self._service_account_key}",
            f"--node-monitor-grace-period={MONITOR_GRACE}",
            f"--node-startup-grace-period={MONITOR_GRACE}",
            # Hundreds of pods come and go within seconds; by default it makes 20 in each.
            "--kube-api-qps=200", "--kube-api-burst=400",
        ])  # fmt: skip

    @property
    def _service_account_key(self) -> Path:
        return self._folder / "pki" / "service-accounts.key"

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_WITHIN
        while not self._ready():
            ended = [n for n in ("etcd", "kube-apiserver") if self._has_ended(n)]
            if ended or time.monotonic() > deadline:
                name = ended[0] if ended else "kube-apiserver"
                said = "\n".join(self.log(name).splitlines()[-15:])
                what = "ended" if ended else f"was not ready within {READY_WITHIN:.0f} s"
                kind = PortTaken if ended and ADDRESS_IN_USE in said else NotReady
                raise kind(f"{name} {what}:\n{said}")
            time.sleep(LOOK_EVERY)

    def _has_ended(self, name: str) -> bool:
        return (self._folder / f"{name}.ended").exists() or self._keeper.poll() is not None

    def _ready(self) -> bool:
        context = ssl.create_default_context(cafile=str(self._ca))
        me = self._folder / "pki" / "admin"
        context.load_cert_chain(me.with_suffix(".crt"), me.with_suffix(".key"))
        connection = HTTPSConnection("127.0.0.1", self.port, timeout=2, context=context)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


@contextmanager
def control_plane(
    *,
    controllers: Sequence[str] = (),
    scheduler: bool = False,
    kwok: bool = False,
    stages: Path = STAGES,
    storage: bool = False,
) -> Iterator[ControlPlane]:
    """A control plane for as long as the block lasts.

    ``stages``: what kwok plays there. ``storage``: whether a driver provisions and attaches volumes.
    """
    folder = Path(tempfile.mkdtemp(prefix="tenure-bed-"))
    keeper = subprocess.Popen(  # noqa: S603  # our own words
        [sys.executable, str(Path(__file__).with_name("keeper.py")), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        plane = ControlPlane(folder, keeper)
        plane.start(
            controllers=controllers, scheduler=scheduler, kwok=kwok, stages=stages, storage=storage
        )
        yield plane
    finally:
        keeper.communicate()  # The orders end, and so does it.


def free_ports(count: int) -> list[int]:
    ports: list[int] = []
    while len(ports) < count:
        port = random.choice(PORTS)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue  # It is in use.
        if port not in ports:
            ports.append(port)
    return ports


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
