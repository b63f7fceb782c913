"""Kinds that clients define: a stored CustomResourceDefinition is served from then on.

A definition of a kind that the embedded cluster has anyway is stored and not used: Tenure and its cloud go on with the
kind that they know. One that says anything else than that says so. A deleted definition takes its objects along, and is gone
when the last of them is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tenure.model.api.resource import Resource
from tenure.sim.apiserver.admission.definitionrules import with_defaults
from tenure.sim.apiserver.objects.customkinds import served_definitions
from tenure.sim.apiserver.objects.definition import (
    DEFINITIONS,
    Definition,
    base_version,
    defined_kinds,
    storage_version,
)
from tenure.sim.apiserver.objects.kinds import ALL, Kind
from tenure.sim.apiserver.objects.tree import Obj, dig, with_metadata
from tenure.sim.apiserver.store.deletion import finished
from tenure.sim.apiserver.store.watch import DELETED

if TYPE_CHECKING:
    from tenure.sim.apiserver.store.store import Store

_NOT_CALLED: Final = "the conversion webhook is not called here: an object keeps the fields that the stored version knows"
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
_OWN: Final = {(resource.group, resource.plural) for resource in ALL}
_OWN_KINDS: Final = {resource.group_kind: resource.plural for resource in ALL}


def is_own(obj: Obj) -> bool:
    """Whether the embedded cluster has this kind anyway."""
    return (obj["spec"]["group"], obj["spec"]["names"]["plural"]) in _OWN


def notes_on(obj: Obj) -> list[str]:
    """What of the definition does not act here, one sentence each: for the client that writes it."""
    kind = obj["spec"]["names"]["kind"]
    if is_own(obj):
        own = served_definitions().get(obj["metadata"]["name"])
        if own is not None and with_defaults(own)["spec"] == obj["spec"]:
            return []
        return [
            f"the embedded cluster serves {kind} itself; this definition is stored and not used"
        ]
    webhook = [_NOT_CALLED] if dig(obj, "spec", "conversion", "strategy") == "Webhook" else []
    found = (note for version in defined_kinds(obj) for note in version.schema.notes)
    return [*webhook, *dict.fromkeys(found)]


def _kind(definition: Definition, *, stored_as: Resource | None = None) -> Kind:
    return Kind(
        resource=definition.resource,
        custom=True,
        overwrite=False,
        status=definition.status,
        definition=definition,
        stored_as=stored_as,
    )


def closed(obj: Obj, now: str) -> Obj:
    """The definition marked for deletion: it waits for the objects of its kind."""
    metadata = obj["metadata"]
    if "deletionTimestamp" in metadata:
        return obj
    finalizers = list(dict.fromkeys([*metadata.get("finalizers", ()), CLEANUP]))
    return with_metadata(
        obj, finalizers=finalizers, deletionTimestamp=now, deletionGracePeriodSeconds=0
    )


class Definitions:
    """Serves what is defined."""

    def __init__(self, store: Store) -> None:
        self._store = store
        #: Definition name → the kind that is served for it.
        self._served: dict[str, Resource] = {}
        #: Definition name → its other versions.
        self._views: dict[str, list[Resource]] = {}
        store.subscribe(DEFINITIONS, self._on_definition)

    def _on_definition(self, type_: str, obj: Obj, old: Obj | None) -> None:
        name = obj["metadata"]["name"]
        if type_ == DELETED:
            for view in self._views.pop(name, ()):
                self._store.withdraw(view)
            if (resource := self._served.pop(name, None)) is not None:
                self._store.withdraw(resource)
        elif "deletionTimestamp" in obj["metadata"]:
            self._empty(name)
        elif old is None or obj["spec"] is not old["spec"]:
            self._accept(name)

    def _accept(self, name: str) -> None:
        obj = self._store.find(DEFINITIONS, "", name)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return
        refused = self._taken(obj)
        if not refused and not is_own(obj):
            self._serve(name, defined_kinds(obj))
        self._store.rewrite(DEFINITIONS, {**obj, "status": self._status(obj, refused)})

    def _serve(self, name: str, versions: Sequence[Definition]) -> None:
        definition, *others = versions
        kind = _kind(definition)
        for resource in self._views.pop(name, ()):
            self._store.withdraw(resource)
        before = self._served.get(name)
        if before is not None and before != definition.resource:
            self._store.withdraw(before, into=definition.resource)
        self._served[name] = definition.resource
        if self._store.serve(kind):
            self._store.subscribe(definition.resource, lambda *told: self._on_object(name, *told))
        for other in others:
            self._store.serve(_kind(other, stored_as=definition.resource))
        self._views[name] = [other.resource for other in others]

    def _taken(self, obj: Obj) -> str:
        """Why the names cannot be had; nothing if they can."""
        spec = obj["spec"]
        wanted = (spec["group"], spec["names"]["kind"])
        others = {
            resource.group_kind: resource.plural
            for name, resource in self._served.items()
            if name != obj["metadata"]["name"]
        }
        plural = {**_OWN_KINDS, **others}.get(wanted)
        if plural is None or plural == spec["names"]["plural"]:
            return ""
        return f'"{wanted[1]}" is already in use'

    def _status(self, obj: Obj, refused: str) -> Obj:
        now, spec = self._store.stamp(), obj["spec"]
        before = {one["type"]: one for one in obj.get("status", {}).get("conditions") or ()}
        own = notes_on(obj) if not refused and is_own(obj) else []
        told = next(iter(own), "the initial names have been accepted")
        wanted = {
            "NamesAccepted": (
                refused,
                "KindConflict" if refused else "NoConflicts",
                "no conflicts found",
            ),
            "Established": (refused, "NotAccepted" if refused else "InitialNamesAccepted", told),
        }
        conditions = []
        for type_, (no, reason, message) in wanted.items():
            one = {
                "type": type_,
                "status": "False" if no else "True",
                "reason": reason,
                "message": no or message,
                "lastTransitionTime": now,
            }
            known = before.get(type_)
            conditions.append(known if known and known["status"] == one["status"] else one)
        stored = obj.get("status", {}).get("storedVersions") or []
        version = storage_version(obj) or base_version(obj)["name"]
        return {
            "conditions": conditions,
            "acceptedNames": {} if refused else spec["names"],
            "storedVersions": list(dict.fromkeys([*stored, version])),
        }

    # The end of a kind.

    def _on_object(self, name: str, type_: str, _obj: Obj, _old: Obj | None) -> None:
        obj = self._store.find(DEFINITIONS, "", name)
        if type_ == DELETED and obj is not None and "deletionTimestamp" in obj["metadata"]:
            self._empty(name)

    def _empty(self, name: str) -> None:
        """Delete the objects of the kind; once there are none, nothing holds the definition."""
        resource = self._served.get(name)
        left = self._store.list(resource) if resource is not None else []
        for one in left:
            metadata = one["metadata"]
            if "deletionTimestamp" not in metadata:
                assert resource is not None
                self._store.delete(
                    resource,
                    metadata.get("namespace", ""),
                    metadata["name"],
                    propagation_policy="Background",
                )
        if left:
            return
        obj = self._store.get(DEFINITIONS, "", name)
        kept = [one for one in obj["metadata"].get("finalizers", ()) if one != CLEANUP]
        freed = with_metadata(obj, finalizers=kept) if kept else _without_finalizers(obj)
        if finished(freed):
            self._store.discard(DEFINITIONS, freed)
        elif freed != obj:
            self._store.rewrite(DEFINITIONS, freed)


def _without_finalizers(obj: Obj) -> Obj:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "finalizers"}
    return {**obj, "metadata": metadata}
