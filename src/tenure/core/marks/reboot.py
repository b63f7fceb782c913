"""When a node was rebooted, and how a reboot is committed: two writes on its claim.

First the instant goes into the history and the bound of the drain beside it, in one patch;
then the condition ``Rebooting`` becomes True. A crash between the two is resumed without a
second entry: the newest one is then no older than the last transition of that condition. After
ten minutes it is replaced by an entry of its own: an old instant would leave the last day too early,
and a third reboot within 24 hours would follow.

It is called off in two writes as well: first its entry is struck out, then the condition becomes
False. An entry that is struck out no longer counts, and says after a crash what was decided.

The history is an annotation that users can edit. What cannot be read in it, or lies ahead of
any clock that may be wrong, counts as not there: one reboot more disturbs less than the
replacement that would follow, and each writes an entry that can be read. Of a text that is too
long only the end is read, where the newest entries are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from tenure.core.conditions import Wanted
from tenure.core.decision import Action
from tenure.core.marks.command import REASON_CONDITION, says_reason
from tenure.core.marks.ownership import claim_status
from tenure.core.writes import patch
from tenure.errors import SpecError
from tenure.model.api.meta import LONG_AGO, Condition, earlier, later, read_instant
from tenure.model.api.names import REBOOT_GRACE_PERIOD, REBOOT_HISTORY, REBOOT_PRE_BOOT_ID
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.values.duration import Duration, parse_duration
from tenure.model.values.text import PARSED_MAX

REBOOTING: Final = "Rebooting"
#: Ours alone: how far it is. Unknown: drained; True: the cloud has accepted; False: failed.
ISSUED: Final = "RebootIssued"
SUCCEEDED: Final = "RebootSucceeded"
FAILED: Final = "RebootFailed"
CANCELLED: Final = "RebootCancelled"
#: How it failed.
PROVIDER_ERROR: Final = "ProviderError"
RECOVERY_TIMEOUT: Final = "RecoveryTimeout"
#: It failed, and a gate blocked its replacement at that time.
SPARED: Final = "Spared"
#: Behind an entry of the history: this one never took place.
_STRUCK_OUT: Final = " cancelled"

#: So many reboots within a day; then a node is replaced instead.
MOST: Final = 2
DAY: Final = timedelta(hours=24)
#: The clock of the writer of an entry may run ahead by so much.
SKEW: Final = timedelta(minutes=5)
#: A reboot that is half committed for longer than that is committed anew.
RESUMED_WITHIN: Final = timedelta(minutes=10)


def recent(claim: NodeClaim, now: datetime) -> tuple[datetime, ...]:
    """When reboots of the last day were committed, in order.

    One that is half committed has not been yet: else the second would become a replacement.
    """
    known = _known(claim, now)
    return known[:-1] if _half_committed_at(claim, known) is not None else known


def changes_at(claim: NodeClaim, now: datetime) -> datetime | None:
    """When ``recent``, and with it what is committed, next differs by itself."""
    turns = [turn for at in _history(claim) for turn in (earlier(at, SKEW), later(at, DAY))]
    begun_at = _half_committed_at(claim, _known(claim, now))
    if begun_at is not None:
        turns.append(later(begun_at, RESUMED_WITHIN))
    return min((turn for turn in turns if turn > now), default=None)


def rebooted_at(claim: NodeClaim) -> datetime | None:
    """The end of the last reboot, good, bad or called off; None while there is one, or never was."""
    condition = claim.condition(REBOOTING)
    if condition is None or condition.status != "False":
        return None
    return condition.last_transition_time


def requested_at(claim: NodeClaim) -> datetime:
    """When the reboot that is under way was asked for."""
    condition = claim.condition(REBOOTING)
    at = condition.last_transition_time if condition is not None else None
    return at if at is not None else claim.created_at


def mark_of(claim: NodeClaim) -> Condition | None:
    """``RebootIssued``, if it is about the last reboot and not about one before."""
    mark = claim.condition(ISSUED)
    if mark is None or not claim.rebooting or mark.last_transition_time is None:
        return mark
    return mark if mark.last_transition_time >= requested_at(claim) else None


def is_issued(claim: NodeClaim) -> bool:
    """Whether the cloud has accepted it: by our mark, or by Karpenter's condition, which has no mark."""
    mark, condition = mark_of(claim), claim.condition(REBOOTING)
    if mark is not None or condition is None:
        return mark is not None and mark.status == "True"
    return claim.rebooting and condition.reason == ISSUED


def issued_at(claim: NodeClaim) -> datetime:
    """When it was; Karpenter counts from when ``Initialized`` became Unknown."""
    said = mark_of(claim) or claim.condition("Initialized")
    at = said.last_transition_time if said is not None and said.status != "False" else None
    return at if at is not None and at >= requested_at(claim) else requested_at(claim)


def has_failed(claim: NodeClaim) -> bool:
    """Whether its last reboot has failed so that it has to be replaced at once."""
    return _failure(claim) not in ("", SPARED)


def is_spared(claim: NodeClaim) -> bool:
    """Whether its last reboot has failed, and it was not replaced: that is decided like any repair."""
    return _failure(claim) == SPARED


def _failure(claim: NodeClaim) -> str:
    condition, mark = claim.condition(REBOOTING), claim.condition(ISSUED)
    if condition is None or mark is None or mark.status != "False":
        return ""
    failed = (condition.status, condition.reason) == ("False", FAILED)
    return (mark.reason or PROVIDER_ERROR) if failed else ""


def result_of(claim: NodeClaim) -> str:
    """How its last reboot ended, in Karpenter's words."""
    condition, mark = claim.condition(REBOOTING), claim.condition(ISSUED)
    if condition is not None and condition.reason == SUCCEEDED:
        return "succeeded"
    if condition is not None and condition.reason == CANCELLED:
        return "cancelled"
    if mark is None:
        return "invalid_request"
    return "recovery_timeout" if mark.reason == RECOVERY_TIMEOUT else "provider_error"


def bound_of(claim: NodeClaim) -> timedelta | None:
    """How long the drain before the reboot may take; None: as long as its pods make it wait."""
    written = claim.annotations.get(REBOOT_GRACE_PERIOD)
    if written is None:
        return None
    try:
        bound = parse_duration(written, REBOOT_GRACE_PERIOD).timedelta
    except OverflowError:
        bound = -timedelta(1)
    if bound < timedelta() or bound > _LONGEST:
        raise SpecError(REBOOT_GRACE_PERIOD, written, "a Go duration that is not negative")
    return bound


def commit(
    claim: NodeClaim, bound: timedelta | None, reason: str, why: str, now: datetime
) -> Action | None:
    """The next of the two writes; None for a claim that is rebooting, terminating or spared.

    ``bound``: how long the drain may take; None: as long as its pods make it wait. ``reason``: of
    the disruption.
    """
    if claim.rebooting or claim.deleting or _failure(claim):
        return None
    begun_at = _half_committed_at(claim, _known(claim, now))
    begun = begun_at is not None and now < later(begun_at, RESUMED_WITHIN)
    annotations: dict[str, Any] = {}
    if REBOOT_PRE_BOOT_ID in claim.annotations:
        annotations[REBOOT_PRE_BOOT_ID] = None  # Of another reboot: this one has noted nothing yet.
    span = None if bound is None else str(Duration.of(bound))
    if claim.annotations.get(REBOOT_GRACE_PERIOD) != span:
        annotations[REBOOT_GRACE_PERIOD] = span
    if not begun:
        # What is older can no longer make a difference. The executor appends the instant.
        kept = recent(claim, now)[-(MOST - 1) :]
        annotations[REBOOT_HISTORY] = "".join(f"{_written(at)}," for at in kept)
    if annotations:
        action = patch(claim, {"annotations": annotations})
        dated = "" if begun else REBOOT_HISTORY
        return msgspec.structs.replace(action, dated=dated)
    return claim_status(
        claim,
        Wanted(REBOOTING, "True", "RebootRequested", why),
        says_reason(reason),
    )


def note_boot(claim: NodeClaim, boot_id: str) -> Action:
    """Before it is asked for: which boot of the Node this is."""
    return patch(claim, {"annotations": {REBOOT_PRE_BOOT_ID: boot_id}})


def marks_left(claim: NodeClaim, *, deleting: bool = False) -> tuple[str, ...]:
    """Annotations of a reboot that has ended. Its grace period may stay, unless the claim leaves."""
    keys = (REBOOT_PRE_BOOT_ID, REBOOT_GRACE_PERIOD) if deleting else (REBOOT_PRE_BOOT_ID,)
    return tuple(key for key in keys if key in claim.annotations)


def take_off(claim: NodeClaim, marks: Iterable[str]) -> Action:
    return patch(claim, {"annotations": dict.fromkeys(marks)})


def is_called_off(claim: NodeClaim) -> bool:
    """Whether the reboot that is under way has been struck out: there is no way back then."""
    return claim.rebooting and _entries(claim)[-1].endswith(_STRUCK_OUT)


def end(claim: NodeClaim, why: str) -> Action | None:
    """Of a claim that is being deleted: whatever was under way is not waited for any more."""
    return claim_status(
        claim, Wanted(REBOOTING, "False", CANCELLED, why), drop=(ISSUED, REASON_CONDITION)
    )


def as_if_not_rebooted(claim: NodeClaim, now: datetime) -> NodeClaim:
    """The claim after ``end``, for forecasts: its tolerations count from now on."""
    if not claim.rebooting:
        return claim
    ended = Condition(type=REBOOTING, status="False", reason=CANCELLED, last_transition_time=now)
    kept = (one for one in claim.status.conditions if one.type not in (REBOOTING, ISSUED))
    status = msgspec.structs.replace(claim.status, conditions=(*kept, ended))
    return msgspec.structs.replace(claim, status=status)


def call_off(claim: NodeClaim, why: str) -> Action | None:
    """The next of the two writes; the second alone where there is no entry to strike out."""
    entries = _entries(claim)
    if entries[-1] and not entries[-1].endswith(_STRUCK_OUT):
        struck = ",".join([*entries[:-1], entries[-1] + _STRUCK_OUT])
        return patch(claim, {"annotations": {REBOOT_HISTORY: struck}})
    return end(claim, why)


def _known(claim: NodeClaim, now: datetime) -> tuple[datetime, ...]:
    return tuple(at for at in _history(claim) if earlier(now, DAY) < at <= later(now, SKEW))


def _half_committed_at(claim: NodeClaim, known: tuple[datetime, ...]) -> datetime | None:
    """When the first write was done, if the second is not.

    Instants have whole seconds, and the next reboot may be due in the second in which the last
    one ended. That ended no reboot of the same second: none is that quick, but for one that was
    never issued.
    """
    if not known or claim.rebooting or known[-1] < _last_transition(claim):
        return None
    return known[-1]


def _last_transition(claim: NodeClaim) -> datetime:
    condition = claim.condition(REBOOTING)
    at = condition.last_transition_time if condition is not None else None
    return at if at is not None else LONG_AGO


def _history(claim: NodeClaim) -> list[datetime]:
    return sorted(_readable(_entries(claim)))


def _entries(claim: NodeClaim) -> list[str]:
    """As they are written, one at least; the newest comes last."""
    written = claim.annotations.get(REBOOT_HISTORY, "")
    parts = written[-PARSED_MAX:].split(",")
    if len(written) > PARSED_MAX:
        parts[0] = ""  # The end of an entry may read like another one.
    return [part.strip() for part in parts]


def _readable(entries: Iterable[str]) -> Iterator[datetime]:
    for entry in entries:
        at = read_instant(entry)
        if at is not None and at.year in _YEARS:
            yield at


#: More than that is as good as for ever, and calendars end somewhere.
_LONGEST: Final = timedelta(days=36_500)
#: Instants that a day can be added to, or taken from.
_YEARS: Final = range(1970, 9999)


def _written(at: datetime) -> str:
    """As it was, whole seconds or not: an entry that is kept does not change."""
    return at.isoformat().replace("+00:00", "Z")
