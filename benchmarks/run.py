"""Runs the benchmarks and prints them: what hardly depends on the machine first.

    python -m benchmarks.run [decode] [packing] [simulation] [drain] [windows] [drift] [forecast]
        [board] [page] [scheduling] [consolidation] [copy] [index] [turns] [pass] [batch] [arrivals]
        [informers] [scaleout] [agreement] [beside] [browser]

Exits with 1 when a figure exceeds its limit.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from benchmarks.figures import Figures

NAMES = ("decode", "packing", "simulation", "drain", "windows", "drift", "forecast")
#: Only by name: they take minutes, and the last five need the test bed or Chromium.
BY_NAME = (
    "board",
    "page",
    "scheduling",
    "consolidation",
    "copy",
    "index",
    "turns",
    "pass",
    "batch",
    "arrivals",
    "informers",
    "scaleout",
    "agreement",
    "beside",
    "browser",
)


def main(arguments: Sequence[str]) -> int:
    known = (*NAMES, *BY_NAME)
    unknown = [name for name in arguments if name not in known]
    if unknown:
        print(f"bench: {unknown[0]!r}: expected one of {', '.join(known)}", file=sys.stderr)
        return 2
    measured: list[Figures] = []
    for name in arguments or NAMES:
        print(f"· measuring {name}", flush=True)
        module = importlib.import_module(f"benchmarks.bench_{name}")
        if hasattr(module, "measure"):
            measured.append(module.measure())
        else:
            module.main([])  # Compares two ways of working, and says so itself.
    if not measured:
        return 0
    print("\nRatios, growth and counts")
    for figures in measured:
        _print(figures.title, figures.relative)
    print("\nOn this machine")
    for figures in measured:
        _print(figures.title, figures.absolute)
    return 0 if all(figures.kept for figures in measured) else 1


def _print(title: str, lines: Sequence[object]) -> None:
    print(f"  {title}")
    for line in lines:
        print(f"    {line}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
