"""The smallest change that would place a pod that fits nowhere.

Single changes are tried in a fixed order, and each that is named was verified: the whole problem was
packed again with it, and the pod has a place. Those come first that change least of what the user asked
for:

1. a higher limit of a NodePool;
2. a toleration;
3. another value of a label that the pod requires;
4. a smaller request, if at least half of it is left;
5. no affinity or anti-affinity term, or a topology spread that is a preference;
6. fewer ``minValues`` in a NodePool, another host port, a label of a NodePool;
7. an even smaller request, no anti-affinity of running pods, other volumes;
8. a NodePool that offers a resource.

It is asked for on demand alone (``tenure explain``): up to 120 packings of at most 500 pods. Same problem,
same answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from tenure.packing.advice import podchanges, poolchanges
from tenure.packing.advice.facts import Change, NoSingleChange
from tenure.packing.advice.trial import Trial
from tenure.packing.demand.problem import Problem

#: So many changes are named.
NAMED: Final = 3


def smallest_changes(problem: Problem, uid: str) -> tuple[Change | NoSingleChange, ...]:
    """The smallest change first, then others that would do. ``uid``: of a pod that fits nowhere."""
    trial = Trial(problem, uid)
    if uid not in trial.base.unplaced:
        return ()
    found = tuple(islice(_changes(trial), NAMED))
    return found or (NoSingleChange(trial.packs, more=trial.spent),)


def _changes(trial: Trial) -> Iterator[Change]:
    yield from poolchanges.limits(trial)
    yield from podchanges.taints(trial)
    yield from podchanges.values(trial)
    smaller = list(podchanges.requests(trial))
    yield from (change for modest, change in smaller if modest)
    yield from podchanges.topology(trial)
    yield from poolchanges.min_values(trial)
    yield from podchanges.ports(trial)
    yield from poolchanges.labels(trial)
    yield from (change for modest, change in smaller if not modest)
    yield from podchanges.of_others(trial)
    yield from podchanges.volumes(trial)
    yield from poolchanges.resources(trial)
