"""An explanation in words, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.cli.consolidation.text import saving
from tenure.cli.explain.alike import alike
from tenure.cli.explain.budgettext import budget_json, budget_lines
from tenure.cli.explain.explanation import Explanation, needs_attention
from tenure.cli.explain.policytext import policy_json, policy_lines
from tenure.cli.explain.repairtext import repair_json, repair_lines
from tenure.cli.explain.scheduletext import timetable_json, timetable_lines
from tenure.cli.view.instants import dated, with_relative
from tenure.core.decision import (
    Action,
    Blocker,
    Concern,
    Create,
    Delete,
    DeletePod,
    Evict,
    Inspect,
    Launch,
    Patch,
    Reboot,
    Terminate,
    Verdict,
)
from tenure.core.facts import Fact, instants_of, told
from tenure.core.gates.explained import info_of
from tenure.core.reasons import NO_ADVICE, Reason
from tenure.model.api.meta import format_time
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.model.cloud.offering import MICRO_DOLLARS

#: Verdicts on what an object stands on; a pool may have a thousand unhealthy Nodes.
SHOWN: Final = 20
#: Concerns whose names are not words.
_WORDS: Final = {
    Concern.POOL_POLICY: "pool policy",
    Concern.REPAIR_LEVER: "repair lever",
    Concern.LEFT_OVER: "left over",
}


def as_text(answer: Explanation) -> str:
    return "\n".join(with_relative(_lines(answer), answer.at))


def _lines(answer: Explanation) -> Iterator[str]:
    also_at = f", {answer.also_at} after the start" if answer.also_at else ""
    yield f"{answer.subject} at {format_time(answer.at)}{also_at}"
    if answer.clock:
        yield f"  clock     {answer.clock}"
    if answer.leader:
        yield f"  acts      {answer.leader}"
    if answer.held:
        yield f"  blocked   {answer.held}"
    yield f"  state     {answer.state}"
    if answer.drifted is not None:
        yield f"  drifted   {answer.drifted}"
    if answer.launches_nothing is not None:
        yield f"  launches  nothing: {answer.launches_nothing}"
    if answer.policy is not None:
        yield from policy_lines(answer.policy)
    if answer.budgets is not None:
        yield from budget_lines(answer.budgets)
    if answer.moves:
        yield f"  saves     consolidation: {saving(answer.moves)} (tenure plan)"
    advised = answer.launches_nothing is not None or any(
        map(needs_attention, (*answer.verdicts, *answer.around))
    )
    if not answer.verdicts:
        yield f"  verdict   {_nothing_to_decide(answer)}"
    for position, verdict in enumerate(_own(answer.verdicts)):
        if position:
            yield ""
            yield f"also ({_concern(verdict)})"
        yield from _verdict_lines(verdict, advised=advised)
        if not position:
            yield from _change_lines(answer.changes)
    groups = alike(_not_repeated(answer), answer.claims, answer.at, _apart)
    for first, *others in groups[:SHOWN]:
        yield ""
        yield f"{first.subject} ({_concern(first)}){_and_others(others)}"
        yield from _verdict_lines(first, advised=advised)
    if unshown := sum(map(len, groups[SHOWN:])):
        yield ""
        yield f"… and {unshown} more; --json has all of them"
    for outlook in answer.repairs:
        yield ""
        yield from repair_lines(outlook)
    for table in answer.timetables:
        yield ""
        yield from timetable_lines(table, answer.at, held=answer.held)


def _concern(verdict: Verdict) -> str:
    return _WORDS.get(verdict.concern, verdict.concern)


def _change_lines(changes: Sequence[Fact]) -> Iterator[str]:
    """The first is the smallest; any one of them would do."""
    for position, change in enumerate(changes):
        yield f"  {'or' if position else 'to fit':<9} {change}"


def _own(verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
    """Without those that say the same again: what protects a pod also blocks its eviction."""
    shown = set()
    for one in verdicts:
        said = (one.facts, one.blockers)
        if one.action is not None or not one.facts or said not in shown:
            yield one
        shown.add(said)


def _not_repeated(answer: Explanation) -> Iterator[Verdict]:
    """What is said of a Node and its claim alike is printed once."""
    shown = {_content(one) for one in answer.verdicts}
    of_claims = {
        (answer.claims.get(one.subject.name), _content(one))
        for one in answer.around
        if one.subject.kind == NODES.kind
    }
    return (
        one
        for one in answer.around
        if _content(one) not in shown
        and not (
            one.subject.kind == NODE_CLAIMS.kind and (one.subject.name, _content(one)) in of_claims
        )
    )


def _content(verdict: Verdict) -> object:
    return (verdict.concern, verdict.reason, verdict.facts, verdict.blockers)


def _apart(verdict: Verdict) -> object:
    action = action_words(verdict.action)
    return verdict.concern, verdict.reason, told_recheck(verdict), action


def _and_others(others: Sequence[Verdict]) -> str:
    if not others:
        return ""
    named = ", ".join(str(one.subject) for one in others[:SHOWN])
    rest = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
    return f"; the same of {len(others)} more: {named}{rest}"


def _nothing_to_decide(answer: Explanation) -> str:
    said = "Tenure has nothing to decide about it"
    return f"{said}: {answer.silence}" if answer.silence else said


def _advice(verdict: Verdict) -> str:
    """What an operator can do about it; empty: nothing."""
    advice = info_of(verdict).advice
    return "" if advice == NO_ADVICE else advice


def _verdict_lines(verdict: Verdict, *, advised: bool) -> Iterator[str]:
    """``advised``: one of the verdicts asks for something, so that none may say "nothing to do"."""
    info = info_of(verdict)
    yield f"  verdict   {verdict.reason}: {verdict.message}"
    yield f"  meaning   {info.meaning}"
    for blocker in untold(verdict):
        yield f"  blocked   by {blocker.subject}: {dated((blocker.fact,), 'until', blocker.until)}"
    yield f"  action    {action_words(verdict.action)}"
    yield f"  changes   {_change(verdict)}"
    if _advice(verdict) or not advised:
        yield f"  advice    {info.advice}"


def untold(verdict: Verdict) -> list[Blocker]:
    """The blockers that the facts of the verdict do not tell of already."""
    known = set(told(verdict.facts))
    return [one for one in verdict.blockers if one.until is not None or one.fact not in known]


def action_words(action: Action | None) -> str:
    match action:
        case None:
            return "none"
        case Patch() | Create() | Delete():
            return f"{type(action).__name__} {action.resource.kind} {action.name}"
        case Evict():
            return f"Evict Pod {action.namespace}/{action.name}"
        case DeletePod():
            return f"Delete Pod {action.namespace}/{action.name}"
        case Launch():
            return f"Launch an instance for {action.request.claim_name}"
        case Terminate():
            return f"Terminate {action.provider_id or 'the instance of claim ' + action.claim_uid}"
        case Reboot():
            return f"Reboot {action.provider_id}"
        case Inspect():
            return f"Ask the cloud whether {action.provider_id} is there"


def told_recheck(verdict: Verdict) -> datetime | None:
    """When it is evaluated again, where that tells a user something.

    What a gate blocks, and a pod that waits for its node, is looked at again for anything that may
    bear on it. If the verdict itself does not name that instant, nothing need happen then.
    """
    at = verdict.recheck_at
    if at is None or (not verdict.gate and verdict.reason is not Reason.NOMINATED):
        return at
    instants = {
        format_time(one) for one in instants_of((*verdict.facts, *_facts(verdict.blockers)))
    }
    instants |= {format_time(one.until) for one in verdict.blockers if one.until is not None}
    return at if format_time(at) in instants else None


def _facts(blockers: Iterable[Blocker]) -> Iterator[Fact]:
    return (one.fact for one in blockers)


def _change(verdict: Verdict) -> str:
    if (at := told_recheck(verdict)) is not None:
        return f"evaluated again at {format_time(at)}, or when the cluster changes"
    if verdict.action is not None:
        return "as soon as the action is carried out"
    return "when something in the cluster changes"


def to_json(answer: Explanation) -> str:
    """The governing verdict, with the others under ``also`` and ``around``, how unhealthy nodes are
    repaired under ``repairs``, drains under ``timetables``, and what would place a pod that fits
    nowhere under ``smallestChanges``."""
    shown = verdict_json(answer.verdicts[0]) if answer.verdicts else _nothing(answer)
    shown |= {
        "at": answer.at,
        "leader": answer.leader or None,
        "held": answer.held or None,
        "state": answer.state,
        "drifted": None if answer.drifted is None else msgspec.to_builtins(answer.drifted),
        "launchesNothing": str(answer.launches_nothing or "") or None,
        "policy": policy_json(answer.policy),
        "disruptionsAllowed": budget_json(answer.budgets),
        "savesPerHour": sum(move.saves for move in answer.moves) / MICRO_DOLLARS,
        "also": [verdict_json(verdict) for verdict in answer.verdicts[1:]],
        "around": [verdict_json(verdict) for verdict in answer.around],
    }
    if answer.changes:
        shown["smallestChanges"] = [
            {"message": str(one), "fact": msgspec.to_builtins(one)} for one in answer.changes
        ]
    if answer.repairs:
        shown["repairs"] = [repair_json(outlook) for outlook in answer.repairs]
    if answer.timetables:
        shown["timetables"] = [timetable_json(table) for table in answer.timetables]
    return msgspec.json.encode(shown).decode()


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "subject": str(verdict.subject),
        "concern": verdict.concern,
        "reason": verdict.reason,
        "message": verdict.message,
        "facts": [msgspec.to_builtins(fact) for fact in verdict.facts],
        "blockers": [_blocker_json(one) for one in verdict.blockers],
        "action": None if verdict.action is None else action_words(verdict.action),
        "recheckAt": to_the_second(verdict.recheck_at),
    }


def to_the_second(at: datetime | None) -> datetime | None:
    """As every other instant: one that is exclusive has a microsecond more."""
    return None if at is None else at.replace(microsecond=0)


def _blocker_json(blocker: Blocker) -> dict[str, Any]:
    return {
        "subject": str(blocker.subject),
        "message": blocker.message,
        "fact": msgspec.to_builtins(blocker.fact),
        "until": blocker.until,
    }


def _nothing(answer: Explanation) -> dict[str, Any]:
    return {
        "subject": answer.subject,
        "concern": None,
        "reason": None,
        "message": _nothing_to_decide(answer),
        "blockers": [],
        "action": None,
        "recheckAt": None,
    }
