"""Lives through random days until the time is up, or through one to repeat it.

python -m tests.fuzz.run                 two minutes of new seeds
python -m tests.fuzz.run --seed 7        that one
python -m tests.fuzz.run --minutes 30    longer
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from random import SystemRandom

from tests.fuzz.day import Outcome, live


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, help="repeat this one")
    parser.add_argument("--minutes", type=float, default=2.0)
    options = parser.parse_args(arguments)
    if options.seed is not None:
        return _tell(live(options.seed))
    end = time.monotonic() + options.minutes * 60
    failed = lived = 0
    while time.monotonic() < end:
        failed += _tell(live(SystemRandom().randrange(1_000_000)))
        lived += 1
    print(f"fuzz: {lived} days, {failed} with problems")
    return 1 if failed else 0


def _tell(outcome: Outcome) -> int:
    what = f"{outcome.launched} launches, {outcome.crashes} crashes, {outcome.events} events"
    if not outcome.problems:
        print(f"seed {outcome.seed}: fine ({what})", flush=True)
        return 0
    print(f"seed {outcome.seed}: {len(outcome.problems)} problems ({what})")
    for problem in outcome.problems[:10]:
        print(f"  {problem}")
    print(f"  repeat it with: make fuzz SEED={outcome.seed}", flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
