"""Which bins have how much left: one bitset for each amount that is asked for.

With very many different amounts only some of them get a bitset. The answer is then a superset:
bins that are too small by a little are among it, and the caller divides anyway.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

#: Bitsets per resource. Each amount that a bin passes costs a change of one.
LEVELS_MAX: Final = 64


class Levels:
    """One resource."""

    __slots__ = ("amounts", "masks")

    def __init__(self, amounts: Iterable[int], free: Sequence[int]) -> None:
        """``amounts``: that are asked for; ``free``: of each bin."""
        self.amounts = some_of(amounts)
        self.masks = [0] * len(self.amounts)
        by_level: list[list[int]] = [[] for _ in self.amounts]
        for number, there in enumerate(free):
            level = bisect_right(self.amounts, there) - 1
            if level >= 0:
                by_level[level].append(number)
        above = 0
        for level in reversed(range(len(self.amounts))):
            above |= bits(by_level[level])
            self.masks[level] = above

    def lent(self, amounts: Iterable[int], unit: int, free: Sequence[int]) -> Levels:
        """The same of these amounts alone, in such units. ``free``: of each bin, in these units, too."""
        asked = some_of(amounts)
        known = dict(zip(self.amounts, self.masks, strict=True))
        masks = [known.get(amount * unit) for amount in asked]
        found = Levels((), ())
        found.amounts, found.masks = asked, [mask for mask in masks if mask is not None]
        return found if len(found.masks) == len(asked) else Levels(asked, free)

    def having(self, amount: int) -> int:
        """The bins that have as much, and perhaps some that have a little less; -1 is all."""
        level = bisect_right(self.amounts, amount) - 1
        return self.masks[level] if level >= 0 else -1

    def learn(self, amount: int, free: Iterable[int]) -> None:
        """One more amount is asked for. ``free``: of each bin."""
        level = bisect_left(self.amounts, amount)
        known = level < len(self.amounts) and self.amounts[level] == amount
        if not known and amount > 0 and len(self.amounts) < LEVELS_MAX:
            self.amounts.insert(level, amount)
            self.masks.insert(level, bits([n for n, there in enumerate(free) if there >= amount]))

    def change(self, bit: int, old: int, new: int) -> None:
        """A bin has ``new`` left instead of ``old``."""
        amounts, masks = self.amounts, self.masks
        before, after = bisect_right(amounts, old), bisect_right(amounts, new)
        if after < before:
            for level in range(after, before):
                masks[level] &= ~bit
        else:
            for level in range(before, after):
                masks[level] |= bit


def some_of(amounts: Iterable[int]) -> list[int]:
    """In order, so many of them as may have a bitset."""
    distinct = sorted({amount for amount in amounts if amount > 0})
    step = -(-len(distinct) // LEVELS_MAX) or 1
    return distinct[::step]


def bits(numbers: Sequence[int]) -> int:
    """The bitset with these bits. Many are written into bytes: one by one would copy each time."""
    if len(numbers) < 8:
        mask = 0
        for number in numbers:
            mask |= 1 << number
        return mask
    written = bytearray(max(numbers) // 8 + 1)
    for number in numbers:
        written[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(written, "little")
