"""A connection that is lost, a token that is asked for, and names that would do harm."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import msgspec
from playwright.sync_api import Page, expect

from tenure.dashboard.fleet import values as v
from tests.dashboard.browser import sample
from tests.dashboard.browser.standin import StandIn, serving

TAG: Final = (
    "<img src=x onerror=\"document.title='harmed'\"><script>document.title='harmed'</script>"
)


def test_lost_and_back(page: Page, cluster: StandIn) -> None:
    page.goto(cluster.url)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    cluster.stop()
    banner = page.get_by_role("alert")
    expect(banner).to_contain_text("Connection lost since 2026-01-05T20:1")
    expect(banner).to_contain_text("What you see is of 2026-01-05T20:10:00Z")
    expect(page.get_by_text("Not connected")).to_be_visible()
    expect(page.locator("button.cell").first).to_be_visible()
    cluster.frame = sample.frame(12)
    cluster.start()
    banner.get_by_role("button", name="Connect now").click()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(banner).to_have_count(0)
    expect(page.locator("button.cell")).to_have_count(12)


def test_it_comes_back_by_itself(page: Page, cluster: StandIn) -> None:
    page.goto(cluster.url)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    cluster.stop()
    expect(page.get_by_role("alert")).to_be_visible()
    cluster.start()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()


def test_a_server_that_has_lost_the_cluster_says_of_when_its_data_is(
    page: Page, cluster: StandIn
) -> None:
    page.goto(cluster.url)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    cluster.lose(v.Lost(since=sample.AT - timedelta(seconds=90), why="connection refused"))
    banner = page.get_by_role("alert")
    expect(banner).to_contain_text("Data of 2026-01-05T20:08:30Z")
    expect(banner).to_contain_text("connection to the API server is lost for 1m")
    expect(banner).to_contain_text("connection refused")
    expect(page.locator("button.cell").first).to_be_visible()
    cluster.lose(None)
    expect(banner).to_have_count(0)


def test_a_token_is_asked_for_and_kept_in_memory_alone(page: Page) -> None:
    with serving(sample.frame(12), token="right") as server:
        page.goto(server.url)
        box = page.get_by_label("Token")
        box.fill("wrong")
        page.get_by_role("button", name="Show the cluster").click()
        expect(page.get_by_role("alert")).to_contain_text("the token is not valid")
        expect(page.locator("button.cell")).to_have_count(0)
        box.fill("right")
        page.keyboard.press("Enter")
        expect(page.locator("button.cell")).to_have_count(12)
        assert "right" not in page.url
        kept = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
        assert "right" not in page.evaluate(kept)
        page.reload()
        expect(page.get_by_label("Token")).to_be_visible()


def hostile() -> v.Frame:
    first, second, *others = sample.nodes(12)
    names = msgspec.structs.replace(
        first,
        key=f"NodeClaim/{TAG}",
        name=TAG,
        zone=TAG,
        pool=TAG,
        phase=TAG,
        because=TAG * 50,
        instance_type=TAG,
    )
    # A megabyte, an override of the direction of text, and a name that is code as a link.
    large = msgspec.structs.replace(
        second, because="x" * 1_000_000, next="\u202egnp.exe", pool="javascript:alert(1)"
    )
    return msgspec.structs.replace(
        sample.framed((names, large, *others)), cluster=TAG, notes=(TAG,)
    )


def test_what_the_cluster_says_is_text(page: Page) -> None:
    with serving(hostile()) as server:
        for view in ("fleet", f"fleet/NodeClaim/{TAG}", "timeline", "calendar", "why", "events"):
            page.goto(f"{server.url}#/{view}")
            expect(page.get_by_role("heading", level=1)).to_be_attached()
            assert page.locator("main img, main script").count() == 0
            assert "harmed" not in page.title().replace(TAG, "")
        page.goto(server.url)
        expect(page.locator("button.cell")).to_have_count(12)
        expect(page.get_by_label("What you have to know")).to_contain_text(TAG)
        scheme = "a[href]:not([href^='#'])"
        assert page.locator(scheme).count() == 0, "links stay in the page"
