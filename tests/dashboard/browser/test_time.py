"""The timeline's slider, and the journal."""

from __future__ import annotations

import re
from datetime import timedelta

import msgspec
from playwright.sync_api import Page, expect

from tenure.model.api.meta import format_time
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


def test_a_window_of_five_minutes_is_drawn_until_midnight(page: Page, cluster: StandIn) -> None:
    changes = [sample.AT + timedelta(minutes=5 * turn) for turn in range(1, 1200)]
    often = sample.window("often", "Drift", 140, changes) | {"knownUntil": format_time(changes[-1])}
    cluster.foreseen = {"windows": [often], "budgets": []}
    page.goto(f"{cluster.url}#/calendar")
    days = page.get_by_role("region", name="Two weeks")
    tomorrow = days.get_by_role("img").nth(1)
    expect(tomorrow).to_have_accessible_name(re.compile("138 more periods, the last until 00:00$"))
    bands = tomorrow.locator("rect.band")
    expect(bands.last).to_contain_text("2026-01-07T00:00:00Z")
    assert 1 <= bands.count() <= 144
    expect(days).to_contain_text("Allow often (known until 2026-01-10T00:05:00Z)")


def test_periods_nearer_than_a_pixel_are_drawn_as_one(page: Page, cluster: StandIn) -> None:
    changes = [sample.AT + timedelta(minutes=turn) for turn in range(1, 1200)]
    often = sample.window("often", "Drift", 140, changes) | {"knownUntil": format_time(changes[-1])}
    cluster.foreseen = {"windows": [often], "budgets": []}
    page.goto(f"{cluster.url}#/calendar")
    tomorrow = page.get_by_role("region", name="Two weeks").get_by_role("img").nth(1)
    expect(tomorrow.locator("rect.band")).to_have_count(1)
    expect(tomorrow.locator("rect.band")).to_contain_text(
        "484 periods, 2026-01-06T00:01:00Z to 2026-01-06T16:08:00Z"
    )


def test_the_clock_runs_by_the_speed_of_the_cluster_while_nothing_changes(page: Page) -> None:
    with serving(sample.frame(12)) as server:
        server.speed = 10
        page.clock.install()
        page.goto(f"{server.url}#/timeline")
        clock = page.get_by_role("timer", name="The cluster's time")
        expect(clock).to_contain_text("2026-01-05T20:1")
        page.clock.run_for(24_000)
        expect(clock).to_have_text(re.compile("^2026-01-05T20:1[4-7]:"))
        slider = page.get_by_role("slider", name="Time")
        expect(slider).to_have_attribute("aria-valuetext", re.compile("^2026-01-05T20:1[4-7]:"))
        server.stop()
        expect(page.get_by_role("alert")).to_contain_text(
            re.compile(r"What you see is of 2026-01-05T20:10:00Z \([4-9]m")
        )
        expect(page.get_by_text("last news 2026-01-05T20:10:00Z, ")).to_be_visible()
        expect(slider).to_have_attribute("aria-valuetext", "2026-01-05T20:10:00Z")


def test_the_calendar_is_asked_by_the_time_of_the_cluster(page: Page) -> None:
    with serving(sample.frame(12)) as server:
        server.speed = 10
        page.clock.install()
        page.goto(f"{server.url}#/calendar")
        expect(page.get_by_text("As of 20:10:00Z.")).to_be_visible()
        with page.expect_request("**/api/calendar"):
            page.clock.run_for(13_000)


def test_the_calendar_is_asked_once_its_next_change_has_passed(page: Page) -> None:
    with serving(sample.frame(12)) as server:
        soon = sample.window("soon", "Drift", 12, [sample.AT + timedelta(seconds=20)])
        server.foreseen = {"windows": [soon]}
        page.clock.install()
        page.goto(f"{server.url}#/calendar")
        expect(page.get_by_text("As of 20:10:00Z.")).to_be_visible()
        with page.expect_request("**/api/calendar"):
            page.clock.run_for(22_000)


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


def test_an_entry_that_was_asked_for_and_arrives_too_is_one_line(
    page: Page, cluster: StandIn
) -> None:
    page.goto(f"{cluster.url}#/events")
    lines = page.locator(".entries > li")
    expect(lines).to_have_count(40)
    cluster.entries(cluster.journal[-1], entry(1))
    expect(lines.first).to_contain_text("NodeClaim/new-1")
    expect(lines).to_have_count(41)


def test_events_say_when_older_ones_are_left_out(page: Page, cluster: StandIn) -> None:
    page.goto(f"{cluster.url}#/events")
    lead = page.locator("main .lead")
    expect(lead).to_have_text(
        "What was concluded and done since this replica's start, newest first."
    )
    cluster.journal = sample.entries(500)
    page.reload()
    expect(lead).to_have_text(
        "What was concluded and done since 2026-01-05T11:50:00Z, newest first. Older entries are left out here."
    )


def test_the_panel_of_a_node_leads_to_all_of_its_entries(page: Page, cluster: StandIn) -> None:
    name = cluster.journal[0].subject
    cluster.journal = [
        msgspec.structs.replace(one, subject=name, because=f"entry {number}")
        for number, one in enumerate(sample.entries(60))
    ]
    page.goto(f"{cluster.url}#/fleet/{name}")
    panel = page.get_by_role("complementary")
    expect(panel.get_by_text("entry 59")).to_be_visible()
    expect(panel.get_by_text("entry 9", exact=True)).to_have_count(0)
    panel.get_by_role("link", name="Older entries").click()
    expect(page.locator(".entries > li")).to_have_count(60)
    expect(page.locator("main .lead")).to_contain_text(f"about {name} since this replica's start")


def test_what_became_of_an_action_stands_beside_it(page: Page, cluster: StandIn) -> None:
    page.goto(f"{cluster.url}#/events")
    lines = page.locator(".entries > li")
    expect(lines).to_have_count(40)
    done = msgspec.structs.replace(entry(1), because="12 nodes", action="Patch", outcome="ok")
    cluster.entries(done, msgspec.structs.replace(done, outcome="409 Conflict"))
    expect(lines.nth(1).locator(".because")).to_have_text("12 nodes")
    expect(lines.nth(1).locator(".chip")).to_have_text("Patch ok")
    expect(lines.first.locator(".because")).to_have_text("12 nodes: 409 Conflict")
