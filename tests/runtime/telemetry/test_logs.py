"""Log lines: what they look like, and what is left unsaid."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import logging
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.decision import Blocker, Concern, Create, Evict, Subject, Verdict
from tenure.core.disrupt.facts.planning import CandidatesWait
from tenure.core.facts import Fact, Quoted, joined
from tenure.core.gates.facts import BudgetUse
from tenure.core.reasons import Reason
from tenure.errors import Unavailable
from tenure.model.api.resource import NODE_CLAIMS
from tenure.ports.outcome import Ended, Outcome
from tenure.runtime.telemetry.journal import LoggedJournal
from tenure.runtime.telemetry.linelimit import LineLimit
from tenure.runtime.telemetry.logs import (
    Complaints,
    LibraryHandler,
    Log,
    Sparing,
    library_lines,
    make_log,
)
from tenure.sim.virtual.loop import VirtualLoop
from tests.folders import ROOT

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
POD = Subject("Pod", "web-1", "default", "uid-1")


class HandClock:
    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return (self.at - NOON).total_seconds()

    def forward(self, **span: float) -> None:
        self.at += timedelta(**span)


class Desk:
    """A log that can be read, with everything that writes to it."""

    def __init__(self, level: str = "info", size: int = 3) -> None:
        self.clock = HandClock()
        self.stream = io.BytesIO()
        self.log: Log = make_log(self.stream, self.clock, level=level, text=False)
        self.withheld: list[None] = []
        self.sparing = Sparing(self.clock, lambda: self.withheld.append(None))
        limit = LineLimit(self.clock, lambda: self.withheld.append(None))
        self.journal = LoggedJournal(self.log, self.sparing, limit, size)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


def a_verdict(message: str = "waits", **fields: Any) -> Verdict:
    given = {"concern": Concern.DRAIN, "subject": POD, "reason": Reason.EVICTING, **fields}
    return Verdict(facts=(Quoted(message),), **given)


class Full(io.BytesIO):
    """A disk without room, for as long as it is said to be."""

    def __init__(self, why: int) -> None:
        super().__init__()
        self.why: int | None = why

    def write(self, line: Any, /) -> int:
        if self.why is not None:
            raise OSError(self.why, "no")
        return super().write(line)


@pytest.mark.parametrize("why", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_lines_for_which_there_is_no_room_are_dropped_and_the_program_goes_on(why: int) -> None:
    disk = Full(why)
    log = make_log(disk, HandClock(), level="info", text=False)
    log.info("lost")
    disk.why = None
    log.info("heard")
    assert b"heard" in disk.getvalue()
    assert b"lost" not in disk.getvalue()


def test_a_reader_that_has_hung_up_ends_the_program() -> None:
    log = make_log(Full(errno.EPIPE), HandClock(), level="info", text=False)
    with pytest.raises(BrokenPipeError):
        log.info("is a reader there?")


def test_ten_thousand_lines_of_one_kind_are_twenty_in_a_minute() -> None:
    desk = Desk()
    complaints = Complaints(desk.log, desk.sparing, lambda _: None)
    for number in range(10_000):
        complaints.report(Unavailable(f"GET /api/v1/nodes/node-{number}: timed out"))
    assert len(desk.lines()) == 20
    assert len(desk.withheld) == 10_000 - 20


def test_a_line_is_one_object_with_the_instant_first() -> None:
    desk = Desk()
    desk.log.info("it happened", node="a")
    desk.log.debug("not at this level")
    assert desk.lines() == [
        {"time": "2026-01-05T12:00:00.000Z", "level": "info", "message": "it happened", "node": "a"}
    ]
    assert list(desk.lines()[0]) == ["time", "level", "message", "node"]


def test_text_is_one_line_for_users() -> None:
    stream = io.BytesIO()
    make_log(stream, HandClock(), level="info", text=True).info("it happened", node="a")
    line = stream.getvalue().decode()
    assert line.count("\n") == 1
    assert "it happened" in line
    assert "node=a" in line


def test_what_libraries_say_is_a_line_like_any_other() -> None:
    desk = Desk()
    handler = LibraryHandler(desk.log)
    record = logging.makeLogRecord({"msg": "unclosed %s", "args": ("session",), "name": "asyncio"})
    record.levelno = logging.ERROR
    handler.handle(record)
    (line,) = desk.lines()
    assert (line["level"], line["message"], line["library"]) == (
        "error",
        "unclosed session",
        "asyncio",
    )


def test_libraries_are_heard_only_while_the_program_runs() -> None:
    desk, asyncios = Desk(), logging.getLogger("asyncio")
    with library_lines(desk.log):
        asyncios.error("while it runs")
    asyncios.error("afterwards")
    assert [line["message"] for line in desk.lines()] == ["while it runs"]


def test_a_closed_stream_drops_the_line() -> None:
    """Asyncio reports exceptions that were never awaited, perhaps after the end of the program."""
    desk = Desk()
    desk.stream.close()
    LibraryHandler(desk.log).handle(
        logging.makeLogRecord({"msg": "late", "levelno": logging.ERROR})
    )


def test_a_verdict_is_told_with_all_that_it_says() -> None:
    desk = Desk()
    blocker = Blocker(
        subject=Subject("PodDisruptionBudget", "b", "default"), fact=Quoted("allows none")
    )
    evict = Evict(name="web-1", namespace="default", uid="uid-1")
    verdict = a_verdict(blockers=(blocker,), action=evict, recheck_at=NOON)
    desk.journal.decided(NOON, verdict)
    (line,) = desk.lines()
    assert line["message"] == "verdict"
    assert line["subject"] == "Pod/default/web-1"
    assert (line["reason"], line["because"]) == ("Evicted", "waits")
    assert line["blockers"] == ["PodDisruptionBudget/default/b: allows none"]
    assert (line["action"], line["recheckAt"]) == ("Evict", "2026-01-05T12:00:00Z")


def test_a_verdict_that_says_the_same_on_another_version_is_not_told_again() -> None:
    desk = Desk()
    for at in (NOON, NOON + timedelta(seconds=1)):
        desk.journal.decided(at, a_verdict(recheck_at=at))
    desk.journal.decided(NOON, a_verdict("waits no more"))
    assert [line["because"] for line in desk.lines()] == ["waits", "waits no more"]


def test_a_node_that_a_window_keeps_is_not_told_of_again_for_each_use_of_a_budget_behind_it() -> (
    None
):
    """A budget that blocks it as well is one of its blockers, and counts others that come and go."""
    desk = Desk()
    for left in range(50):
        used = BudgetUse(pool="general", nodes="10%", limit=1, total=100, leaving=(f"node-{left}",))
        behind = Blocker(subject=Subject("NodePool", "general"), fact=joined((used, Quoted("x"))))
        desk.journal.decided(NOON, a_verdict(blockers=(behind,)))
    assert len(desk.lines()) == 1


def test_a_crowd_of_candidates_that_goes_one_by_one_is_told_now_and_then() -> None:
    """And what a budget says of the others that are disrupted meanwhile is no news of a node."""
    desk = Desk()
    for left in range(100, 0, -1):
        going = tuple(f"node-{left + more}" for more in range(10))
        waits = CandidatesWait(left, left, None, (("Drifted", left),), (("budgets", left),), 10)
        used = BudgetUse(pool="general", nodes="10%", limit=10, total=100, leaving=going)
        said_of: list[tuple[Subject, Fact]] = [
            (Subject("NodePool", "general"), waits),
            (Subject("NodeClaim", "last"), used),
        ]
        for subject, fact in said_of:
            verdict = msgspec.structs.replace(a_verdict(subject=subject), facts=(fact,))
            desk.journal.decided(NOON, verdict)
    desk.journal.catch_up()
    said = Counter(line["subject"] for line in desk.lines() if line["message"] == "verdict")
    assert said["NodeClaim/last"] == 1
    assert 0 < said["NodePool/general"] <= 19


def test_only_the_last_entries_are_kept_and_can_be_picked_by_subject() -> None:
    desk = Desk()
    for number in range(5):
        desk.journal.decided(
            NOON, a_verdict(str(number), subject=Subject("Pod", f"p{number}", "x"))
        )
    assert [entry.because for entry in desk.journal.entries()] == ["2", "3", "4"]
    assert [entry.because for entry in desk.journal.entries("Pod/x/p3")] == ["3"]


def flap(desk: Desk, seconds: int, pods: int = 60) -> None:
    """A tenant writes do-not-disrupt on its pods and takes it away again, every second."""
    for second in range(seconds):
        for number in range(pods):
            pod = Subject("Pod", f"web-{number}", "tenant")
            desk.journal.decided(desk.clock.now(), a_verdict(f"waits {second}", subject=pod))
        desk.clock.forward(seconds=1)
        if second % 10 == 9:
            desk.journal.catch_up()


def test_a_tenant_that_changes_its_pods_without_end_gets_few_lines() -> None:
    desk = Desk()
    flap(desk, seconds=600)
    desk.clock.forward(seconds=10)
    desk.journal.catch_up()
    verdicts = [line for line in desk.lines() if line["message"] == "verdict"]
    assert len(verdicts) <= 60 * (5 + 610 // 10)
    summaries = [line for line in desk.lines() if line["message"] == "verdicts left out"]
    assert len(summaries) == 61
    # Each change is in a line, or counted in one.
    assert len(verdicts) + sum(line["leftOut"] for line in summaries) == 60 * 600
    assert sum(line.get("timesUnsaid", 0) for line in verdicts) == 60 * 600 - len(verdicts)


def test_the_last_verdict_of_a_subject_above_the_limit_is_said_later() -> None:
    desk = Desk()
    for number in range(9):
        desk.journal.decided(NOON, a_verdict(f"waits {number}"))
    assert [line["because"] for line in desk.lines()] == [f"waits {n}" for n in range(5)]
    desk.clock.forward(seconds=10)
    desk.journal.catch_up()
    late, summary = desk.lines()[5:]
    assert (late["because"], late["timesUnsaid"]) == ("waits 8", 3)
    assert late["decidedAt"] == "2026-01-05T12:00:00Z"
    assert (summary["leftOut"], summary["stillWaiting"]) == (3, 0)
    desk.clock.forward(seconds=10)
    desk.journal.catch_up()
    assert len(desk.lines()) == 7


def test_what_waits_is_said_although_nothing_else_happens() -> None:
    desk, loop = Desk(), VirtualLoop()
    for number in range(6):
        desk.journal.decided(NOON, a_verdict(f"waits {number}"))
    desk.clock.forward(seconds=10)
    with pytest.raises(TimeoutError):
        loop.run_until_complete(asyncio.wait_for(desk.journal.run(), 11))
    loop.close()
    assert desk.lines()[5]["because"] == "waits 5"


def test_a_start_with_thousands_of_pods_is_told_in_full_but_not_at_once() -> None:
    desk = Desk()
    for number in range(5000):
        desk.journal.decided(NOON, a_verdict(subject=Subject("Pod", f"p{number}", "x")))
    assert len(desk.lines()) == 2000
    # Pods do not use up the lines of other kinds.
    desk.journal.decided(NOON, a_verdict(subject=Subject("NodeClaim", "general-1")))
    assert desk.lines()[-1]["subject"] == "NodeClaim/general-1"
    for _ in range(16):
        desk.clock.forward(seconds=10)
        desk.journal.catch_up()
    told = {line["subject"] for line in desk.lines() if line["message"] == "verdict"}
    assert len(told) == 5001


def test_at_debug_nothing_is_left_out() -> None:
    desk = Desk("debug")
    for number in range(9):
        desk.journal.decided(NOON, a_verdict(f"waits {number}"))
    assert [line["because"] for line in desk.lines()] == [f"waits {n}" for n in range(9)]


def test_one_subject_cannot_push_the_others_out_of_the_journal() -> None:
    desk = Desk(size=100)
    desk.journal.decided(NOON, a_verdict(subject=Subject("NodeClaim", "general-1")))
    for number in range(1000):
        desk.journal.decided(NOON, a_verdict(f"waits {number}"))
    kept = [entry.because for entry in desk.journal.entries("web-1")]
    assert kept == [f"waits {number}" for number in range(1000 - 32, 1000)]
    assert len(list(desk.journal.entries("general-1"))) == 1


def test_a_journal_of_size_zero_keeps_nothing() -> None:
    desk = Desk(size=0)
    for number in range(3):
        desk.journal.decided(NOON, a_verdict(f"waits {number}"))
    assert not list(desk.journal.entries())


OUTCOMES = {
    "done": (Outcome(Ended.OK), None),
    "the object moved": (Outcome(Ended.DROPPED, "409 Conflict"), None),
    "a budget said no": (Outcome(Ended.REFUSED, "budget"), "info"),
    "the view is old": (Outcome(Ended.HELD, "nothing is heard of pods"), "info"),
    "it failed": (Outcome(Ended.FAILED, "503"), "warning"),
    "our guard refused it": (Outcome(Ended.VETOED, "not ours"), "warning"),
}


@pytest.mark.parametrize(("outcome", "level"), OUTCOMES.values(), ids=OUTCOMES.keys())
def test_an_outcome_is_told_by_how_much_it_matters(outcome: Outcome, level: str | None) -> None:
    desk = Desk()
    desk.journal.acted(NOON, a_verdict(), outcome)
    assert [(line["level"], line["outcome"]) for line in desk.lines()] == (
        [(level, str(outcome))] if level else []
    )
    assert [entry.outcome for entry in desk.journal.entries()] == [str(outcome)]


def test_an_action_that_keeps_failing_is_told_once_and_then_counted() -> None:
    desk = Desk()
    for number in range(10):
        desk.journal.acted(NOON, a_verdict(), Outcome(Ended.FAILED, f"503; again at {number}"))
    assert len(desk.lines()) == 1
    desk.clock.forward(minutes=5)
    desk.journal.acted(NOON, a_verdict(), Outcome(Ended.FAILED, "503"))
    assert desk.lines()[1]["timesUnsaid"] == 9
    assert len(desk.withheld) == 9


def test_a_thousand_objects_that_fail_alike_are_a_few_lines_a_minute() -> None:
    desk = Desk()
    for number in range(1000):
        verdict = a_verdict(subject=Subject("Pod", f"web-{number}", "default"))
        desk.journal.acted(NOON, verdict, Outcome(Ended.FAILED, "503"))
    assert len(desk.lines()) == 20
    desk.clock.forward(minutes=1)
    desk.journal.acted(
        NOON, a_verdict(subject=Subject("Pod", "new", "default")), Outcome(Ended.FAILED, "503")
    )
    assert len(desk.lines()) == 21


def test_a_complaint_is_counted_always_and_said_sparingly() -> None:
    desk, counted = Desk(), list[str]()
    complaints = Complaints(desk.log, desk.sparing, counted.append)
    for _ in range(3):
        complaints.report(Unavailable("no route"), advice="look at the network")
    complaints.report(Unavailable("no route"), sentence="pods: no route")
    assert counted == ["Unavailable"] * 4
    assert [line["message"] for line in desk.lines()] == [
        "503 ServiceUnavailable: no route",
        "pods: no route",
    ]
    assert desk.lines()[0]["advice"] == "look at the network"


def test_the_line_in_the_documents_is_as_it_is_written() -> None:
    page = (ROOT / "docs" / "running.md").read_text()
    shown = json.loads(page.partition("```json\n")[2].partition("\n```")[0])
    desk = Desk()
    kind, _, name = shown["subject"].partition("/")
    create = Create(resource=NODE_CLAIMS, name=name, body={})
    subject, concern = Subject(kind, name), Concern(shown["concern"])
    verdict = a_verdict(
        shown["because"],
        concern=concern,
        subject=subject,
        reason=Reason(shown["reason"]),
        action=create,
    )
    desk.journal.decided(NOON, verdict)
    (line,) = desk.lines()
    assert list(line) == list(shown)
    assert line | {"time": shown["time"]} == shown
