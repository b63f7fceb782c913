"""Reads a kubeconfig: which server, how to trust it, how to say who we are.

Only the current context (or the one asked for) is read. Relative paths are relative to
the file; of a certificate and its ``-data`` twin, the data wins. What cannot be used is a
``SpecError`` that names file and field, and so is what we would have to ignore: a proxy,
or an order to impersonate another user. A secret never appears in an error.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from tenure.errors import SpecError
from tenure.parse import yamltext
from tenure.parse.files import read_text
from tenure.parse.limits import SMALL

#: Where a pod finds its own identity.
IN_CLUSTER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

#: Fields that change where a request goes or as whom: to leave one out would be to lie.
UNSUPPORTED: Final = {
    "cluster": ("proxy-url",),
    "user": ("as", "as-uid", "as-groups", "as-user-extra", "auth-provider", "username"),
}


class ExecPlugin(msgspec.Struct, frozen=True, kw_only=True):
    """A program that prints credentials."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    api_version: str = "client.authentication.k8s.io/v1"
    provide_cluster_info: bool = False
    install_hint: str = ""

    def __repr__(self) -> str:
        """Arguments and environment may hold secrets."""
        return f"ExecPlugin(command={self.command!r})"


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach one API server; what is empty was not said."""

    server: str
    #: Of a kubeconfig: by which users know the cluster.
    context: str = ""
    #: PEM; empty means the system's trust store.
    ca: str = ""
    tls_server_name: str = ""
    insecure: bool = False
    namespace: str = ""
    # Who we are. A certificate goes with any of the others, a token file before a token.
    token: str = ""
    #: Read again and again: such tokens rotate.
    token_file: Path | None = None
    #: PEM of certificate and key.
    client_cert: str = ""
    client_key: str = ""
    exec_plugin: ExecPlugin | None = None

    def __repr__(self) -> str:
        """Without a secret: this may end up in a log."""
        return f"Access(server={self.server!r})"


def load_access(path: Path, context: str = "") -> Access:
    """What the kubeconfig says about its current context, or about ``context``."""
    document = _read(path)
    reader = _Reader(path, document)
    wanted = context or str(document.get("current-context") or "")
    if not wanted:
        raise SpecError(
            f"{path}: current-context", wanted, "the name of a context", reader.known("contexts")
        )
    chosen = reader.named("contexts", wanted, "context")
    cluster = reader.named("clusters", str(chosen.get("cluster", "")), "cluster")
    user = reader.named("users", str(chosen.get("user", "")), "user") if chosen.get("user") else {}
    server = str(cluster.get("server") or "")
    if not server.startswith(("https://", "http://")):
        raise SpecError(f"{path}: cluster.server", server, "a URL, as in https://10.0.0.1:6443")
    if "@" in server:  # It would be in every log, and no client of Kubernetes uses it.
        raise SpecError(f"{path}: cluster.server", "(not shown)", "a URL without a user in it")
    client_cert = reader.pem(user, "client-certificate", "user")
    client_key = reader.pem(user, "client-key", "user")
    if bool(client_cert) != bool(client_key):
        missing = "client-key" if client_cert else "client-certificate"
        raise SpecError(f"{path}: user.{missing}", "", "certificate and key together, or neither")
    return Access(
        server=server.rstrip("/"),
        context=wanted,
        ca=reader.pem(cluster, "certificate-authority", "cluster"),
        tls_server_name=str(cluster.get("tls-server-name") or ""),
        insecure=cluster.get("insecure-skip-tls-verify") is True,
        namespace=str(chosen.get("namespace") or ""),
        token=str(user.get("token") or "").strip(),
        token_file=reader.path(user.get("tokenFile")),
        client_cert=client_cert,
        client_key=client_key,
        exec_plugin=_exec_plugin(user.get("exec"), path),
    )


def in_cluster_access(environment: Mapping[str, str], folder: Path = IN_CLUSTER) -> Access | None:
    """The identity that Kubernetes gives a pod; None outside of one."""
    host, port = (
        environment.get("KUBERNETES_SERVICE_HOST"),
        environment.get("KUBERNETES_SERVICE_PORT"),
    )
    token = folder / "token"
    if not host or not port or not token.exists():
        return None
    namespace, authority = folder / "namespace", folder / "ca.crt"
    if not authority.exists():
        raise SpecError(str(authority), "nothing", "the certificate authority of the cluster")
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca=read_text(authority, limits=SMALL),
        token_file=token,
        namespace=read_text(namespace, limits=SMALL).strip() if namespace.exists() else "",
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        text = read_text(path, limits=SMALL)
    except OSError as error:
        raise SpecError(
            "--kubeconfig",
            str(path),
            f"a kubeconfig that can be read ({error.strerror or 'unreadable'})",
            "Name another with --kubeconfig, or look at KUBECONFIG.",
        ) from None
    # Without quoting what is written there: it may hold a token.
    document = yamltext.load(text, str(path), limits=SMALL, quoted=False)
    if not isinstance(document, dict):
        raise SpecError(
            str(path),
            "an empty file" if document is None else type(document).__name__,
            "a kubeconfig: a mapping with clusters, users, contexts",
        )
    return document


class _Reader:
    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        self._path = path
        self._document = document

    def named(self, list_: str, name: str, inner: str) -> Mapping[str, Any]:
        for entry in self._document.get(list_) or ():
            if isinstance(entry, dict) and entry.get("name") == name:
                return self._usable(entry.get(inner) or {}, inner)
        raise SpecError(
            f"{self._path}: {list_}", name, f"one of the {list_} in the file", self.known(list_)
        )

    def _usable(self, holder: Any, what: str) -> Mapping[str, Any]:
        if not isinstance(holder, dict):
            raise SpecError(f"{self._path}: {what}", type(holder).__name__, "a mapping")
        for field in UNSUPPORTED.get(what, ()):
            if holder.get(field):
                raise SpecError(
                    f"{self._path}: {what}.{field}", "(not shown)", "a field that Tenure can honour"
                )
        return holder

    def known(self, list_: str) -> str:
        entries = self._document.get(list_) or ()
        names = sorted(str(e.get("name")) for e in entries if isinstance(e, dict))
        return f"There {'is' if len(names) == 1 else 'are'}: {', '.join(names) or 'none'}."

    def path(self, written: Any) -> Path | None:
        return self._path.parent / str(written) if written else None

    def pem(self, holder: Mapping[str, Any], field: str, what: str) -> str:
        """``field-data`` in base64 wins over ``field``, a path."""
        data = holder.get(f"{field}-data")
        if data:
            try:
                return base64.b64decode(str(data), validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                raise SpecError(
                    f"{self._path}: {what}.{field}-data", "(not shown)", "PEM in base64"
                ) from None
        file = self.path(holder.get(field))
        if file is None:
            return ""
        try:
            return read_text(file, name=f"{self._path}: {what}.{field}", limits=SMALL)
        except OSError as error:
            raise SpecError(
                f"{self._path}: {what}.{field}", str(file), f"a readable file ({error.strerror})"
            ) from None


def _exec_plugin(written: Any, path: Path) -> ExecPlugin | None:
    """Errors do not show what was written: arguments and environment may hold secrets."""
    if not written:
        return None
    at = f"{path}: user.exec"
    if not isinstance(written, dict) or not written.get("command"):
        raise SpecError(f"{at}.command", "nothing", "the program that prints credentials")
    version = str(written.get("apiVersion") or "")
    if version not in EXEC_VERSIONS:
        raise SpecError(f"{at}.apiVersion", version, " or ".join(EXEC_VERSIONS))
    if written.get("interactiveMode") == "Always":
        raise SpecError(f"{at}.interactiveMode", "Always", "a program that asks no user")
    command = str(written["command"])
    return ExecPlugin(
        # A bare name is looked for on the PATH; anything else is beside the file.
        command=str(path.parent / command) if "/" in command else command,
        args=tuple(str(arg) for arg in written.get("args") or ()),
        env=_environment(written.get("env") or (), f"{at}.env"),
        api_version=version,
        provide_cluster_info=written.get("provideClusterInfo") is True,
        install_hint=str(written.get("installHint") or "").strip(),
    )


def _environment(entries: Any, at: str) -> dict[str, str]:
    try:
        return {str(entry["name"]): str(entry.get("value") or "") for entry in entries}
    except (TypeError, KeyError, AttributeError):
        raise SpecError(at, "(not shown)", "a list of names and values") from None
