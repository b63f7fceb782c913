"""What an operator asks, answered from visible text and roles alone."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tenure.dashboard.fleet.values import Tone
from tests.dashboard.browser import sample
from tests.dashboard.browser.standin import StandIn, serving


def drifted(cluster: StandIn) -> list[str]:
    return [one.name for one in cluster.frame.nodes if one.tone is Tone.WAITING]


def test_which_nodes_will_go_tonight(page: Page, cluster: StandIn) -> None:
    page.goto(cluster.url)
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Calendar").click()
    tonight = page.get_by_role("region", name="The next 24 hours")
    expect(tonight).to_contain_text(f"{len(drifted(cluster))} nodes are disrupted")
    for name in drifted(cluster):
        expect(tonight.get_by_role("link", name=name)).to_be_visible()
    expect(tonight).to_contain_text("22:00:00Z (in 1h")


def test_why_a_node_has_not_gone(page: Page, cluster: StandIn) -> None:
    name = drifted(cluster)[0]
    page.goto(cluster.url)
    page.get_by_role("button", name=f"{name}, drifted").click()
    panel = page.get_by_role("complementary", name=f"Node NodeClaim/{name}")
    blockers = panel.get_by_role("region", name="Blockers")
    expect(blockers).to_contain_text(sample.PDB_SAYS)
    panel.get_by_role("link", name="Why?").click()
    answer = page.get_by_role("article", name=f"NodeClaim/{name}")
    expect(answer).to_contain_text("DisruptionBlocked")
    expect(answer).to_contain_text(sample.BUDGET)
    expect(answer.get_by_role("region", name="What to change")).to_be_visible()
    printed = answer.locator("pre")
    expect(printed).to_be_hidden()
    answer.get_by_text("As tenure explain prints it").click()
    expect(printed).to_contain_text("DisruptionBlocked: drifted")
    answer.get_by_role("link", name=sample.BUDGET).click()
    expect(page.get_by_role("article", name=sample.BUDGET)).to_contain_text(sample.PDB_SAYS)


def test_only_kinds_that_have_an_explanation_are_offered(page: Page) -> None:
    calm = tuple(one for one in sample.nodes(40) if one.tone is Tone.SERVING)
    with serving(sample.framed(calm)) as server:
        page.goto(f"{server.url}#/why")
        expect(page.get_by_role("region", name="What asks for attention")).to_contain_text(
            "Kinds that can be explained: Node, NodeClaim, Pod, NodePool, MaintenanceWindow, NodePoolPolicy, PodDisruptionBudget."
        )


def test_what_it_costs(page: Page, cluster: StandIn) -> None:
    dollars = cluster.frame.totals.price / 1_000_000
    page.goto(cluster.url)
    totals = page.get_by_role("region", name="Totals")
    expect(totals).to_contain_text(f"${dollars:.2f}/h")
    expect(totals).to_contain_text("5 nodes without a known price not counted")
    said = page.get_by_role("img", name=re.compile(r"^Cost an hour over time\. Lowest \$"))
    expect(said).to_be_visible()
    node = next(one for one in cluster.frame.nodes if one.price == 96_000)
    page.get_by_role("button", name=re.compile(f"^{node.name}, ")).click()
    expect(page.get_by_role("complementary")).to_contain_text("$0.0960/h")


def test_what_to_change_so_that_a_pod_gets_a_node(page: Page, cluster: StandIn) -> None:
    page.goto(cluster.url)
    waiting = page.get_by_role("region", name="Pending pods")
    expect(waiting).to_contain_text("no instance type of NodePool batch has 96 CPU")
    waiting.get_by_role("link", name="default/report-0").click()
    change = page.get_by_role("region", name="What to change")
    expect(change).to_contain_text("raise the largest instance type of NodePool batch to 96 CPU")


def test_what_cannot_finish(page: Page, cluster: StandIn) -> None:
    page.goto(f"{cluster.url}#/calendar")
    late = page.get_by_role("region", name="What cannot finish in time")
    expect(late).to_contain_text("5 of 9 nodes due can start until 2026-01-19T20:10:00Z")
    expect(late).to_contain_text("4 nodes become older than expireAfter, by up to 6d")
    expect(late).to_contain_text("allowed by MaintenanceWindow sundays only")


def test_replacements_that_expire_again_are_no_nodes_of_now(page: Page, cluster: StandIn) -> None:
    pools = sample.calendar(cluster.frame.nodes)["pools"]
    (batch,) = (one for one in pools if one["name"] == "batch")
    batch["rotations"][-1] |= {"again": 4, "otherwise": 1}
    cluster.foreseen = {"pools": pools}
    page.goto(f"{cluster.url}#/calendar")
    late = page.get_by_role("region", name="What cannot finish in time")
    expect(late).to_contain_text(
        "5 nodes and 4 replacements that expire again are due; 5 can start until 2026-01-19T20:10:00Z"
    )
    expect(late).to_contain_text("1 starts or waits for another reason")
    pools_table = page.get_by_role("region", name="NodePools", exact=True)
    expect(pools_table).to_contain_text("Expired: 5 nodes and 4 replacements due, 5 start")


def test_columns_of_the_calendar_are_in_plain_words(page: Page, cluster: StandIn) -> None:
    page.goto(f"{cluster.url}#/calendar")
    for table, columns in (
        ("Maintenance windows", ("Window", "Actions", "Nodes", "Now", "Next change")),
        ("NodePools", ("NodePool", "Nodes", "Launch time", "Max disrupted at once")),
    ):
        region = page.get_by_role("region", name=table, exact=True)
        for column in columns:
            expect(region.get_by_role("columnheader", name=column, exact=True)).to_be_visible()


def test_an_object_that_is_not_there_is_said_to_be_missing(page: Page, cluster: StandIn) -> None:
    page.goto(f"{cluster.url}#/why")
    page.get_by_role("textbox", name="Object").or_(
        page.get_by_role("combobox", name="Object")
    ).fill("NodeClaim/gone")
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_role("alert")).to_contain_text("there is no NodeClaim/gone now")


def test_a_view_that_there_is_not_is_said_to_be_missing(page: Page, cluster: StandIn) -> None:
    page.goto(f"{cluster.url}#/nonsense/NodeClaim/a")
    said = page.get_by_role("status").filter(has_text="There is no view")
    expect(said).to_contain_text("“nonsense”. This is the fleet")
    expect(page.get_by_role("heading", level=1)).to_have_text("Fleet")
    page.get_by_role("link", name="Calendar").click()
    expect(said).to_have_count(0)
