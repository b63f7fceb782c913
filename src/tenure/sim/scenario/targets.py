"""Which objects a line of a scenario means, also those whose names are not known yet.

A filter selects: by name, namespace, labels, the pool they belong to, the app whose pods
they are or run. A target picks one of them: the oldest unless it says otherwise, ties by
name, so that the same seed always hits the same one.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tenure.core.facts import some
from tenure.errors import SpecError
from tenure.model.api import resource as r
from tenure.model.api.names import NODEPOOL
from tenure.model.api.resource import Resource
from tenure.model.matching.selectors import parse_label_selector
from tenure.sim.actors.kubelet.podstatus import APP_LABELS
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.scenario.read.fields import Fields, Reader, closest, join
from tenure.sim.scenario.read.kindnames import KIND_WORDS, nearest_kind, resource_called
from tenure.sim.scenario.words import targets as words

PICKS: Final = ("oldest", "newest", "fullest", "emptiest")
#: For what may happen to many at once.
ALL: Final = "all"
FILTERS: Final = tuple(word.name for word in words.FILTERS)
TARGETING: Final = (*FILTERS, *(word.name for word in words.PICKS))


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""
    pool: str = ""
    app: str = ""
    #: A label selector, as kubectl takes it.
    labels: str = ""

    def __str__(self) -> str:
        said = (("of app", self.app), ("of pool", self.pool), ("in namespace", self.namespace))
        words = [f"{word} {value}" for word, value in said if value]
        if self.labels:
            words.append(f"with {self.labels}")
        return " ".join([*([self.name] if self.name else []), *words])


class Target(msgspec.Struct, frozen=True, kw_only=True):
    resource: Resource
    filter: Filter
    pick: str = PICKS[0]
    index: int = 0

    def __str__(self) -> str:
        if self.filter.name:
            return f"{self.resource.kind} {self.filter.name}"
        if self.pick == ALL:
            return f"every {self.resource.kind} {self.filter}".rstrip()
        more = f" #{self.index}" if self.index else ""
        return f"the {self.pick}{more} {self.resource.kind} {self.filter}".rstrip()

    @property
    def wanted(self) -> str:
        """What none is of, where there is none: ``Node of app web``, ``Node #2 of app web``."""
        if self.filter.name:
            return str(self)
        more = f" #{self.index}" if self.index else ""
        return f"{self.resource.kind}{more} {self.filter}".rstrip()

    def find_all(self, store: Store) -> list[Obj]:
        """Everything that is meant: one, unless all are."""
        if self.pick == ALL:
            return select(store, self.resource, self.filter)
        found = self.find(store)
        return [] if found is None else [found]

    def find(self, store: Store) -> Obj | None:
        """The one that is meant; None when there is none (any more)."""
        found = select(store, self.resource, self.filter)
        if self.pick in ("fullest", "emptiest"):
            found.sort(key=lambda obj: len(_pods_of(store, self.resource, obj)))
        if self.pick in ("newest", "fullest"):
            found.reverse()
        return found[self.index] if self.index < len(found) else None


def meant(store: Store, target: Target) -> str:
    """What is there and may have been meant; empty where nothing says it."""
    wanted, resource = target.filter, target.resource
    if wanted.name:
        there = select(store, resource, msgspec.structs.replace(wanted, name=""))
        return _near(wanted.name, {obj["metadata"]["name"] for obj in there})
    if wanted.pool:
        return _near(wanted.pool, {obj["metadata"]["name"] for obj in store.list(r.NODE_POOLS)})
    if wanted.app:
        labels = [pod["metadata"].get("labels") or {} for pod in store.list(r.PODS)]
        return _near(wanted.app, {one[key] for one in labels for key in APP_LABELS if key in one})
    return ""


def _near(name: str, there: set[str]) -> str:
    if (close := closest(name, sorted(there))) != "":
        return f". Did you mean {close}?"
    return f"; there are {some(sorted(there))}" if there else ""


def select(store: Store, resource: Resource, wanted: Filter) -> list[Obj]:
    """Everything of that kind the filter lets through, oldest first, ties by name."""
    found = [
        obj
        for obj in store.list(resource, wanted.namespace, label_selector=wanted.labels)
        if _fits(store, resource, obj, wanted)
    ]
    return sorted(found, key=_age_key)


def _age_key(obj: Obj) -> tuple[str, str, str]:
    metadata = obj["metadata"]
    return metadata["creationTimestamp"], metadata.get("namespace", ""), metadata["name"]


def _fits(store: Store, resource: Resource, obj: Obj, wanted: Filter) -> bool:
    if wanted.name and obj["metadata"]["name"] != wanted.name:
        return False
    if wanted.pool and _pool_of(store, resource, obj) != wanted.pool:
        return False
    if not wanted.app:
        return True
    pods = _pods_of(store, resource, obj) if resource in (r.NODES, r.NODE_CLAIMS) else [obj]
    return any(is_of_app(pod, wanted.app) for pod in pods)


def is_of_app(obj: Obj, app: str) -> bool:
    labels = obj["metadata"].get("labels") or {}
    return any(labels.get(key) == app for key in APP_LABELS)


def _pool_of(store: Store, resource: Resource, obj: Obj) -> str:
    if resource == r.PODS:
        node = store.find(r.NODES, "", obj["spec"].get("nodeName", ""))
        return "" if node is None else _pool_of(store, r.NODES, node)
    return str((obj["metadata"].get("labels") or {}).get(NODEPOOL, ""))


def _pods_of(store: Store, resource: Resource, obj: Obj) -> list[Obj]:
    """The pods on a Node, or on a claim's Node."""
    name = obj["metadata"]["name"] if resource == r.NODES else dig(obj, "status", "nodeName")
    if not name:
        return []
    records = store.shelf(r.PODS).records.values()
    return [record.obj for record in records if record.obj["spec"].get("nodeName") == name]


# -- reading ---------------------------------------------------------------------------


def read_filter(fields: Fields) -> Filter:
    found = {name: fields.text(name, "") for name in FILTERS if name in fields and name != "labels"}
    if "labels" in fields:
        found["labels"] = _selector(fields.reader, fields.raw("labels"), fields.path("labels"))
    return Filter(**found)


def _selector(reader: Reader, value: Any, at: str) -> str:
    """As kubectl writes it, ``release=two,tier``, or as labels: ``{release: two}``."""
    if isinstance(value, dict):
        each = {key: reader.text(one, join(at, str(key))) for key, one in value.items()}
        value = ",".join(f"{key}={one}" for key, one in each.items())
    if not isinstance(value, str):
        reader.problem(at, value, "a label selector", "For example release=two.")
        return ""
    try:
        parse_label_selector(value)
    except SpecError as error:
        reader.problem(at, value, error.expected, error.hint)
    return value


def read_target(
    reader: Reader, resource: Resource, value: Any, at: str, picks: tuple[str, ...] = PICKS
) -> Target:
    """A name, ``namespace/name``, or a mapping that selects and picks."""
    if isinstance(value, str):
        namespace, _, name = value.rpartition("/")
        if resource.namespaced and not namespace:
            namespace = "default"
        return Target(resource=resource, filter=Filter(name=name, namespace=namespace))
    return _target_in(resource, reader.fields(value, at, TARGETING), picks)


def _target_in(resource: Resource, fields: Fields, picks: tuple[str, ...] = PICKS) -> Target:
    found = read_filter(fields)
    if resource.namespaced and found.name and not found.namespace:
        found = msgspec.structs.replace(found, namespace="default")
    return Target(
        resource=resource,
        filter=found,
        pick=fields.choice("pick", picks, PICKS[0]),
        index=fields.whole("index", 0),
    )


def read_kind(fields: Fields) -> Resource:
    """What its ``kind`` names, in any of the words that kubectl takes, too."""
    kind = fields.text("kind")
    resource = resource_called(kind)
    if resource is None and (kind or fields.raw("kind") == ""):
        expected = "a kind the embedded cluster knows"
        fields.reader.problem(fields.path("kind"), kind, expected, nearest_kind(kind))
    return resource or r.PODS


def read_reference(reader: Reader, value: Any, at: str, more: tuple[str, ...] = ()) -> Target:
    """``{claim: TARGET}``, or ``{kind: NodeClaim, name: …}``; ``more`` are the caller's fields."""
    given = value if isinstance(value, dict) else {}
    if "kind" in given:
        fields = reader.fields(value, at, ("kind", *TARGETING, *more))
        return _target_in(read_kind(fields), fields)
    fields = reader.fields(value, at, (*KIND_WORDS, "kind", *more))
    word = fields.one_of(KIND_WORDS, "object")
    resource = resource_called(word) or r.PODS
    return read_target(reader, resource, fields.raw(word, ""), fields.path(word))
