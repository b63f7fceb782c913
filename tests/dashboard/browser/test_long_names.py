"""Long names: what tells nodes of one pool apart is seen, and nothing beside a name is squeezed."""

from __future__ import annotations

import re

import msgspec
import pytest
from playwright.sync_api import Page, expect

from tenure.dashboard.fleet.values import BlockerView, NodeView
from tests.dashboard.browser import sample
from tests.dashboard.browser.standin import StandIn

POOL = "payments-critical-with-a-rather-long-name-in-europe-west-four"
PDB = BlockerView(
    subject="PodDisruptionBudget/default/pay", message="PDB default/pay allows none", lasting=True
)


def renamed(view: NodeView, number: int) -> NodeView:
    name = f"{POOL}-abcd{number}"
    blockers = (PDB, PDB, *view.blockers)
    return msgspec.structs.replace(
        view, key=f"NodeClaim/{name}", name=name, pool=POOL, blockers=blockers
    )


@pytest.fixture
def cluster() -> StandIn:
    found = [view for view in sample.nodes(40) if view.key.startswith("NodeClaim/")][:4]
    views = tuple(renamed(view, number) for number, view in enumerate(found))
    return StandIn(sample.framed(views))


def test_the_end_of_each_lanes_name_is_seen(page: Page, cluster: StandIn) -> None:
    with cluster:
        page.goto(f"{cluster.url}#/timeline")
        for number in range(4):
            link = page.get_by_role("link", name=f"{POOL}-abcd{number}", exact=True).last
            expect(link).to_be_visible()
            end = link.get_by_text(f"-abcd{number}", exact=True)
            assert end.evaluate("one => one.scrollWidth <= one.clientWidth + 1")
            box, around = end.bounding_box(), link.bounding_box()
            assert box is not None
            assert around is not None
            assert box["x"] + box["width"] <= around["x"] + around["width"] + 1


@pytest.mark.parametrize("width", [1360, 390])
def test_its_panel_keeps_the_button_and_says_once_what_blocks(
    page: Page, cluster: StandIn, width: int
) -> None:
    with cluster:
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(cluster.url)
        page.get_by_role("button", name=re.compile(f"^{POOL}-abcd0")).click()
        panel = page.get_by_role("complementary")
        close = panel.get_by_role("button", name="Close").bounding_box()
        assert close is not None
        assert close["height"] < 45, "one line"
        said = panel.get_by_role("region", name="Blockers")
        expect(said.get_by_text("PDB default/pay allows none")).to_have_count(1)
        expect(said).to_contain_text("(2 pods)")
