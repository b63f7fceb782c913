"""Where pods fit: on the nodes there are, else on claims to be made, else nowhere, and why.

``pack`` answers for all pods at once, in this order:

1. pods are grouped into classes of equals (``demand.classes``); a class that asks for a resource that
   nothing offers stays out, and so does one with a constraint that is not modelled yet;
2. a pod that is nominated to a node stays there for as long as it fits, and gets no claim
   while that node is still to come: not initialized, and the scheduler has bound no pod to it.
   Every other class, by priority and the largest first, is put onto existing nodes: the first that
   takes it, those that are initialized before the others, then by name (``index``);
3. what is left, but for the pods that may get no claim, is dealt to zones and other domains
   (``dealing.dealer``), and claims are planned in the pools by weight (``opening.opener``);
4. pods with preferences that found no place are tried again without the first of them
   (``demand.relaxing``); where limits are short, pods of lower priority only see what the others left;
5. who is left then is told why, pool by pool (``why``); where ``minValues`` are a wish and nothing else is
   in the way, packing starts over with fewer (``besteffort``).

Where an index of the nodes is kept and all pods fit on these, it says where, and the rest is not
done (``existing``): the answer is the same.

Same problem, same answer, whatever the order of its parts. Pods are not bound here, and the cloud
chooses among the types of a claim; this module only promises that each of them will do.

Very many pods take seconds: ``packing`` is the same in steps of a few milliseconds, between which the caller may do
something else. The answer depends on the problem alone, and not on when the steps are made.
"""

from __future__ import annotations

from itertools import count
from typing import Final

from tenure.packing.attempt import Attempt, Caps
from tenure.packing.besteffort import as_many_as_possible
from tenure.packing.demand.problem import Problem
from tenure.packing.demand.steps import Steps, at_once
from tenure.packing.existing import placing_on_existing
from tenure.packing.index.domains import Foreseen
from tenure.packing.question import Question
from tenure.packing.result import Packing

#: How often packing starts over with exactly what was served (each start is a whole packing);
#: after that with half, so that it ends soon.
_PATIENCE: Final = 4


def pack(problem: Problem) -> Packing:
    """Find a place for every pod, or say why there is none."""
    return at_once(packing(problem))


def packing(problem: Problem) -> Steps[Packing]:
    """The same in steps."""
    on_nodes = yield from placing_on_existing(problem)
    if on_nodes is not None:
        return Packing(placed=on_nodes, claims=(), unplaced={})
    yield
    if problem.min_values:
        return (yield from _packed(problem))
    return (yield from as_many_as_possible(problem, _packed))


def _packed(problem: Problem) -> Steps[Packing]:
    return _starting_over(Question(problem))


def _starting_over(question: Question) -> Steps[Packing]:
    yield from question.reading()
    caps: Caps = {}
    foreseen: Foreseen = {}
    for start in count(1):
        found, short, more = yield from Attempt(question, caps, foreseen).packing()
        if not short and not more:
            break
        assert all(got < caps.get(one, got + 1) for one, got in short.items()), "it ends"
        caps |= {one: got if start <= _PATIENCE else got // 2 for one, got in short.items()}
        for key, values in more.items():
            for value, planned in values.items():
                foreseen.setdefault(key, {}).setdefault(value, set()).update(planned)
    return found
