"""Plain Kubernetes manifests in a scenario: evaluated before anything runs.

In this order, and only as far as the step before let it: a kind that the embedded
cluster knows · fields that exist, of the right type, and what a user's manifest of a
custom kind is held to · admission, by a store that is thrown away afterwards, with the
objects before it already in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from random import Random
from typing import Any, Final

import msgspec

from tenure.errors import KNOWN_FIELD, ApiError
from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.model.snapshot.kinds import Unreadable, decode
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.schema.manifest import check_manifest
from tenure.schema.structure.check import structural_errors
from tenure.schema.structure.crd import CustomKind
from tenure.schema.structure.fielderror import FieldError
from tenure.schema.structure.shape import unknown_fields
from tenure.schema.structure.structural import Schema
from tenure.schema.structure.validate import kind_for
from tenure.sim.apiserver.admission.amounts import with_text_amounts
from tenure.sim.apiserver.applying import apply_manifest
from tenure.sim.apiserver.objects.customkinds import SERVED_KINDS, schema_for
from tenure.sim.apiserver.objects.kinds import BY_KIND, KINDS
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.patch.merge import merge_patch_object
from tenure.sim.apiserver.store.store import Store
from tenure.sim.scenario.read.builtin import METADATA, schema_of
from tenure.sim.scenario.read.fields import NOTHING, Reader, Shown, join, nearest
from tenure.sim.scenario.read.refusalwords import cause_words, with_example
from tenure.sim.scenario.targets import Target

#: Kinds whose pods are made from a template.
_TEMPLATED: Final = (r.DEPLOYMENTS, r.REPLICA_SETS, r.DAEMON_SETS, r.STATEFUL_SETS, r.JOBS)
#: What kinds of earlier days, or of other clouds, are here.
_SUCCESSORS: Final = {
    "Provisioner": r.NODE_POOLS.kind,
    "Machine": r.NODE_CLAIMS.kind,
    "AWSNodeTemplate": KWOK_NODE_CLASSES.kind,
    "EC2NodeClass": KWOK_NODE_CLASSES.kind,
    "AKSNodeClass": KWOK_NODE_CLASSES.kind,
}
#: How the decoder says what it wanted and where.
_TYPED: Final = re.compile(r"Expected (?P<expected>.+), got ", re.IGNORECASE)
_STEP: Final = re.compile(r"[^.\[\]]+")


class _Frozen:
    def __init__(self, instant: datetime) -> None:
        self._instant = instant

    def now(self) -> datetime:
        return self._instant

    def monotonic(self) -> float:
        return 0.0


class ManifestReader:
    """Reads manifests one after the other, as they will be applied."""

    def __init__(self, start: datetime, there: Iterable[tuple[Resource, Obj]] = ()) -> None:
        """``there``: objects that the manifests may change."""
        nothing = lambda *_: None  # noqa: E731  # time stands still in this store
        self._store = Store(_Frozen(start), Random(0), nothing, nothing)
        for resource, obj in there:
            self._store.restore(resource, obj)
        #: Where each object that is there from the start stands.
        self._places: dict[tuple[Resource, str, str], str] = {}

    def read(self, reader: Reader, value: Any, at: str, *, again: bool = False) -> Iterator[Obj]:
        """The manifests in a value: one, or those of a ``List``. Bad ones are left out.

        ``again``: an object may be there already, and is then changed.
        """
        if isinstance(value, dict) and value.get("kind") == "List":
            for place, item in reader.items(value.get("items"), join(at, "items")):
                yield from self.read(reader, item, place, again=again)
            return
        known = len(reader.problems)
        resource = _resource(reader, value, at)
        if resource is None:
            return
        _check_metadata(reader, value, at)
        if not again and len(reader.problems) == known:
            self._check_single(reader, resource, value, at)
        if len(reader.problems) == known:
            _check_fields(reader, resource, value, at)
        if len(reader.problems) == known:
            self._admit(reader, value, at)
        if len(reader.problems) == known:
            yield value

    def _check_single(self, reader: Reader, resource: Resource, value: Obj, at: str) -> None:
        """Two manifests of one object are a slip: the second would quietly win."""
        metadata = value["metadata"]
        if not (name := metadata.get("name")):
            return
        namespace = metadata.get("namespace", "default") if resource.namespaced else ""
        place = reader.document.place(join(at, "metadata.name"))
        first = self._places.setdefault((resource, namespace, name), place)
        if first is not place:
            where = first.rpartition(": ")[0]
            hint = f"It is there already at {where}; give one of them another name, or apply it later, in events."
            reader.problem(
                join(at, "metadata.name"), name, f"one {resource.kind} of that name", hint
            )

    def patch(self, reader: Reader, target: Target, merge: Obj, at: str) -> None:
        """A merge patch: its fields must exist, and a target that is known now must take it."""
        known = len(reader.problems)
        resource = target.resource
        _check_unknown(reader, with_text_amounts(resource, merge), _schema(resource), at)
        found = target.find(self._store) if target.filter.name else None
        if found is None or len(reader.problems) > known:
            return
        if KINDS[resource].custom:
            _check_custom(reader, merge_patch_object(found, merge), at)
        if len(reader.problems) == known:
            metadata = found["metadata"]
            where = (resource, metadata.get("namespace", ""), metadata["name"])
            with _told(reader, merge, at):
                self._store.patch(*where, merge)

    def _admit(self, reader: Reader, value: Obj, at: str) -> None:
        with _told(reader, value, at):
            apply_manifest(self._store, value)


def check_shape(
    reader: Reader, value: Obj, at: str, kinds: Sequence[CustomKind] = SERVED_KINDS
) -> None:
    """Fields that exist and are of the right type, of the kinds that are known here.

    ``kinds``: those with a CRD.
    """
    resource = BY_KIND.get((value["apiVersion"], value["kind"]))
    custom = kind_for(value["apiVersion"].partition("/")[0], value["kind"], kinds)
    if resource is None and custom is None:
        return
    known = len(reader.problems)
    _check_metadata(reader, value, at)
    if len(reader.problems) > known:
        return
    if custom is not None:
        _check_custom(reader, value, at, kinds)
    elif resource is not None:
        _check_fields(reader, resource, value, at)


@contextmanager
def _told(reader: Reader, value: Obj, at: str) -> Iterator[None]:
    """Turns the API server's refusal of a value into problems."""
    try:
        yield
    except ApiError as error:
        for cause in error.causes:
            got = _value_at(value, cause.field)
            reader.problem(join(at, cause.field), got, *cause_words(cause))
        if not error.causes:
            reader.problem(at, _named(value), "an object the API server takes", error.message)


def _resource(reader: Reader, value: Any, at: str) -> Resource | None:
    if not isinstance(value, dict):
        reader.problem(at, value, "a Kubernetes manifest", "Begin with apiVersion: and kind:.")
        return None
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str):
            hint = "For example apiVersion: apps/v1, kind: Deployment."
            reader.problem(join(at, field), value.get(field), "text", hint)
            return None
    resource = BY_KIND.get((value["apiVersion"], value["kind"]))
    if resource is None:
        _unknown_kind(reader, value, at)
    return resource


def _unknown_kind(reader: Reader, value: Obj, at: str) -> None:
    versions = [version for version, kind in BY_KIND if kind == value["kind"]]
    if versions:
        hint = f"Write apiVersion: {versions[0]}."
        reader.problem(join(at, "apiVersion"), value["apiVersion"], f"{versions[0]}", hint)
        return
    kinds = [resource.kind for resource in BY_KIND.values()]
    expected = "a kind the embedded cluster knows"
    successor = _SUCCESSORS.get(value["kind"])
    hint = f"Use {successor}." if successor else nearest(value["kind"], kinds)
    reader.problem(join(at, "kind"), value["kind"], expected, hint)


def _check_metadata(reader: Reader, value: Obj, at: str) -> None:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        hint = "For example metadata: {name: web}."
        reader.problem(join(at, "metadata"), metadata, "fields and values", hint)
    elif not (metadata.get("name") or metadata.get("generateName")):
        reader.problem(join(at, "metadata.name"), None, "a name", "For example name: web.")
    else:
        for error in structural_errors(metadata, METADATA, "metadata"):
            reader.problem(join(at, error.field), *_words(error))


def _check_fields(reader: Reader, resource: Resource, value: Obj, at: str) -> None:
    if KINDS[resource].custom:
        _check_custom(reader, value, at)
        return
    value, schema = with_text_amounts(resource, value), _schema(resource)
    _check_unknown(reader, value, schema, at)
    errors = list(structural_errors(value, schema))
    for error in errors:
        reader.problem(join(at, error.field), *_words(error))
    if not errors:
        _check_readable(reader, resource, value, at)


def _check_custom(
    reader: Reader, value: Obj, at: str, kinds: Sequence[CustomKind] = SERVED_KINDS
) -> None:
    for problem in check_manifest(value, kinds):
        words = with_example(problem.expected, problem.hint)
        reader.problem(join(at, problem.at), problem.got, *words)


def _schema(resource: Resource) -> Schema:
    custom = schema_for(resource.group, resource.kind)
    return schema_of(resource) if custom is None else custom.schema


def _check_unknown(reader: Reader, value: Obj, schema: Schema, at: str) -> None:
    for unknown in unknown_fields(value, schema):
        name = unknown.field.rpartition(".")[2]
        place = join(at, unknown.field)
        reader.problem(place, unknown.value, KNOWN_FIELD, nearest(name, unknown.known))


def _check_readable(reader: Reader, resource: Resource, value: Obj, at: str) -> None:
    """What the schema leaves open must still be readable: affinities, spreads, ports."""
    field, pod = "", value
    if resource in _TEMPLATED:
        field, pod = "spec.template", value["spec"]["template"]
    elif resource != r.PODS:
        return
    found = decode(r.PODS, msgspec.json.encode(pod))
    if not isinstance(found, Unreadable):
        return
    if found.field and (match := _TYPED.search(found.problem)) is not None:
        path = ".".join(part for part in (field, found.field) if part)
        reader.problem(join(at, path), _value_at(value, path), match["expected"])


def _words(error: FieldError) -> tuple[Any, str, str]:
    return error.value, *with_example(error.expected, error.hint)


def _named(value: Mapping[str, Any]) -> Shown:
    return Shown(f"{value.get('kind', 'a patch')} {dig(value, 'metadata', 'name') or ''}".strip())


def _value_at(value: Any, field: str) -> Any:
    for step in _STEP.findall(field):
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return NOTHING
    return value
