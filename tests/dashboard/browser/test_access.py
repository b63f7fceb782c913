"""axe-core finds nothing serious in any view, light or dark; and the switch between them works."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tenure.dashboard.fleet.values import Tone
from tests.dashboard.browser import sample
from tests.dashboard.browser.standin import StandIn, serving

VIEWS = (
    "fleet",
    "table",
    "node",
    "timeline",
    "calendar",
    "why",
    "explained",
    "events",
    "lost",
    "token",
)


def show(page: Page, cluster: StandIn, view: str) -> None:
    waiting = next(one for one in cluster.frame.nodes if one.tone is Tone.WAITING)
    place = {"node": f"fleet/{waiting.key}", "explained": f"why/{waiting.key}", "table": "fleet"}
    page.goto(f"{cluster.url}#/{place.get(view, view)}")
    if view == "token":
        expect(page.get_by_label("Token")).to_be_visible()
        return
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    match view:
        case "table":
            page.get_by_role("button", name="Table", exact=True).click()
        case "timeline":
            page.get_by_role("combobox", name="Show").select_option("Since the start, 24 h ahead")
            expect(page.get_by_role("list", name="Windows and budgets")).to_be_visible()
        case "calendar":
            expect(page.get_by_role("region", name="Two weeks")).to_be_visible()
        case "explained":
            expect(page.get_by_role("article")).to_be_visible()
        case "lost":
            cluster.stop()
            expect(page.get_by_role("alert")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_nothing_serious(page: Page, view: str, theme: str) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    with serving(sample.frame(140), token="x" if view == "token" else "") as cluster:
        show(page, cluster, view)
        found = Axe().run(page)
        serious = [
            f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0]['any'][:1]}"
            for one in found.response["violations"]
            if one["impact"] in ("serious", "critical")
        ]
        assert not serious, "\n".join(serious)


def ground(page: Page) -> str:
    said: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return said


def test_dark_and_light_follow_the_system_and_the_switch(page: Page, cluster: StandIn) -> None:
    page.goto(cluster.url)
    light = ground(page)
    page.emulate_media(color_scheme="dark")
    dark = ground(page)
    assert light != dark
    page.get_by_role("button", name="Light").click()
    assert ground(page) == light
    page.reload()
    assert ground(page) == light, "the choice is kept"
    page.emulate_media(color_scheme="light")
    page.get_by_role("button", name="Dark").click()
    assert ground(page) == dark
    page.get_by_role("button", name="Auto").click()
    assert ground(page) == light
