"""The binaries of the test bed: which, at which versions, and where they lie.

Each is looked for in this order:

1. ``KUBEBUILDER_ASSETS``, a folder that is already filled;
2. the cache, outside of every checkout and shared by all of them. There, each Go module
   has a folder named after a hash of what its binaries are built from: another version
   never meets an old one, and raising one module does not build the others again.

``make bed`` fills the cache. Nothing is built or fetched by looking.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parent / "go"
#: What ``/version`` answers; clients refuse a server that does not know its own.
KUBERNETES: Final = "v1.36.3"
#: Another release of Karpenter than ``karpenter``: the one that ``karpenter-<release>`` pins.
KARPENTER_RELEASE: Final = "TENURE_BED_KARPENTER"


@dataclass(frozen=True)
class Binary:
    name: str
    #: The folder with the go.mod that pins it.
    module: str
    package: str
    linker_flags: str = "-s -w"
    #: Built in its own source, unpacked beside it in the cache. Its kinds are read from there, so a binary
    #: alone in a folder of assets does not count. (Not in ``repr``: that decides the other modules' folders.)
    unpacked: bool = field(default=False, repr=False)
    #: Build tags. (They decide the folder as well, but only of modules that have any.)
    tags: str = field(default="", repr=False)


def _kubernetes(name: str) -> Binary:
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    variables = {"gitVersion": KUBERNETES, "gitMajor": major, "gitMinor": minor}
    flags = [f"-X k8s.io/component-base/version.{key}={value}" for key, value in variables.items()]
    return Binary(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", " ".join(["-s -w", *flags]))


def _helm(version: str) -> Binary:
    variable = f"-X helm.sh/helm/v4/internal/version.version={version}"
    return Binary("helm", "helm", "helm.sh/helm/v4/cmd/helm", f"-s -w {variable}")


#: The oldest kubectl that is tested with ``tenure up``; the newest is in the environment of the tests. PyPI
#: has only the newest ones.
OLD_KUBECTL: Final = "v1.32.13"


def _kubectl(version: str) -> Binary:
    major, minor, _ = version.removeprefix("v").split(".")
    variables = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    flags = [f"-X k8s.io/component-base/version.{key}={value}" for key, value in variables.items()]
    return Binary("kubectl-old", "kubectl", ".", " ".join(["-s -w", *flags]))


def karpenter_module(environment: Mapping[str, str] = os.environ) -> str:
    """The folder with the pins of the Karpenter that is wanted."""
    older = sorted(path.name for path in SOURCES.glob("karpenter-*"))
    release = environment.get(KARPENTER_RELEASE, "")
    wanted = f"karpenter-{release}" if release else "karpenter"
    if wanted not in ("karpenter", *older):
        pinned = ", ".join(name.removeprefix("karpenter-") for name in older)
        raise SystemExit(
            f"bed: {KARPENTER_RELEASE}={release}: pinned are {pinned}; empty: the newest"
        )
    return wanted


def _prometheus(name: str) -> Binary:
    """Without discovery in clouds, which is most of it: the tests scrape by a fixed address."""
    package = f"github.com/prometheus/prometheus/cmd/{name}"
    return Binary(name, "prometheus", package, tags="remove_all_sd")


#: In the order of building: what is needed first comes first.
BINARIES: Final = (
    Binary("etcd", "etcd", "."),
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    Binary("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    _helm("v4.3.1"),
    _kubectl(OLD_KUBECTL),
    Binary("client-go", "clientgo", "."),
    Binary("karpenter-kwok", karpenter_module(), "./kwok", unpacked=True),
    _prometheus("promtool"),
    _prometheus("prometheus"),
)
NAMES: Final = tuple(binary.name for binary in BINARIES)


class BuildFailed(Exception):
    """The sentence says what, and shows what the compiler said last."""


class Missing(Exception):
    """Some binaries are nowhere; the sentence says how to get them."""

    def __init__(self, names: Iterable[str], root: Path) -> None:
        self.names = tuple(names)
        super().__init__(f"the test bed lacks {', '.join(self.names)} in {root}: run `make bed`")


def pins(module: str) -> str:
    """A hash of all that decides what the binaries of this module are."""
    built = tuple(binary for binary in BINARIES if binary.module == module)
    digest = hashlib.sha256(f"{platform.system()} {platform.machine()} {built}".encode())
    digest.update("".join(binary.tags for binary in built).encode())
    for path in sorted((SOURCES / module).iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def cache(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder with one folder for each module."""
    root = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "tenure" / "bed"


def home(binary: Binary, environment: Mapping[str, str] = os.environ) -> Path:
    """Its folder in the cache, whether it is there or not."""
    return cache(environment) / f"{binary.module}-{pins(binary.module)}"


def place(binary: Binary, environment: Mapping[str, str] = os.environ) -> Path | None:
    assets = environment.get("KUBEBUILDER_ASSETS")
    folders = [Path(assets)] if assets and not binary.unpacked else []
    candidates = [folder / binary.name for folder in (*folders, home(binary, environment))]
    return next((path for path in candidates if os.access(path, os.X_OK)), None)


def found(
    names: Iterable[str] = NAMES, environment: Mapping[str, str] = os.environ
) -> dict[str, Path]:
    """Where each of them lies. Raises ``Missing``, which names all that are not there."""
    wanted = set(names)
    places = {b.name: place(b, environment) for b in BINARIES if b.name in wanted}
    if missing := [name for name, path in places.items() if path is None]:
        raise Missing(missing, cache(environment))
    return {name: path for name, path in places.items() if path is not None}


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
