"""Settings shared by all tests.

Properties are tried on the same examples every time, so that a red test is red for
every developer; ``make fuzz`` explores new ones, and ten times as many (``TENURE_EXAMPLES=explore``).
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

from tests import bed, browser, evaluations, newcomer, shells, workers
from tests.contract.tally import pytest_terminal_summary as pytest_terminal_summary
from tests.evaluations import pytest_runtest_call as pytest_runtest_call

settings.register_profile("repeat", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("TENURE_EXAMPLES", "repeat"))


def pytest_configure(config: pytest.Config) -> None:
    for marker, meaning in bed.MARKERS.items():
        config.addinivalue_line("markers", f"{marker}: {meaning}")
    config.addinivalue_line("markers", evaluations.MARKER)
    config.addinivalue_line("markers", browser.MARKER)
    config.addinivalue_line("markers", newcomer.MARKER)
    config.addinivalue_line("markers", shells.MARKER)


@pytest.hookimpl(trylast=True)  # The folders have put their marks on by then.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        bed.give_time(item)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> workers.Scheduling:
    return workers.Scheduling(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """The outermost of its kind: what it says comes after everything else."""
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(reporter, pytest.TerminalReporter):  # A worker of several has none.
        bed.tell(reporter)
        browser.tell(reporter)
        newcomer.tell(reporter)
        shells.tell(reporter)
