"""The binaries of the test bed: which, at which versions, and where they lie.

Each is looked for in this order:

1. ``KUBEBUILDER_ASSETS``, a folder that somebody else has filled;
2. the cache, outside of every checkout and shared by all of them. Its name is a hash of
   what the binaries are built from, so that another version never meets an old one.

``make bed`` fills the cache. Nothing is built or fetched by looking.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parent / "go"
#: What ``/version`` answers; clients refuse a server that does not know its own.
KUBERNETES: Final = "v1.36.3"


@dataclass(frozen=True)
class Binary:
    name: str
    #: The folder with the go.mod that pins it.
    module: str
    package: str
    linker_flags: str = "-s -w"


def _kubernetes(name: str) -> Binary:
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    variables = {"gitVersion": KUBERNETES, "gitMajor": major, "gitMinor": minor}
    flags = [f"-X k8s.io/component-base/version.{key}={value}" for key, value in variables.items()]
    return Binary(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", " ".join(["-s -w", *flags]))


#: In the order of building: what is needed first comes first.
BINARIES: Final = (
    Binary("etcd", "etcd", "."),
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    Binary("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
)
NAMES: Final = tuple(binary.name for binary in BINARIES)


class Missing(Exception):
    """Some binaries are nowhere; the sentence says how to get them."""

    def __init__(self, names: Iterable[str], cache: Path) -> None:
        super().__init__(f"the test bed lacks {', '.join(names)} in {cache}: run `make bed`")


def pins() -> str:
    """A hash of all that decides what the binaries are."""
    digest = hashlib.sha256(f"{platform.system()} {platform.machine()} {BINARIES}".encode())
    for path in sorted(SOURCES.glob("*/*")):
        digest.update(path.relative_to(SOURCES).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def cache(environment: Mapping[str, str] = os.environ) -> Path:
    root = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "tenure" / "bed" / pins()


def found(
    names: Iterable[str] = NAMES, environment: Mapping[str, str] = os.environ
) -> dict[str, Path]:
    """Where each of them lies. Raises ``Missing``, which names all that are not there."""
    assets = environment.get("KUBEBUILDER_ASSETS")
    folders = [Path(assets)] if assets else []
    folders.append(cache(environment))
    places = {
        name: place
        for name in names
        for place in reversed([folder / name for folder in folders])
        if os.access(place, os.X_OK)
    }
    missing = [name for name in names if name not in places]
    if missing:
        raise Missing(missing, folders[-1])
    return places


def main() -> int:
    """One line when something is missing."""
    try:
        found()
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
