"""The pictures of the page in the docs. ``TENURE_PICTURES=write`` keeps those that are drawn."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from docs import site
from tenure.dashboard.fleet.values import Tone
from tests.dashboard.browser.conftest import HEIGHT, WIDTH
from tests.dashboard.browser.standin import StandIn

#: A picture without text or style is smaller.
SMALLEST = 40_000


def arranged(page: Page, cluster: StandIn, name: str) -> None:
    waiting = next(one for one in cluster.frame.nodes if one.tone is Tone.WAITING)
    place = {"fleet": f"fleet/{waiting.key}", "why": f"why/{waiting.key}"}.get(name, name)
    page.goto(f"{cluster.url}#/{place}")
    match name:
        case "fleet":
            expect(page.get_by_role("region", name="Lane")).to_be_visible()
        case "timeline":
            page.get_by_role("combobox", name="Show").select_option("Since the start, 24 h ahead")
            expect(page.get_by_role("list", name="Windows and budgets")).to_be_visible()
        case "calendar":
            expect(page.get_by_role("region", name="Two weeks")).to_be_visible()
        case _:
            expect(page.get_by_role("article")).to_be_visible()


@pytest.mark.parametrize("name", ["fleet", "timeline", "calendar", "why"])
def test_a_view_as_the_docs_show_it(
    page: Page, cluster: StandIn, tmp_path: Path, name: str
) -> None:
    arranged(page, cluster, name)
    drawn = page.screenshot(path=tmp_path / "drawn.png")
    assert struct.unpack(">II", drawn[16:24]) == (WIDTH, HEIGHT)
    assert len(drawn) > SMALLEST
    kept = site.PICTURES / f"page-{name}.png"
    if os.environ.get("TENURE_PICTURES") == "write":
        kept.write_bytes(drawn)
    assert struct.unpack(">II", kept.read_bytes()[16:24]) == (WIDTH, HEIGHT)
