"""Cuts a release: the unreleased changes get its heading and date, the chart its version.

    python -m release.cut 0.2.0

Nothing is committed or tagged: what to do next is printed.
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from release.version import ROOT

UNRELEASED: Final = "## Unreleased"
_HEADING: Final = re.compile(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$", re.M)
_CHARTS: Final = ("charts/tenure/Chart.yaml", "charts/tenure/charts/karpenter-crds/Chart.yaml")


def releases(changes: str) -> list[tuple[str, date]]:
    """Newest first, as they stand there."""
    return [(found[1], date.fromisoformat(found[2])) for found in _HEADING.finditer(changes)]


def as_numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def cut_changes(changes: str, version: str, day: date) -> str:
    """Raises ``SystemExit`` with what is wrong."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise SystemExit(f"release: got {version!r}, expected three numbers, for example 0.2.0")
    done = [as_numbers(one) for one, _ in releases(changes)]
    if done and as_numbers(version) <= max(done):
        raise SystemExit(f"release: {version} is not after {'.'.join(map(str, max(done)))}")
    before, found, after = changes.partition(f"{UNRELEASED}\n")
    if not found or not after.partition("\n## ")[0].strip():
        raise SystemExit("release: CHANGELOG.md has no unreleased changes")
    return f"{before}{UNRELEASED}\n\n## {version} ({day})\n{after}"


def cut_chart(text: str, version: str) -> str:
    """Its own version, the program's, and that of the chart with Karpenter's kinds in it."""
    text = re.sub(r"^version: .*$", f"version: {version}", text, flags=re.M)
    text = re.sub(r"^appVersion: .*$", f'appVersion: "{version}"', text, flags=re.M)
    return re.sub(r"^    version: .*$", f"    version: {version}", text, flags=re.M)


def cut(version: str, day: date, root: Path = ROOT) -> None:
    changes = root / "CHANGELOG.md"
    changes.write_text(cut_changes(changes.read_text(), version, day))
    for name in _CHARTS:
        (root / name).write_text(cut_chart((root / name).read_text(), version))


if __name__ == "__main__":
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    cut(wanted, datetime.now(UTC).date())
    print(f"now: make generate; look at it; git commit -a; git tag v{wanted}; make dist")
