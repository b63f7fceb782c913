"""``make conformance`` without Go and without a cluster: what it reads, expects, keeps and tells."""

from __future__ import annotations

import json
import re
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.conformance_page import conformance_page
from testbed import karpentersource as source
from testbed.conformance import expectations, report, results, trial
from testbed.conformance.__main__ import chosen, theirs
from testbed.conformance.cluster import merged_stages, ports, scheduler_config, shipped_settings
from testbed.conformance.expectations import Expected, Rule, Unknown, surprise
from testbed.conformance.report import Outcome, Spec, State
from testbed.conformance.results import EMPTY, Result, Results
from testbed.conformance.specs import Catalogue
from testbed.conformance.suites import Suites
from testbed.manifests import MANIFEST

Json = dict[str, Any]
SUITE = "sigs.k8s.io/karpenter/test/suites/disruption/reboot_test.go"
HELPER = "sigs.k8s.io/karpenter/test/pkg/environment/common/expectations.go"


def it(text: str, state: str, line: int = 87, *containers: str, **fields: Any) -> Json:
    return {
        "LeafNodeType": "It",
        "ContainerHierarchyTexts": list(containers or ("Reboot",)),
        "LeafNodeText": text,
        "LeafNodeLocation": {"FileName": SUITE, "LineNumber": line},
        "State": state,
        "RunTime": 2_500_000_000,
        **fields,
    }


def ginkgo(*its: Json) -> str:
    before = {"LeafNodeType": "BeforeSuite", "LeafNodeText": "", "State": "passed"}
    return json.dumps([{"SuiteDescription": "Disruption", "SpecReports": [before, *its]}])


def at(file: str, line: int) -> Json:
    return {"FileName": file, "LineNumber": line}


# -- what Ginkgo reports -----------------------------------------------------------------


def test_specs_are_listed_in_the_order_of_the_source() -> None:
    listed = report.specs("disruption", ginkgo(
        it("later", "passed", 90), it("first", "passed", 40, "Reboot", "Budgets"),
    ))  # fmt: skip
    assert [spec.name for spec in listed] == ["Reboot Budgets first", "Reboot later"]
    assert {spec.group for spec in listed} == {"Reboot"}


def test_a_spec_that_passed_has_nothing_to_complain_of() -> None:
    found = report.outcome("Reboot twice", ginkgo(it("once", "skipped"), it("twice", "passed")))
    assert found == Outcome(State.PASSED, 2.5)


def test_a_spec_that_failed_says_why_and_where_in_the_spec() -> None:
    failure = {"Message": "Timed out after 900.001s.\nExpected\n  <int>: 2",
               "Location": at(SUITE, 112), "FailureNodeLocation": at(SUITE, 87)}  # fmt: skip
    found = report.outcome("Reboot twice", ginkgo(it("twice", "failed", Failure=failure)))
    assert found == Outcome(State.FAILED, 2.5, "Expected <int>: 2", "reboot_test.go:112")


def test_a_failure_in_a_helper_is_told_at_the_spec() -> None:
    failure = {"Message": "no", "Location": at(HELPER, 7), "FailureNodeLocation": at(SUITE, 87)}
    found = report.outcome("Reboot twice", ginkgo(it("twice", "failed", Failure=failure)))
    assert found is not None
    assert found.where == "reboot_test.go:87"


def test_a_spec_that_ran_into_its_limit_says_where_it_was_waiting() -> None:
    stack = [{"Filename": HELPER, "Line": 558}, {"Filename": SUITE, "Line": 96}]
    progress = {
        "CurrentStepText": "waiting for nodes",
        "Goroutines": [{"Stack": stack[:1]}, {"Stack": stack, "IsSpecGoroutine": True}],
    }
    failure = {"Message": "A suite timeout occurred", "Location": at(SUITE, 87),
               "FailureNodeLocation": at(SUITE, 87), "ProgressReport": progress}  # fmt: skip
    found = report.outcome("Reboot twice", ginkgo(it("twice", "timedout", Failure=failure)))
    told = "waited longer than its limit; last step: waiting for nodes"
    assert found == Outcome(State.TIMED_OUT, 2.5, told, "reboot_test.go:96")


@pytest.mark.parametrize("state", ["panicked", "aborted", "something new"])
def test_what_is_neither_passed_nor_left_out_has_failed(state: str) -> None:
    found = report.outcome("Reboot twice", ginkgo(it("twice", state)))
    assert found is not None
    assert found.state == State.FAILED


def test_a_report_may_lack_the_spec() -> None:
    assert report.outcome("Reboot twice", ginkgo()) is None


def test_a_complaint_is_one_line_without_names_that_differ_from_run_to_run() -> None:
    told = report.complaint("\x1b[31mnode\n  default-12-abcdefghij is\x1b[0m there " + "x" * 500)
    assert told.startswith("node default-… is there xxx")
    assert len(told) == report.LENGTH


# -- what is expected --------------------------------------------------------------------

RULES = expectations.load("""
limit: 5m
suites:
  disruption:
    - {specs: Drift, expected: not built, why: Drifted is not built}
    - {specs: Reboot, expected: passes, registrationDelay: 10s}
    - {specs: Reboot twice, expected: fails, why: "it is a fault", limit: 90s}
    - {specs: Terminate, expected: cannot run, why: no Deployment}
""")


def spec(name: str) -> Spec:
    return Spec("disruption", name, name.split()[0])


def test_the_longest_rule_counts() -> None:
    group, own = RULES.of(spec("Reboot once")), RULES.of(spec("Reboot twice, then replace"))
    assert (group.expected, own.expected) == (Expected.PASSES, Expected.FAILS)
    assert (group.limit, own.limit) == (timedelta(minutes=5), timedelta(seconds=90))
    assert (group.registration_delay, own.registration_delay) == (
        timedelta(seconds=10),
        timedelta(),
    )


def test_a_spec_without_a_rule_is_named() -> None:
    with pytest.raises(Unknown, match="no rule for disruption: Repair it"):
        RULES.of(spec("Repair it"))


def test_a_rule_that_no_spec_follows_is_named() -> None:
    specs = [spec("Reboot once"), spec("Reboot twice"), spec("Drift")]
    assert [rule.specs for rule in RULES.unused(specs)] == ["Terminate"]


def test_what_does_not_pass_needs_a_reason() -> None:
    with pytest.raises(AssertionError, match="why"):
        expectations.load("{limit: 5m, suites: {a: [{specs: b, expected: fails}]}}")


@pytest.mark.parametrize(
    ("name", "state", "different"),
    [
        ("Reboot once", State.PASSED, ""),
        ("Reboot once", State.FAILED, "was expected to pass, failed: no node"),
        ("Reboot once", State.TIMED_OUT, "was expected to pass, timed out: no node"),
        ("Reboot once", State.SKIPPED, "was expected to pass, skipped: no node"),
        ("Reboot twice", State.FAILED, ""),
        ("Reboot twice", State.PASSED, "passes, and expected.yaml says: fails (it is a fault)"),
        ("Drift", State.TIMED_OUT, ""),
        ("Drift", State.PASSED, "passes, and expected.yaml says: not built (Drifted is not built)"),
    ],
)
def test_an_outcome_is_compared_both_ways(name: str, state: State, different: str) -> None:
    outcome = Outcome(state, 1, "" if state == State.PASSED else "no node")
    assert surprise(RULES.of(spec(name)), outcome) == different


def test_what_is_run() -> None:
    every = [spec(name) for name in ("Drift", "Reboot once", "Reboot twice", "Terminate first")]

    def names(focus: str, *, everything: bool) -> list[str]:
        return [found.name for found, _ in chosen(every, RULES, focus, everything=everything)]

    assert names("", everything=False) == ["Reboot once", "Reboot twice"]
    assert names("", everything=True) == ["Drift", "Reboot once", "Reboot twice"]
    assert names("disruption .*once$", everything=True) == ["Reboot once"]


def test_karpenter_itself_ought_to_pass_in_its_own_time() -> None:
    rule = theirs(RULES.of(spec("Drift")))
    assert (rule.expected, rule.limit) == (Expected.PASSES, timedelta(minutes=20))


def test_a_focus_fits_one_spec_alone() -> None:
    """Ginkgo matches the suite's own name before the spec's."""
    name = "Repair resumes when >20% (a|b) of [*].it doesn't… drop"
    focus = Catalogue((), {"disruption": "Disruption"}).focus(spec(name))
    assert re.search(focus, f"Disruption {name}")
    assert not re.search(focus, f"Disruption {name} again")
    assert not re.search(focus, f"A Disruption {name}")


# -- what is kept and told ---------------------------------------------------------------

ONCE, TWICE, DRIFT = spec("Reboot once"), spec("Reboot twice"), spec("Drift | both")
FIRST = EMPTY.renewed("v1", [ONCE, TWICE, DRIFT], {
    ONCE: Result(Outcome(State.PASSED, 3), "2026-11-15"),
    TWICE: Result(Outcome(State.FAILED, 7, "no node", "reboot_test.go:9"), "2026-11-15"),
})  # fmt: skip


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert results.load(tmp_path / "none.json") == EMPTY
    results.save(FIRST, tmp_path / "results.json")
    assert results.load(tmp_path / "results.json") == FIRST


def test_a_run_of_a_part_keeps_the_rest_of_the_same_version() -> None:
    again = {TWICE: Result(Outcome(State.PASSED, 8), "2026-11-16")}
    assert FIRST.renewed("v1", FIRST.specs, again).specs == {**FIRST.specs, **again}
    assert FIRST.renewed("v2", [ONCE, TWICE], again).specs == {ONCE: None, **again}


def test_the_page_has_a_line_for_each_spec_and_a_sum_for_each_group() -> None:
    page = conformance_page(FIRST, RULES).splitlines()
    assert "| once | passes | 3 | – |" in page
    assert "| twice | **fails** | 7 | it is a fault (`reboot_test.go:9`) |" in page
    assert "| \\| both | not built | – | Drifted is not built |" in page
    assert "| disruption | [Reboot](#reboot-disruption) | 2 | 1 | 1 | – | – | 10 |" in page
    assert "| | all | 3 | 1 | 1 | 1 | – | 10 |" in page


def test_the_page_shows_unexpected_results() -> None:
    failed = {ONCE: Result(Outcome(State.TIMED_OUT, 3, "no node", "x.go:1"), "2026-11-15")}
    page = conformance_page(Results("v1", failed), RULES)
    assert "| once | **fails** | 3 | no node (`x.go:1`) |" in page
    assert "| once | never run | – | – |" in conformance_page(Results("v1", {ONCE: None}), RULES)


# -- what it runs on ---------------------------------------------------------------------


def test_karpenter_is_pinned_by_version_and_hash() -> None:
    pinned = source.pin()
    assert re.fullmatch(r"v\d+\.\d+\.\d+", pinned.version)
    assert re.fullmatch(r"h1:[A-Za-z0-9+/]{43}=", pinned.sum)


@pytest.mark.parametrize(
    ("wanted", "toolchain", "line"),
    [("1.26.9", "1.26.8", "1.26.8"), ("1.26.9", "1.27.0", "1.26.9"), ("1.26", "1.26.1", "1.26")],
)
def test_the_go_line_is_lowered_to_what_is_there_and_never_raised(
    wanted: str, toolchain: str, line: str
) -> None:
    got = source.lowered(f"module a\n\ngo {wanted}\n\nrequire b v1.0.0\n", toolchain)
    assert got == f"module a\n\ngo {line}\n\nrequire b v1.0.0\n"


def test_of_two_stages_with_one_name_the_later_counts() -> None:
    stage = "kind: Stage\nmetadata: {{name: {}}}\nspec: {{weight: {}}}\n"
    merged = merged_stages(["---\n".join([stage.format("a", 1), stage.format("b", 2)]),
                            stage.format("a", 3)])  # fmt: skip
    weights = {s["metadata"]["name"]: s["spec"]["weight"] for s in yaml.safe_load_all(merged)}
    assert weights == {"a": 3, "b": 2}


def test_the_scheduler_gets_this_cluster_and_keeps_its_profiles() -> None:
    theirs = "clientConnection: {kubeconfig: /etc/theirs}\nprofiles: [{schedulerName: one}]\n"
    ours = yaml.safe_load(scheduler_config(theirs, Path("/tmp/ours")))  # noqa: S108
    assert ours == {
        "clientConnection": {"kubeconfig": "/tmp/ours"},  # noqa: S108
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": "one"}],
    }


def test_tenure_runs_with_the_settings_that_are_shipped() -> None:
    settings = shipped_settings(MANIFEST.read_text())
    assert {"LEADER_ELECTION_NAMESPACE=tenure", "TENURE_PROVIDER=kwok"} <= set(settings)
    assert {"metrics-port", "health-probe-port", "webhook-port"} <= set(ports())


# -- one spec as a process ---------------------------------------------------------------

_SUITE = """\
#!{python} -ISs
import pathlib, signal, sys
report, = [a.partition("=")[2] for a in sys.argv if a.startswith("--ginkgo.json-report")]
def write(*_):
    pathlib.Path(report).write_text({report!r})
    sys.exit(1)
signal.signal(signal.SIGINT, write if {polite} else signal.SIG_IGN)
if {hangs}:
    while True: signal.pause()
write()
"""


@pytest.fixture
def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What comes out of a suite that behaves as asked."""

    def run(*, hangs: bool, polite: bool, clean_up: float = 60) -> Outcome:
        monkeypatch.setattr(trial, "CLEAN_UP", clean_up)
        suites = Suites(tmp_path)
        suites.folder("disruption").mkdir(parents=True)
        program = suites.suite("disruption")
        text = _SUITE.format(python=sys.executable, hangs=hangs, polite=polite,
                             report=ginkgo(it("once", "interrupted" if hangs else "passed")))  # fmt: skip
        program.write_text(text)
        program.chmod(0o755)
        rule = Rule("disruption", "", Expected.PASSES, "", timedelta(), timedelta(seconds=10))
        return trial.trial(ONCE, rule, "^once$", suites, tmp_path / "kubeconfig", tmp_path)

    return run


def test_a_spec_that_ends_is_read_from_its_report(tried: Any, tmp_path: Path) -> None:
    assert tried(hangs=False, polite=True) == Outcome(State.PASSED, 2.5)
    node_class = json.loads((tmp_path / "nodeclass.json").read_text())
    assert node_class["spec"] == {"nodeRegistrationDelay": "10s"}


def test_a_spec_that_hangs_is_interrupted_and_may_still_report(tried: Any) -> None:
    assert tried(hangs=True, polite=True, clean_up=3).state == State.TIMED_OUT


def test_a_spec_that_does_not_listen_is_killed(tried: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "REPORTING", 0.1)
    found = tried(hangs=True, polite=False, clean_up=0.1)
    assert found.state == State.TIMED_OUT
    assert found.complaint.startswith("killed:")


def test_an_interrupt_ends_the_spec(tried: Any) -> None:
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 1)
    try:
        with pytest.raises(KeyboardInterrupt):
            tried(hangs=True, polite=True)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
