"""What one Deployment of Karpenter says: its release, its feature gates, and whether it runs.

The tag of the image counts, else the label ``app.kubernetes.io/version``. Of gates the flag counts, else the
variable. While old pods may still run, neither release nor gates are those that act.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from tenure.model.api.deployment import Deployment, DeploymentContainer
from tenure.model.snapshot.unreadable import is_unreadable

VERSION_LABEL: Final = "app.kubernetes.io/version"

_VERSION: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})(\.[0-9A-Za-z.+_-]{1,64})?")
#: Of each option: the flag, and the variable that counts where the flag is not given.
_GATES: Final = ("feature-gates", "FEATURE_GATES")
_LEGACY_REPAIR: Final = ("legacy-node-repair", "LEGACY_NODE_REPAIR")

#: Names of feature gates, and whether they are on; those that are not here have their default.
Gates = tuple[tuple[str, bool], ...]
Release = tuple[int, int]


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """What one Deployment says."""

    name: str
    #: As it is written, for messages.
    image: str = ""
    release: Release | None = None
    #: None: they cannot be read.
    gates: Gates | None = None
    #: ``--legacy-node-repair``: it repairs in the old way, which ignores ``do-not-repair``.
    legacy_repair: bool = False
    namespace: str = ""
    #: How many replicas are wanted; 0: it is scaled to nothing.
    wanted: int = 0
    #: One of its replicas is ready.
    ready: bool = False
    #: Pods of an older template may still run.
    rolls_out: bool = False


def read_deployment(deployment: Deployment) -> Running:
    if is_unreadable(deployment):
        # Only the settings can say which release it is, and then that it runs.
        return Running(name=deployment.key, namespace=deployment.namespace, ready=True)
    container = _controller(deployment)
    image = container.image if container is not None else ""
    release = parse_release(_tag(image)) or parse_release(deployment.labels.get(VERSION_LABEL, ""))
    gates = _gates(container) if container is not None else None
    legacy = container is not None and _is_legacy(container)
    return Running(
        name=deployment.key,
        image=image,
        release=release,
        gates=gates,
        legacy_repair=legacy,
        namespace=deployment.namespace,
        wanted=deployment.spec.replicas,
        ready=deployment.spec.replicas > 0 and deployment.status.ready_replicas > 0,
        rolls_out=_rolls_out(deployment),
    )


def _rolls_out(deployment: Deployment) -> bool:
    status = deployment.status
    seen = status.observed_generation >= deployment.metadata.generation
    return not seen or status.replicas > status.updated_replicas


def _controller(deployment: Deployment) -> DeploymentContainer | None:
    """The container that Karpenter's chart calls ``controller``; else the only one."""
    containers = deployment.spec.template.spec.containers
    named = [one for one in containers if one.name == "controller"]
    chosen = named or list(containers)
    return chosen[0] if len(chosen) == 1 else None


def _tag(image: str) -> str:
    """``repository:tag@digest``; a registry may have a port."""
    _, colon, tag = image.partition("@")[0].rpartition(":")
    return tag if colon and "/" not in tag else ""


def _gates(container: DeploymentContainer) -> Gates | None:
    written = _option(container, *_GATES)
    return None if written is None else parse_gates(written)


def _is_legacy(container: DeploymentContainer) -> bool:
    written = _option(container, *_LEGACY_REPAIR)
    if f"--{_LEGACY_REPAIR[0]}" in container.args:
        return True  # A flag without a value is true, whatever follows.
    return written is not None and written.lower() in ("true", "1", "t")


def _option(container: DeploymentContainer, flag: str, variable: str) -> str | None:
    """A flag wins over the environment. Empty: not given. None: its value is elsewhere."""
    written = _flag(container.args, flag)
    if written is not None:
        return written
    for one in container.env:
        if one.name == variable:
            return None if one.value_from is not None else one.value
    return ""


def _flag(args: tuple[str, ...], flag: str) -> str | None:
    for number, arg in enumerate(args):
        name, equals, value = arg.partition("=")
        if name.lstrip("-") == flag and name.startswith("-"):
            return value if equals else "".join(args[number + 1 : number + 2])
    return None


def parse_gates(text: str) -> Gates | None:
    """``NodeRepair=true,StaticCapacity=false``; None where it is not of this form."""
    found: dict[str, bool] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        if not name or value.lower() not in ("true", "false"):
            return None
        found[name] = value.lower() == "true"
    return tuple(sorted(found.items()))


def parse_release(text: str) -> Release | None:
    """``1.15``, ``v1.15.0``; None where it is none."""
    found = _VERSION.fullmatch(text)
    return (int(found[1]), int(found[2])) if found is not None else None
