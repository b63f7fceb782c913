"""What is known about manifests before a cluster is asked: kinds of Tenure and of its providers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from tenure.model.api.meta import ApiObject
from tenure.model.api.nodepool import NodePool
from tenure.ports.provider import Provider
from tenure.schema.structure.crd import CUSTOM_KINDS, CustomKind

_NEEDS: Final = (
    "requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]"
)
_WINDOW: Final = "spec: {actions: [Drift]}"


class Known(msgspec.Struct, frozen=True):
    kinds: tuple[CustomKind, ...]
    #: Group of a node class → the conditions that its provider states.
    watched: Mapping[str, frozenset[str]]
    #: Group and kind of the node classes that the providers serve.
    ours: frozenset[tuple[str, str]]

    def example(self, kind: str, field: str) -> str:
        """How a required field looks; nothing where there is no example."""
        if (kind, field) == ("MaintenanceWindow", "spec"):
            return _WINDOW
        group, class_ = min(self.ours, default=("example.com", "NodeClass"))
        ref = f"nodeClassRef: {{group: {group}, kind: {class_}, name: default}}"
        claim = f"spec: {{{ref}, {_NEEDS}}}"
        wanted = {
            "NodePool": {
                "spec": f"spec: {{template: {{{claim}}}}}",
                "spec.template": f"template: {{{claim}}}",
                "spec.template.spec": claim,
                "spec.template.spec.nodeClassRef": ref,
                "spec.template.spec.requirements": _NEEDS,
            },
            "NodeClaim": {"spec": claim, "spec.nodeClassRef": ref, "spec.requirements": _NEEDS},
        }
        return wanted.get(kind, {}).get(field, "")

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
