"""What the labels of a node may be: one requirement per key, and how two sets meet.

``Requirements`` is an immutable mapping from label key to ``Requirement``; several
requirements on one key are intersected. The question that packing asks all the time is
whether a pod's requirements can be met by a node's, and it is answered per key of the pod:

1. the node knows the key         both must let some state of the label through;
2. the key may be left undefined  fine: the provider will define it;
3. otherwise                      the node will not have the label, so the pod must allow that.

Keys that only the node knows do not matter. The rest of the module reads pods.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol

import msgspec

from tenure.model.api.pod import NodeAffinity, NodeSelectorTerm, Pod
from tenure.model.matching.requirement import OPERATORS, Requirement

__all__ = [
    "NODE_NAME",
    "OPERATORS",
    "Clash",
    "Requirement",
    "Requirements",
    "each_alternative",
    "pod_alternatives",
    "pod_preferences",
    "pod_requirements",
]

#: The key under which ``matchFields`` on a node's name appear. An existing node
#: has its name under this key beside its labels; a node to be launched has none.
NODE_NAME: Final = "metadata.name"


#: The longest misspelled key that is looked for among known ones, and among how many.
_HINT_LENGTH_MAX: Final = 128
_HINT_CANDIDATES_MAX: Final = 256


class WireRequirement(Protocol):
    """What pods, pools and windows write; only pools also have ``min_values``."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> Sequence[str]: ...


class Clash(msgspec.Struct, frozen=True):
    """Why a node cannot satisfy a requirement."""

    wanted: Requirement
    #: The node's own; None where nothing defines the label.
    offered: Requirement | None = None
    #: A known key that is spelled nearly as the undefined one.
    similar: str = ""


class Requirements(Mapping[str, Requirement]):
    """Requirements by key. Equal ones hash alike, so that equal pods can be grouped."""

    __slots__ = ("_by_key", "_hash")

    def __init__(self, by_key: Mapping[str, Requirement] | None = None) -> None:
        self._by_key: dict[str, Requirement] = dict(by_key or {})
        self._hash: int | None = None

    @classmethod
    def of(cls, requirements: Iterable[Requirement]) -> Requirements:
        """All of them at once; those on the same key are intersected."""
        return cls(_merged({}, requirements))

    @classmethod
    def from_wire(
        cls, written: Iterable[WireRequirement], at: str = "requirements"
    ) -> Requirements:
        """Read from an object's list; errors name the entry, as ``at[3].values``."""
        return cls.of(
            Requirement.of(
                entry.key,
                entry.operator,
                entry.values,
                min_values=getattr(entry, "min_values", None),
                at=f"{at}[{index}]",
            )
            for index, entry in enumerate(written)
        )

    @classmethod
    def from_labels(cls, labels: Mapping[str, str]) -> Requirements:
        """Each label has exactly the value it has."""
        return cls.of(Requirement.label(key, value) for key, value in labels.items())

    def __getitem__(self, key: str) -> Requirement:
        return self._by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def __contains__(self, key: object) -> bool:
        return key in self._by_key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Requirements) and self._by_key == other._by_key

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._by_key.values()))
        return self._hash

    def __str__(self) -> str:
        return ", ".join(str(self._by_key[key]) for key in sorted(self._by_key))

    def __repr__(self) -> str:
        return f"Requirements({self})"

    def allowed(self, key: str) -> Requirement:
        """The requirement on that key; where there is none, any value will do."""
        return self._by_key.get(key) or Requirement(key, complement=True)

    def add(self, *requirements: Requirement) -> Requirements:
        """These and the given ones."""
        return Requirements(_merged(self._by_key, requirements))

    def intersect(self, other: Requirements) -> Requirements:
        """What satisfies both; the same object when nothing is added."""
        if not other._by_key or other is self:
            return self
        return Requirements(_merged(self._by_key, other._by_key.values()))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether something with exactly these labels satisfies every requirement."""
        return all(requirement.matches(labels) for requirement in self._by_key.values())

    def is_compatible(
        self, other: Requirements, allow_undefined: Collection[str] = frozenset()
    ) -> bool:
        """Whether a node described by ``self`` can satisfy ``other``; the module says how."""
        mine = self._by_key
        for key, theirs in other._by_key.items():
            ours = mine.get(key)
            if ours is not None:
                if not ours.intersects(theirs):
                    return False
            elif not theirs.allows_absent and key not in allow_undefined:
                return False
        return True

    def why_incompatible(
        self, other: Requirements, allow_undefined: Collection[str] = frozenset()
    ) -> Clash | None:
        """None when compatible; otherwise the first clash in the order of keys."""
        for key in sorted(other._by_key):
            ours, theirs = self._by_key.get(key), other._by_key[key]
            if ours is not None:
                if not ours.intersects(theirs):
                    return Clash(theirs, ours)
            elif not theirs.allows_absent and key not in allow_undefined:
                known = frozenset((*self._by_key, *allow_undefined))
                return Clash(theirs, similar=_similar(key, known))
        return None

    def labels(self) -> dict[str, str]:
        """The labels that are certain: those with exactly one value."""
        return {
            key: next(iter(requirement.listed))
            for key, requirement in sorted(self._by_key.items())
            if not requirement.complement and len(requirement.listed) == 1
        }

    def to_wire(self) -> list[dict[str, Any]]:
        """As API objects spell it, in the order of keys."""
        return [entry for key in sorted(self._by_key) for entry in self._by_key[key].to_wire()]


def _merged(
    existing: Mapping[str, Requirement], more: Iterable[Requirement]
) -> dict[str, Requirement]:
    merged = dict(existing)
    for requirement in more:
        known = merged.get(requirement.key)
        merged[requirement.key] = known.intersection(requirement) if known else requirement
    return merged


@lru_cache(256)
def _similar(key: str, known: frozenset[str]) -> str:
    """A known key that is spelled nearly so, or ends like it; empty when there is none.

    Kept, and not for long keys or among many: to compare spellings takes long.
    """
    if len(key) > _HINT_LENGTH_MAX:
        return ""
    candidates = sorted(known)[:_HINT_CANDIDATES_MAX]
    close = difflib.get_close_matches(key, candidates, n=1, cutoff=0.85)
    name = key.rpartition("/")[2]
    close += [candidate for candidate in candidates if candidate.rpartition("/")[2] == name]
    return close[0] if close else ""


def pod_requirements(pod: Pod) -> Requirements:
    """What the pod's node must be like: its selector and its first affinity alternative."""
    return pod_alternatives(pod)[0]


def pod_alternatives(pod: Pod) -> list[Requirements]:
    """Each set of requirements that would do, in the order written; at least one.

    An empty term matches no node, in Kubernetes and here.
    """
    return list(each_alternative(pod))


def each_alternative(pod: Pod) -> Iterator[Requirements]:
    """The same; each is read when it is taken: a pod may have thousands."""
    selector = Requirements.from_labels(pod.spec.node_selector)
    affinity = _node_affinity(pod)
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    if not required:
        yield selector
        return
    at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    matches_none = True
    for index, term in enumerate(required.node_selector_terms):
        if term.match_expressions or term.match_fields:
            matches_none = False
            yield selector.intersect(_term_requirements(term, f"{at}.nodeSelectorTerms[{index}]"))
    if matches_none:
        yield selector.add(Requirement(NODE_NAME))


def pod_preferences(pod: Pod) -> Iterator[tuple[int, Requirements]]:
    """Weights and what is preferred, heaviest first; equal weights in the order written.

    Each is read when it is taken: a pod may have thousands.
    """
    affinity = _node_affinity(pod)
    if affinity is None:
        return
    at = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    written = enumerate(affinity.preferred_during_scheduling_ignored_during_execution)
    for index, term in sorted(written, key=lambda each: -each[1].weight):
        yield term.weight, _term_requirements(term.preference, f"{at}[{index}].preference")


def _node_affinity(pod: Pod) -> NodeAffinity | None:
    return pod.spec.affinity.node_affinity if pod.spec.affinity else None


def _term_requirements(term: NodeSelectorTerm, at: str) -> Requirements:
    labels = Requirements.from_wire(term.match_expressions, f"{at}.matchExpressions")
    return labels.intersect(Requirements.from_wire(term.match_fields, f"{at}.matchFields"))
