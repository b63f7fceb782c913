"""The fleet: filter, sort, table, live changes, and what is done with the keyboard alone."""

from __future__ import annotations

import msgspec
import pytest
from playwright.sync_api import Page, expect

from tenure.dashboard.fleet.values import Tone
from tests.dashboard.browser import sample
from tests.dashboard.browser.standin import StandIn, serving


@pytest.mark.parametrize("words", ["gpu", "zone-b", "draining", "c5.2xlarge", "RepairBlocked"])
def test_the_filter_finds_by_each_field(page: Page, cluster: StandIn, words: str) -> None:
    page.goto(cluster.url)
    page.get_by_role("searchbox", name="Filter").fill(words)
    found = [
        one
        for one in cluster.frame.nodes
        if words in one.name
        or words in (one.pool, one.zone, one.phase, one.instance_type, one.reason)
    ]
    cells = page.locator("button.cell")
    expect(cells).to_have_count(len(found))
    expect(page.get_by_role("status").filter(has_text="of 140 nodes")).to_contain_text(
        f"{len(found)} of"
    )
    page.get_by_role("button", name="Show all").click()
    expect(cells).to_have_count(140)


def test_a_phase_is_told_by_a_sign_and_not_by_colour_alone(page: Page, cluster: StandIn) -> None:
    page.goto(cluster.url)
    signs = {
        one.tone: page.locator(f'button[data-key="{one.key}"]').inner_text()
        for one in cluster.frame.nodes
    }
    assert len(set(signs.values())) == len(Tone)


def test_one_phase_alone(page: Page, cluster: StandIn) -> None:
    page.goto(cluster.url)
    page.get_by_role("group", name="Show one phase alone").get_by_role(
        "button", name="Unhealthy"
    ).click()
    unhealthy = [one for one in cluster.frame.nodes if one.tone is Tone.UNHEALTHY]
    expect(page.locator("button.cell")).to_have_count(len(unhealthy))


def test_the_table_is_sorted_by_its_heads(page: Page, cluster: StandIn) -> None:
    page.goto(cluster.url)
    page.get_by_role("button", name="Table", exact=True).click()
    head = page.get_by_role("columnheader", name="Price/h")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    first = page.locator("tbody tr").first
    expect(first).to_contain_text("$0.34")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(first).not_to_contain_text("$0.34")


def test_a_change_is_shown_without_asking(page: Page, cluster: StandIn) -> None:
    page.goto(cluster.url)
    one = next(one for one in cluster.frame.nodes if one.tone is Tone.SERVING)
    other = next(one for one in cluster.frame.nodes[1:] if one.tone is Tone.SERVING)
    expect(page.get_by_role("button", name=f"{one.name}, in service")).to_be_visible()
    drains = msgspec.structs.replace(one, tone=Tone.LEAVING, phase="draining")
    cluster.change(drains, gone=(other.key,))
    expect(page.get_by_role("button", name=f"{one.name}, draining")).to_be_visible()
    expect(page.get_by_role("button", name=f"{other.name}, ")).to_have_count(0)
    expect(page.get_by_role("status").filter(has_text="139 nodes")).to_be_visible()


def test_with_the_keyboard_alone(page: Page, cluster: StandIn) -> None:
    page.goto(cluster.url)
    expect(page.locator("button.cell").first).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Filter")).to_be_focused()
    page.keyboard.type("web")
    # Sort, grid or table, show all, the first pool, then one stop for all of the nodes.
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('cell')"):
            break
    first = page.evaluate("document.activeElement.dataset.key")
    page.keyboard.press("ArrowRight")
    second = page.evaluate("document.activeElement.dataset.key")
    assert second != first
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.dataset.key") == first
    page.keyboard.press("Enter")
    name = first.partition("/")[2]
    panel = page.get_by_role("complementary")
    expect(panel.get_by_role("heading", name=name)).to_be_focused()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(page.locator("button.cell:focus")).to_have_count(1)


def test_five_hundred_nodes(page: Page) -> None:
    with serving(sample.frame(500)) as server:
        page.goto(server.url)
        expect(page.locator("button.cell")).to_have_count(500)
        page.get_by_role("button", name="Table", exact=True).click()
        page.get_by_role("button", name="Show more: 400 nodes left").click()
        expect(page.locator("tbody tr")).to_have_count(500)


def test_a_narrow_screen_shows_everything_without_scrolling_sideways(
    page: Page, cluster: StandIn
) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    for view in ("fleet", "timeline", "calendar", "why", "events"):
        page.goto(f"{cluster.url}#/{view}")
        expect(page.get_by_role("heading", level=1)).to_be_attached()
        expect(page.locator("html")).to_have_js_property("scrollWidth", 390)


def test_the_panel_of_a_node_fits_a_narrow_screen(page: Page, cluster: StandIn) -> None:
    page.set_viewport_size({"width": 320, "height": 800})
    page.goto(cluster.url)
    page.locator("button.cell").first.click()
    panel = page.get_by_role("complementary")
    expect(panel.get_by_text("old)")).to_be_visible()
    wide = "(box) => [...box.querySelectorAll('*')].every(one => one.getBoundingClientRect().right <= innerWidth)"
    assert panel.evaluate(wide)
