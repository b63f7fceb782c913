"""Give so many pods to domains that the lowest counts rise first, as water would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenure.packing.dealing.sites import Pins
from tenure.packing.demand.classes import PodClass
from tenure.packing.index.domains import NO_END, Domains


def shared(
    domains: Domains,
    one: PodClass,
    key: str,
    options: Sequence[Pins],
    left: int,
    loads: Mapping[Pins, int],
) -> list[tuple[Pins, int]] | None:
    """How many pods each domain gets, all at once, where nothing but spreads of one group decides.

    That is nearly always; None where more decides.
    """
    rules = one.rules
    groups = [group for group in one.member_of if group.key == key]
    if domains.homes or len(groups) > 1:
        return None
    if rules.near or any(not group.on_hostname for group in rules.far):
        return None
    own = groups[0] if groups else None
    if own is not None and domains.owners.get(own):
        return None
    counts: Mapping[str, int] = domains.present.get(own, {}) if own is not None else {}
    more = [pins[0][1] for pins in options]
    open_ = dict(zip(more, options, strict=True))
    ceiling = NO_END
    spreads = [spread for spread in rules.spreads if spread.group.key == key]
    same = [domains.rule(s, one.demand.signature) for s in spreads if s.group == own]
    if len(same) > 1 or any(rule.perhaps for rule in same):
        return None
    for spread in spreads:
        if spread.group != own:
            allowed = domains.rule(spread, one.demand.signature).allowances(False, more)
            open_ = {value: pins for value, pins in open_.items() if allowed[value]}
    if same:
        counts, spread = same[0].counts, same[0].spread
        closed = [count for value, count in counts.items() if value not in open_]
        closed.extend(0 for value in more if value not in open_ and value not in counts)
        if len({*counts, *more}) < spread.domains_min:
            ceiling = spread.skew
        elif closed:
            ceiling = min(closed) + spread.skew
    order = sorted(
        (counts.get(value, 0), loads.get(pins, 0), pins) for value, pins in open_.items()
    )
    gets = levelled([count for count, _, _ in order], left, ceiling)
    return [(pins, count) for (_, _, pins), count in zip(order, gets, strict=True) if count]


def levelled(counts: Sequence[int], pods: int, ceiling: int) -> list[int]:
    """How many each gets; none rises above the ceiling. ``counts``: in ascending order.

    At one level, the first in the order get one more.
    """
    gets = [0] * len(counts)
    open_ = sum(count < ceiling for count in counts)
    while pods > 0 and open_:
        level = counts[0] + gets[0]
        lowest = 1
        while lowest < open_ and counts[lowest] + gets[lowest] == level:
            lowest += 1
        next_level = counts[lowest] if lowest < open_ else ceiling
        rise = min(next_level - level, pods // lowest)
        if not rise:
            for i in range(pods):
                gets[i] += 1
            break
        for i in range(lowest):
            gets[i] += rise
        pods -= rise * lowest
        if level + rise >= ceiling:
            break
    return gets
