"""The overlay of Karpenter's performance suite, and what is kept of its reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.conformance_page import conformance_page
from testbed.conformance.overlay import EDITS, HELPERS, Changed, write_overlay
from testbed.conformance.performance import KEPT, phase_of, raised


def a_source(folder: Path) -> Path:
    helpers = folder / HELPERS
    helpers.mkdir(parents=True)
    for name, edits in EDITS.items():
        (helpers / name).write_text("package common\n" + "\n".join(old for old, _ in edits))
    return folder


def test_the_overlay_replaces_what_reads_the_pod_and_adds_a_file(tmp_path: Path) -> None:
    source, folder = a_source(tmp_path / "source"), tmp_path / "overlay"
    folder.mkdir()
    replaced = json.loads(write_overlay(source, folder).read_text())["Replace"]
    assert {Path(path).name for path in replaced} == {*EDITS, "process_metrics.go"}
    poller = (folder / "karpenter_metrics_poller.go").read_text()
    assert "metricsOfProcess()" in poller
    assert "ProxyGet" not in poller


def test_another_text_of_the_suite_is_noticed(tmp_path: Path) -> None:
    source = a_source(tmp_path)
    (source / HELPERS / "expectations.go").write_text("package common\n")
    with pytest.raises(Changed):
        write_overlay(source, tmp_path)


def test_a_report_of_the_suite_becomes_aphase_of(tmp_path: Path) -> None:
    report = tmp_path / "scale_out_performance_report.json"
    report.write_text(json.dumps({"total_time": 61_400_000_000, **dict.fromkeys(KEPT, 0.53219)}))
    phase = phase_of(report)
    assert (phase["phase"], phase["seconds"]) == ("scale_out", 61)
    assert phase["karpenter_avg_cpu_cores"] == 0.532


def test_the_page_has_a_section_of_it() -> None:
    assert "## The performance suite" in conformance_page()


def test_only_the_thresholds_for_the_heap_are_raised(tmp_path: Path) -> None:
    spec = 'HeapThreshold("basic/scaleOut", 120) CPUThreshold("basic/scaleOut", 0.50)'
    (tmp_path / "basic_test.go").write_text(spec)
    assert json.loads(raised(tmp_path)) == {"basic/scaleOut": {"heap_mb": 220.0}}
