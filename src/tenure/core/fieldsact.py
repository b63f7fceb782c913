"""Decide what a pool, or a claim without one, is told of its fields: those that nothing acts on, and those that act
otherwise than in Karpenter.

The condition ``FieldsAct`` holds it, so that the event is recorded once: a restart finds the condition. An object that
never used such a field has no such condition.
"""

from __future__ import annotations

from typing import Final

from tenure.core.conditions import MESSAGE_MAX, Wanted
from tenure.core.facts import Fact, FieldDiffers, FieldIgnored, FieldsAct, sentence
from tenure.core.reasons import Reason
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.governed import as_written
from tenure.schema.fieldmarks import Mark
from tenure.schema.fields import UsedField, used_by

FIELDS_ACT: Final = "FieldsAct"


def fields_told(obj: NodePool | NodeClaim) -> tuple[Reason, tuple[Fact, ...], Wanted] | None:
    """None where the status says it already, or there is nothing to say. Of an object without problems."""
    facts = tuple(_fact(one) for one in used_by(as_written(obj)))
    known = obj.condition(FIELDS_ACT)
    if not facts and known is None:
        return None
    ignored = any(isinstance(fact, FieldIgnored) for fact in facts)
    reason = Reason.FIELDS_IGNORED if ignored else Reason.FIELDS_DIFFER
    if not facts:
        facts, reason = (FieldsAct(),), Reason.POOL_STATUS_CHANGED
    code = str(reason) if reason is not Reason.POOL_STATUS_CHANGED else FIELDS_ACT
    wanted = Wanted(FIELDS_ACT, "False" if ignored else "True", code, sentence(facts))
    same = known is not None and (known.status, known.reason, known.message) == (
        wanted.status,
        wanted.reason,
        wanted.message[:MESSAGE_MAX],
    )
    return None if same else (reason, facts, wanted)


def _fact(used: UsedField) -> Fact:
    how = used.mark.how.rstrip(".")
    how = f"{how[0].lower()}{how[1:]}"
    return (FieldIgnored if used.mark.mark is Mark.IGNORED else FieldDiffers)(used.at, how)
