"""``make conformance``: run the suites, compare with what is expected, write the results down.

Exit codes: 0 as expected, 1 something differs, 2 bad arguments, 130 interrupted. What was run before
an interrupt is written down.
"""

from __future__ import annotations

import argparse
import fcntl
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from zlib import crc32

from docs.conformance_page import write_page
from testbed.binaries import Missing
from testbed.build import BuildFailed
from testbed.conformance import expectations, results
from testbed.conformance.cluster import CONTROLLERS, TENURE, cluster
from testbed.conformance.expectations import Expected, Rule, Rules, surprise
from testbed.conformance.report import Outcome, Spec, State
from testbed.conformance.results import Result
from testbed.conformance.specs import Catalogue, catalogue
from testbed.conformance.suites import Suites, built
from testbed.conformance.trial import trial
from testbed.controlplane import ControlPlane, NotReady
from testbed.karpentersource import pin

ROOT: Final = Path(__file__).parents[2]
LOGS: Final = ROOT / ".tenure" / "conformance"
#: What its specs are written for.
KARPENTER_LIMIT: Final = timedelta(minutes=20)
SIGN: Final = {
    State.PASSED: "passed", State.FAILED: "FAILED", State.TIMED_OUT: "TIMED OUT",
    State.SKIPPED: "skipped",
}  # fmt: skip


@dataclass
class Run:
    """One run: a cluster for as long as specs pass, and a new one after each that did not."""

    suites: Suites
    listed: Catalogue
    controller: str
    #: Whether results and page are renewed after each spec.
    kept: bool
    ran: dict[Spec, Result] = field(default_factory=dict)
    surprises: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stack = ExitStack()
        self._plane: ControlPlane | None = None

    def all(self, chosen: Sequence[tuple[Spec, Rule]]) -> None:
        try:
            for number, (spec, rule) in enumerate(chosen, start=1):
                self._one(spec, rule, f"{number} of {len(chosen)}")
        finally:
            self._drop()

    def _one(self, spec: Spec, rule: Rule, count: str) -> None:
        folder = LOGS / self.controller / _slug(spec)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        print(f"conformance: {count}: {spec.suite}: {spec.name}", flush=True)
        plane = self._cluster()
        focus = self.listed.focus(spec)
        began = time.monotonic()
        outcome = trial(spec, rule, focus, self.suites, plane.kubeconfig, folder)
        took = time.monotonic() - began
        crashed = plane.ended(self.controller)
        if crashed:
            outcome = Outcome(State.FAILED, took, f"{self.controller} has ended by itself")
        print(
            f"conformance:   {SIGN[outcome.state]} after {took:.0f} s {outcome.where}", flush=True
        )
        (folder / f"{self.controller}.log").write_text(plane.log(self.controller))
        today = datetime.now(UTC).date().isoformat()
        self.ran[spec] = Result(outcome, today)
        if self.kept:
            _keep(self)
        if different := surprise(rule, outcome):
            self.surprises.append(f"{spec.suite}: {spec.name} {different}")
        if outcome.state not in (State.PASSED, State.SKIPPED) or crashed:
            print(f"conformance:   {outcome.complaint}", flush=True)
            self._drop()  # What it left behind is not for the next one.

    def _cluster(self) -> ControlPlane:
        if self._plane is None:
            try:
                self._plane = self._new_cluster()
            except NotReady as error:  # A busy machine; a second time it is something else.
                print(f"conformance: once more: {error}", file=sys.stderr)
                self._drop()
                self._plane = self._new_cluster()
        return self._plane

    def _new_cluster(self) -> ControlPlane:
        scratch = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        return self._stack.enter_context(cluster(self.suites, self.controller, scratch))

    def _drop(self) -> None:
        self._plane = None
        self._stack.close()


def chosen(
    listed: Sequence[Spec], rules: Rules, focus: str, *, everything: bool
) -> Iterator[tuple[Spec, Rule]]:
    """What is to run: without what cannot, and without what is not built unless that is asked for."""
    left_out = {Expected.CANNOT_RUN} if everything else {Expected.CANNOT_RUN, Expected.NOT_BUILT}
    for spec in listed:
        rule = rules.of(spec)
        if rule.expected not in left_out and re.search(focus, f"{spec.suite} {spec.name}"):
            yield spec, rule


def theirs(rule: Rule) -> Rule:
    """The same for Karpenter, which has everything built and ought to pass, in its own time."""
    return replace(rule, expected=Expected.PASSES, why="", limit=max(rule.limit, KARPENTER_LIMIT))


def _slug(spec: Spec) -> str:
    """A folder's name, readable and unique."""
    words = re.sub(r"[^a-z0-9]+", "-", f"{spec.suite} {spec.name}".lower())
    return f"{words[:100].strip('-')}-{crc32(spec.name.encode()):08x}"


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make conformance", allow_abbrev=False)
    parser.add_argument(
        "--focus",
        default="",
        metavar="PATTERN",
        help="only specs whose suite and name this matches: 'disruption Reboot'",
    )
    parser.add_argument("--all", action="store_true", help="also specs of what is not built")
    parser.add_argument(
        "--controller",
        choices=CONTROLLERS,
        default=TENURE,
        help="karpenter: what would Karpenter do? Nothing is written down then",
    )
    parser.add_argument("--list", action="store_true", help="say what would run, and what not")
    return parser.parse_args(arguments)


def conform(wanted: argparse.Namespace) -> int:
    suites = built()
    listed = catalogue(suites)
    rules = expectations.load()
    ours = wanted.controller == TENURE
    picked = list(chosen(listed.specs, rules, wanted.focus, everything=wanted.all or not ours))
    if wanted.list or not picked:
        return _list(listed, rules, picked)
    if not ours:
        picked = [(spec, theirs(rule)) for spec, rule in picked]
    run = Run(suites, listed, wanted.controller, kept=ours)
    began = time.monotonic()
    run.all(picked)
    _summarise(run, time.monotonic() - began)
    return 1 if run.surprises else 0


def _list(listed: Catalogue, rules: Rules, picked: list[tuple[Spec, Rule]]) -> int:
    runs = {spec for spec, _ in picked}
    for spec in listed.specs:
        rule = rules.of(spec)
        print(f"{'runs' if spec in runs else '–':5} {rule.expected:11} {spec.suite}: {spec.name}")
    if not picked:
        print("conformance: nothing to run; --all runs what is not built, too", file=sys.stderr)
        return 2
    return 0


def _keep(run: Run) -> None:
    """Results and page, both in the checkout: to be looked at, and committed."""
    with (LOGS / ".lock").open("w") as lock:  # Of runs side by side none loses the other's.
        fcntl.flock(lock, fcntl.LOCK_EX)
        results.save(results.load().renewed(pin().version, run.listed.specs, run.ran))
        write_page()


def _summarise(run: Run, seconds: float) -> None:
    passed = sum(result.outcome.state == State.PASSED for result in run.ran.values())
    print(f"conformance: {passed} of {len(run.ran)} passed in {seconds / 60:.0f} minutes; "
          f"logs in {LOGS.relative_to(ROOT)}/{run.controller}")  # fmt: skip
    for line in run.surprises:
        print(f"conformance: {line}")


def main(arguments: Sequence[str]) -> int:
    for asked in (signal.SIGINT, signal.SIGTERM):  # The first is ignored in a shell's background.
        signal.signal(asked, signal.default_int_handler)
    try:
        return conform(_arguments(arguments))
    except re.error as error:
        print(f"conformance: --focus is no pattern: {error}", file=sys.stderr)
        return 2
    except (BuildFailed, Missing, NotReady, expectations.Unknown) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("conformance: interrupted; what was run is written down", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
