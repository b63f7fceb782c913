"""Domains that the plan itself creates: the scheduler counts them as soon as they have a node.

Pods that are spread, and that cannot go everywhere (their volumes are in one zone, they prefer one),
are dealt before it is known where nodes for others will be. Where a new node makes one more domain for
them, packing starts over and foresees it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from tenure.model.api.names import CAPACITY_TYPE, ZONE
from tenure.packing.demand.classes import PodClass
from tenure.packing.index.domains import Domains, Foreseen, Planned
from tenure.packing.opening.drafts import Draft

#: By key: the domains in which a new node for a class can be had.
ForSale = Callable[[PodClass], Mapping[str, Collection[str]]]


def unforeseen(
    classes: Iterable[PodClass], drafts: Iterable[Draft], domains: Domains, for_sale: ForSale
) -> Foreseen:
    """New nodes that count for a spread of one of the classes, which was planned without them."""
    found: Foreseen = {}
    opened: Foreseen | None = None
    for one in classes:
        spreads = [spread for spread in one.rules.spreads if not spread.group.on_hostname]
        if not spreads:
            continue
        if opened is None:
            opened = _opened(drafts, {s.group.key for c in classes for s in c.rules.spreads})
        sold = for_sale(one)
        for spread in spreads:
            key = spread.group.key
            rule = domains.rule(spread, one.demand.signature)
            for value in opened.get(key, {}).keys() - rule.known - set(sold[key]):
                planned = opened[key][value]
                if domains.any_counts(rule, planned):
                    found.setdefault(key, {})[value] = planned
    return found


def _opened(drafts: Iterable[Draft], keys: Collection[str]) -> Foreseen:
    found: Foreseen = {key: {} for key in sorted(keys)}
    seen: set[tuple[int, int]] = set()
    for draft in drafts:
        kind = id(draft.listing), id(draft.parts)
        if kind in seen:
            continue
        seen.add(kind)
        planned: set[Planned] = {(lot.one.demand.signature, lot.pins) for lot, _ in draft.parts}
        for key, values in found.items():
            value = _value(draft, key)
            if value is not None:
                values.setdefault(value, set()).update(planned)
    return found


def _value(draft: Draft, key: str) -> str | None:
    """That the node is planned to have."""
    if key == ZONE:
        return draft.listing[0].zone
    if key == CAPACITY_TYPE:
        return draft.listing[0].capacity_type
    allowed = draft.narrowing.requirements.allowed(key)
    if allowed.complement or len(allowed.listed) != 1:
        return None
    return next(iter(allowed.listed))
