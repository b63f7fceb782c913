"""What Ginkgo reports (``--ginkgo.json-report``), read into values.

A spec that ran into its limit says no more than "a suite timeout occurred". Ginkgo keeps beside it where
in the spec it was waiting and its last step; that is what we tell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any, Final

Json = dict[str, Any]
#: A complaint is told in this many characters.
LENGTH: Final = 400
#: How the complaints of Gomega begin; it differs from run to run.
_AFTER: Final = re.compile(r"^(Timed out|Failed) after [\d.]+s\.\s*")
_RANDOM: Final = re.compile(r"\b[a-z]+(-\d+-[a-z0-9]{10})\b")


class State(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    #: Its limit was over before it had an answer.
    TIMED_OUT = "timed out"
    #: The spec found that it cannot run here.
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Spec:
    suite: str
    #: Containers and leaf; unique in its suite.
    name: str
    group: str


@dataclass(frozen=True)
class Outcome:
    state: State
    seconds: float
    #: Empty where it passed.
    complaint: str = ""
    #: ``reboot_test.go:112``; empty where it passed.
    where: str = ""


_STATES: Final = {
    "passed": State.PASSED,
    "skipped": State.SKIPPED,
    "pending": State.SKIPPED,
    "timedout": State.TIMED_OUT,
    "interrupted": State.TIMED_OUT,
}


def specs(suite: str, report: str) -> list[Spec]:
    """Every spec of the suite in the order of its source: Ginkgo shuffles the groups."""
    found = sorted(_its(report), key=lambda it: _place(it["LeafNodeLocation"]))
    return [Spec(suite, _name(it), it["ContainerHierarchyTexts"][0]) for it in found]


def description(report: str) -> str:
    """What Ginkgo calls the suite: the names that ``--ginkgo.focus`` sees begin with it."""
    return str(json.loads(report)[0]["SuiteDescription"])


def outcome(name: str, report: str) -> Outcome | None:
    """What became of that spec; None where the report does not have it."""
    for it in _its(report):
        if _name(it) == name:
            return _outcome(it)
    return None


def _its(report: str) -> Iterator[Json]:
    for suite in json.loads(report):
        yield from (it for it in suite["SpecReports"] or () if it["LeafNodeType"] == "It")


def _place(location: Json) -> tuple[str, int]:
    return location["FileName"], location["LineNumber"]


def _name(it: Json) -> str:
    return " ".join([*it["ContainerHierarchyTexts"], it["LeafNodeText"]])


def _outcome(it: Json) -> Outcome:
    state = _STATES.get(it["State"], State.FAILED)
    seconds = it.get("RunTime", 0) / 1e9
    if state == State.PASSED:
        return Outcome(state, seconds)
    failure = it.get("Failure") or {}
    return Outcome(state, seconds, complaint(_told(failure)), _where(failure))


def _told(failure: Json) -> str:
    progress = failure.get("ProgressReport") or {}
    if step := progress.get("CurrentStepText"):
        return f"waited longer than its limit; last step: {step}"
    return str(failure.get("Message", ""))


def complaint(text: str) -> str:
    """On one line, without what differs from run to run."""
    flat = re.sub(r"\x1b\[[\d;]*m", "", text)
    flat = " ".join(_AFTER.sub("", flat.strip()).split())
    flat = _RANDOM.sub(lambda found: found[0].replace(found[1], "-…"), flat)
    return flat if len(flat) <= LENGTH else f"{flat[: LENGTH - 1]}…"


def _where(failure: Json) -> str:
    """The place in the spec: where it waited, else where it failed, else the spec as a whole."""
    goroutines = (failure.get("ProgressReport") or {}).get("Goroutines") or ()
    frames = [
        {"FileName": frame["Filename"], "LineNumber": frame["Line"]}
        for goroutine in goroutines
        if goroutine.get("IsSpecGoroutine")
        for frame in goroutine["Stack"]
    ]
    places = [*frames, failure.get("Location") or {}, failure.get("FailureNodeLocation") or {}]
    for place in places:
        file = PurePosixPath(place.get("FileName", "")).name
        if file.endswith("_test.go"):  # What is not is a helper of theirs.
            return f"{file}:{place['LineNumber']}"
    return ""
