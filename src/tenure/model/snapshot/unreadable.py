"""Stand-ins for objects that exist, and that we cannot read or evaluate.

Such an object must not be taken for absent: the node of a pod that cannot be read is not empty. So
a stand-in of its own type takes its place in the tables. It has the identity of the object, what it
belongs to and its deadline, as far as that can be read, and nothing else. A decider that would take
something away asks whether there is one (``isinstance(thing, Unreadable)``); it is never written to.

``salvaged`` keeps what can be read of an object, field by field.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, TypeVar, cast, get_args, get_origin

import msgspec

from tenure.model.api.meta import ApiObject, ObjectMeta
from tenure.model.api.names import (
    LAUNCHED_FOR,
    NOMINATED_PODS,
    REBOOT_HISTORY,
    REPLACED_BY,
    REPLACES,
    TERMINATION_TIMESTAMP,
)
from tenure.model.api.node import Node, NodeSpec
from tenure.model.api.nodeclaim import NodeClaim, NodeClaimSpec, NodeClaimStatus, ResourceRequests
from tenure.model.api.nodepool import NodeClaimTemplate, NodePool, NodePoolSpec
from tenure.model.api.pod import LabelSelector, Pod, PodSpec, PodStatus
from tenure.model.api.policy import NodePoolPolicy, NodePoolPolicySpec
from tenure.model.api.resource import NODES, PODS, VOLUME_ATTACHMENTS, Resource
from tenure.model.api.window import MaintenanceWindow, MaintenanceWindowSpec
from tenure.model.api.workload import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    VolumeAttachment,
    VolumeAttachmentSpec,
)
from tenure.model.values.unreadable import UnreadableObject

T = TypeVar("T", bound=ApiObject)

#: Of a message of the decoder: ``Expected `int`, got `str` - at `$.spec.weight` ``.
_AT: Final = re.compile(r" - at `(?:key in )?\$\.?([^`]*)`$")
_EXPECTED: Final = re.compile("Expected `([^`]*)`, got `([^`]*)`")

#: Stands for the name of a Node, or a provider id, that an object has and that cannot be read.
UNKNOWN: Final = "?"

#: Annotations without which another object would be evaluated wrongly: the launch breaker counts a
#: claim by what it was launched for.
_KEPT: Final = (
    TERMINATION_TIMESTAMP,
    REPLACES,
    REPLACED_BY,
    NOMINATED_PODS,
    LAUNCHED_FOR,
    REBOOT_HISTORY,
)


class Unreadable:
    """What every stand-in has beside its type's own fields."""

    __slots__ = ()

    #: What is wrong, in the words of the decoder or of the error.
    problem: str
    #: Where, if that is known.
    field: str
    #: It can be read, but a decider failed on it.
    decoded: bool
    #: It has the least that a stand-in can have: another one would not help.
    bare: bool


def stand_in(item: T, problem: str, *, field: str = "", decoded: bool = False) -> T:
    """The object reduced to its identity. ``decoded``: it could be read, and not be evaluated.

    Of a stand-in, one that says even less: where evaluating the first failed, too.
    """
    type_, bare = type_of(item), isinstance(item, Unreadable)
    reduce_: Callable[[Any, bool], dict[str, Any]] = _REDUCED.get(type_, _nothing)
    made = _stand_in_type(type_)(
        api_version=item.api_version,
        kind=item.kind,
        metadata=_bare(item.metadata) if bare else _identity(item.metadata),
        problem=problem,
        field=field,
        decoded=decoded,
        bare=bare,
        **reduce_(item, bare),
    )
    return cast("T", made)


def unreadable_object(item: ApiObject) -> UnreadableObject:
    """For a verdict about this object or another: which one cannot be read, and why."""
    assert isinstance(item, Unreadable)
    expected, got = expected_and_got(item.problem)
    return UnreadableObject(
        kind=item.kind or type_of(item).__name__,
        name=item.key,
        field=item.field,
        expected=expected,
        got=got,
        error="" if expected else item.problem,
        decoded=item.decoded,
    )


def placed(resource: Resource, raw: Any) -> Any:
    """The JSON of an object; where it belongs is marked as unknown if that cannot be read."""
    name = _PLACES.get(resource)
    if name is None:
        return raw
    raw = raw if isinstance(raw, dict) else {}
    spec = raw.get("spec", {})
    if isinstance(spec, dict) and isinstance(spec.get(name, ""), str):
        return raw
    return {**raw, "spec": {**(spec if isinstance(spec, dict) else {}), name: UNKNOWN}}


#: The field of the spec that says what an object belongs to.
_PLACES: Final = {PODS: "nodeName", NODES: "providerID", VOLUME_ATTACHMENTS: "nodeName"}


def is_unreadable(item: object) -> bool:
    return isinstance(item, Unreadable)


def is_undecoded(item: object) -> bool:
    """Whether parts of it are missing here: an object that only fails a decider has them all."""
    return isinstance(item, Unreadable) and not item.decoded


def problem_of(item: ApiObject) -> str:
    """What is wrong with a stand-in, and where."""
    assert isinstance(item, Unreadable)
    return f"{item.problem} at {item.field}" if item.field else item.problem


def first_unreadable(things: Iterable[ApiObject | None]) -> UnreadableObject | None:
    """Which of them cannot be read, and why; None where all can."""
    found = next((one for one in things if one is not None and is_unreadable(one)), None)
    return unreadable_object(found) if found is not None else None


def problem_and_field(error: str) -> tuple[str, str]:
    """What the decoder says, and the field that it names; empty where it names none."""
    found = _AT.search(error)
    return (error[: found.start()], found[1]) if found is not None else (error, "")


def expected_and_got(problem: str) -> tuple[str, str]:
    """The types that the decoder names; empty where the problem is another one."""
    found = _EXPECTED.fullmatch(problem)
    return (found[1], found[2]) if found is not None else ("", "")


# -- the identity ----------------------------------------------------------------------------


def _identity(meta: ObjectMeta) -> ObjectMeta:
    kept = {name: meta.annotations[name] for name in _KEPT if name in meta.annotations}
    return msgspec.structs.replace(meta, annotations=kept)


def _bare(meta: ObjectMeta) -> ObjectMeta:
    return ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        labels=meta.labels,
    )


def _pod(pod: Pod, bare: bool) -> dict[str, Any]:
    spec = pod.spec
    if bare:
        return {"spec": PodSpec(node_name=spec.node_name)}
    kept = PodSpec(
        node_name=spec.node_name,
        tolerations=spec.tolerations,
        containers=spec.containers,
        init_containers=spec.init_containers,
        overhead=spec.overhead,
        resources=spec.resources,
        priority=spec.priority,
        priority_class_name=spec.priority_class_name,
        termination_grace_period_seconds=spec.termination_grace_period_seconds,
        host_network=spec.host_network,
    )
    return {"spec": kept, "status": PodStatus(phase=pod.status.phase)}


def _node(node: Node, bare: bool) -> dict[str, Any]:
    taints = () if bare else node.spec.taints
    return {"spec": NodeSpec(provider_id=node.spec.provider_id, taints=taints)}


def _claim(claim: NodeClaim, bare: bool) -> dict[str, Any]:
    spec, status = claim.spec, claim.status
    kept = NodeClaimSpec(
        node_class_ref=spec.node_class_ref,
        # What it may turn out to be: limits count that.
        requirements=() if bare else spec.requirements,
        resources=ResourceRequests() if bare else spec.resources,
        termination_grace_period=None if bare else spec.termination_grace_period,
    )
    known = NodeClaimStatus(
        node_name=status.node_name,
        provider_id=status.provider_id,
        capacity={} if bare else status.capacity,
    )
    return {"spec": kept, "status": known}


def _pool(pool: NodePool, _: bool) -> dict[str, Any]:
    ref = NodeClaimSpec(node_class_ref=pool.spec.template.spec.node_class_ref)
    return {"spec": NodePoolSpec(template=NodeClaimTemplate(spec=ref))}


def _pdb(pdb: PodDisruptionBudget, bare: bool) -> dict[str, Any]:
    """Where its selector cannot be read, it covers every pod in its namespace."""
    selector = None if bare else pdb.spec.selector
    return {"spec": PodDisruptionBudgetSpec(selector=selector or LabelSelector())}


def _attachment(attachment: VolumeAttachment, _: bool) -> dict[str, Any]:
    spec = attachment.spec
    return {"spec": VolumeAttachmentSpec(node_name=spec.node_name, source=spec.source)}


def _window(window: MaintenanceWindow, bare: bool) -> dict[str, Any]:
    """What it names and selects, and whether it blocks, but not when: that may be always."""
    spec = window.spec
    if bare:
        return {"spec": MaintenanceWindowSpec(actions=spec.actions, type=spec.type)}
    kept = MaintenanceWindowSpec(actions=spec.actions, type=spec.type, selector=spec.selector)
    return {"spec": kept}


def _policy(policy: NodePoolPolicy, bare: bool) -> dict[str, Any]:
    """Which pools it selects, but not what it says about them: that may be anything."""
    if bare:
        return {}
    return {"spec": NodePoolPolicySpec(node_pools=policy.spec.node_pools)}


def _nothing(*_: object) -> dict[str, Any]:
    return {}


_REDUCED: Final[dict[type[ApiObject], Callable[[Any, bool], dict[str, Any]]]] = {
    Pod: _pod,
    Node: _node,
    NodeClaim: _claim,
    NodePool: _pool,
    PodDisruptionBudget: _pdb,
    VolumeAttachment: _attachment,
    MaintenanceWindow: _window,
    NodePoolPolicy: _policy,
}


def type_of(item: ApiObject) -> type[ApiObject]:
    """The kind's own type, whatever was made of it."""
    line: tuple[type, ...] = type(item).__mro__
    return cast("type[ApiObject]", line[line.index(ApiObject) - 1])


@cache
def _stand_in_type(type_: type[ApiObject]) -> Callable[..., Any]:
    texts = [(name, str, "") for name in ("problem", "field")]
    flags = [(name, bool, False) for name in ("decoded", "bare")]
    made = msgspec.defstruct(
        f"Unreadable{type_.__name__}",
        [*texts, *flags],
        bases=(Unreadable, type_),
        frozen=True,
        kw_only=True,
    )
    return cast("Callable[..., Any]", made)


# -- what can be read of it --------------------------------------------------------------------


def salvaged(type_: type[T], raw: object) -> T:
    """As much of the object as can be read; a field that cannot is as if it were not written."""
    return cast("T", _kept(type_, raw))


def _kept(type_: Any, raw: object) -> Any:
    """The value, or as much of it as can be read; ``UNSET`` for nothing."""
    try:
        return msgspec.convert(raw, type_)
    except msgspec.ValidationError:
        pass
    inner = _inner(type_)
    if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
        return _struct(inner, raw if isinstance(raw, dict) else {})
    origin, arguments = get_origin(inner), get_args(inner)
    if origin is tuple and isinstance(raw, list):
        parts = (_whole(arguments[0], part) for part in raw)
        return tuple(part for part in parts if part is not msgspec.UNSET)
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(raw, dict):
        pairs = ((name, _whole(arguments[1], value)) for name, value in raw.items())
        return {name: value for name, value in pairs if value is not msgspec.UNSET}
    return msgspec.UNSET


def _whole(type_: Any, raw: object) -> Any:
    """Of a list nothing is kept by halves: half a condition would be another condition."""
    try:
        return msgspec.convert(raw, type_)
    except msgspec.ValidationError:
        return msgspec.UNSET


def _struct(type_: type[msgspec.Struct], raw: dict[str, Any]) -> msgspec.Struct:
    hints = _hints(type_)
    found = {
        field.name: _kept(hints[field.name], raw[field.encode_name])
        for field in msgspec.structs.fields(type_)
        if field.encode_name in raw
    }
    return type_(**{name: value for name, value in found.items() if value is not msgspec.UNSET})


@cache
def _hints(type_: type) -> dict[str, Any]:
    return typing.get_type_hints(type_)


def _inner(type_: Any) -> Any:
    """``X | None`` is X here."""
    options = [one for one in get_args(type_) if one is not type(None)]
    union = type(None) in get_args(type_) and len(options) == 1
    return options[0] if union else type_
