"""The file by which kubectl and others find the served cluster."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Final

import yaml

from tenure.sim.serve.access import Access

FILE: Final = Path(".tenure") / "kubeconfig"
_NAME: Final = "tenure-up"


def write_kubeconfig(access: Access, path: Path) -> None:
    """For its owner alone from the first byte on; an older one is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        yaml.safe_dump(_document(access), file, sort_keys=False)
    new.replace(path)


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
