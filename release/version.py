"""Which version this is: the git tag decides, as in pyproject.toml; and when it was made."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
#: What https://reproducible-builds.org calls it: seconds since 1970.
EPOCH: Final = "SOURCE_DATE_EPOCH"
_PEP_440: Final = re.compile(
    r"(?P<release>\d+(?:\.\d+){1,2})(?:(?P<pre>a|b|rc)(?P<pre_number>\d+))?"
    r"(?:\.post\d+)?(?:\.dev(?P<dev>\d+))?(?:\+.*)?"
)
_WORDS: Final = {"a": "alpha", "b": "beta", "rc": "rc"}


def semver(version: str) -> str:
    """As helm and registries want it: 0.1.dev1585+g1a2b3c4 is 0.1.0-dev.1585.

    Without what stands after ``+``: a tag of an image may not have that sign.
    """
    found = _PEP_440.fullmatch(version)
    if found is None:
        raise SystemExit(f"release: {version!r} is no version as PEP 440 has them")
    numbers = [*found["release"].split("."), "0"][:3]
    marks = [f"{_WORDS[found['pre']]}.{found['pre_number']}"] if found["pre"] else []
    marks += [f"dev.{found['dev']}"] if found["dev"] else []
    return "-".join([".".join(numbers), *([".".join(marks)] if marks else [])])


def made_at(folder: Path = ROOT) -> int:
    """The instant of the commit, so that a build of it is the same tomorrow."""
    if said := os.environ.get(EPOCH):
        return int(said)
    ended = subprocess.run(
        ["git", "log", "-1", "--format=%ct"],  # noqa: S607  # the developer's own git
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise SystemExit(f"release: git does not say when this commit was made; set {EPOCH}")
    return int(ended.stdout)
