"""What became of each spec when it was run last: ``results.json``, committed beside the page.

A run replaces the results of the specs that it ran and keeps the others, so a part can be run again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from testbed.conformance.report import Outcome, Spec, State

FILE: Final = Path(__file__).with_name("results.json")


@dataclass(frozen=True)
class Result:
    outcome: Outcome
    #: The day of the run, ``2026-11-15``.
    day: str


@dataclass(frozen=True)
class Results:
    karpenter: str
    #: Every spec of the suites in their order, with None where it has never run.
    specs: Mapping[Spec, Result | None]

    def renewed(self, karpenter: str, specs: Iterable[Spec], ran: Mapping[Spec, Result]) -> Results:
        """With those that ran; all are of one version of Karpenter."""
        known = self.specs if karpenter == self.karpenter else {}
        return Results(karpenter, {spec: ran.get(spec) or known.get(spec) for spec in specs})


EMPTY: Final = Results("", {})


def load(file: Path = FILE) -> Results:
    if not file.exists():
        return EMPTY
    document = json.loads(file.read_text(encoding="utf-8"))
    specs = {_spec(entry): _result(entry) for entry in document["specs"]}
    return Results(document["karpenter"], specs)


def save(results: Results, file: Path = FILE) -> None:
    entries = [_entry(spec, result) for spec, result in results.specs.items()]
    document = {"karpenter": results.karpenter, "specs": entries}
    file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _spec(entry: Mapping[str, Any]) -> Spec:
    return Spec(entry["suite"], entry["name"], entry["group"])


def _result(entry: Mapping[str, Any]) -> Result | None:
    if "state" not in entry:
        return None
    state = State(entry["state"])
    told = entry.get("complaint", ""), entry.get("where", "")
    return Result(Outcome(state, entry["seconds"], *told), entry["day"])


def _entry(spec: Spec, result: Result | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"suite": spec.suite, "group": spec.group, "name": spec.name}
    if result is not None:
        outcome = result.outcome
        entry |= {"state": str(outcome.state), "seconds": round(outcome.seconds), "day": result.day}
        told = {"complaint": outcome.complaint, "where": outcome.where}
        entry |= {key: value for key, value in told.items() if value}
    return entry
