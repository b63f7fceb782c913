"""The page of a running ``tenure up``: real objects, the real server, and the answers of an operator."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.browser.drifting import PATIENCE, drifting


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with drifting(tmp_path_factory.mktemp("up")) as (_, address):
        yield address


def test_its_nodes_come_up_while_one_looks(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(page.get_by_text("embedded cluster").first).to_be_visible()
    cells = page.get_by_role("button", name=re.compile("^(general|batch)-"))
    expect(cells).to_have_count(16, timeout=PATIENCE)
    totals = page.get_by_role("region", name="Totals")
    expect(totals).to_contain_text(re.compile(r"\$[1-9\d.]+/h"))


def test_which_nodes_go_tonight(page: Page, address: str) -> None:
    page.goto(address)
    cells = page.get_by_role("button", name=re.compile("^general-.*, drifted"))
    expect(cells.first).to_be_visible(timeout=PATIENCE)
    page.get_by_role("link", name="Calendar").click()
    soon = page.get_by_role("region", name="The next 24 hours")
    expect(soon).to_contain_text(
        re.compile(r"[1-9]\d* nodes? (is|are) disrupted:"), timeout=PATIENCE
    )
    expect(soon.get_by_role("link", name=re.compile("^general-"))).not_to_have_count(0)
    days = page.get_by_role("region", name="Two weeks")
    expect(days).to_contain_text("of general, Drifted")
    windows = page.get_by_role("region", name="Maintenance windows", exact=True)
    expect(windows.get_by_role("row", name=re.compile("^nights Allow Drift 16 "))).to_be_visible()


def test_why_a_drifted_node_has_not_gone_and_what_to_change(page: Page, address: str) -> None:
    page.goto(address)
    cell = page.get_by_role("button", name=re.compile("^general-.*, drifted")).first
    expect(cell).to_be_visible(timeout=PATIENCE)
    cell.click()
    panel = page.get_by_role("complementary")
    expect(panel).to_contain_text("DisruptionBlocked")
    expect(panel).to_contain_text("is allowed by MaintenanceWindow nights only")
    panel.get_by_role("link", name="Why?").click()
    answer = page.get_by_role("article", name=re.compile("^NodeClaim.general-"))
    expect(answer).to_contain_text("not active before", timeout=PATIENCE)
    change = answer.get_by_role("region", name="What to change")
    expect(change).to_contain_text("or change MaintenanceWindow nights")
    page.get_by_role("combobox", name="Object").fill("MaintenanceWindow/nights")
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_role("article", name="MaintenanceWindow/nights")).to_be_visible()


def test_the_journal_and_the_lanes(page: Page, address: str) -> None:
    page.goto(f"{address}#/timeline")
    expect(page.get_by_text(re.compile("since this replica's start at 20"))).to_be_visible()
    expect(
        page.get_by_role("img", name=re.compile("^(batch|general)-.*: .*(in service|drifted) from"))
    ).not_to_have_count(0)
    page.get_by_role("link", name="Events").click()
    expect(page.locator(".entries > li").first).to_be_visible()


def test_back_to_the_start_and_ahead_to_the_night(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.get_by_role("button", name=re.compile("^general-.*, drifted")).first).to_be_visible(
        timeout=PATIENCE
    )
    page.goto(f"{address}#/timeline")
    fleet = page.get_by_role("region", name="The fleet at that instant")
    expect(fleet).to_contain_text("blocked")
    slider = page.get_by_role("slider", name="Time")
    slider.focus()
    page.keyboard.press("Home")
    expect(fleet).to_contain_text("This replica had not started")
    page.keyboard.press("PageUp")
    expect(fleet).to_contain_text(re.compile("The fleet at 20.* ago"))
    expect(fleet).to_contain_text(re.compile(r"\d+ nodes?|There was no node"))
    page.get_by_role("button", name="Now", exact=True).click()
    expect(fleet).to_contain_text("blocked")
    page.get_by_role("combobox", name="Show").select_option("A week ahead")
    slider.focus()
    page.keyboard.press("End")
    expect(fleet).to_contain_text(re.compile(r"[1-9]\d* disruptions? starts?"), timeout=PATIENCE)


def test_what_it_costs(page: Page, address: str) -> None:
    page.goto(address)
    cell = page.get_by_role("button", name=re.compile("^general-.*, drifted")).first
    expect(cell).to_be_visible(timeout=PATIENCE)
    totals = page.get_by_role("region", name="Totals")
    expect(totals).to_contain_text(re.compile(r"\$\d+\.\d\d/h"))
    expect(page.get_by_role("img", name=re.compile(r"^Cost an hour over time\."))).to_be_visible()
    cell.click()
    expect(page.get_by_role("complementary")).to_contain_text(re.compile(r"\$0\.\d+/h"))


@pytest.mark.parametrize("path", ["api/fleet", "api/history", "api/entries"])
def test_what_is_not_a_page_of_ours_reads_nothing(page: Page, address: str, path: str) -> None:
    answer = page.request.get(address + path, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status == 403
    assert list(answer.json()) == ["error"]
