"""A browser for all tests, and a page of its own for each; what the page complains about fails the test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from docs import site
from tests.dashboard.browser import sample
from tests.dashboard.browser.standin import StandIn, serving

FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
WIDTH, HEIGHT = 1360, 900
#: A server that is stopped while a page reads it leaves sockets to Python's garbage collector.
CUT_OFF: Final = (
    r"ignore:Exception ignored in. <(socket|function _SelectorTransport)"
    ":pytest.PytestUnraisableExceptionWarning"
)
#: The browser's own words about an answer that was refused or never came: tests cause them.
_EXPECTED: Final = ("Failed to load resource",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    lacks = pytest.mark.skipif(site.browser() is None, reason="no Chromium: make browser gets it")
    for item in items:
        if "tests/dashboard/browser" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)
            item.add_marker(lacks)
            item.add_marker(pytest.mark.filterwarnings(CUT_OFF))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """For one file of tests: as long as Playwright is there, no other loop can run in this thread."""
    expect.set_options(timeout=20_000)  # Of a machine that is busy with other tests.
    program = site.browser()
    assert program is not None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(
        viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light", reduced_motion="reduce"
    )
    context.set_default_timeout(15_000)
    shown = context.new_page()
    wrong: list[str] = []
    shown.on("pageerror", lambda error: wrong.append(str(error)))
    shown.on(
        "console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None
    )  # fmt: skip
    yield shown
    context.close()
    assert not [one for one in wrong if not one.startswith(_EXPECTED)]


@pytest.fixture
def cluster() -> Iterator[StandIn]:
    with serving(sample.frame(140)) as server:
        yield server
