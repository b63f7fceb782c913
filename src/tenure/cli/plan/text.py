"""A plan in words, the verdict first; and as JSON, which is always whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from tenure.cli.consolidation.text import as_json, consolidation_lines
from tenure.cli.explain.alike import alike, is_example, without_conditions
from tenure.cli.explain.asjson import to_the_second, verdict_json
from tenure.cli.explain.text import action_words, blocker_texts, told_recheck
from tenure.cli.plan.planning import Key, Plan, key_of, twins_of
from tenure.cli.view.instants import dated, with_relative
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.facts import counted, some
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


def as_text(plan: Plan, setting: Setting, *, verbose: bool = False) -> str:
    return "\n".join(with_relative(_lines(plan, setting, verbose), plan.at))


def _lines(plan: Plan, setting: Setting, verbose: bool) -> Iterator[str]:
    twins = {} if verbose else twins_of(plan)
    not_now = plan.not_now if verbose else _once(_told_elsewhere(plan, twins))
    yield f"Plan: {_verdict_of(plan, not_now)}"
    yield from _known(plan, setting)
    shown = None if verbose else SHOWN
    if plan.waiting:
        yield ""
        yield from _waiting(plan)
    for title, verdicts in (("To do now", plan.to_do), ("Not now", not_now)):
        if verdicts:
            yield ""
            yield f"{title}: {len({verdict.subject for verdict in verdicts})}"
            yield from _heap(plan, verdicts, twins, shown)
    if plan.consolidation is not None:
        yield ""
        yield from consolidation_lines(plan.consolidation, shown)
    yield ""
    yield f"Settled: {', '.join(_settled(plan, verbose)) or 'nothing'}"


def _verdict_of(plan: Plan, not_now: Sequence[Verdict]) -> str:
    said = [f"{counted(len(plan.to_do), 'action')} now" if plan.to_do else "nothing to do now"]
    if not_now:
        said.append(f"{_by_reason(not_now)} not now")
    if plan.held:
        said.append("a wrong clock blocks actions")
    return f"{'; '.join(said)}; changes {_changes(plan)}"


def _by_reason(verdicts: Sequence[Verdict]) -> str:
    found: dict[Reason, set[Subject]] = {}
    for verdict in verdicts:
        found.setdefault(verdict.reason, set()).add(verdict.subject)
    ranked = sorted(found.items(), key=lambda item: -len(item[1]))
    named = [f"{len(subjects)} {reason}" for reason, subjects in ranked]
    more = [f"{len(named) - NAMED} more reasons"] if len(named) > NAMED + 1 else []
    return ", ".join([*(named[:NAMED] if more else named), *more])


def _known(plan: Plan, setting: Setting) -> Iterator[str]:
    also_at = f", {plan.also_at} after the start" if plan.also_at else ""
    yield f"  at        {format_time(plan.at)}{also_at}, for {setting.where}; nothing was changed"
    if setting.clock:
        yield f"  clock     {setting.clock}"
    if setting.leader:
        yield f"  acts      {setting.leader}"
    if plan.held:
        yield f"  blocked   {plan.held}"
    for note in setting.notes:
        yield f"  note      {note}"


def _told_elsewhere(plan: Plan, twins: Mapping[Key, Verdict]) -> list[Verdict]:
    """Without what a line about the claim, or about the pool's candidates, says as well."""
    told = {key_of(twin) for twin in twins.values()}
    return [
        verdict
        for verdict in plan.not_now
        if key_of(verdict) not in told and verdict.reason is not Reason.CANDIDATES_WAIT
    ]


def _waiting(plan: Plan) -> Iterator[str]:
    """How many candidates for voluntary disruption there are, by reason, and what they wait for."""
    reasons = Counter[str]()
    for _, fact in plan.waiting:
        reasons.update(dict(fact.reasons))
    total = sum(fact.waiting for _, fact in plan.waiting)
    named = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
    yield f"Candidates that wait: {total} of {reasons.total()} ({named})"
    yield from (f"    NodePool/{pool}: {fact}" for pool, fact in plan.waiting)


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


def _settled(plan: Plan, verbose: bool) -> Iterator[str]:
    """By kind: a Node and its claim are two objects and one node."""
    if not verbose:
        for kind, count in sorted(plan.settled_objects.items()):
            yield _kinds(count, kind)
        return
    for (reason, kind), count in sorted(plan.settled_by_kind.items()):
        yield f"{_kinds(count, kind)} {reason}"


def _kinds(count: int, kind: str) -> str:
    if count == 1:
        return f"1 {kind}"
    return f"{count} {kind.removesuffix('y')}ies" if kind.endswith("y") else f"{count} {kind}s"


def _heap(
    plan: Plan, verdicts: Iterable[Verdict], twins: Mapping[Key, Verdict], shown: int | None
) -> Iterator[str]:
    """``shown``: lines for one reason; None: each object on its own."""
    groups: dict[tuple[Reason, str], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict.reason, verdict.gate), []).append(verdict)
    for (reason, _), members in groups.items():
        yield f"  {reason}: {info_of(members[0]).meaning}"
        lines = [[one] for one in members]
        if shown is not None:
            lines = alike(members, plan.claims, plan.at, key=_action, due=_evaluated_again)
        for same in lines[:shown]:
            yield from _verdict(same[0], _who(same, twins))
        if more := sum(map(len, lines[len(lines) if shown is None else shown :])):
            yield f"    … and {more} more; --verbose shows each, and --json has all of them"


def _action(verdict: Verdict) -> object:
    return type(verdict.action)


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
    blockers = blocker_texts(verdict)
    for said in blockers[:SHOWN]:
        yield f"      blocked by {said}"
    if len(blockers) > SHOWN:
        yield f"      … and {len(blockers) - SHOWN} more"


def _changes(plan: Plan) -> str:
    if plan.to_do:
        return "as soon as the first action is carried out"
    if plan.next_at is not None:
        return f"at {format_time(plan.next_at)}, or when the cluster does"
    return "when the cluster does"


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
