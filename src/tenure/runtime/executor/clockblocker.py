"""What is not carried out while the clock of the replica that acts is wrong, and how that is said.

Deciders know no clocks, so no verdict names this blocker by itself. The executor asks here before a call
leaves, and the commands that only read show the same as a blocker of the verdict.
"""

from __future__ import annotations

import msgspec

from tenure.core.decision import Action, Blocker, Create, Patch, Subject, Verdict, takes_away
from tenure.model.api.names import TERMINATION_TIMESTAMP
from tenure.runtime.clock.facts import ClockSkewed


def depends_on_time(action: Action) -> bool:
    """Whether a wrong clock may be the reason for it: it takes away, sets a deadline, or begins what could
    not end: a command would launch a replacement and close a Node that then stays.
    """
    if isinstance(action, Create):
        return bool(action.disrupts_for)
    if not isinstance(action, Patch):
        return takes_away(action)
    if action.begins or takes_away(action):
        return True
    annotations = action.body.get("metadata", {}).get("annotations") or {}
    return annotations.get(TERMINATION_TIMESTAMP) is not None


def blocked_by_clock(verdict: Verdict, off: str, holder: Subject) -> Verdict:
    """The verdict as the replica treats it: without an action that depends on time.

    ``off`` is empty while the clocks agree; ``holder`` says which replica it is.
    """
    if not off or verdict.action is None or not depends_on_time(verdict.action):
        return verdict
    blocker = Blocker(subject=holder, fact=ClockSkewed(off))
    return msgspec.structs.replace(verdict, action=None, blockers=(*verdict.blockers, blocker))
