"""A Prometheus that scrapes a running Tenure understands every query of the dashboard, and every alert."""

from __future__ import annotations

import asyncio
from pathlib import Path

from docs.monitoring.alerts import ALERTS
from docs.monitoring.panels import ROWS
from docs.monitoring.queries import highest
from tenure.model.api.resource import NODE_CLAIMS
from tenure.runtime.telemetry import metricnames as m
from testbed.controlplane import ControlPlane
from tests.builders import a_deployment, a_node_class, a_pool
from tests.real.account import NAMESPACE, account
from tests.real.process import Process, tenure_run
from tests.real.prometheus import Prometheus, prometheus
from tests.real.users import Users, is_true, users_at

FLAGS = (f"--leader-election-namespace={NAMESPACE}",)
#: Not understood: its cron names an hour that no day has.
WINDOW = {
    "apiVersion": "karpenter.sh/v1alpha1",
    "kind": "MaintenanceWindow",
    "metadata": {"name": "nightly"},
    "spec": {
        "actions": ["Drift"],
        "schedules": [{"cron": "0 3 * * *", "duration": "1h", "timeZone": "Nowhere/At_All"}],
    },
}
#: Panels that have series once a node has come, whatever else happens.
ALIVE = (
    "Acts",
    "Nodes and claims",
    "Pods that wait for nodes",
    "What a pool provides",
    "Nodes that budgets allow, and that use them",
    "Claims created in an hour",
    "Nodes registered in an hour",
    "A turn",
    "Requests to the API server a second",
    "Watches",
    "Version",
)


def test_prometheus_reads_what_the_chart_ships_about_a_running_tenure(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    asyncio.run(_scraped(cluster, tmp_path))


async def _scraped(cluster: ControlPlane, folder: Path) -> None:
    async with users_at(cluster, "watched") as users:
        with tenure_run(account(cluster), folder, *FLAGS) as tenure:
            tenure.until_leading()
            await _a_node_comes(users)
            port = tenure.until_said("serving")["metricsPort"]
            with prometheus(folder, port) as scraping:
                scraping.until_up()
                _panels_have_series(scraping)
                _every_query_is_understood(scraping)
                _rules_are_healthy(scraping)
                await _an_alert_begins(scraping, users, tenure)


async def _a_node_comes(users: Users) -> None:
    await users.apply(a_node_class(), a_pool(), a_deployment("web", replicas=2, cpu="500m"))
    await users.until(NODE_CLAIMS, lambda claims: any(map(is_true("Ready"), claims)), "Ready")


def _panels_have_series(scraping: Prometheus) -> None:
    """Rates need two scrapes."""
    queries = {panel.title: panel.queries for row in ROWS for panel in row.panels}
    for title in ALIVE:
        for query, _ in queries[title]:
            assert scraping.until_some(query), title


def _every_query_is_understood(scraping: Prometheus) -> None:
    for row in ROWS:
        for panel in row.panels:
            for query, _ in panel.queries:
                scraping.value(query)
    known = scraping.names()
    assert {m.LEADER.name, m.POOL_USAGE.name, f"{m.TURN.name}_bucket"} <= known


def _rules_are_healthy(scraping: Prometheus) -> None:
    scraping.until_some(highest(m.LEADER))
    rules = [rule for group in scraping.asked("/api/v1/rules")["groups"] for rule in group["rules"]]
    assert [rule["name"] for rule in rules] == [alert.name for alert in ALERTS]
    assert not [rule for rule in rules if rule.get("lastError")]
    quiet = {"TenureDown", "TenureNoLeader", "TenureNotSynced", "TenureEvaluationsFail"}
    assert not [rule for rule in rules if rule["name"] in quiet and rule["state"] != "inactive"]


async def _an_alert_begins(scraping: Prometheus, users: Users, tenure: Process) -> None:
    await users.apply(WINDOW)
    tenure.until_said("verdict", reason="WindowInvalid")
    pending = 'ALERTS{alertname="TenureWindowUnreadable", alertstate="pending"}'
    (series,) = scraping.until_some(pending)
    assert series["metric"]["window"] == "nightly"
