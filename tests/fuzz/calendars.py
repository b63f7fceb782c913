"""Random calendars against the oracle: ``make fuzz-calendars COUNT=2000 SEED=7``.

Some are asked at every minute of their two years, which takes most of a minute each.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from functools import partial
from random import Random
from time import monotonic
from typing import Final

from tests.core.calendars import SPAN, a_calendar, check

#: Instants between the changes of each calendar.
BETWEEN: Final = 200
#: Every so many is asked at every minute.
EVERY_MINUTE: Final = 400
#: A process takes so many at once, and keeps what it has found out of their time zones.
CHUNK: Final = 10
#: After so many seconds a line says how far it is.
SAID_EVERY: Final = 60


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a program's output


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    total: Counter[str] = Counter()
    failed, said = 0, monotonic()
    numbers = range(1, given.count + 1)
    with ProcessPoolExecutor() as processes:
        tried = processes.map(partial(_try, given.seed), numbers, chunksize=CHUNK)
        for number, (done, problem) in zip(numbers, tried, strict=True):
            total += done
            if problem:
                failed += 1
                say(f"seed {given.seed} number {number}: {problem}")
            if monotonic() - said > SAID_EVERY:
                said = monotonic()
                say(f"  {number} of {given.count}: {_counts(total)}")
    say(f"{given.count} calendars, {failed} differ from the oracle: {_counts(total)}")
    return 1 if failed else 0


def _try(seed: int, number: int) -> tuple[Counter[str], str]:
    """What was compared, and what differs."""
    random = Random(f"{seed} {number}")
    calendar = a_calendar(random)
    minutes = SPAN if number % EVERY_MINUTE == 0 else timedelta(0)
    try:
        return check(calendar, random, between=BETWEEN, each_minute_for=minutes), ""
    except Exception as error:  # noqa: BLE001 - the others are tried all the same
        return Counter(), f"{calendar}\n  {error!r}"


def _counts(total: Counter[str]) -> str:
    return ", ".join(f"{number:,} {what}" for what, number in sorted(total.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
