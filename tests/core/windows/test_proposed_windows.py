"""The windows of the proposal work as they are written there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from tenure.core.windows.parsed import ParsedWindow, parse_window
from tenure.core.windows.status import WindowDecider
from tenure.core.windows.windows import closed_by
from tenure.model.api.names import NODEPOOL, PROVISIONER_NAME, ZONE
from tenure.model.api.resource import MAINTENANCE_WINDOWS
from tenure.model.api.window import MaintenanceWindow
from tenure.parse.yamltext import Document, read_documents
from tenure.schema.manifest import check_manifest
from tenure.schema.structure.crd import CUSTOM_KINDS
from tenure.sim.world import World
from tests.core.build import a_node, a_window, body_of, evaluated
from tests.core.minutes import Recurring, periods
from tests.folders import ROOT
from tests.kube.reviews import a_review, admission

WRITTEN = read_documents(ROOT / "tests" / "data" / "proposed-windows.yaml")
PARSED = {
    document.value["metadata"]["name"]: parse_window(
        msgspec.convert(document.value, MaintenanceWindow)
    )
    for document in WRITTEN
}
DRIFT = frozenset({"Drift"})
ZONE_A = {ZONE: "us-west-2a"}
BILLED = {**ZONE_A, "company.name/billing-label": "team-b"}
#: The proposal writes "amd" where Kubernetes says "amd64": such a Node is made up.
AMD = {NODEPOOL: "default", "kubernetes.io/arch": "amd"}


def at(day: int, hour: int, minute: int = 0) -> datetime:
    """January 2026; the 5th is a Monday."""
    return datetime(2026, 1, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize("document", WRITTEN, ids=lambda one: one.value["metadata"]["name"])
def test_the_schema_accepts_it_and_it_is_understood(document: Document) -> None:
    assert check_manifest(document.value, CUSTOM_KINDS) == []
    assert PARSED[document.value["metadata"]["name"]].problem == ""


@pytest.mark.parametrize("document", WRITTEN, ids=lambda one: one.value["metadata"]["name"])
def test_webhook_and_api_store_it_as_it_is_written(document: Document) -> None:
    _, reviewed = admission().answer(a_review(document.value), at(5, 0))
    assert reviewed.problems == ()
    with World() as world:
        stored = world.apply(document.value)
        assert {**stored["spec"], **document.value["spec"]} == stored["spec"]
        world.run(timedelta(seconds=5))
        window = world.store.get(MAINTENANCE_WINDOWS, "", document.value["metadata"]["name"])
    (valid,) = (one for one in window["status"]["conditions"] if one["type"] == "Valid")
    assert valid["status"] == "True"


@pytest.mark.parametrize("document", WRITTEN, ids=lambda one: one.value["metadata"]["name"])
def test_it_is_active_when_the_oracle_says(document: Document) -> None:
    hours = [
        Recurring(one["cron"], timedelta(hours=int(one["duration"].removesuffix("h"))))
        for one in document.value["spec"].get("schedules", ())
    ]
    window, end = PARSED[document.value["metadata"]["name"]], at(31, 0)
    expected = periods(hours, at(1, 0), end)
    for minute in range((end - at(1, 0)) // timedelta(minutes=1)):
        now = at(1, 0) + minute * timedelta(minutes=1)
        assert window.phase(now).on is (not hours or expected.active(now)), now


@pytest.mark.parametrize(
    ("name", "labels", "now", "until"),
    [
        pytest.param("nights", ZONE_A, at(5, 6), at(5, 7), id="an hour in the morning"),
        pytest.param("nights", ZONE_A, at(5, 18, 59), at(5, 19), id="ten hours of the day"),
        pytest.param("disable-everything", {}, at(5, 3), None, id="always"),
        pytest.param("critical", BILLED, at(9, 16, 59), at(9, 17), id="Friday"),
        pytest.param("nights-spot-amd", AMD, at(9, 17), at(12, 9), id="Friday until Monday"),
        pytest.param("nights-spot-amd", AMD, at(11, 12), at(12, 9), id="Sunday is day 7"),
    ],
)
def test_it_blocks_until_its_end(
    name: str, labels: dict[str, str], now: datetime, until: datetime | None
) -> None:
    found = closed_by([PARSED[name]], a_node("n1", labels=labels), DRIFT, now)
    assert found is not None
    assert found.opens_at == until


@pytest.mark.parametrize(
    ("name", "labels", "now"),
    [
        pytest.param("nights", ZONE_A, at(5, 8), id="between two schedules"),
        pytest.param("nights", {ZONE: "us-west-2b"}, at(5, 6), id="another zone"),
        pytest.param("critical", ZONE_A, at(9, 12), id="no billing team"),
        pytest.param("critical", BILLED, at(10, 12), id="Saturday"),
        pytest.param("nights-spot-amd", AMD, at(12, 9), id="working hours"),
        pytest.param("nights-spot-amd", AMD | {NODEPOOL: "other"}, at(11, 12), id="another pool"),
    ],
)
def test_it_blocks_nothing(name: str, labels: dict[str, str], now: datetime) -> None:
    assert closed_by([PARSED[name]], a_node("n1", labels=labels), DRIFT, now) is None


def by_pool(operator: str, *values: str) -> MaintenanceWindow:
    expression = {"key": PROVISIONER_NAME, "operator": operator, "values": list(values)}
    spec = {"actions": ["Drift"], "selector": {"matchExpressions": [expression]}}
    return a_window(spec=spec)


def test_the_label_of_provisioners_means_the_label_of_the_pool() -> None:
    def covers(window: ParsedWindow) -> bool:
        # The old label itself, where a Node still has it, says nothing.
        return window.covers({NODEPOOL: "general", PROVISIONER_NAME: "other"})

    assert covers(parse_window(by_pool("In", "general")))
    assert covers(parse_window(by_pool("NotIn", "other")))
    assert covers(parse_window(by_pool("Exists")))
    assert not covers(parse_window(by_pool("In", "other")))
    assert not covers(parse_window(by_pool("DoesNotExist")))


def test_the_status_counts_the_nodes_of_that_pool() -> None:
    nodes = [a_node(name, labels={NODEPOOL: pool}) for name, pool in (("a", "x"), ("b", "y"))]
    (verdict,) = evaluated(WindowDecider(), by_pool("In", "x"), *nodes)
    assert body_of(verdict)["status"]["nodesMatched"] == 1
