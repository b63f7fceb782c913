"""Beside Karpenter: what Tenure may write on a NodeClaim or NodePool, and when it may delete a claim.

On a NodeClaim:

- when a duration of ``do-not-disrupt`` or ``do-not-repair`` was first seen, once its Node is registered;
- that its Node has been Ready, while it is; that its Node is gone, while it is, and removed once it is back;
- the termination timestamp with our marks, for a forceful repair or a time-out that a user has asked for, or
  for a command of ours. It is never written over one that is not ours, unless the claim is being deleted, and
  removed with its marks. It is ours only where the mark beside it names the same instant. Marks without it go.

A claim is deleted on the version that carries our timestamp, once that is over. None is created, stamped or deleted
while no replica of Karpenter is ready, or while it is rolled out (``idle_karpenter``). The rules of each ground, as
without Karpenter, are asked after this (``departure``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from tenure.core.decision import Delete, Ground, Patch
from tenure.model.api import names
from tenure.model.api.deployment import Deployment, DeploymentContainer
from tenure.model.api.meta import read_instant
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import CRDS, DEPLOYMENTS
from tenure.model.settings import Settings
from tenure.model.snapshot.governed import as_written, ruling_of
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.safety.reasons import is_repair
from tenure.safety.times import span_of

_SINCE: Final = frozenset({f"{names.DO_NOT_DISRUPT}-since", f"{names.DO_NOT_REPAIR}-since"})
_STAMP: Final = names.TERMINATION_TIMESTAMP
_MARKS: Final = frozenset({names.TERMINATION_BY, names.TERMINATION_BECAUSE, names.TERMINATION_AT})
#: What the API server writes where a user wrote nothing.
_DEFAULT_TTL: Final = "15m"
_CONDITIONS: Final = frozenset({Ground.REPAIR, Ground.REPAIR_FORCED})
#: The minor releases of 1 that were tried.
_TRIED: Final = range(6, 16)
_OWN: Final = ("kube-system", "karpenter")
_VERSION_LABEL: Final = "app.kubernetes.io/version"
_PATCH_MAX: Final = 64
_GROUNDS: Final = frozenset({Ground.REPAIR_FORCED, Ground.TIME_OUT, Ground.NODE_LOST})


def beyond_deletion(
    action: Delete, snapshot: Snapshot, now: datetime, settings: Settings
) -> str | None:
    claim = _claim(action, snapshot)
    if claim is None or not action.resource_version:
        return f"beside Karpenter NodeClaim {action.name} is deleted on a known version alone"
    if action.ground not in _GROUNDS:
        return f"beside Karpenter no NodeClaim is deleted for {action.ground}: {action.name}"
    stamp = read_instant(claim.termination_stamp or "")
    if not is_our_deadline(claim) or stamp is None or stamp > now:
        return (
            f"beside Karpenter NodeClaim {claim.name} is not deleted before it carries our "
            f"{_STAMP}, and that is over"
        )
    return _unasked(action.ground, claim, snapshot, settings)


def beyond_claim(
    action: Patch, written: Mapping[str, Any], snapshot: Snapshot, settings: Settings
) -> str | None:
    claim = _claim(action, snapshot)
    if claim is None:
        return f"beside Karpenter NodeClaim {action.name} is gone or another one"
    if set(written) <= _SINCE:
        return _beyond_since(written, claim)
    if set(written) <= {names.READY_ONCE_AT}:
        return _beyond_ready(action, claim, snapshot)
    if set(written) <= {names.NODE_LOST_AT}:
        return _beyond_lost(action, written, claim, snapshot)
    if set(written) <= {_STAMP, *_MARKS, names.PROBE_BESIDE}:
        if _STAMP not in written:
            return _drops_marks(written, claim)
        return _beyond_stamp(action, written, claim, snapshot, settings)
    others = ", ".join(sorted(set(written) - _SINCE))
    return f"beside Karpenter {others} of NodeClaim {claim.name} is not ours to write"


def beyond_pool(action: Patch, written: Mapping[str, Any], snapshot: Snapshot) -> str | None:
    """Which of its claims is the probe, and since when: the instant is that of the write."""
    named = str(written.get(names.PROBE_BESIDE, "")).split(" ")[-1]
    claims = snapshot.claims_of_pool(action.name)
    if set(written) == {names.PROBE_BESIDE} == {action.dated} and named in claims:
        return None
    return f"beside Karpenter nothing of NodePool {action.name} is ours but its repair probe"


def _claim(action: Patch | Delete, snapshot: Snapshot) -> NodeClaim | None:
    found = snapshot.claims.get(action.name)
    return found if found is not None and found.uid == action.uid else None


def is_our_deadline(claim: NodeClaim) -> bool:
    """The termination timestamp: it has our mark, and the instant that we have written."""
    there = claim.annotations
    if there.get(names.TERMINATION_BY) != names.SET_BY_TENURE:
        return False
    return _STAMP in there and there.get(names.TERMINATION_AT) == there[_STAMP]


def _beyond_since(written: Mapping[str, Any], claim: NodeClaim) -> str | None:
    """Karpenter copies what stands on a claim to the Node that registers."""
    if claim.registered or all(value is None for value in written.values()):
        return None
    return (
        f"beside Karpenter nothing is noted on NodeClaim {claim.name} before its Node is registered"
    )


def _drops_marks(written: Mapping[str, Any], claim: NodeClaim) -> str | None:
    """Without the timestamp itself, marks are only dropped, and only where it is not ours."""
    if is_our_deadline(claim) or any(value is not None for value in written.values()):
        return (
            f"beside Karpenter marks of NodeClaim {claim.name} are written and removed together "
            "with its deadline alone"
        )
    return None


def _beyond_ready(action: Patch, claim: NodeClaim, snapshot: Snapshot) -> str | None:
    nodes = snapshot.nodes_with_provider(claim.provider_id).values()
    if action.dated == names.READY_ONCE_AT and any(node.ready for node in nodes):
        return None
    return f"beside Karpenter the Node of NodeClaim {claim.name} is not Ready, and is not noted as such"


def _beyond_lost(
    action: Patch, written: Mapping[str, Any], claim: NodeClaim, snapshot: Snapshot
) -> str | None:
    gone = claim.registered and not snapshot.nodes_with_provider(claim.provider_id)
    removes = written[names.NODE_LOST_AT] is None
    if removes != gone and (removes or action.dated == names.NODE_LOST_AT):
        return None
    return f"beside Karpenter it would be wrong to note on NodeClaim {claim.name} that its Node is lost or back"


def _beyond_stamp(
    action: Patch,
    written: Mapping[str, Any],
    claim: NodeClaim,
    snapshot: Snapshot,
    settings: Settings,
) -> str | None:
    foreign = claim.termination_stamp is not None and not is_our_deadline(claim)
    if foreign and not claim.deleting:
        return f"beside Karpenter {_STAMP} of NodeClaim {claim.name} is not ours to write"
    if written[_STAMP] is None:
        left = {*_MARKS, names.PROBE_BESIDE} & set(claim.annotations) - set(written)
        if any(value is not None for value in written.values()) or left or claim.deleting:
            return (
                f"beside Karpenter a mark of NodeClaim {claim.name} would stay without its deadline"
            )
        return None
    dated = (action.dated, action.dated_mark) == (_STAMP, names.TERMINATION_AT)
    whole = dated and set(written) >= _MARKS and written[names.TERMINATION_BECAUSE]
    if not whole or written[names.TERMINATION_BY] != names.SET_BY_TENURE:
        return f"beside Karpenter {_STAMP} of NodeClaim {claim.name} would stand without our marks"
    if why := idle_karpenter(snapshot, settings):
        return f"beside Karpenter NodeClaim {claim.name} gets no deadline: {why}"
    if action.ground is Ground.REPLACED:
        return _uncommanded(claim)
    if action.ground not in _GROUNDS and not (action.ground is Ground.REPAIR and claim.deleting):
        return f"beside Karpenter no NodeClaim is stamped for {action.ground}: {claim.name}"
    return _unasked(action.ground, claim, snapshot, settings)


def _uncommanded(claim: NodeClaim) -> str | None:
    ours = claim.annotations.get(names.DISRUPTED_BY) == names.SET_BY_TENURE
    if ours and names.REPLACED_BY in claim.annotations:
        return None
    return f"beside Karpenter no command of ours disrupts NodeClaim {claim.name}"


# -- only what a user has asked for --------------------------------------------------------


def _unasked(
    ground: Ground | None, claim: NodeClaim, snapshot: Snapshot, settings: Settings
) -> str | None:
    if ground not in _CONDITIONS:
        return _untimed(ground, claim)
    pool = snapshot.pools.get(claim.pool_name)
    repair = pool.spec.repair if pool is not None else None
    if repair is None:
        return f"beside Karpenter nothing asks for the repair of NodeClaim {claim.name}"
    modes = {repair.termination_mode, *(one.termination_mode for one in repair.policies)}
    if ground is Ground.REPAIR_FORCED and "Forceful" not in modes:
        return f"beside Karpenter no policy asks to repair NodeClaim {claim.name} by force"
    if may_repair(snapshot, settings):
        return f"beside Karpenter the repair of NodeClaim {claim.name} is Karpenter's (NodeRepair)"
    return None


def unreplaceable(
    reason: str, claim: NodeClaim | None, snapshot: Snapshot, settings: Settings
) -> str | None:
    """Why no node is replaced there now. A repair of one that is not initialized is a time-out."""
    repaired = claim is not None and claim.initialized and is_repair(reason)
    if claim is not None and repaired and may_repair(snapshot, settings):
        return f"beside Karpenter the repair of NodeClaim {claim.name} is Karpenter's (NodeRepair)"
    return None


def _untimed(ground: Ground | None, claim: NodeClaim) -> str | None:
    """A time-out, or a Node that is lost, needs a time that a user has written."""
    ruling, own = ruling_of(claim), as_written(claim).spec
    if own.readiness_ttl != _DEFAULT_TTL and span_of(own.readiness_ttl) is not None:
        return None
    if ruling is not None and ruling.refusal is None and span_of(ruling.readiness_ttl) is not None:
        return None
    # None, unless a user has written it.
    if ground is Ground.TIME_OUT and span_of(claim.spec.initialization_ttl) is not None:
        return None
    return f"beside Karpenter no user has written how long NodeClaim {claim.name} may take"


# -- which Karpenter ---------------------------------------------------------------------
#
# By text alone, apart from the deciders' own reading, and never more sure than that: a property test holds it to
# this. Every Deployment that counts has to name one release of those that were tried, and the same; the CRDs have to
# serve ``v1``. Nothing says that Karpenter does not repair but feature gates that can be read. Where one of
# Karpenter's runs in a namespace of its own, those of these namespaces count: a tenant may create others elsewhere.


def unknown_karpenter(snapshot: Snapshot, settings: Settings) -> str | None:
    """Why Tenure only looks; None where one Karpenter that was tried is named or runs."""
    for crd in snapshot.objects(CRDS).values():
        if not is_unreadable(crd) and not any(
            v.served and v.name == "v1" for v in crd.spec.versions
        ):
            return f"CustomResourceDefinition {crd.name} does not serve v1"
    if settings.karpenter_version:
        tried = _minor(settings.karpenter_version) in _TRIED
        return None if tried else f"Karpenter {settings.karpenter_version} was not tried"
    if why := snapshot.unlisted(DEPLOYMENTS):
        return f"Deployments cannot be listed ({why})"
    minors = {_minor_of(one) for one in _counted(snapshot)}
    if len(minors) == 1 and minors.pop() in _TRIED:
        return None
    return "it is not known which Karpenter is in charge"


def idle_karpenter(snapshot: Snapshot, settings: Settings) -> str | None:
    """Why a NodeClaim that is deleted or created now would stay as it is, or go in a way that is not known."""
    counted = _counted(snapshot)
    if settings.karpenter_version:
        counted = [one for one in counted if one.namespace in _OWN]
    found = [one for one in counted if not is_unreadable(one)]
    ready = any(one.spec.replicas > 0 < one.status.ready_replicas for one in found)
    if found == counted != [] and not ready:
        return f"no replica of {found[0].key} is ready"
    if settings.karpenter_version and settings.karpenter_feature_gates:
        return None
    for one in found:
        late = one.metadata.generation > one.status.observed_generation
        if late or one.status.updated_replicas < one.status.replicas:
            return f"{one.key} is being rolled out"
    return None


def may_repair(snapshot: Snapshot, settings: Settings) -> bool:
    """Whether its feature gate ``NodeRepair`` is on, or nothing says that it is off."""
    if settings.karpenter_feature_gates:
        return _may_be_on(_gates([settings.karpenter_feature_gates]))
    found = {_gates_of(one) for one in _counted(snapshot)}
    return len(found) != 1 or _may_be_on(found.pop())


# -- Deployments -----------------------------------------------------------------------


def _counted(snapshot: Snapshot) -> list[Deployment]:
    found = [one for one in snapshot.objects(DEPLOYMENTS).values() if _may_be_karpenter(one)]
    own = [one for one in found if one.namespace in _OWN]
    runs = any(not is_unreadable(one) and one.spec.replicas > 0 for one in own)
    return own if runs else found


def _may_be_karpenter(deployment: Deployment) -> bool:
    named = deployment.labels.get("app.kubernetes.io/name") == "karpenter"
    return named or is_unreadable(deployment)


def _container(deployment: Deployment) -> DeploymentContainer | None:
    """Its controller; None where it is not known which container that is."""
    containers = deployment.spec.template.spec.containers
    found = [one for one in containers if len(containers) == 1 or one.name == "controller"]
    return found[0] if len(found) == 1 else None


def _minor_of(deployment: Deployment) -> int | None:
    if is_unreadable(deployment):
        return None
    container = _container(deployment)
    image = container.image.split("@")[0] if container is not None else ""
    tag = image.split("/")[-1].split(":")[1:]
    minor = _minor(tag[-1]) if tag else None
    return minor if minor is not None else _minor(deployment.labels.get(_VERSION_LABEL, ""))


def _minor(version: str) -> int | None:
    """Of ``1.15``, ``v1.15.0``; another major release is none that was tried, and -1."""
    major, dot, rest = version.removeprefix("v").partition(".")
    minor, patched, patch = rest.partition(".")
    numbers = all(one.isascii() and one.isdecimal() and len(one) <= 4 for one in (major, minor))
    if not dot or not numbers or (patched and not _is_patch(patch)):
        return None
    return int(minor) if int(major) == 1 else -1


def _is_patch(text: str) -> bool:
    plain = all(sign.isascii() and (sign.isalnum() or sign in ".+_-") for sign in text)
    return plain and 0 < len(text) <= _PATCH_MAX


# -- feature gates ---------------------------------------------------------------------

#: As written, in lower case; None: they cannot be read.
_Gates = frozenset[str] | None


def _may_be_on(gates: _Gates) -> bool:
    return gates is None or "noderepair=true" in gates


def _gates_of(deployment: Deployment) -> _Gates:
    container = None if is_unreadable(deployment) else _container(deployment)
    if container is None:
        return None
    flags = list(_flags(container.args))
    if flags:
        return _gates(flags)
    written = [one for one in container.env if one.name == "FEATURE_GATES"]
    if any(one.value_from is not None for one in written):
        return None
    return _gates([one.value for one in written])


def _flags(args: tuple[str, ...]) -> Iterator[str]:
    """Every time it is given: the last one counts for Karpenter, and none may say that it is on."""
    for arg, after in zip(args, (*args, "")[1:], strict=True):
        name, equals, value = arg.partition("=")
        if name in ("-feature-gates", "--feature-gates") or name.strip("-") == "feature-gates":
            yield value if equals else after


def _gates(texts: list[str]) -> _Gates:
    parts = [part.strip().lower() for text in texts for part in text.split(",") if part.strip()]
    for part in parts:
        name, _, value = part.partition("=")
        if not name or value not in ("true", "false"):
            return None
    return frozenset(parts)
