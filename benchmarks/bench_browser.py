"""What the page costs a browser: 1,000 nodes with 20,000 pods, from the address to all cells, and from a change to what is seen.

The server of the tests sends the frames; what a real one needs to make them is measured by ``page``. An update is counted from
the change in the cluster, at the worst: right after a frame was made, so that it waits for the next one.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.figures import Figure, Figures
from docs import site
from tenure.dashboard.fleet import values as v
from tenure.dashboard.web.feed import EVERY
from tests.dashboard.browser import sample
from tests.dashboard.browser.conftest import FLAGS, HEIGHT, WIDTH
from tests.dashboard.browser.standin import StandIn, serving

NODES: Final = 1000
PODS_EACH: Final = 20
#: Nodes that differ at once, as often as the server sends changes.
CHANGED, CHANGES = 100, 5
#: Seconds, and mebibytes of the process that shows the page: the script's heap is a part of them.
FIRST_PAINT_MAX, UPDATE_MAX, MEMORY_MAX = 2.0, 1.0, 200.0


def measure() -> Figures:
    program = site.browser()
    assert program is not None, "there is no Chromium on this computer: run make browser"
    crowded = tuple(msgspec.structs.replace(one, pods=PODS_EACH) for one in sample.nodes(NODES))
    with serving(sample.framed(crowded, pending=100)) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        paint = _first_paint(page, server)
        update = median(_update(page, server, number) for number in range(CHANGES))
        timeline = _view(page, server, "timeline", ".row")
        heap, memory = _heap(page), _memory(browser)
        browser.close()
    return Figures(
        title=f"The page, {NODES} nodes, {NODES * PODS_EACH} pods",
        relative=(
            Figure(
                what="memory of the page's process", value=memory, unit=" MiB", limit=MEMORY_MAX
            ),
            Figure(what="JavaScript heap", value=heap, unit=" MiB"),
        ),
        absolute=(
            Figure(what="first paint of all nodes", value=paint, unit="s", limit=FIRST_PAINT_MAX),
            Figure(
                what=f"update of {CHANGED} nodes, at the worst",
                value=EVERY + update,
                unit="s",
                limit=UPDATE_MAX,
            ),
            Figure(what="timeline, from its link", value=timeline, unit="s", limit=FIRST_PAINT_MAX),
        ),
    )


def _first_paint(page: Page, server: StandIn) -> float:
    page.goto("about:blank")
    began = time.perf_counter()
    page.goto(server.url)
    page.locator("button.cell").nth(NODES - 1).wait_for()
    return time.perf_counter() - began


def _update(page: Page, server: StandIn, number: int) -> float:
    """From the server's sending to the last of the cells, drawn."""
    phase = f"draining {number}"
    some = [
        msgspec.structs.replace(one, tone=v.Tone.LEAVING, phase=phase)
        for one in server.frame.nodes[:CHANGED]
    ]
    began = time.perf_counter()
    server.change(*some)
    page.get_by_role("button", name=f"{some[-1].name}, {phase}").wait_for()
    return time.perf_counter() - began


def _view(page: Page, server: StandIn, view: str, shown: str) -> float:
    began = time.perf_counter()
    page.goto(f"{server.url}#/{view}")
    page.locator(shown).first.wait_for()
    return time.perf_counter() - began


def _memory(browser: Browser) -> float:
    """What the process of the page has for itself, and its share of what it has in common with others."""
    told: dict[str, Any] = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
    pages = [one["id"] for one in told["processInfo"] if one["type"] == "renderer"]
    return max(map(_proportional, pages)) / 2**10


def _proportional(pid: int) -> int:
    """Kibibytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _heap(page: Page) -> float:
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    found: dict[str, Any] = session.send("Performance.getMetrics")
    (used,) = (one["value"] for one in found["metrics"] if one["name"] == "JSHeapUsedSize")
    return float(used) / 2**20
