"""The page of a running ``tenure up`` of 500 nodes: filter, keyboard, axe, dark and light, a connection that is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.dashboard.browser.manynodes import COUNT, many_nodes
from tests.dashboard.browser.test_access import ground
from tests.up.running import Up


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Up, str]]:
    with many_nodes(tmp_path_factory.mktemp("many")) as found:
        yield found


@pytest.fixture
def shown(page: Page, up: tuple[Up, str]) -> Page:
    page.goto(up[1])
    expect(page.locator("button.cell")).to_have_count(COUNT, timeout=60_000)
    return page


def test_five_hundred_nodes_in_the_grid_and_in_the_table(shown: Page) -> None:
    expect(shown.get_by_role("status").filter(has_text=f"{COUNT} nodes")).to_be_visible()
    shown.get_by_role("button", name="Table", exact=True).click()
    shown.get_by_role("button", name=f"Show more: {COUNT - 100} nodes left").click()
    expect(shown.locator("tbody tr")).to_have_count(COUNT)


def test_the_filter_finds_one_of_them_and_shows_all_again(shown: Page) -> None:
    shown.get_by_role("searchbox", name="Filter").fill("general-123")
    expect(shown.locator("button.cell")).to_have_count(1)
    expect(shown.get_by_role("status").filter(has_text=f"1 of {COUNT} nodes")).to_be_visible()
    shown.get_by_role("searchbox", name="Filter").fill("general test-zone-b")
    some = shown.locator("button.cell")
    expect(some).not_to_have_count(1)
    assert 0 < some.count() < COUNT
    shown.get_by_role("button", name="Show all").click()
    expect(some).to_have_count(COUNT)


def test_with_the_keyboard_alone_from_the_filter_to_why(shown: Page) -> None:
    shown.keyboard.press("/")
    expect(shown.get_by_role("searchbox", name="Filter")).to_be_focused()
    shown.keyboard.type("general-12")
    expect(shown.locator("button.cell")).to_have_count(10)
    for _ in range(12):
        shown.keyboard.press("Tab")
        if shown.evaluate("document.activeElement.classList.contains('cell')"):
            break
    first = shown.evaluate("document.activeElement.dataset.key")
    shown.keyboard.press("ArrowRight")
    key = shown.evaluate("document.activeElement.dataset.key")
    assert key != first
    shown.keyboard.press("Enter")
    panel = shown.get_by_role("complementary")
    expect(panel.get_by_role("heading", name=key.partition("/")[2])).to_be_focused()
    for _ in range(3):
        shown.keyboard.press("Tab")
        if shown.evaluate("document.activeElement.textContent") == "Why?":
            break
    shown.keyboard.press("Enter")
    expect(shown.get_by_role("article", name=key)).to_be_visible(timeout=60_000)


@pytest.mark.parametrize(
    "view", ["fleet", "timeline", "calendar", "why/NodeClaim/general-007", "events"]
)
def test_axe_finds_nothing_serious(shown: Page, up: tuple[Up, str], view: str) -> None:
    shown.goto(f"{up[1]}#/{view}")
    expect(shown.get_by_role("heading", level=1)).to_be_attached()
    found = Axe().run(shown)
    serious = [
        one for one in found.response["violations"] if one["impact"] in ("serious", "critical")
    ]
    assert not serious, [(one["id"], one["nodes"][0]["html"][:200]) for one in serious]


def test_dark_and_light(shown: Page) -> None:
    light = ground(shown)
    shown.emulate_media(color_scheme="dark")
    assert ground(shown) != light
    shown.emulate_media(color_scheme="light")
    assert ground(shown) == light


def test_the_connection_is_lost_and_comes_back(page: Page, tmp_path: Path) -> None:
    """The program ends, and another one begins at the same address."""
    with many_nodes(tmp_path) as (first, address):
        page.goto(address)
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        expect(page.locator("button.cell")).to_have_count(COUNT, timeout=60_000)
        first.kill()
        banner = page.get_by_role("alert")
        expect(banner).to_contain_text("Connection lost since")
        expect(page.locator("button.cell")).to_have_count(COUNT)
        port = address.rstrip("/").rpartition(":")[2]
        with many_nodes(tmp_path / "again", "--ui-port", port):
            banner.get_by_role("button", name="Connect now").click()
            expect(page.get_by_text("Live", exact=True)).to_be_visible(timeout=60_000)
            expect(banner).to_have_count(0)
            expect(page.locator("button.cell")).to_have_count(COUNT)
