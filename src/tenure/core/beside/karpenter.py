"""Which Karpenter is in charge: its release and feature gates, read off its Deployment, and its CRDs.

In this order: the settings ``--karpenter-version`` and ``--karpenter-feature-gates``, for a Karpenter that
runs outside the cluster; the tag of the image; the label ``app.kubernetes.io/version``. Where that leaves
no release, or several, or one whose behaviour is not known, Tenure only looks.

Every Deployment with Karpenter's label counts, in any namespace. But tenants may create Deployments, and one of another
release would keep Tenure from acting: where a Karpenter runs in a namespace that is Karpenter's by its own documentation
(``OWN_NAMESPACES``), those elsewhere do not count, and NodePools say so.

A NodeClaim that is deleted while no Karpenter acts stays for ever, with its finalizer, and one that is created is not
launched. So nothing ends or is replaced while no replica is ready, nor while a rollout makes it unknown which release
and gates act (``unsettled``). Levers go on: an annotation waits for Karpenter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from tenure.core.beside.crds import Crds, crds_of
from tenure.core.beside.facts.karpenter import (
    DeploymentsUnlisted,
    KarpenterNotFound,
    KarpenterNotReady,
    KarpenterRepairs,
    KarpenterRollsOut,
    KarpenterUnreadable,
    KarpenterUnsupported,
    SeveralKarpenters,
)
from tenure.core.beside.running import (
    Gates,
    Release,
    Running,
    parse_gates,
    parse_release,
    read_deployment,
)
from tenure.core.facts import Fact
from tenure.model.api.deployment import Deployment
from tenure.model.api.resource import DEPLOYMENTS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

_PLAIN: Final = Crds()
NAME_LABEL: Final = "app.kubernetes.io/name"
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
#: By which it keeps the number of nodes that a pool asks for in ``spec.replicas``.
STATIC_CAPACITY: Final = "StaticCapacity"


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
    #: Why nothing ends or is replaced now; None: it acts, as far as that is known.
    unsettled: Fact | None = None

    @property
    def ends_nothing(self) -> Fact | None:
        """Why no NodeClaim is deleted, stamped or created."""
        return self.problem or self.unsettled

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


def launches_replicas(karpenter: Karpenter) -> bool | None:
    """Whether it launches nodes of pools with ``spec.replicas``; None: that is not known. The default is off."""
    return None if karpenter.gates is None else dict(karpenter.gates).get(STATIC_CAPACITY, False)


def repair_left(snapshot: Snapshot, settings: Settings) -> Fact | None:
    """Why nothing is repaired for conditions; None: it is ours, also where Tenure is not beside Karpenter."""
    if not settings.beside_karpenter:
        return None
    karpenter = karpenter_of(snapshot, settings)
    return karpenter.ends_nothing or repairs_nodes(karpenter)


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
        told = bool(settings.karpenter_feature_gates)
        known = _known(release, gates if told else _same_gates(found))
        return _with_state(known, found, named=True, told=told)
    if why := snapshot.unlisted(DEPLOYMENTS):
        return Karpenter(problem=DeploymentsUnlisted(why))
    known = msgspec.structs.replace(_of_running(found), elsewhere=elsewhere)
    if settings.karpenter_feature_gates:
        known = msgspec.structs.replace(known, gates=gates)
    return _with_state(known, found)


def _with_state(
    known: Karpenter, found: tuple[Running, ...], *, named: bool = False, told: bool = False
) -> Karpenter:
    """``named``: by the settings, so one outside its own namespaces may be anything's. ``told``: so are its gates,
    whatever is rolled out."""
    legacy = any(one.legacy_repair for one in found)
    if named:
        found = tuple(one for one in found if one.namespace in OWN_NAMESPACES)
    unsettled = _unsettled(found, told=told)
    if not legacy and unsettled is None:
        return known  # Nearly always.
    return msgspec.structs.replace(known, legacy_repair=legacy, unsettled=unsettled)


def _unsettled(found: tuple[Running, ...], *, told: bool) -> Fact | None:
    if found and not any(one.ready for one in found):
        return KarpenterNotReady(tuple((one.name, one.wanted) for one in found))
    rolls_out = tuple(one.name for one in found if one.rolls_out)
    return KarpenterRollsOut(rolls_out) if rolls_out and not told else None


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


# -- which Deployments count --------------------------------------------------------------


def _running(
    deployments: Mapping[str, Deployment],
) -> tuple[tuple[Running, ...], tuple[str, ...]]:
    """Those that count, and the names of the others. Asked for anew only when a Deployment has changed."""
    named = (one for _, one in sorted(deployments.items()) if _is_karpenter(one))
    found = tuple(map(read_deployment, named))
    own = tuple(one for one in found if one.namespace in OWN_NAMESPACES)
    if not any(one.wanted for one in own):
        return found, ()
    return own, tuple(one.name for one in found if one not in own)


def _is_karpenter(deployment: Deployment) -> bool:
    """One that cannot be read may be."""
    return is_unreadable(deployment) or deployment.labels.get(NAME_LABEL) == NAME
