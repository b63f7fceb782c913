"""Lives through random days until the time is up, or through one to repeat it.

python -m tests.fuzz.run                     two minutes of new seeds
python -m tests.fuzz.run --seed 7            that one
python -m tests.fuzz.run --seed 7 --pace short    that one, as the tests live through it
python -m tests.fuzz.run --minutes 30        longer
python -m tests.fuzz.run --first 1000        every seed from there on
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from random import SystemRandom
from typing import Final

from tenure.sim.check.rules import RULES
from tests.fuzz.day import (
    DRIFTY,
    GOVERNED,
    HELD,
    LEAKY,
    LONG,
    SHORT,
    UNHEALTHY_DAY,
    VOLUNTARY,
    Outcome,
    Pace,
    live,
)

PACES: Final = {
    "long": LONG,
    "short": SHORT,
    "leaky": LEAKY,
    "unhealthy": UNHEALTHY_DAY,
    "held": HELD,
    "drifty": DRIFTY,
    "voluntary": VOLUNTARY,
    "governed": GOVERNED,
}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, help="repeat this one")
    parser.add_argument("--first", type=int, help="count seeds from here instead of drawing them")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--pace", choices=PACES, default="long", help="what kind of days")
    options = parser.parse_args(arguments)
    pace = PACES[options.pace]
    if options.seed is not None:
        return _tell(live(options.seed, pace), pace)
    end = time.monotonic() + options.minutes * 60
    failed = lived = 0
    asked: Counter[str] = Counter()
    for seed in _seeds(options.first):
        outcome = live(seed, pace)
        failed += _tell(outcome, pace)
        asked.update(outcome.asked)
        lived += 1
        if time.monotonic() > end:
            break
    for rule in RULES:
        print(f"  {asked[rule]:7} times asked: {rule}")
    print(f"fuzz: {lived} days, {failed} with problems")
    return 1 if failed else 0


def _seeds(first: int | None) -> Iterator[int]:
    if first is not None:
        yield from count(first)
    while True:
        yield SystemRandom().randrange(1_000_000)


def _tell(outcome: Outcome, pace: Pace) -> int:
    begun = ", ".join(f"{count} {reason}" for reason, count in sorted(outcome.begun.items()))
    what = f"{outcome.launched} launches, {outcome.crashes} crashes, {outcome.events} events"
    what += f"; begun: {begun or 'nothing'}"
    if not outcome.problems:
        print(f"seed {outcome.seed}: fine ({what})", flush=True)
        return 0
    print(f"seed {outcome.seed}: {len(outcome.problems)} problems ({what})")
    for problem in outcome.problems[:10]:
        print(f"  {problem[:500]}")
    (name,) = (name for name, one in PACES.items() if one is pace)
    print(f"  repeat it with: make fuzz SEED={outcome.seed} ARGS='--pace {name}'", flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
