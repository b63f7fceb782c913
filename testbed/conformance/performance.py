"""``make conformance-performance``: Karpenter's performance suite against ``tenure run``.

Each spec has a cluster of its own. What the suite measures of each phase (nodes, seconds, processor, memory) is kept in
``performance.json``, and ``docs/conformance.md`` shows it. The suite's thresholds are Karpenter's; only the one for the
heap is raised, because here the resident memory is counted.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from docs.conformance_page import write_page
from testbed.conformance.__main__ import LOGS, SIGN
from testbed.conformance.cluster import TENURE, cluster
from testbed.conformance.expectations import Expected, Rule
from testbed.conformance.overlay import METRICS
from testbed.conformance.report import Outcome, Spec
from testbed.conformance.specs import Catalogue, catalogue
from testbed.conformance.suites import PERFORMANCE, Suites, built_performance
from testbed.conformance.trial import trial
from testbed.controlplane import ControlPlane
from testbed.karpentersource import pin

Json = dict[str, Any]
FILE: Final = Path(__file__).with_name("performance.json")
LIMIT: Final = timedelta(minutes=60)
REPORT: Final = "_performance_report.json"
#: What is kept of the suite's report on a phase.
KEPT: Final = (
    "total_pods",
    "total_nodes",
    "pods_disrupted",
    "total_reserved_cpu_utilization",
    "total_reserved_memory_utilization",
    "karpenter_avg_cpu_cores",
    "karpenter_max_memory_mb",
)
NANOSECONDS: Final = 1e9
#: By which the suite takes other thresholds than those in its text.
THRESHOLDS: Final = "KARPENTER_PERF_THRESHOLDS"
_HEAP: Final = re.compile(r'HeapThreshold\("([^"]+)", ([0-9.]+)\)')
#: MB of resident memory that are not live heap: of Python, its modules and what it keeps for later.
BESIDE_HEAP: Final = 100


def run(spec: Spec, suites: Suites, listed: Catalogue, limit: timedelta) -> Json:
    """One spec on a cluster of its own; what is kept of it."""
    folder = LOGS / PERFORMANCE / re.sub(r"[^a-z0-9]+", "-", spec.name.lower())[:100]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rule = Rule(PERFORMANCE, spec.name, Expected.PASSES, "", limit, timedelta(0))
    with (
        tempfile.TemporaryDirectory() as scratch,
        cluster(suites, TENURE, Path(scratch)) as plane,
    ):
        told = {METRICS: _metrics(plane), THRESHOLDS: raised(suites.folder(PERFORMANCE))}
        focus = listed.focus(spec)
        outcome = trial(spec, rule, focus, suites, plane.kubeconfig, folder, **told)
        (folder / "tenure.log").write_text(plane.log(TENURE))
    print(f"performance: {spec.name}: {SIGN[outcome.state]} {outcome.complaint}", flush=True)
    return _entry(spec, outcome, [phase_of(path) for path in _reports(folder)])


def raised(folder: Path) -> str:
    """The suite's thresholds for the heap, for the resident memory."""
    found = {
        key: {"heap_mb": float(megabytes) + BESIDE_HEAP}
        for path in sorted(folder.glob("*_test.go"))
        for key, megabytes in _HEAP.findall(path.read_text(encoding="utf-8"))
    }
    return json.dumps(found)


def _reports(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{REPORT}"), key=lambda path: path.stat().st_mtime)


def _metrics(plane: ControlPlane) -> str:
    """Where Tenure serves its metrics: any free port, which its log names."""
    for line in plane.log(TENURE).splitlines():
        if '"metricsPort"' in line:
            return f"http://127.0.0.1:{json.loads(line)['metricsPort']}/metrics"
    raise AssertionError("Tenure does not say where it serves metrics")


def phase_of(path: Path) -> Json:
    report = json.loads(path.read_text(encoding="utf-8"))
    kept = {key: round(report[key], 3) for key in KEPT}
    name = path.name.removesuffix(REPORT)
    return {"phase": name, "seconds": round(report["total_time"] / NANOSECONDS), **kept}


def _entry(spec: Spec, outcome: Outcome, phases: list[Json]) -> Json:
    day = datetime.now(UTC).date().isoformat()
    state = {"state": str(outcome.state), "seconds": round(outcome.seconds), "day": day}
    complaint = {"complaint": outcome.complaint} if outcome.complaint else {}
    return {"spec": spec.name, **state, **complaint, "phases": phases}


def keep(entry: Json) -> None:
    """Results and page, both in the checkout."""
    known = json.loads(FILE.read_text(encoding="utf-8"))["specs"] if FILE.exists() else []
    others = [one for one in known if one["spec"] != entry["spec"]]
    specs = sorted([*others, entry], key=lambda one: str(one["spec"]))
    document = {"karpenter": pin().version, "specs": specs}
    FILE.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    write_page()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make conformance-performance", allow_abbrev=False)
    parser.add_argument("--focus", default="", metavar="PATTERN", help="only specs that it matches")
    parser.add_argument("--limit", type=int, default=60, metavar="MINUTES", help="for each spec")
    parser.add_argument("--list", action="store_true", help="say what would run")
    wanted = parser.parse_args(arguments)
    suites = built_performance()
    listed = catalogue(suites, (PERFORMANCE,))
    chosen = [spec for spec in listed.specs if re.search(wanted.focus, spec.name)]
    began, passed = time.monotonic(), 0
    for spec in chosen:
        print(f"performance: {spec.name}", flush=True)
        if not wanted.list:
            entry = run(spec, suites, listed, timedelta(minutes=wanted.limit))
            passed += entry["state"] == "passed"
            keep(entry)
    if wanted.list:
        return 0
    minutes = (time.monotonic() - began) / 60
    print(f"performance: {passed} of {len(chosen)} passed in {minutes:.0f} minutes")
    return 0 if passed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
