"""One Provisioner becomes one NodePool.

Two forms are read: ``karpenter.sh/v1alpha5``, and the proposal for ``v1beta1`` that puts what a node
looks like below ``template`` and has durations instead of numbers of seconds. They differ in what
an absent field means: nothing in v1alpha5, the default of a NodePool in the proposal.

Each field is taken from the input once; what nothing has taken is reported. The NodePool is checked
like any manifest before it is handed out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tenure.cli.convert.annotations import annotation_notes
from tenure.cli.convert.conversion import Conversion
from tenure.cli.convert.disruption import lifetimes
from tenure.cli.convert.fields import Fields
from tenure.cli.convert.nodeclass import kubelet_notes, node_class_ref
from tenure.cli.convert.report import Code
from tenure.cli.lint.source import Source
from tenure.errors import SpecError
from tenure.model.api.names import (
    ARCH,
    CAPACITY_ON_DEMAND,
    CAPACITY_TYPE,
    DO_NOT_CONSOLIDATE,
    NORMALIZED_LABELS,
    OS,
)
from tenure.model.api.resource import NODE_POOLS
from tenure.schema.advice import OLD_ANNOTATIONS
from tenure.schema.manifest import check_manifest
from tenure.schema.structure.crd import CUSTOM_KINDS

Obj = dict[str, Any]

KIND: Final = ("karpenter.sh", "Provisioner")
V1ALPHA5: Final = "karpenter.sh/v1alpha5"
PROPOSED: Final = "karpenter.sh/v1beta1"

#: What v1alpha5 added where a Provisioner did not say: key and value.
_REQUIREMENTS: Final = ((OS, "linux"), (ARCH, "amd64"), (CAPACITY_TYPE, CAPACITY_ON_DEMAND))
_BY_API_SERVER: Final = (
    *("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation"),
    *("managedFields", "resourceVersion", "selfLink", "uid"),
)
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def convert(source: Source, node_class: Mapping[str, str] | None = None) -> Conversion:
    """``node_class``: group, kind and name to refer to, whatever the Provisioner refers to."""
    done = Conversion(source, pool={"apiVersion": NODE_POOLS.api_version, "kind": "NodePool"})
    version = source.value["apiVersion"]
    if version not in (V1ALPHA5, PROPOSED):
        wrong = f"got {version!r}, expected {V1ALPHA5} or {PROPOSED}"
        done.note(Code.INVALID, wrong, "apiVersion")
        return _refused(done)
    done.notes += annotation_notes(source.value)
    everything = Fields(source.value, "", done.notes)
    everything.take("apiVersion")
    everything.take("kind")
    _metadata(done, everything.inner("metadata"))
    _spec(done, everything.inner("spec"), node_class)
    if everything.take("status") is not None:
        done.note(Code.NOT_COPIED, "describes the Provisioner", "status")
    done.report_left(everything)
    return _checked(done)


def _metadata(done: Conversion, metadata: Fields) -> None:
    name = metadata.text("name")
    if name is None:
        error = SpecError("metadata.name", None, "the name of the Provisioner", "Use default.")
        metadata.refuse(error)
    done.put("metadata.name", name, "metadata.name")
    for field in ("labels", "annotations"):
        values = _own(done, metadata.texts(field), f"metadata.{field}")
        if values:
            done.put(f"metadata.{field}", values, f"metadata.{field}")
    written = [f"metadata.{one}" for one in _BY_API_SERVER if metadata.take(one) is not None]
    if written:
        done.note(Code.NOT_COPIED, "written by the API server", *written)
    done.report_left(metadata)


def _own(done: Conversion, values: Any, at: str) -> Any:
    """Labels or annotations without those that mean nothing any more; these are reported."""
    if not isinstance(values, dict):
        return values
    if _LAST_APPLIED in values:
        done.note(Code.NOT_COPIED, "written by kubectl", f"{at}.{_LAST_APPLIED}")
    gone = (_LAST_APPLIED, *OLD_ANNOTATIONS)
    return {key: value for key, value in values.items() if key not in gone}


def _spec(done: Conversion, spec: Fields, node_class: Mapping[str, str] | None) -> None:
    is_old = done.source.value["apiVersion"] == V1ALPHA5
    parts = [spec]
    if not is_old:
        template = spec.inner("template")
        parts += [template, template.inner("metadata"), template.inner("spec")]
    annotations, at = _one_of(parts, "annotations")
    labels, labels_at = _one_of(parts, "labels")
    for field, values, origin in (
        ("labels", labels, labels_at),
        ("annotations", _own(done, annotations, at), at),
    ):
        if values:
            done.put(f"spec.template.metadata.{field}", values, origin)
    for field in ("taints", "startupTaints"):
        values, origin = _one_of(parts, field)
        if values is not None:
            done.put(f"spec.template.spec.{field}", values, origin)
    _requirements(done, *_one_of(parts, "requirements"), labels)
    node_class_ref(done, parts, node_class)
    lifetimes(done, spec, _kept_by(annotations, at), is_old=is_old)
    _limits(done, spec)
    weight = spec.take("weight")
    if weight is not None:
        done.put("spec.weight", weight, "spec.weight")
    for part in parts:
        kubelet_notes(done, part)
        done.report_left(part)


def _kept_by(annotations: Any, at: str) -> str | None:
    """The annotation that kept every Node of the pool from being consolidated."""
    kept = isinstance(annotations, dict) and annotations.get(DO_NOT_CONSOLIDATE) == "true"
    return f"{at}.{DO_NOT_CONSOLIDATE}" if kept else None


def _one_of(parts: Sequence[Fields], name: str) -> tuple[Any, str]:
    """The field, wherever it stands, and its path; a second one is refused."""
    found = [(value, part.path(name)) for part in parts if (value := part.take(name)) is not None]
    for _, again in found[1:]:
        expected = f"it once, and it is at {found[0][1]} too"
        parts[0].refuse(SpecError(again, "a second one", expected, "Remove one of them."))
    return found[0] if found else (None, parts[0].path(name))


def _requirements(done: Conversion, written: Any, at: str, labels: Any) -> None:
    """Those that v1alpha5 would have added are added, or a NodePool launches more than before."""
    if written is not None and not isinstance(written, list):
        done.put("spec.template.spec.requirements", written, at)
        return
    keys = [one.get("key") for one in written or () if isinstance(one, dict)]
    keys += list(labels) if isinstance(labels, dict) else []
    said = {NORMALIZED_LABELS.get(key, key) for key in keys if isinstance(key, str)}
    added = [(key, value) for key, value in _REQUIREMENTS if key not in said]
    new = [{"key": key, "operator": "In", "values": [value]} for key, value in added]
    done.put("spec.template.spec.requirements", [*(written or ()), *new], at)
    if added:
        told = ", ".join(f"{key} In [{value}]" for key, value in added)
        done.note(Code.WRITTEN_OUT, f"with the defaults of Provisioners: {told}", at)


def _limits(done: Conversion, spec: Fields) -> None:
    limits = spec.inner("limits")
    resources = limits.inner("resources")
    amounts: Obj = {}
    for part in (resources, limits):
        for at, value in part.left():
            name = at.removeprefix(f"{part.at}.")
            if name in amounts:
                expected = f"one limit of {name}"
                spec.refuse(SpecError(at, value, expected, "Remove one of them."))
            amounts[name] = value
    if amounts:
        done.put("spec.limits", amounts, "spec.limits")


def _checked(done: Conversion) -> Conversion:
    """Only a NodePool that an API server takes is handed out."""
    if any(note.code is Code.INVALID for note in done.notes):
        return _refused(done)
    assert done.pool is not None
    for problem in check_manifest(done.pool, CUSTOM_KINDS):
        said = str(problem).removeprefix(f"{problem.at}: ")
        message = f"the NodePool would be refused, {problem.at}: {said}"
        done.note(Code.INVALID, message, _origin(done, problem.at))
    return _refused(done) if any(one.code is Code.INVALID for one in done.notes) else done


def _origin(done: Conversion, field: str) -> str:
    """The field of the Provisioner that a field of the NodePool was made from."""
    made = [to for to in done.origins if field == to or field.startswith((f"{to}.", f"{to}["))]
    nearest = max(made, key=len, default=None)
    return "spec" if nearest is None else done.origins[nearest] + field.removeprefix(nearest)


def _refused(done: Conversion) -> Conversion:
    """No NodePool says anything in another way, or beyond the input."""
    done.pool = None
    made = (Code.CHANGED, Code.WRITTEN_OUT)
    done.notes = [note for note in done.notes if note.code not in made]
    return done
