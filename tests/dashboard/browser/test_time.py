"""The timeline's slider, and the journal."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tenure.runtime.telemetry.ring import Entry
from tests.dashboard.browser import sample
from tests.dashboard.browser.standin import StandIn, serving


def scrub(page: Page, at: int) -> None:
    slider = page.get_by_role("slider", name="Time")
    slider.evaluate(
        "(box, at) => { box.value = String(at); box.dispatchEvent(new Event('input', {bubbles: true})); }", at
    )  # fmt: skip


def test_back_to_before_a_node_was_unhealthy(page: Page, cluster: StandIn) -> None:
    page.goto(f"{cluster.url}#/timeline")
    fleet = page.get_by_role("region", name="The fleet at that instant")
    expect(page.get_by_text("since this replica's start at 2026-01-05T17:10:00Z")).to_be_visible()
    expect(fleet).to_contain_text("1 unhealthy")
    scrub(page, int(sample.AT.timestamp() * 1000) - 30 * 60_000)
    expect(fleet).to_contain_text("The fleet at 2026-01-05T19:4")
    expect(fleet).not_to_contain_text("unhealthy")
    page.get_by_role("button", name="Now").click()
    expect(fleet).to_contain_text("1 unhealthy")


def test_the_slider_is_moved_by_keys(page: Page, cluster: StandIn) -> None:
    page.goto(f"{cluster.url}#/timeline")
    slider = page.get_by_role("slider", name="Time")
    slider.focus()
    before = slider.get_attribute("aria-valuetext") or ""
    page.keyboard.press("PageDown")
    expect(slider).not_to_have_attribute("aria-valuetext", before)
    assert (slider.get_attribute("aria-valuetext") or "") < before


def test_ahead_to_what_is_foreseen(page: Page, cluster: StandIn) -> None:
    page.goto(f"{cluster.url}#/timeline")
    page.get_by_role("combobox", name="Show").select_option("Since the start, 24 h ahead")
    expect(page.get_by_role("list", name="Windows and budgets")).to_contain_text("nights")
    scrub(page, int(sample.AT.timestamp() * 1000) + 5 * 3_600_000)
    fleet = page.get_by_role("region", name="The fleet at that instant")
    expect(fleet).to_contain_text("6 disruptions start, 0 under way at that instant")


def test_only_the_lanes_that_are_seen_are_in_the_page(page: Page) -> None:
    with serving(sample.frame(1000)) as server:
        page.goto(f"{server.url}#/timeline")
        lanes = page.get_by_role("region", name="Lanes of 1000 nodes")
        expect(lanes).to_be_visible()
        assert lanes.get_by_role("listitem").count() < 60
        lanes.evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
        expect(lanes.locator('[aria-posinset="1000"]')).to_be_visible()
        assert lanes.get_by_role("listitem").count() < 60


def entry(number: int) -> Entry:
    old = sample.entries(1)[0]
    return Entry(
        at=sample.AT,
        concern=old.concern,
        subject=f"NodeClaim/new-{number}",
        reason="Launched",
        because="launched",
    )


def test_events_arrive_and_can_be_paused(page: Page, cluster: StandIn) -> None:
    page.goto(f"{cluster.url}#/events")
    lines = page.locator(".entries > li")
    expect(lines).to_have_count(40)
    cluster.entries(entry(1))
    expect(lines.first).to_contain_text("NodeClaim/new-1")
    page.get_by_role("button", name="Pause").click()
    cluster.entries(entry(2))
    expect(page.get_by_role("status").filter(has_text="Paused")).to_be_visible()
    expect(page.get_by_text("NodeClaim/new-2")).to_have_count(0)
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_text("NodeClaim/new-2")).to_be_visible()
    page.get_by_role("searchbox", name="Filter").fill("new-1")
    expect(lines).to_have_count(1)
    expect(page.get_by_role("status").filter(has_text=re.compile("^1 entry$"))).to_be_visible()
