"""What every decider is held to. Each check fails with an AssertionError that names the culprit."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from tenure.core.decider import AnyDecider
from tenure.core.decision import Verdict
from tenure.core.policy.deciders import decide_all, deciders
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot

SETTINGS = Settings()
#: The second list of deciders. The random clusters have no Deployment of Karpenter.
BESIDE = Settings(beside_karpenter=True, karpenter_version="1.15")
#: Every decider, of both lists.
EVERY = (*deciders(), *deciders(BESIDE))


def verdicts_of(decider: AnyDecider, snapshot: Snapshot, now: datetime) -> list[Verdict]:
    return decide_all(decider, snapshot, SETTINGS, now)


def check_one_verdict_per_subject(decider: AnyDecider, snapshot: Snapshot, now: datetime) -> None:
    subjects = Counter(str(v.subject) for v in verdicts_of(decider, snapshot, now))
    twice = [subject for subject, count in subjects.items() if count > 1]
    assert not twice, f"{decider.concern}: evaluated twice: {twice}"


def check_order_does_not_matter(
    decider: AnyDecider, one: Snapshot, other: Snapshot, now: datetime
) -> None:
    assert verdicts_of(decider, one, now) == verdicts_of(decider, other, now), (
        f"{decider.concern}: the answer depends on the order in which objects were listed"
    )


def check_honest_recheck(
    decider: AnyDecider, snapshot: Snapshot, now: datetime, later: timedelta
) -> None:
    """If nothing changes in the cluster, no verdict changes before its ``recheck_at``."""
    for key in sorted(set(decider.keys(snapshot))):
        view = decider.view(snapshot, key)
        if view is None:
            continue
        before = decider.decide(view, SETTINGS, now)
        recheck_at = min((v.recheck_at for v in before if v.recheck_at), default=None)
        assert recheck_at is None or recheck_at > now, (
            f"{decider.concern}/{key}: asks to be evaluated again at {recheck_at}, which is not after now"
        )
        if recheck_at is not None and now + later >= recheck_at:
            continue
        after = decider.decide(view, SETTINGS, now + later)
        assert list(before) == list(after), (
            f"{decider.concern}/{key}: changed by itself before {recheck_at}"
        )
