"""The tour of the README: board and page of a running ``tenure up``, each picture after what it shows is there.

``TENURE_PICTURES=write`` keeps the film.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.dom import minidom

import pytest
from playwright.sync_api import Browser, Page, expect

from docs import tour
from docs.board_picture import picture_of
from tenure.cli.board.live import LiveCluster
from tenure.dashboard.board.app import Board
from tests.dashboard.board.frames import screen_text
from tests.dashboard.browser.drifting import PATIENCE, drifting
from tests.up.running import Up
from tests.up.test_board import chosen

#: GitHub shows it while it loads.
SIZE_MAX = 900 * 1024
QUALITY = 62
#: To the first of the second pool.
DRIFTED = ("down",) * 6


def shot(page: Page, says: str) -> tour.Shot:
    return tour.Shot(says, page.screenshot(type="jpeg", quality=QUALITY))


def drawn_board(kubeconfig: Path, *keys: str, shows: str) -> str:
    """The board as an SVG, once it shows that."""

    async def draw() -> str:
        board = Board(LiveCluster(chosen(kubeconfig)))
        async with board.run_test(size=(118, 32)) as pilot:
            deadline = time.monotonic() + PATIENCE / 1000
            while "drifted" not in screen_text(board) or "price unknown" in screen_text(board):
                assert time.monotonic() < deadline, screen_text(board)
                await pilot.pause(0.05)
            await pilot.press(*keys)
            while shows not in screen_text(board):
                assert time.monotonic() < deadline, screen_text(board)
                await pilot.pause(0.05)
            return picture_of(board)

    with ThreadPoolExecutor(1) as beside:  # Playwright has a loop of its own in this thread.
        return beside.submit(asyncio.run, draw()).result()


def shots(page: Page, up: Up, address: str) -> list[tour.Shot]:
    found = []
    for says, keys, shows in (
        ("tenure board: every node, its reason, and what happens next", DRIFTED, "drifted"),
        ("e: why the selected node is in its state", (*DRIFTED, "e"), "verdict"),
    ):
        svg = drawn_board(up.kubeconfig, *keys, shows=shows)
        page.set_content(f'<body style="margin:0;background:#1c2430">{svg}</body>')
        found.append(shot(page, says))
    page.goto(address)
    cells = page.get_by_role("button", name=re.compile("^general-.*, drifted"))
    expect(cells.first).to_be_visible(timeout=PATIENCE)
    found.append(shot(page, "The page: the fleet by NodePool and zone, and what it costs"))
    cells.first.click()
    panel = page.get_by_role("complementary")
    expect(panel).to_contain_text("is allowed by MaintenanceWindow nights only")
    found.append(shot(page, "A node: why it has not gone, and what blocks it"))
    panel.get_by_role("link", name="Why?").click()
    expect(page.get_by_role("region", name="What to change")).to_be_visible(timeout=PATIENCE)
    found.append(shot(page, "Why, until when, and what to change"))
    for view, says in (
        ("timeline", "The life of each node, and what lies ahead"),
        ("calendar", "Which nodes go tonight, and what cannot finish in time"),
    ):
        page.goto(f"{address}#/{view}")
        region = "The next 24 hours" if view == "calendar" else None
        if region:
            expect(page.get_by_role("region", name=region)).to_contain_text(
                "general", timeout=PATIENCE
            )
        else:
            lanes = page.get_by_role("img", name=re.compile("^general-.*: .*drifted from"))
            expect(lanes.first).to_be_visible(timeout=PATIENCE)
            ahead = page.get_by_role("list", name="Windows and budgets")
            expect(ahead).to_be_visible(timeout=PATIENCE)
        found.append(shot(page, says))
    return found


@pytest.mark.xdist_group("tour")
def test_a_tour_of_board_and_page_is_recorded_from_tenure_up(
    chromium: Browser, tmp_path: Path
) -> None:
    with drifting(tmp_path) as (up, address):
        page = chromium.new_page(viewport={"width": tour.WIDTH, "height": tour.HEIGHT - tour.LINE})
        film = tour.film(shots(page, up, address))
        page.close()
    minidom.parseString(film)  # noqa: S318  # our own words
    assert film.count("<image ") == 7
    assert len(film) < SIZE_MAX
    if os.environ.get("TENURE_PICTURES") == "write":
        tour.FILE.write_text(film, encoding="utf-8")


def test_the_tour_of_the_readme_loads_nothing_and_runs_nothing() -> None:
    text = tour.FILE.read_text(encoding="utf-8")
    assert "<script" not in text
    assert set(re.findall(r"https?://[^\s\"')<]+", text)) == {"http://www.w3.org/2000/svg"}
    assert text.count('<g class="frame ') == 7
    assert tour.FILE.stat().st_size < SIZE_MAX
