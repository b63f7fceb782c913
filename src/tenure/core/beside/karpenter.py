"""Which Karpenter is in charge: its release and feature gates, read off its Deployment, and its CRDs.

In this order: the settings ``--karpenter-version`` and ``--karpenter-feature-gates``, for a Karpenter that
runs outside the cluster; the tag of the image; the label ``app.kubernetes.io/version``. Where that leaves
no release, or several, or one whose behaviour is not known, Tenure only looks.

Every Deployment with Karpenter's label counts, in any namespace. But tenants may create Deployments, and one of another
release would keep Tenure from acting: where a Karpenter runs in a namespace that is Karpenter's by its own documentation
(``OWN_NAMESPACES``), those elsewhere do not count, and NodePools say so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from tenure.core.beside.crds import Crds, crds_of
from tenure.core.beside.facts.karpenter import (
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

_PLAIN: Final = Crds()
NAME_LABEL: Final = "app.kubernetes.io/name"
VERSION_LABEL: Final = "app.kubernetes.io/version"
NAME: Final = "karpenter"
#: Selects its Deployments.
SELECTOR: Final = f"{NAME_LABEL}={NAME}"

#: Where Karpenter's documentation installs it; tenants do not write there.
OWN_NAMESPACES: Final = frozenset({"kube-system", "karpenter"})

#: First and last release whose levers were tested: major and minor.
OLDEST: Final = (1, 6)
NEWEST: Final = (1, 15)

#: The feature gate of Karpenter's own repair.
NODE_REPAIR: Final = "NodeRepair"

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
    #: It is not scaled to nothing.
    runs: bool = False


class Karpenter(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the Karpenter in charge."""

    release: Release | None = None
    gates: Gates | None = None
    legacy_repair: bool = False
    crds: Crds = Crds()
    #: Deployments that do not count.
    elsewhere: tuple[str, ...] = ()
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


def repair_left(snapshot: Snapshot, settings: Settings) -> Fact | None:
    """Why nothing is repaired for conditions; None: it is ours, also where Tenure is not beside Karpenter."""
    if not settings.beside_karpenter:
        return None
    karpenter = karpenter_of(snapshot, settings)
    return karpenter.problem or repairs_nodes(karpenter)


def shown_release(release: Release) -> str:
    return f"{release[0]}.{release[1]}"


def karpenter_of(snapshot: Snapshot, settings: Settings) -> Karpenter:
    """What the settings say, and for the rest what runs in the cluster, with the CRDs that are installed."""
    crds, known = crds_of(snapshot), _running_with(snapshot, settings)
    if crds == _PLAIN:
        return known  # Nearly always.
    return msgspec.structs.replace(known, crds=crds, problem=known.problem or crds.problem)


def _running_with(snapshot: Snapshot, settings: Settings) -> Karpenter:
    found, elsewhere = snapshot.once_of(DEPLOYMENTS, _running)
    gates = parse_gates(settings.karpenter_feature_gates)
    if settings.karpenter_version:
        release = parse_release(settings.karpenter_version)
        assert release is not None, "the setting was checked"
        known = _known(release, gates if settings.karpenter_feature_gates else _same_gates(found))
        return _with_legacy(known, found)
    if why := snapshot.unlisted(DEPLOYMENTS):
        return Karpenter(problem=DeploymentsUnlisted(why))
    known = msgspec.structs.replace(_of_running(found), elsewhere=elsewhere)
    if settings.karpenter_feature_gates:
        known = msgspec.structs.replace(known, gates=gates)
    return _with_legacy(known, found)


def _with_legacy(known: Karpenter, found: tuple[Running, ...]) -> Karpenter:
    legacy = any(one.legacy_repair for one in found)
    return msgspec.structs.replace(known, legacy_repair=True) if legacy else known


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


def _running(
    deployments: Mapping[str, Deployment],
) -> tuple[tuple[Running, ...], tuple[str, ...]]:
    """Those that count, and the names of the others. Asked for anew only when a Deployment has changed."""
    named = (one for _, one in sorted(deployments.items()) if _is_karpenter(one))
    found = tuple(map(_read, named))
    own = tuple(one for one in found if one.namespace in OWN_NAMESPACES)
    if not any(one.runs for one in own):
        return found, ()
    return own, tuple(one.name for one in found if one not in own)


def _is_karpenter(deployment: Deployment) -> bool:
    """One that cannot be read may be."""
    return is_unreadable(deployment) or deployment.labels.get(NAME_LABEL) == NAME


def _read(deployment: Deployment) -> Running:
    if is_unreadable(deployment):
        return Running(name=deployment.key, namespace=deployment.namespace)
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
        runs=deployment.spec.replicas > 0,
    )


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
