"""Which topology constraint keeps a pod from every node that would fit otherwise.

Asked when all pods have been placed: what is planned counts as if it were there. The constraints are looked
at in this order, and the first that leaves nothing is named: required affinity, then anti-affinity. Where
none is named, several together leave nothing, or a topology spread does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenure.packing.dealing.sites import Sites
from tenure.packing.demand.classes import PodClass
from tenure.packing.demand.terms import NAMESPACE_NAME, Group
from tenure.packing.index.nodes import Nodes
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.refusals.facts import (
    AffinityElsewhere,
    AffinityNowhere,
    AffinityOnFullNodes,
    AntiAffinityEverywhere,
    SharedNodeTooSmall,
)
from tenure.packing.refusals.texts import amount_text

AffinityFact = (
    AffinityNowhere
    | AffinityElsewhere
    | AffinityOnFullNodes
    | AntiAffinityEverywhere
    | SharedNodeTooSmall
)


class Topology:
    """The cluster and the plan, asked for what keeps pods away."""

    def __init__(
        self, nodes: Nodes, classes: Sequence[PodClass], catalogues: Sequence[Catalogue]
    ) -> None:
        """``classes``: all that wait, or waited until now."""
        self._nodes, self._domains = nodes, nodes.domains
        self._classes, self._catalogues = classes, catalogues
        self._sites = Sites(catalogues)
        #: By group, the classes that belong to it.
        self._members: dict[Group, list[PodClass]] | None = None

    def affinity(self, one: PodClass) -> AffinityFact | None:
        """Of required affinity and anti-affinity; None: they leave something, or there are none."""
        for group in one.rules.near:
            found = self._on_node(one, group) if group.on_hostname else self._near(one, group)
            if found is not None:
                return found
        for group in one.rules.far:
            if not group.on_hostname and (everywhere := self._far(one, group)) is not None:
                return everywhere
        return None

    def _on_node(self, one: PodClass, group: Group) -> AffinityFact | None:
        if names := self._nodes.with_pod_of(group):
            return AffinityOnFullNodes(pods_text(group), names)
        if group not in one.member_of:
            if self._is_waiting(group):
                return None
            return AffinityNowhere(pods_text(group), group.key)
        return self._bundle(group)

    def _bundle(self, group: Group) -> SharedNodeTooSmall | None:
        """The resource of which they want most, compared with the largest node."""
        together = self._belonging(group)
        wanted: dict[int, int] = {}
        for each in together:
            for index, amount in each.wants:
                wanted[index] = wanted.get(index, 0) + amount * len(each.pods)
        found: list[tuple[float, str, int, int]] = []
        for catalogue in self._catalogues:
            for index, amount in wanted.items():
                largest = max((free[index] for free in catalogue.available), default=0)
                name, size = catalogue.units.names[index], catalogue.units.sizes[index]
                found.append((amount / max(largest, 1), name, amount * size, largest * size))
        if not found or (most := max(found))[0] <= 1:
            return None
        _, name, amount, largest = most
        pods = sum(len(each.pods) for each in together)
        texts = amount_text(name, amount), amount_text(name, max(largest, 0))
        return SharedNodeTooSmall(pods_text(group), pods, name, *texts)

    def _near(self, one: PodClass, group: Group) -> AffinityFact | None:
        present = self._domains.present.get(group, {})
        values = {value for value, count in present.items() if count > 0}
        if not values:
            if group in one.member_of:
                return None
            return AffinityNowhere(pods_text(group), group.key)
        if values.isdisjoint(self._usable(one, group.key)):
            return AffinityElsewhere(pods_text(group), group.key, tuple(sorted(values)))
        return None

    def _far(self, one: PodClass, group: Group) -> AntiAffinityEverywhere | None:
        present = self._domains.present.get(group, {})
        usable = set(self._usable(one, group.key))
        if usable and all(present.get(value, 0) > 0 for value in usable):
            return AntiAffinityEverywhere(pods_text(group), group.key, tuple(sorted(usable)))
        return None

    def _usable(self, one: PodClass, key: str) -> Iterable[str]:
        """Values of the key that a new node for the class could have."""
        return [pins[0][1] for pins in self._sites.options(one, (key,))]

    def _is_waiting(self, group: Group) -> bool:
        return bool(self._belonging(group))

    def _belonging(self, group: Group) -> list[PodClass]:
        if self._members is None:
            self._members = {}
            for each in self._classes:
                for one in each.member_of:
                    self._members.setdefault(one, []).append(each)
        return self._members.get(group, [])


def pods_text(group: Group) -> str:
    """``pods with app In [db] in namespace shop``."""
    which = f"pods with {group.selector}" if group.selector else "pods"
    if group.selects_none:
        which = "no pods, having no labelSelector,"
    by = group.namespaces_by
    if by is None:
        names = sorted(group.namespaces)
        many = "s" if len(names) > 1 else ""
        return f"{which} in namespace{many} {', '.join(names)}"
    if not by and not group.namespaces:
        return f"{which} in any namespace"
    labels = ", ".join(str(by[key]) for key in sorted(by) if key != NAMESPACE_NAME)
    named = by.get(NAMESPACE_NAME)
    names = sorted({*group.namespaces, *(named.listed if named is not None else ())})
    parts = [f"namespaces with {labels}" if labels else "", ", ".join(names)]
    return f"{which} in {' or '.join(filter(None, parts))}"
