"""What nodes cost: by the instance types of their node class, as the provider last listed them."""

from __future__ import annotations

from collections.abc import Mapping

from tenure.core.disrupt.consolidation.figures import price_at
from tenure.core.pool.lookup import node_class_key
from tenure.model.api.names import INSTANCE_TYPE
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.cloud.offering import InstanceType
from tenure.model.snapshot.snapshot import Snapshot


class Prices:
    """Kept over frames: the types are read again when the provider has listed them again."""

    def __init__(self) -> None:
        self._listed: dict[str, tuple[InstanceType, ...]] = {}
        self._types: dict[str, dict[str, InstanceType]] = {}

    def follow(self, snapshot: Snapshot) -> bool:
        """Whether any price may differ."""
        listed = snapshot.observations.instance_types
        same = listed.keys() == self._listed.keys() and all(
            types is self._listed[key] for key, types in listed.items()
        )
        if not same:
            self._listed = dict(listed)
            self._types = {key: {one.name: one for one in types} for key, types in listed.items()}
        return not same

    def of(self, claim: NodeClaim, node: Node | None) -> int | None:
        """Micro-dollars per hour; None: unknown."""
        types: Mapping[str, InstanceType] = self._types.get(
            node_class_key(claim.spec.node_class_ref), {}
        )
        labels = claim.labels if node is None or not node.labels.get(INSTANCE_TYPE) else node.labels
        return price_at(labels, types)
