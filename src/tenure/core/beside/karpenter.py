"""Which Karpenter is in charge: its release and feature gates, read off its Deployment.

In this order: the settings ``--karpenter-version`` and ``--karpenter-feature-gates``, for a Karpenter that
runs outside the cluster; the tag of the image; the label ``app.kubernetes.io/version``. Where that leaves
no release, or several, or one whose behaviour is not known, Tenure only looks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from tenure.core.beside.facts import (
    DeploymentsUnlisted,
    KarpenterNotFound,
    KarpenterRepairs,
    KarpenterUnreadable,
    KarpenterUnsupported,
    SeveralKarpenters,
)
from tenure.core.facts import Fact
from tenure.model.api.deployment import Deployment, DeploymentContainer
from tenure.model.api.resource import DEPLOYMENTS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

NAME_LABEL: Final = "app.kubernetes.io/name"
VERSION_LABEL: Final = "app.kubernetes.io/version"
NAME: Final = "karpenter"
#: Selects its Deployments.
SELECTOR: Final = f"{NAME_LABEL}={NAME}"

#: First and last release whose levers were tested: major and minor.
OLDEST: Final = (1, 6)
NEWEST: Final = (1, 15)

#: The feature gate of Karpenter's own repair.
NODE_REPAIR: Final = "NodeRepair"

_VERSION: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})(\.[0-9A-Za-z.+_-]{1,64})?")
_GATES_FLAG: Final = "--feature-gates"
_GATES_VARIABLE: Final = "FEATURE_GATES"

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


class Karpenter(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the Karpenter in charge."""

    release: Release | None = None
    gates: Gates | None = None
    #: Why Tenure only looks; None: the levers are known to work.
    problem: Fact | None = None

    @property
    def version(self) -> str:
        return "" if self.release is None else shown_release(self.release)


def repairs_nodes(karpenter: Karpenter) -> KarpenterRepairs | None:
    """Why repair for conditions is Karpenter's; None: it is left to us.

    A gate that is not written has its default, and that is off in every release that is supported.
    """
    if karpenter.gates is None:
        return KarpenterRepairs(karpenter.version, known=False)
    on = dict(karpenter.gates).get(NODE_REPAIR, False)
    return KarpenterRepairs(karpenter.version) if on else None


def shown_release(release: Release) -> str:
    return f"{release[0]}.{release[1]}"


def karpenter_of(snapshot: Snapshot, settings: Settings) -> Karpenter:
    """What the settings say, and for the rest what runs in the cluster."""
    found = snapshot.once_of(DEPLOYMENTS, _running)
    gates = parse_gates(settings.karpenter_feature_gates)
    if settings.karpenter_version:
        release = parse_release(settings.karpenter_version)
        assert release is not None, "the setting was checked"
        return _known(release, gates if settings.karpenter_feature_gates else _same_gates(found))
    if why := snapshot.unlisted(DEPLOYMENTS):
        return Karpenter(problem=DeploymentsUnlisted(why))
    known = _of_running(found)
    if settings.karpenter_feature_gates:
        known = msgspec.structs.replace(known, gates=gates)
    return known


def _of_running(found: tuple[Running, ...]) -> Karpenter:
    if not found:
        return Karpenter(problem=KarpenterNotFound(SELECTOR))
    for one in found:
        if one.release is None:
            return Karpenter(problem=KarpenterUnreadable(one.name, one.image))
    releases = {one.release for one in found if one.release is not None}
    if len(releases) > 1:
        said = tuple((one.name, shown_release(one.release)) for one in found if one.release)
        return Karpenter(problem=SeveralKarpenters(said))
    (release,) = releases
    return _known(release, _same_gates(found))


def _known(release: Release, gates: Gates | None) -> Karpenter:
    if OLDEST <= release <= NEWEST:
        return Karpenter(release=release, gates=gates)
    said = shown_release(release), shown_release(OLDEST), shown_release(NEWEST)
    return Karpenter(release=release, gates=gates, problem=KarpenterUnsupported(*said))


def _same_gates(found: tuple[Running, ...]) -> Gates | None:
    """None where they are not known, or differ."""
    gates = {one.gates for one in found}
    return gates.pop() if len(gates) == 1 else None


# -- reading one Deployment -----------------------------------------------------------


def _running(deployments: Mapping[str, Deployment]) -> tuple[Running, ...]:
    """Asked for anew only when a Deployment has changed."""
    ours = (one for _, one in sorted(deployments.items()) if _is_karpenter(one))
    return tuple(map(_read, ours))


def _is_karpenter(deployment: Deployment) -> bool:
    """One that cannot be read may be."""
    return is_unreadable(deployment) or deployment.labels.get(NAME_LABEL) == NAME


def _read(deployment: Deployment) -> Running:
    if is_unreadable(deployment):
        return Running(name=deployment.key)
    container = _controller(deployment)
    image = container.image if container is not None else ""
    release = parse_release(_tag(image)) or parse_release(deployment.labels.get(VERSION_LABEL, ""))
    gates = _gates(container) if container is not None else None
    return Running(name=deployment.key, image=image, release=release, gates=gates)


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
    """A flag wins over the environment."""
    written = _flag(container.args)
    if written is not None:
        return parse_gates(written)
    for variable in container.env:
        if variable.name == _GATES_VARIABLE:
            return None if variable.value_from is not None else parse_gates(variable.value)
    return ()


def _flag(args: tuple[str, ...]) -> str | None:
    for number, arg in enumerate(args):
        name, equals, value = arg.partition("=")
        if name.lstrip("-") == _GATES_FLAG.lstrip("-") and name.startswith("-"):
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
