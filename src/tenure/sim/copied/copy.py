"""The objects of a real cluster as they are taken, at the instant at which they were read.

Any source will do: what ``tenure snapshot`` writes, lines of ``kubectl get -o json``, lists in JSON or YAML. Each
object is redacted as it comes in, whatever the source did before. What is not taken is counted, what cannot be
read is named, and the rest goes on.

The instant: what the snapshot says; else the latest instant that objects speak of, which is when the
cluster was last alive for the one who read it (``identity.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.names import ZONE
from tenure.model.api.resource import (
    CSI_NODES,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PODS,
    REPLICA_SETS,
    VOLUME_ATTACHMENTS,
    Resource,
)
from tenure.parse.manyobjects import Found, read_objects
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.sim.apiserver.objects.foreignclasses import FOREIGN_NODE_CLASSES
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.cloud.catalogue import DEFAULT_ZONES
from tenure.sim.copied.cloudlabels import bought
from tenure.sim.copied.identity import LatestInstant, identified, instant_of
from tenure.sim.copied.leftout import LeftOut, Problem, name_of, node_of, of_spec, problem_of
from tenure.sim.copied.redaction import TAKEN, redacted
from tenure.sim.copied.sharing import Sharing
from tenure.sim.world import DEFAULT_EPOCH

#: What ``tenure snapshot`` says of itself: when it was taken, and what it lacks.
SNAPSHOT: Final = ("tenure.dev/v1alpha1", "ClusterSnapshot")
NODE_CLASSES: Final = (KWOK_NODE_CLASSES, *FOREIGN_NODE_CLASSES)
#: By group and kind: which version a cluster serves makes no difference here.
_KINDS: Final = {resource.group_kind: resource for resource in (*NODE_CLASSES, *TAKEN)}
_TWICE: Final = Problem("metadata.name", "the name of an object before it", "each name once")
_MANY: Final = frozenset({PODS, NODES, NODE_CLAIMS, REPLICA_SETS, VOLUME_ATTACHMENTS, CSI_NODES})
#: Every cluster has these, or their absence says nothing: they are not worth a word.
_EXPECTED: Final = frozenset({"Event", "Lease", "EndpointSlice", "Endpoints", "ControllerRevision"})


class ClusterCopy(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    objects: dict[Resource, list[Obj]]
    #: What is missing, a sentence each.
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def of(self, resource: Resource) -> list[Obj]:
        return self.objects.get(resource, [])

    def zones(self) -> list[str]:
        """Where Nodes are, and where pools want them: what its cloud sells in."""
        found = {bought(node["metadata"].get("labels") or {}).zone for node in self.of(NODES)}
        for pool in self.of(NODE_POOLS):
            given = dig(pool, "spec", "template", "spec", "requirements")
            for one in given if isinstance(given, list) else ():
                values = dig(one, "values") if dig(one, "operator") == "In" else None
                if dig(one, "key") == ZONE and isinstance(values, list):
                    found.update(value for value in values if isinstance(value, str))
        return sorted(found - {""}) or list(DEFAULT_ZONES)

    def changeable(self) -> Iterator[tuple[Resource, Obj]]:
        """What manifests may change; pods and volumes are no user's to write."""
        for resource, objects in self.objects.items():
            if resource not in _MANY:
                for one in objects:
                    if one["metadata"].get("uid"):
                        yield resource, one


def resource_of(obj: Any) -> Resource | None:
    """Which kind that is taken it is of; None for any other."""
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    return _KINDS.get((group, str(obj.get("kind"))))


def taken(resource: Resource, obj: Obj) -> Obj:
    return redacted(resource, obj, own_class=resource == KWOK_NODE_CLASSES)


def read_copy(path: Path) -> ClusterCopy:
    """Raises ``SpecError`` for a file without a Node."""
    copy = copied(read_objects(path))
    if not copy.of(NODES):
        hint = "tenure snapshot --kubeconfig FILE > cluster.jsonl writes such a file."
        raise SpecError("--from", str(path), "the objects of a cluster, Nodes among them", hint)
    return copy


def copied(found: Iterable[Found]) -> ClusterCopy:
    copying = Copying()
    for place, obj in found:
        copying.take(place, obj)
    return copying.copy()


class Copying:
    """Takes the objects of a cluster one by one, so that none is held as it came."""

    def __init__(self) -> None:
        self._left_out_objects: list[LeftOut] = []
        self._objects: dict[Resource, list[Obj]] = {}
        self._seen: set[tuple[Resource, str, str]] = set()
        self._left_out: Counter[str] = Counter()
        self._notes: list[str] = []
        self._latest = LatestInstant()
        self._said_at = ""
        self._sharing = Sharing()

    def take(self, place: str, obj: Obj | SpecError) -> None:
        if isinstance(obj, SpecError):
            self._left_out_objects.append(LeftOut("line", place, of_spec(obj, place)))
        elif (obj.get("apiVersion"), obj.get("kind")) == SNAPSHOT:
            self._said_at = str(dig(obj, "metadata", "creationTimestamp") or "")
            self._notes += [str(one) for one in obj.get("missing") or ()]
        else:
            self._take(place, obj)

    def copy(self) -> ClusterCopy:
        at = self._at()
        objects, made_up = identified(self._objects, at)
        return ClusterCopy(
            at=at,
            objects=objects,
            notes=(*self._notes, *made_up, *self._rest()),
            left_out=tuple(self._left_out_objects),
        )

    def _take(self, place: str, obj: Obj) -> None:
        resource = resource_of(obj)
        self._latest.hear(_instants(obj))
        if resource is None:
            self._left_out[str(obj.get("kind"))] += 1
            return
        try:
            kept = taken(resource, obj)
            key = _key(resource, kept["metadata"])
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            self._leave_out(place, resource, obj, problem_of(resource, obj, error, hidden=True))
            return
        if key in self._seen:
            self._leave_out(place, resource, obj, _TWICE)
            return
        self._seen.add(key)
        self._objects.setdefault(resource, []).append(self._sharing.shared(kept))

    def _leave_out(self, place: str, resource: Resource, obj: Obj, problem: Problem) -> None:
        name = " ".join(filter(None, (name_of(obj), f"({place})")))
        left_out = LeftOut(resource.kind, name, problem, node=node_of(resource, obj))
        self._left_out_objects.append(left_out)

    def _at(self) -> datetime:
        return instant_of(self._said_at) or self._latest.instant() or DEFAULT_EPOCH

    def _rest(self) -> Iterator[str]:
        others = {kind: count for kind, count in self._left_out.items() if kind not in _EXPECTED}
        if others:
            listed = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
            yield f"left out, as the embedded cluster has no use for them: {listed}"


def _instants(obj: Obj) -> Iterator[str]:
    """As RFC 3339 in UTC, which sorts as text. A deletion may lie in the future, and is not among them."""
    metadata = obj.get("metadata")
    status, spec = obj.get("status"), obj.get("spec")
    for part, name in (
        (metadata, "creationTimestamp"),
        (status, "startTime"),
        (spec, "renewTime"),
        (obj, "lastTimestamp"),
    ):
        if isinstance(part, dict) and isinstance(part.get(name), str):
            yield part[name]
    listed = status.get("conditions") if isinstance(status, dict) else None
    for one in listed if isinstance(listed, list) else ():
        for name in ("lastTransitionTime", "lastHeartbeatTime"):
            if isinstance(one, dict) and isinstance(one.get(name), str):
                yield one[name]


def _key(resource: Resource, metadata: Obj) -> tuple[Resource, str, str]:
    """Raises ``TypeError`` for metadata by which no object can be found."""
    namespace, name = metadata.get("namespace", ""), metadata["name"]
    uid, labels = metadata.get("uid", ""), metadata.get("labels", {})
    owners = metadata.get("ownerReferences", [])
    plain = all(isinstance(one, str) for one in (namespace, name, uid))
    if not (plain and name and isinstance(labels, dict) and isinstance(owners, list)):
        raise TypeError(resource.kind)
    return resource, namespace, name
