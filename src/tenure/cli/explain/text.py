"""An explanation in words: the verdict that governs first, then what is known, then the other verdicts.

Of the others only what is news: no line that says what a line above has said, and none about what is not done.
``--verbose`` has every line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from tenure.cli.consolidation.text import saving
from tenure.cli.explain.alike import alike
from tenure.cli.explain.budgettext import budget_lines
from tenure.cli.explain.explanation import Explanation, needs_attention
from tenure.cli.explain.policytext import policy_lines
from tenure.cli.explain.repairtext import repair_lines
from tenure.cli.explain.scheduletext import timetable_lines
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
from tenure.core.facts import Fact, instants_of, parts, some, told
from tenure.core.gates.explained import info_of
from tenure.core.reasons import NO_ADVICE, Reason
from tenure.model.api.meta import format_time
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS

#: Verdicts on what an object stands on; a pool may have a thousand unhealthy Nodes.
SHOWN: Final = 20
#: Concerns whose names are not words.
_WORDS: Final = {
    Concern.POOL_POLICY: "pool policy",
    Concern.REPAIR_LEVER: "repair lever",
    Concern.LEFT_OVER: "left over",
}


def as_text(answer: Explanation, width: int | None = None, *, verbose: bool = False) -> str:
    """``width``: of the terminal; None where the output is none."""
    return "\n".join(with_relative(_lines(answer, width, verbose), answer.at))


def _lines(answer: Explanation, width: int | None, verbose: bool) -> Iterator[str]:
    also_at = f", {answer.also_at} after the start" if answer.also_at else ""
    yield f"{answer.subject} at {format_time(answer.at)}{also_at}"
    told = _Told(
        advised=answer.launches_nothing is not None
        or any(map(needs_attention, (*answer.verdicts, *answer.around))),
        verbose=verbose,
    )
    if answer.held:
        yield f"  blocked   {answer.held}"
    own = list(answer.verdicts if verbose else _own(answer.verdicts))
    if not own:
        yield f"  verdict   {nothing_to_decide(answer)}"
        if answer.advice:
            yield f"  advice    {answer.advice}"
    for verdict in own[:1]:
        yield from told.first(verdict)
        yield from _change_lines(answer.changes)
    yield from _known(answer)
    for verdict in own[1:]:
        yield ""
        yield f"also ({_concern(verdict)})"
        yield from told.further(verdict)
    yield from _around(answer, told)
    for outlook in answer.repairs:
        yield ""
        yield from repair_lines(outlook, width)
    for table in answer.timetables:
        yield ""
        yield from timetable_lines(table, answer.at, held=answer.held, width=width)


def _known(answer: Explanation) -> Iterator[str]:
    """What is known of the object, beside what was concluded."""
    if answer.clock:
        yield f"  clock     {answer.clock}"
    if answer.leader:
        yield f"  acts      {answer.leader}"
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


def _around(answer: Explanation, told: _Told) -> Iterator[str]:
    if told.verbose:
        groups = [[one] for one in answer.around]
        shown = len(groups)
    else:
        around = _not_repeated(answer)
        groups = alike(around, answer.claims, answer.at, key=_apart, due=told_recheck)
        shown = SHOWN
    for first, *others in groups[:shown]:
        yield ""
        yield f"{first.subject} ({_concern(first)}){_and_others(others)}"
        yield from told.further(first)
    if unshown := sum(map(len, groups[shown:])):
        yield ""
        yield f"… and {unshown} more; --verbose shows each, and --json has all of them"


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
    return verdict.concern, verdict.reason, action


def _and_others(others: Sequence[Verdict]) -> str:
    if not others:
        return ""
    named = ", ".join(str(one.subject) for one in others[:SHOWN])
    rest = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
    return f"; the same of {len(others)} more: {named}{rest}"


def nothing_to_decide(answer: Explanation) -> str:
    said = f"Tenure has nothing to decide about {answer.subject}"
    return f"{said}: {answer.silence}" if answer.silence else said


def advice_on(verdict: Verdict) -> str:
    """What an operator can do about it; empty: nothing."""
    advice = info_of(verdict).advice
    return "" if advice == NO_ADVICE else advice


class _Told:
    """The lines of verdicts, one after the other.

    ``advised``: one of them asks for something, so that none may say "nothing to do".
    """

    def __init__(self, *, advised: bool, verbose: bool) -> None:
        self.verbose = verbose
        self._advised = advised
        self._said: set[str] = set()

    def first(self, verdict: Verdict) -> Iterator[str]:
        info = info_of(verdict)
        yield f"  verdict   {verdict.reason}: {verdict.message}"
        yield from self._once(f"  meaning   {info.meaning}")
        yield from _blocked(verdict)
        yield f"  action    {action_words(verdict.action)}"
        yield f"  changes   {_change(verdict)}"
        if advice_on(verdict) or not self._advised:
            yield from self._once(f"  advice    {info.advice}")

    def further(self, verdict: Verdict) -> Iterator[str]:
        """What is not done, and what only the cluster can change, is the usual case: no line says it."""
        if self.verbose:
            self._said.clear()
            yield from self.first(verdict)
            return
        yield f"  verdict   {verdict.reason}: {verdict.message}"
        yield from self._once(f"  meaning   {info_of(verdict).meaning}")
        yield from _blocked(verdict)
        if verdict.action is not None:
            yield f"  action    {action_words(verdict.action)}"
        elif (at := told_recheck(verdict)) is not None and not _names(verdict, at):
            yield f"  changes   {_change(verdict)}"
        if advice := advice_on(verdict):
            yield from self._once(f"  advice    {advice}")

    def _once(self, line: str) -> Iterator[str]:
        if line not in self._said:
            self._said.add(line)
            yield line


def _blocked(verdict: Verdict) -> Iterator[str]:
    yield from (f"  blocked   by {said}" for said in blocker_texts(verdict))


def blocker_texts(verdict: Verdict) -> list[str]:
    """Who blocks it, and why; several with the same sentence together, what can be changed before the pods."""
    who: dict[str, list[str]] = {}
    for blocker in sorted(untold(verdict), key=lambda one: one.subject.kind == PODS.kind):
        said = dated((blocker.fact,), "until", blocker.until)
        who.setdefault(said, []).append(str(blocker.subject))
    return [f"{some(names)}: {said}" for said, names in who.items()]


def _names(verdict: Verdict, at: datetime) -> bool:
    """Whether its message names the instant already."""
    return format_time(at) in map(format_time, instants_of(verdict.facts))


def untold(verdict: Verdict) -> list[Blocker]:
    """The blockers that the facts of the verdict do not tell of already, with until when."""
    known = set(told(verdict.facts))
    instants = set(map(format_time, instants_of(verdict.facts)))
    return [
        one
        for one in verdict.blockers
        if not known.issuperset(parts(one.fact))
        or (one.until is not None and format_time(one.until) not in instants)
    ]


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
