"""Which tests need zsh and fish, and what became of them: the last lines of a run tell, and ``.ci/run`` reads them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from tests.bed import outcomes

#: On every test that has a shell complete a command.
SHELLS: Final = "shells"
MARKER: Final = f"{SHELLS}: needs zsh and fish (make shells)"
TITLE: Final = "shell suite:"
_NEEDED: Final = ("zsh", "fish")


def missing() -> tuple[str, ...]:
    return tuple(shell for shell in _NEEDED if shutil.which(shell) is None)


def tell(reporter: pytest.TerminalReporter) -> None:
    if line := last_line(reporter.stats, missing()):
        reporter.write_line(line)


def last_line(stats: Mapping[str, Sequence[object]], lacking: Sequence[str]) -> str:
    """Empty if the suite could have run and was not requested."""
    if lacking:
        return f"{TITLE} LEFT OUT, it lacks {' and '.join(lacking)}: `make shells` gets it"
    return outcomes(TITLE, SHELLS, stats)
