"""Alerts and dashboard are made of the table of metrics, all of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from docs.generate import generated
from docs.monitoring.alerts import ALERTS
from docs.monitoring.dashboard import dashboard
from docs.monitoring.panels import LEFT_OUT, ROWS
from docs.monitoring.queries import WrongQuery, highest, increase, like, quantile, rate
from docs.monitoring.rules import anchor
from tenure.runtime.telemetry import metricnames as m
from tests.folders import ROOT

Json = dict[str, Any]
PAGE = ROOT / "docs" / "alerts.md"


def panels() -> Iterator[Json]:
    for panel in json.loads(dashboard())["panels"]:
        yield panel
        yield from panel.get("panels", ())


@pytest.mark.parametrize("metric", m.ALL, ids=lambda metric: metric.name)
def test_every_metric_is_on_the_dashboard_or_left_out_for_a_reason(metric: m.Named) -> None:
    queries = [query for row in ROWS for panel in row.panels for query, _ in panel.queries]
    shown = any(re.search(rf"\b{metric.name}(_bucket|_count)?\b", query) for query in queries)
    assert shown != (metric.name in LEFT_OUT), f"{metric.name}: docs/monitoring/panels.py"


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_has_a_paragraph_that_its_link_leads_to(alert: Any) -> None:
    titles = re.findall(r"^### (\w+)$", PAGE.read_text(), re.M)
    assert anchor(alert.name) in {title.lower() for title in titles}
    assert alert.steps
    assert alert.meaning.endswith(".")


def test_names_of_alerts_are_unique() -> None:
    assert len({alert.name for alert in ALERTS}) == len(ALERTS)


def test_a_query_cannot_ask_for_what_the_table_does_not_have() -> None:
    with pytest.raises(WrongQuery, match="tenure_leader has no label nodepool"):
        highest(m.LEADER, "nodepool")
    with pytest.raises(WrongQuery, match="karpenter_nodes_reboots_total has no label reason"):
        increase(m.REBOOTS, where=like("reason", ".*"))
    with pytest.raises(WrongQuery, match="tenure_leader is a gauge"):
        rate(m.LEADER)
    with pytest.raises(WrongQuery, match="tenure_leader is a gauge, not a histogram"):
        quantile(m.LEADER, 0.5)


def test_no_two_panels_share_a_number_or_a_place() -> None:
    found = list(panels())
    numbers = [panel["id"] for panel in found]
    assert len(set(numbers)) == len(numbers)
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in json.loads(dashboard())["panels"]]
    assert len(set(places)) == len(places)
    assert all(p["gridPos"]["x"] + p["gridPos"]["w"] <= 24 for p in found)


def test_what_is_committed_is_what_the_table_says() -> None:
    for name in ("rules.yaml", "dashboard.json"):
        path = ROOT / "charts" / "tenure" / "files" / name
        assert path.read_text() == generated()[path], "run `make generate`"
