"""Which pods belong to which groups: selectors are looked up by one label that they require.

There may be thousands of groups (one for each Deployment that is spread) and thousands of label
sets; each pair is looked at only where a required label agrees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tenure.model.matching.requirements import Requirements
from tenure.packing.demand.terms import NAMESPACE_NAME, Group

Labels = Mapping[str, str]
NO_GROUPS: frozenset[Group] = frozenset()


class Groups:
    """The groups that any constraint is about."""

    def __init__(self, namespaces: Mapping[str, Labels] | None = None) -> None:
        """``namespaces``: their labels by name, as far as they are known."""
        self._namespaces = namespaces or {}
        self._known = namespaces is not None
        self._by_label: dict[tuple[str, str], list[Group]] = {}
        self._others: list[Group] = []
        self._all: set[Group] = set()
        self._memberships: dict[tuple[str, frozenset[tuple[str, str]]], frozenset[Group]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, group: Group) -> bool:
        return group in self._all

    def all(self) -> frozenset[Group]:
        return frozenset(self._all)

    def add(self, groups: Iterable[Group]) -> None:
        for group in groups:
            if group in self._all:
                continue
            self._all.add(group)
            label = _required_label(group.selector)
            if label is None:
                self._others.append(group)
            else:
                self._by_label.setdefault(label, []).append(group)
            for (namespace, items), known in self._memberships.items():
                suits = label is None or label in items
                if suits and self._has(group, namespace, dict(items)):
                    self._memberships[namespace, items] = known | {group}

    def unknown(self, group: Group) -> bool:
        """Whether labels of namespaces would have to be known."""
        return group.needs_namespaces and not self._known

    def of(self, namespace: str, items: frozenset[tuple[str, str]]) -> frozenset[Group]:
        """The groups that a pod with these labels belongs to."""
        if not self._all:
            return NO_GROUPS
        key = namespace, items
        known = self._memberships.get(key)
        if known is None:
            labels = dict(items)
            found = [g for g in self._others if self._has(g, namespace, labels)]
            for label in labels.items():
                about = self._by_label.get(label, ())
                found += [group for group in about if self._has(group, namespace, labels)]
            known = self._memberships[key] = frozenset(found)
        return known

    def _has(self, group: Group, namespace: str, labels: Labels) -> bool:
        if namespace not in group.namespaces and not self._selected(group, namespace):
            return False
        return group.selector.matches(labels)

    def _selected(self, group: Group, namespace: str) -> bool:
        by = group.namespaces_by
        if by is None:
            return False
        if group.needs_namespaces and not self._known:
            # One more pod is kept apart than need be, never one too few; over other keys than
            # the hostname that might be every pod, so there it is about none.
            return group.on_hostname
        return by.matches({NAMESPACE_NAME: namespace, **self._namespaces.get(namespace, {})})


def _required_label(selector: Requirements) -> tuple[str, str] | None:
    for key, one in selector.items():
        if len(one.listed) == 1 and not one.complement and not one.allows_absent:
            return key, next(iter(one.listed))
    return None
