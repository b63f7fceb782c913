"""Beside Karpenter: the deadline of a NodeClaim and what Tenure deletes, as questions about plain trees.

A deadline is Tenure's where the marks beside it say so and name the same instant. What another program has set
stays, and so does its claim, unless that is being deleted already. Each question answers with a sentence, or with
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tenure.model.api.meta import read_instant
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.check import read

_BY: Final = "tenure.dev/termination-by"
_AT: Final = "tenure.dev/termination-at"
MARKS: Final = frozenset({_BY, "tenure.dev/termination-because", _AT})
#: The reasons for which Tenure replaces nodes there.
REASONS: Final = ("Expired", "Unhealthy")

Annotations = Mapping[str, Any]


def is_ours(there: Annotations) -> bool:
    stamp = there.get(read.STAMP)
    return stamp is not None and there.get(_BY) == "tenure" and there.get(_AT) == stamp


def is_another_programs(there: Annotations) -> bool:
    return there.get(read.STAMP) is not None and not is_ours(there)


def is_of_tenure_in_charge(there: Annotations) -> bool:
    """It wrote one of these with each deadline, and not by which program."""
    marks = ("replaced-by", "disruption-reason", "repair-reason", "interruption")
    found = any(f"karpenter.sh/{mark}" in there for mark in marks)
    return found and "tenure.dev/disrupted-by" not in there


def is_our_command(there: Annotations) -> bool:
    ours = there.get("tenure.dev/disrupted-by") == "tenure"
    reason = there.get("karpenter.sh/disruption-reason")
    return ours and "karpenter.sh/replaced-by" in there and reason in REASONS


def stamped_beyond(written: Annotations, claim: Obj) -> str:
    """The deadline stands with its marks or not at all; one of another program changes only if its claim leaves,
    and then no deadline goes: a drain that was bounded stays so."""
    there = dig(claim, "metadata", "annotations") or {}
    after = {key: value for key, value in {**there, **written}.items() if value is not None}
    goes = written.get(read.STAMP, "") is None
    left_over = goes and is_of_tenure_in_charge(there) and not is_of_tenure_in_charge(after)
    live = not read.is_leaving(claim)
    if not live and goes:
        return "the deadline of a NodeClaim that is being deleted goes"
    if read.STAMP in written and is_another_programs(there) and live and not left_over:
        return "the deadline is another program's"
    if written.get(read.STAMP) is not None and not (is_ours(after) and after.keys() >= MARKS):
        return "a deadline without its marks"
    set_ = any(written.get(key) is not None for key in MARKS)
    left = after.keys() & MARKS and not is_ours(after)
    if set_ and not is_ours(after):
        return "marks that are not of this deadline"
    return "marks without a deadline" if left and read.STAMP in written else ""


def deleted_beyond(claim: Obj) -> str:
    """What is replaced by a command of ours, a replacement that Tenure has created, or what carries a deadline
    of ours. Whether it may go by then ``departures`` asks."""
    there = dig(claim, "metadata", "annotations") or {}
    if is_another_programs(there) and not read.is_leaving(claim):
        return "its deadline is another program's"
    created = there.get("tenure.dev/created-by") == "tenure" and "karpenter.sh/replaces" in there
    if is_our_command(there) or created:
        return ""
    if is_ours(there) and read_instant(there[read.STAMP]) is not None:
        return ""
    return "without a command or a deadline of ours"
