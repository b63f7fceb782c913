"""promtool, built from its module, reads the rules, and finds that each alert fires when it should and not else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from docs.monitoring.alerts import ALERTS
from docs.monitoring.rules import unit_tests
from testbed.binaries import Missing, found
from tests.folders import ROOT

RULES = ROOT / "charts" / "tenure" / "files" / "rules.yaml"


def no_promtool() -> bool:
    try:
        found(["promtool"])
    except Missing:
        return True
    return False


pytestmark = pytest.mark.skipif(no_promtool(), reason="no promtool: `make bed ARGS=promtool`")


def promtool(*arguments: str) -> str:
    done = subprocess.run(  # noqa: S603  # our own words
        [str(found(["promtool"])["promtool"]), *arguments],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_understands_the_rules() -> None:
    assert f"SUCCESS: {len(ALERTS)} rules found" in promtool(
        "check", "rules", "--lint=all", str(RULES)
    )


def test_each_alert_fires_for_its_series_and_is_quiet_for_the_others(tmp_path: Path) -> None:
    tests = tmp_path / "tests.yaml"
    tests.write_text(yaml.safe_dump(unit_tests(str(RULES)), sort_keys=False))
    assert "SUCCESS" in promtool("test", "rules", str(tests))


def test_an_alert_that_never_fires_is_noticed(tmp_path: Path) -> None:
    """That the test above can fail."""
    dull = tmp_path / "rules.yaml"
    dull.write_text(RULES.read_text().replace("tenure_second_tenure", "tenure_second_nothing"))
    tests = tmp_path / "tests.yaml"
    tests.write_text(yaml.safe_dump(unit_tests(str(dull)), sort_keys=False))
    with pytest.raises(AssertionError, match="TenureTwoModes"):
        promtool("test", "rules", str(tests))


_A, _B = ('cluster="a",namespace="t",job="t"', 'cluster="b",namespace="t",job="t"')
_BUILD = 'tenure_build_info{@,version="1",python="3.12"}'
#: Series of several clusters and replicas, and of which clusters an alert fires.
_SEVERAL: dict[str, tuple[str, dict[str, str], set[str]]] = {
    "of two clusters one is gone": (
        "TenureDown",
        {_BUILD.replace("@", _A): "1x120", _BUILD.replace("@", _B): "1x20 stale"},
        {"b"},
    ),
    "each of two clusters has a leader": (
        "TenureTwoLeaders",
        {f"tenure_leader{{{_A}}}": "1x120", f"tenure_leader{{{_B}}}": "1x120"},
        set(),
    ),
    "two replicas of one cluster lead": (
        "TenureTwoLeaders",
        {f'tenure_leader{{{_A},pod="{one}"}}': "1x120" for one in "xy"},
        {"a"},
    ),
    "of two clusters one has no leader": (
        "TenureNoLeader",
        {
            **{f'tenure_leader{{{_A},pod="{one}"}}': "0x120" for one in "xy"},
            f'tenure_leader{{{_B},pod="x"}}': "1x120",
            f'tenure_leader{{{_B},pod="y"}}': "0x120",
        },
        {"a"},
    ),
    "pods keep coming, and none waits for long": (
        "TenurePodsWait",
        {
            f'karpenter_scheduler_queue_depth{{{_A},controller="provisioner"}}': "3x120",
            f"tenure_pods_waiting_oldest_seconds{{{_A}}}": "90x120",
        },
        set(),
    ),
    "one pod has waited all the time, as both replicas see": (
        "TenurePodsWait",
        {
            f'tenure_pods_waiting_oldest_seconds{{{_A},pod="{one}"}}': "0+60x120" for one in "xy"
        },
        {"a"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("alert", "series", "clusters"), _SEVERAL.values(), ids=_SEVERAL.keys())
def test_alerts_tell_clusters_and_replicas_apart(
    alert: str, series: dict[str, str], clusters: set[str], tmp_path: Path
) -> None:
    firing = f'count by (cluster) (ALERTS{{alertname="{alert}",alertstate="firing"}})'
    samples = [{"labels": f'{{cluster="{one}"}}', "value": 1} for one in sorted(clusters)]
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": firing, "eval_time": "75m", "exp_samples": samples}],
    }
    tests = tmp_path / "tests.yaml"
    told = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}
    tests.write_text(yaml.safe_dump(told, sort_keys=False))
    assert "SUCCESS" in promtool("test", "rules", str(tests))


#: Alerts on what has happened within an hour. A series of a counter with labels begins at its first event, with 1.
_FIRST_EVENTS = {
    "TenureRebootsFail": ('karpenter_nodes_reboots_total{@,result="failed"}', "_x20 1x60"),
    "TenureNoticesLate": ('tenure_notices_total{@,message_type="a",outcome="late"}', "_x20 1x60"),
    "TenureReplacementsFail": (
        'karpenter_voluntary_disruption_queue_failures_total{@,decision="replace",reason="drifted"}',
        "_x20 3x60",
    ),
    "TenureNodesTimeOut": (
        'karpenter_nodeclaims_disrupted_total{@,nodepool="p",reason="registration_timeout"}',
        "_x20 3x60",
    ),
}


@pytest.mark.parametrize("alert", _FIRST_EVENTS)
def test_the_first_event_of_a_series_counts(alert: str, tmp_path: Path) -> None:
    series, values = _FIRST_EVENTS[alert]
    place = 'namespace="tenure",job="tenure",instance="a"'
    test = {
        "interval": "30s",
        "input_series": [{"series": series.replace("@", place), "values": values}],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})',
                "eval_time": "30m",
                "exp_samples": [{"labels": "{}", "value": 1}],
            }
        ],
    }
    tests = tmp_path / "tests.yaml"
    told = {"rule_files": [str(RULES)], "evaluation_interval": "30s", "tests": [test]}
    tests.write_text(yaml.safe_dump(told, sort_keys=False))
    assert "SUCCESS" in promtool("test", "rules", str(tests))
