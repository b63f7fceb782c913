"""An explanation as JSON: always whole, whatever its text folds."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from tenure.cli.explain.budgettext import budget_json
from tenure.cli.explain.explanation import Explanation
from tenure.cli.explain.policytext import policy_json
from tenure.cli.explain.repairtext import repair_json
from tenure.cli.explain.scheduletext import timetable_json
from tenure.cli.explain.text import action_words, advice_on, nothing_to_decide
from tenure.core.decision import Blocker, Verdict
from tenure.model.cloud.offering import MICRO_DOLLARS


def to_json(answer: Explanation) -> str:
    return msgspec.json.encode(to_value(answer)).decode()


def to_value(answer: Explanation) -> dict[str, Any]:
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
    return shown


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "subject": str(verdict.subject),
        "concern": verdict.concern,
        "reason": verdict.reason,
        "message": verdict.message,
        "facts": [msgspec.to_builtins(fact) for fact in verdict.facts],
        "blockers": [_blocker_json(one) for one in verdict.blockers],
        "action": None if verdict.action is None else action_words(verdict.action),
        "advice": advice_on(verdict),
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
        "lasting": blocker.lasting,
    }


def _nothing(answer: Explanation) -> dict[str, Any]:
    return {
        "subject": answer.subject,
        "concern": None,
        "reason": None,
        "message": nothing_to_decide(answer),
        "blockers": [],
        "action": None,
        "advice": answer.advice,
        "recheckAt": None,
    }
