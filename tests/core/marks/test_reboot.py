"""How often a node was rebooted, and the two writes that commit to it once more."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tenure.core.decision import Patch
from tenure.core.marks.reboot import MOST, changes_at, commit, rebooted_at, recent, result_of
from tenure.model.api.meta import format_time
from tenure.model.api.names import REBOOT_GRACE_PERIOD, REBOOT_HISTORY, REBOOT_PRE_BOOT_ID
from tenure.model.api.nodeclaim import NodeClaim
from tests.core.build import NOW, a_claim, a_leaving_claim, ago, condition

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


ONCE_BEFORE = condition("Rebooting", "False", "RebootSucceeded", at=ago(1))


def with_history(*instants: datetime | str, bound: str | None = None, **given: Any) -> NodeClaim:
    written = [at if isinstance(at, str) else format_time(at) for at in instants]
    annotations = {REBOOT_HISTORY: ", ".join(written), **given.pop("more", {})}
    if bound is not None:
        annotations[REBOOT_GRACE_PERIOD] = bound
    return a_claim(annotations=annotations, **given)


def ended(at: datetime, status: str = "False") -> Any:
    return condition("Rebooting", status, "RebootSucceeded", at=at)


def next_write(claim: NodeClaim, bound: timedelta | None = MINUTE) -> Patch:
    action = commit(claim, bound, "Unhealthy", "KWOKRebootRequired=True", NOW)
    assert isinstance(action, Patch)
    return action


# -- the history -------------------------------------------------------------------------


def test_reboots_of_the_last_day_count_and_older_ones_do_not() -> None:
    instants = (NOW - 25 * HOUR, NOW - 24 * HOUR, NOW - 23 * HOUR, NOW - HOUR)
    claim = with_history(*instants, conditions=(ONCE_BEFORE,))
    assert recent(claim, NOW) == (NOW - 23 * HOUR, NOW - HOUR)
    assert len(recent(claim, NOW)) == MOST
    assert changes_at(claim, NOW) == NOW + HOUR
    assert recent(claim, NOW + HOUR) == (NOW - HOUR,)


@pytest.mark.parametrize(
    "nonsense", ["", "yesterday", "2026-03-02T11:00:00", ",,", "9999-12-31T23:59:59Z", "null"]
)
def test_what_cannot_be_read_counts_as_no_reboot(nonsense: str) -> None:
    """One reboot more disturbs less than the replacement that would follow."""
    assert recent(with_history(nonsense), NOW) == ()
    once = with_history(nonsense, ago(60), conditions=(ONCE_BEFORE,))
    assert recent(once, NOW) == (ago(60),)


class Long(str):
    """A text that fails where more of it is looked through than a parser may."""

    __slots__ = ()

    def split(self, *_: Any) -> Any:
        raise AssertionError(f"{len(self)} characters were split")


def test_of_a_long_history_only_the_newest_entries_are_read() -> None:
    over = (ONCE_BEFORE,)
    commas = Long("," * 250_000)
    assert recent(a_claim(annotations={REBOOT_HISTORY: commas}, conditions=over), NOW) == ()
    newest = Long(f"{commas}{format_time(ago(60))}")
    claim = a_claim(annotations={REBOOT_HISTORY: newest}, conditions=over)
    assert recent(claim, NOW) == (ago(60),)
    assert changes_at(claim, NOW) == ago(60) + 24 * HOUR


def test_the_rest_of_an_entry_that_was_cut_is_not_an_entry() -> None:
    cut = f"+{format_time(ago(60))}," + "x" * (512 - len(format_time(ago(60))) - 1)
    assert recent(with_history(cut, conditions=(ONCE_BEFORE,)), NOW) == ()


def test_an_entry_far_ahead_counts_once_it_can_be_true() -> None:
    claim = with_history(NOW + HOUR, conditions=(ended(NOW + 2 * HOUR),))
    assert recent(claim, NOW) == ()
    assert changes_at(claim, NOW) == NOW + 55 * MINUTE
    assert recent(claim, NOW + 55 * MINUTE) == (NOW + HOUR,)


def test_a_claim_without_a_history_was_never_rebooted() -> None:
    assert (recent(a_claim(), NOW), changes_at(a_claim(), NOW)) == ((), None)
    assert rebooted_at(a_claim()) is None


def test_a_reboot_ends_when_its_condition_says_so() -> None:
    assert rebooted_at(a_claim(conditions=(ended(ago(60)),))) == ago(60)
    assert rebooted_at(a_claim(conditions=(ended(ago(60), "True"),))) is None


# -- the two writes ----------------------------------------------------------------------


def test_the_first_write_notes_the_instant_and_the_bound_of_the_drain() -> None:
    action = next_write(a_claim())
    assert action.body["metadata"] == {
        "annotations": {REBOOT_GRACE_PERIOD: "1m0s", REBOOT_HISTORY: ""},
        "resourceVersion": "7",
        "uid": "uid-a",
    }
    assert (action.dated, action.subresource) == (REBOOT_HISTORY, "")


def test_the_second_write_says_that_it_is_rebooting_and_why() -> None:
    action = next_write(with_history(ago(1), bound="1m0s"))
    said = {c["type"]: c for c in action.body["status"]["conditions"]}
    assert (action.subresource, action.dated) == ("status", "")
    assert said["Rebooting"]["status"] == "True"
    assert said["Rebooting"]["reason"] == "RebootRequested"
    assert said["Rebooting"]["message"] == "KWOKRebootRequired=True"
    assert "lastTransitionTime" not in said["Rebooting"]
    assert said["DisruptionReason"]["status"] == "True"
    assert said["DisruptionReason"]["reason"] == "Unhealthy"


def test_the_second_reboot_is_written_behind_the_first() -> None:
    claim = with_history(NOW - 2 * HOUR, bound="1m0s", conditions=(ended(NOW - HOUR),))
    action = next_write(claim)
    assert action.body["metadata"]["annotations"] == {REBOOT_HISTORY: "2026-03-02T10:00:00Z,"}
    assert action.dated == REBOOT_HISTORY


def test_a_bound_of_an_earlier_reboot_is_taken_off_where_there_is_none_now() -> None:
    claim = with_history(NOW - 2 * HOUR, bound="5m0s", conditions=(ended(NOW - HOUR),))
    assert next_write(claim, None).body["metadata"]["annotations"][REBOOT_GRACE_PERIOD] is None


def test_the_boot_id_of_an_earlier_reboot_is_taken_off_by_the_first_write() -> None:
    """Else the next one would look as if it had taken place already."""
    old = a_claim(annotations={REBOOT_PRE_BOOT_ID: "boot-1"})
    assert next_write(old).body["metadata"]["annotations"][REBOOT_PRE_BOOT_ID] is None
    half = with_history(ago(1), bound="1m0s", more={REBOOT_PRE_BOOT_ID: "boot-1"})
    action = next_write(half)
    assert action.body["metadata"]["annotations"] == {REBOOT_PRE_BOOT_ID: None}
    assert action.dated == "", "without a second entry"


def test_a_crash_between_the_two_is_resumed_without_a_second_entry() -> None:
    once_before = with_history(
        NOW - 2 * HOUR, ago(3), bound="1m0s", conditions=(ended(NOW - HOUR),)
    )
    assert next_write(once_before).subresource == "status"


def test_a_reboot_that_is_half_committed_does_not_count_against_itself() -> None:
    """Else the second of a day would become a replacement between its two writes."""
    last = ended(NOW - HOUR)
    half = with_history(NOW - 2 * HOUR, ago(3), bound="1m0s", conditions=(last,))
    assert recent(half, NOW) == (NOW - 2 * HOUR,)
    under_way = condition("Rebooting", "True", "RebootRequested", at=ago(3))
    whole = with_history(NOW - 2 * HOUR, ago(3), bound="1m0s", conditions=(under_way,))
    assert len(recent(whole, NOW)) == MOST


def test_the_next_reboot_may_be_committed_in_the_second_in_which_the_last_one_ended() -> None:
    """Nothing is tolerated, and instants have whole seconds."""
    half = with_history(NOW - HOUR, ago(3), bound="1m0s", conditions=(ended(ago(3)),))
    assert recent(half, NOW) == (NOW - HOUR,), "else it would be replaced after one reboot"
    assert next_write(half).subresource == "status", "no second entry"


def test_a_reboot_that_was_called_off_counts_for_nothing() -> None:
    over = condition("Rebooting", "False", "RebootCancelled", at=ago(60))
    struck_out = f"{format_time(ago(90))} cancelled"
    claim = with_history(NOW - HOUR, struck_out, bound="1m0s", conditions=(over,))
    assert recent(claim, NOW) == (NOW - HOUR,)
    written = next_write(claim).body["metadata"]["annotations"]
    assert written == {REBOOT_HISTORY: "2026-03-02T11:00:00Z,"}


def test_a_bound_that_changed_meanwhile_is_written_without_a_second_entry() -> None:
    action = next_write(with_history(ago(3), bound="5m0s"))
    assert action.body["metadata"]["annotations"] == {REBOOT_GRACE_PERIOD: "1m0s"}
    assert action.dated == ""


def test_an_entry_that_never_became_a_reboot_is_forgotten_after_a_day() -> None:
    action = next_write(with_history(NOW - 25 * HOUR, bound="1m0s"))
    assert action.body["metadata"]["annotations"] == {REBOOT_HISTORY: ""}


def test_an_entry_that_did_not_become_a_reboot_in_time_is_replaced_by_a_new_one() -> None:
    """Else the reboot would count from then, and a third one within a day would follow."""
    last = (ended(NOW - 2 * HOUR),)
    late = with_history(NOW - 3 * HOUR, NOW - 11 * MINUTE, bound="1m0s", conditions=last)
    action = next_write(late)
    assert action.body["metadata"]["annotations"] == {REBOOT_HISTORY: "2026-03-02T09:00:00Z,"}
    assert action.dated == REBOOT_HISTORY
    assert recent(late, NOW) == (NOW - 3 * HOUR,)
    in_time = with_history(NOW - 3 * HOUR, NOW - 9 * MINUTE, bound="1m0s", conditions=last)
    assert next_write(in_time).subresource == "status"
    assert changes_at(in_time, NOW) == NOW + MINUTE, "then it is committed anew"


def test_nonsense_does_not_survive_the_next_reboot() -> None:
    claim = with_history(
        "soon", NOW - 2 * HOUR, "9998-01-01T00:00:00Z", conditions=(ended(NOW - HOUR),)
    )
    written = next_write(claim).body["metadata"]["annotations"][REBOOT_HISTORY]
    assert written == "2026-03-02T10:00:00Z,"


def test_a_claim_that_is_rebooting_or_leaving_is_not_committed_again() -> None:
    rebooting = a_claim(conditions=(condition("Rebooting", "True", "RebootRequested"),))
    assert commit(rebooting, MINUTE, "Unhealthy", "unhealthy", NOW) is None
    assert commit(a_leaving_claim(), MINUTE, "Unhealthy", "unhealthy", NOW) is None


def test_a_claim_whose_reboot_has_failed_is_replaced_and_not_committed_again() -> None:
    failed = (
        condition("Rebooting", "False", "RebootFailed"),
        condition("RebootIssued", "False", "RecoveryTimeout"),
    )
    assert commit(a_claim(conditions=failed), MINUTE, "Unhealthy", "unhealthy", NOW) is None


# -- how it ended ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "mark", "result"),
    [
        ("RebootSucceeded", "", "succeeded"),
        ("RebootCancelled", "", "cancelled"),
        ("RebootFailed", "", "invalid_request"),
        ("RebootFailed", "ProviderError", "provider_error"),
        ("RebootFailed", "RecoveryTimeout", "recovery_timeout"),
    ],
)
def test_the_result_is_in_the_conditions(reason: str, mark: str, result: str) -> None:
    told = [condition("Rebooting", "False", reason)]
    told += [condition("RebootIssued", "False", mark)] if mark else []
    assert result_of(a_claim(conditions=told)) == result
