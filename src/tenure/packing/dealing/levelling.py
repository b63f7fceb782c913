"""Give so many pods to domains that the lowest counts rise first, as water would."""

from __future__ import annotations

from collections.abc import Sequence


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
