"""What is known about manifests before a cluster is asked: kinds of Tenure and of its providers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tenure.model.api.meta import ApiObject
from tenure.model.api.nodepool import NodePool
from tenure.ports.provider import Provider
from tenure.schema.structure.crd import CUSTOM_KINDS, CustomKind


class Known(msgspec.Struct, frozen=True):
    kinds: tuple[CustomKind, ...]
    #: Group of a node class → the conditions that its provider states.
    watched: Mapping[str, frozenset[str]]
    #: Group and kind of the node classes that the providers serve.
    ours: frozenset[tuple[str, str]]

    def watched_by(self, obj: ApiObject) -> frozenset[str]:
        """The conditions that the provider of a NodePool states, as far as it is installed."""
        if not isinstance(obj, NodePool):
            return frozenset()
        return self.watched.get(obj.node_class_ref.group, frozenset())


def known_by(providers: Iterable[Provider]) -> Known:
    providers = tuple(providers)
    return Known(
        kinds=(*CUSTOM_KINDS, *(kind for one in providers for kind in one.kinds)),
        watched={
            node_class.group: frozenset(each.condition_type for each in one.repair_statements)
            for one in providers
            for node_class in one.node_classes
        },
        ours=frozenset(kind.group_kind for one in providers for kind in one.node_classes),
    )
