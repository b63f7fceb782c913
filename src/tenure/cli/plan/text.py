"""A plan in words, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from tenure.cli.consolidation.text import as_json, consolidation_lines
from tenure.cli.explain.alike import alike, is_example, without_conditions
from tenure.cli.explain.text import action_words, to_the_second, told_recheck, untold, verdict_json
from tenure.cli.plan.planning import Key, Plan, key_of, twins_of
from tenure.cli.view.instants import dated, with_relative
from tenure.core.decision import Concern, Verdict
from tenure.core.facts import some
from tenure.core.gates.explained import info_of
from tenure.core.reasons import Reason
from tenure.model.api.meta import format_time

#: Lines for one reason.
SHOWN: Final = 10
#: Objects in a line that says the same of all of them; a thousand more are told by their number.
NAMED: Final = 3


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Where the plan was made, and what it lacks."""

    where: str
    #: Who acts there, in words; empty where that is no question.
    leader: str = ""
    #: Which clock the instants are of, where it is not the reader's.
    clock: str = ""
    notes: tuple[str, ...] = ()


def as_text(plan: Plan, setting: Setting) -> str:
    return "\n".join(with_relative(_lines(plan, setting), plan.at))


def _lines(plan: Plan, setting: Setting) -> Iterator[str]:
    also_at = f", {plan.also_at} after the start" if plan.also_at else ""
    yield f"Plan at {format_time(plan.at)}{also_at} for {setting.where}; nothing was changed"
    if setting.clock:
        yield f"  clock     {setting.clock}"
    if setting.leader:
        yield f"  acts      {setting.leader}"
    if plan.held:
        yield f"  blocked   {plan.held}"
    for note in setting.notes:
        yield f"  note      {note}"
    yield ""
    yield from _waiting(plan)
    yield f"To do now: {len(plan.to_do) or 'nothing'}"
    yield from _heap(plan, plan.to_do, {})
    yield ""
    twins = twins_of(plan)
    told = {key_of(twin) for twin in twins.values()}
    not_now = _once(
        [
            verdict
            for verdict in plan.not_now
            if key_of(verdict) not in told and verdict.reason is not Reason.CANDIDATES_WAIT
        ]
    )
    yield f"Not now: {len({verdict.subject for verdict in not_now}) or 'nothing'}"
    yield from _heap(plan, not_now, twins)
    yield ""
    if plan.consolidation is not None:
        yield from consolidation_lines(plan.consolidation)
        yield ""
    yield f"Settled: {', '.join(_settled(plan)) or 'nothing'}"
    yield f"Changes: {_changes(plan)}"


def _waiting(plan: Plan) -> Iterator[str]:
    """How many candidates for voluntary disruption there are, by reason, and what they wait for."""
    if not plan.waiting:
        return
    reasons = Counter[str]()
    for _, fact in plan.waiting:
        reasons.update(dict(fact.reasons))
    total = sum(fact.waiting for _, fact in plan.waiting)
    named = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
    yield f"Candidates that wait: {total} of {reasons.total()} ({named})"
    yield from (f"    NodePool/{pool}: {fact}" for pool, fact in plan.waiting)
    yield ""


def _once(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """In one line how far a new claim is and until when it has time; and of a protected object what
    another decider says of its protection already, not again."""
    verdicts = without_conditions(verdicts)
    told = {(v.subject, v.facts) for v in verdicts if v.concern is not Concern.PROTECTION}
    verdicts = [
        v
        for v in verdicts
        if v.concern is not Concern.PROTECTION or (v.subject, v.facts) not in told
    ]
    coming = {v.subject for v in verdicts if v.concern is Concern.LIFECYCLE}
    until = {v.subject: v for v in verdicts if v.reason is Reason.BOOTING and v.subject in coming}
    return [
        msgspec.structs.replace(v, facts=(*v.facts, *until[v.subject].facts))
        if v.concern is Concern.LIFECYCLE and v.subject in until
        else v
        for v in verdicts
        if v.reason is not Reason.BOOTING or v.subject not in until
    ]


def _settled(plan: Plan) -> Iterator[str]:
    """By kind: a Node and its claim are two objects and one node."""
    for (reason, kind), count in sorted(plan.settled_by_kind.items()):
        yield f"{count} {kind}{'' if count == 1 else 's'} {reason}"


def _heap(plan: Plan, verdicts: Iterable[Verdict], twins: Mapping[Key, Verdict]) -> Iterator[str]:
    groups: dict[tuple[Reason, str], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict.reason, verdict.gate), []).append(verdict)
    for (reason, _), members in groups.items():
        yield f"  {reason}: {info_of(members[0]).meaning}"
        lines = alike(members, plan.claims, plan.at, _apart)
        for same in lines[:SHOWN]:
            yield from _verdict(same[0], _who(same, twins))
        if more := sum(map(len, lines[SHOWN:])):
            yield f"    … and {more} more; --json has all of them"


def _apart(verdict: Verdict) -> object:
    return _evaluated_again(verdict), type(verdict.action)


def _who(verdicts: Sequence[Verdict], twins: Mapping[Key, Verdict]) -> str:
    example = ", for example" if is_example(verdicts) else ""
    pairs = [(verdict, twins.get(key_of(verdict))) for verdict in verdicts]
    if len(verdicts) > NAMED and verdicts[0].action is None:
        # Of a Node and its claim the Node: it is what kubectl and dashboards show.
        # Two deciders may say the same of one object, as of both levers of a Node.
        shown = list(dict.fromkeys((twin or verdict).subject for verdict, twin in pairs))
        if len(kinds := {subject.kind for subject in shown}) == 1:
            names = some(f"{one.namespace}/{one.name}".lstrip("/") for one in shown)
            return f"{len(shown)} {kinds.pop()}s ({names}){example}"
    named = []
    for verdict, twin in pairs[:NAMED]:
        named.append(action_words(verdict.action) if verdict.action else str(verdict.subject))
        named += [str(twin.subject)] if twin is not None else []
    count = len(verdicts)
    more = f" and {count - NAMED} more, {count} in all" if count > NAMED else ""
    return f"{', '.join(named)}{more}{example}"


def _evaluated_again(verdict: Verdict) -> datetime | None:
    return told_recheck(verdict) if verdict.action is None else None


def _verdict(verdict: Verdict, who: str) -> Iterator[str]:
    # Nothing is promised until then: an event may change everything at any time.
    said = dated(verdict.facts, "evaluated again at", _evaluated_again(verdict))
    yield f"    {who}: {said}"
    blockers = untold(verdict)
    for blocker in blockers[:SHOWN]:
        yield f"      blocked by {blocker.subject}: {dated((blocker.fact,), 'until', blocker.until)}"
    if len(blockers) > SHOWN:
        yield f"      … and {len(blockers) - SHOWN} more"


def _changes(plan: Plan) -> str:
    if plan.to_do:
        return "as soon as the first action is carried out"
    if plan.next_at is not None:
        return f"at {format_time(plan.next_at)}, or as soon as something in the cluster changes"
    return "as soon as something in the cluster changes"


def to_json(plan: Plan, setting: Setting) -> str:
    shown = {
        "at": plan.at,
        "where": setting.where,
        "leader": setting.leader or None,
        "held": plan.held or None,
        "candidates": [
            {"nodePool": pool, **msgspec.to_builtins(fact)} for pool, fact in plan.waiting
        ],
        "toDo": [verdict_json(verdict) for verdict in plan.to_do],
        "notNow": [verdict_json(verdict) for verdict in plan.not_now],
        "consolidation": None if plan.consolidation is None else as_json(plan.consolidation),
        "settled": plan.settled,
        "nextAt": to_the_second(plan.next_at),
        "notes": setting.notes,
    }
    return msgspec.json.encode(shown).decode()
