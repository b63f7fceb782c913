"""The file by which kubectl and others find the served cluster."""

from __future__ import annotations

import base64
import os
import socket
import ssl
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from tenure.errors import SpecError
from tenure.parse import yamltext
from tenure.parse.files import read_text
from tenure.parse.limits import SMALL
from tenure.sim.serve.access import Access

FILE: Final = Path(".tenure") / "kubeconfig"
_NAME: Final = "tenure-up"
_ANSWER_WITHIN: Final = 2.0


def write_kubeconfig(access: Access, path: Path) -> None:
    """For its owner alone from the first byte on; an older one is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        yaml.safe_dump(_document(access), file, sort_keys=False)
    new.replace(path)


def still_served(path: Path) -> str:
    """The server that an older file leads to, if it is up and the same; else nothing."""
    try:
        text = read_text(path, limits=SMALL)
        cluster: Any = yamltext.load(text, str(path), limits=SMALL)["clusters"][0]["cluster"]
        server = urlsplit(cluster["server"])
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        trust = ssl.create_default_context(cadata=authority)
        address = (server.hostname, server.port)
        with (
            socket.create_connection(address, timeout=_ANSWER_WITHIN) as plain,
            trust.wrap_socket(plain, server_hostname=server.hostname),
        ):
            return str(cluster["server"])
    except (OSError, ValueError, LookupError, TypeError, SpecError):
        return ""  # No server there, another one, or not our file.


def _document(access: Access) -> dict[str, object]:
    authority = base64.b64encode(access.ca.encode()).decode()
    cluster = {"server": access.server, "certificate-authority-data": authority}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": _NAME,
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": {"token": access.token}}],
    }
