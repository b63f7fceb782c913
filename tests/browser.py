"""Which tests need a browser, and what became of them: the last lines of a run tell, and ``.ci/run`` reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from docs import site
from tests.bed import outcomes

#: On every test that looks at pages with Chromium.
BROWSER: Final = "browser"
MARKER: Final = f"{BROWSER}: needs Chromium (make browser)"
TITLE: Final = "browser suite:"


def tell(reporter: pytest.TerminalReporter) -> None:
    if line := last_line(reporter.stats, there=site.browser() is not None):
        reporter.write_line(line)


def last_line(stats: Mapping[str, Sequence[object]], *, there: bool) -> str:
    """Empty if the suite could have run and was not requested."""
    if not there:
        return f"{TITLE} LEFT OUT, it lacks chromium: `make browser` gets it"
    return outcomes(TITLE, BROWSER, stats)
