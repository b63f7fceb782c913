"""The verdicts that say that a decider failed: on the key, and on the pools that it is about."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.facts import Fact
from tenure.core.provision.placement import CLUSTER
from tenure.core.reasons import Reason
from tenure.model.api.names import NODEPOOL
from tenure.model.api.resource import NODE_POOLS
from tenure.model.snapshot.snapshot import Snapshot

#: How long a key whose evaluation failed is left alone.
FAILURE_PAUSE: Final = timedelta(minutes=1)


def failed_verdicts(
    concern: Concern, key: str, name: str, fact: Fact, snapshot: Snapshot, now: datetime
) -> Iterator[Verdict]:
    """The pools are subjects as well, because operators look at objects, not at keys."""
    pools = snapshot.pools if key == CLUSTER else _pool_of(key, snapshot)
    subjects = [Subject.of(NODE_POOLS.kind, snapshot.pools[pool]) for pool in sorted(pools)]
    for subject in (Subject("Evaluation", f"{concern}/{name}"), *subjects):
        yield Verdict(
            concern=concern,
            subject=subject,
            reason=Reason.JUDGEMENT_FAILED,
            facts=(fact,),
            recheck_at=now + FAILURE_PAUSE,
        )


def _pool_of(key: str, snapshot: Snapshot) -> set[str]:
    """The pool that the key names, or the one of the claim or Node that it names."""
    thing = snapshot.claims.get(key) or snapshot.nodes.get(key)
    return {thing.labels.get(NODEPOOL, "") if thing is not None else key} & snapshot.pools.keys()
