"""Which tests install Tenure as a newcomer does, and what became of them: ``.ci/run`` reads the last line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from release import wheels
from tests.bed import outcomes

#: On every test that installs the wheel from an index of our own.
NEWCOMER: Final = "newcomer"
MARKER: Final = f"{NEWCOMER}: needs the wheels of the libraries (make wheels)"
TITLE: Final = "newcomer suite:"
LACKS: Final = "it lacks the wheels of the libraries: `make wheels` fetches them"


def there() -> bool:
    return wheels.folder().is_dir()


def tell(reporter: pytest.TerminalReporter) -> None:
    if line := last_line(reporter.stats, there=there()):
        reporter.write_line(line)


def last_line(stats: Mapping[str, Sequence[object]], *, there: bool) -> str:
    """Empty if the suite could have run and was not requested."""
    return outcomes(TITLE, NEWCOMER, stats) if there else f"{TITLE} LEFT OUT, {LACKS}"
