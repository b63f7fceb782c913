"""Which pods are bound to which node, kept from the store's events.

Several actors ask this on every node event; looking through all pods each time would
make a virtual day quadratic. Create it before the actors that use it: subscribers are
told in the order in which they came.
"""

from __future__ import annotations

from tenure.model.api.resource import PODS
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED


class BoundPods:
    def __init__(self, store: Store) -> None:
        self._by_node: dict[str, dict[str, Obj]] = {}
        store.subscribe(PODS, self._on_pod, replay=True)

    def on(self, node: str) -> list[Obj]:
        """The pods bound to that node, as last told, in the order in which they were bound."""
        return list(self._by_node.get(node, {}).values())

    def _on_pod(self, type_: str, pod: Obj, _old: Obj | None) -> None:
        node = pod["spec"].get("nodeName")
        if not node:
            return
        uid = pod["metadata"]["uid"]
        if type_ != DELETED:
            self._by_node.setdefault(node, {})[uid] = pod
            return
        bound = self._by_node.get(node, {})
        bound.pop(uid, None)
        if not bound:
            self._by_node.pop(node, None)
