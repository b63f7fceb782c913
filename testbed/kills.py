"""``make kills``: the stories beside Karpenter, with Karpenter killed at each of its writes, round by round.

In round 3 Karpenter is killed after its third write of a story, and then three more times after 16 more writes each;
so 16 rounds have every write of the first 64. Each story says how many writes there were and which it did not survive.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

#: Two at a time, each on a control plane of its own: they mostly wait. What they say is shown at the end.
STORIES: Final = ("-m", "real", "-k", "Karpenter-killed", "-rP", "-n", "2", "tests/real/beside")
#: As ``tests/real/beside/lives.py`` reads it.
MOMENTS: Final = "TESTBED_KARPENTER_WRITES"
STRIDE: Final = 16
KILLS: Final = 4
LAST_LINES: Final = 60
_SAID: Final = re.compile(r"^(\S+): Karpenter made (\d+) writes, and was killed after (.*)$", re.M)
_KILL: Final = re.compile(r"(\d+) \((\w+) (\S+)\)")


class Told(NamedTuple):
    """What one story said at its end."""

    story: str
    writes: int
    #: After which writes, and what kind each was.
    kills: tuple[tuple[int, str], ...]


def read(output: str) -> list[Told]:
    return [
        Told(
            story,
            int(writes),
            tuple((int(n), f"{verb} {kind(path)}") for n, verb, path in _KILL.findall(kills)),
        )
        for story, writes, kills in _SAID.findall(output)
    ]


def kind(path: str) -> str:
    """``nodeclaims/status``, without names."""
    parts = path.split("?")[0].strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    rest = rest[2:] if rest[0] == "namespaces" and len(rest) > 2 else rest
    return "/".join(rest[::2]) if len(rest) < 3 else f"{rest[0]}/{rest[2]}"


def lines(told: Sequence[Told]) -> list[str]:
    """A line for each story, and one for all of them."""
    found = []
    for story in sorted({each.story for each in told}):
        ours = [each for each in told if each.story == story]
        moments = {number for each in ours for number, _ in each.kills}
        writes = sorted(each.writes for each in ours)
        found.append(
            f"kills: {story}: {len(ours)} runs, {writes[0]} to {writes[-1]} writes,"
            f" {sum(len(each.kills) for each in ours)} kills after {len(moments)} different writes"
        )
    kinds = Counter(what for each in told for _, what in each.kills)
    return [*found, *(f"kills: {number} after {what}" for what, number in kinds.most_common())]


def run(number: int, arguments: Sequence[str]) -> tuple[bool, str]:
    moments = ",".join(map(str, (number, *[STRIDE] * (KILLS - 1))))
    done = subprocess.run(  # noqa: S603  # our own words
        [sys.executable, "-m", "pytest", "-q", *STORIES, *arguments],
        env={**os.environ, MOMENTS: moments},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode == 0, done.stdout + done.stderr


def main(arguments: Sequence[str]) -> int:
    """``3 5`` runs these rounds alone."""
    asked = [int(word) for word in arguments if word.isdigit()]
    more = [word for word in arguments if not word.isdigit()]
    told: list[Told] = []
    failed = 0
    for number in asked or range(1, STRIDE + 1):
        good, output = run(number, more)
        told += read(output)
        failed += not good
        print(f"kills: round {number}: {'passed' if good else 'failed'}", flush=True)
        if not good:
            print("\n".join(output.splitlines()[-LAST_LINES:]), flush=True)
    print("\n".join(lines(told)))
    return 1 if failed or not told else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
