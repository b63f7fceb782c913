"""Domains that the plan itself creates: the scheduler counts them as soon as they have a node.

Pods that are spread, and that cannot go everywhere (their volumes are in one zone, they prefer one),
are dealt before it is known where nodes for others will be. Where a new node makes one more domain for
them, packing starts over and foresees it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from tenure.model.api.names import CAPACITY_TYPE, ZONE
from tenure.packing.demand.classes import PodClass
from tenure.packing.demand.steps import CLASSES_A_STEP, Steps
from tenure.packing.index.domains import Domains, Foreseen, Rule
from tenure.packing.opening.drafts import Draft

#: By key: the domains in which a new node for a class can be had.
ForSale = Callable[[PodClass], Mapping[str, Collection[str]]]


def unforeseen(
    classes: Iterable[PodClass], drafts: Iterable[Draft], domains: Domains, for_sale: ForSale
) -> Steps[Foreseen]:
    """In steps: new nodes that count for a spread of one of the classes, which was planned without them."""
    found: Foreseen = {}
    spread = [one for one in classes if any(not s.group.on_hostname for s in one.rules.spreads)]
    if not spread:
        return found
    yield
    opened = _opened(drafts, {s.group.key for one in spread for s in one.rules.spreads})
    for number, one in enumerate(spread):
        if not number % CLASSES_A_STEP:
            yield
        sold = for_sale(one)
        for key in sold:
            values = opened[key].keys() - set(sold[key])
            for rule in _rules(one, key, domains) if values else ():
                for value in values - rule.known:
                    planned = {
                        (lot.one.demand.signature, lot.pins)
                        for draft in opened[key][value]
                        for lot, _ in draft.parts
                    }
                    if domains.any_counts(rule, planned):
                        found.setdefault(key, {}).setdefault(value, set()).update(planned)
    return found


def _rules(one: PodClass, key: str, domains: Domains) -> list[Rule]:
    signature = one.demand.signature
    return [domains.rule(s, signature) for s in one.rules.spreads if s.group.key == key]


def _opened(drafts: Iterable[Draft], keys: Collection[str]) -> dict[str, dict[str, list[Draft]]]:
    """By key and value, the drafts of nodes that will have it."""
    found: dict[str, dict[str, list[Draft]]] = {key: {} for key in sorted(keys)}
    seen: set[tuple[int, int]] = set()
    for draft in drafts:
        kind = id(draft.listing), id(draft.parts)
        if kind in seen:
            continue
        seen.add(kind)
        for key, values in found.items():
            value = _value(draft, key)
            if value is not None:
                values.setdefault(value, []).append(draft)
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
