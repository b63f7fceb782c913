"""Why a pod fits nowhere: facts, pool by pool, with the numbers.

Each pool is checked in the order of these, and the first that applies is its refusal:

1. taint          the pod does not tolerate one;
2. requirements   the pool's nodes cannot have the required labels;
3. types          no instance type has them;
4. host ports     a DaemonSet pod uses the port on every type;
5. size           no type is large enough beside its DaemonSet pods;
6. offerings      no type that fits has an available offering;
7. limits         every type that fits exceeds the pool's limits;
8. minValues      the types that fit are fewer than the pool requires.

How many instance types each cause keeps away is counted beside it (``refusals.tally``).

A pod that names its pools (``karpenter.sh/nodepool``) is told of these only.

Of a pod with several requirement alternatives, the one that came furthest is explained, of the
first few that the pool's nodes can have the labels for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

import msgspec

from tenure.model.api.names import NODEPOOL
from tenure.model.matching.requirements import Clash, Requirements
from tenure.packing.demand.asked import Demand
from tenure.packing.demand.classes import PodClass, how_many
from tenure.packing.demand.requests import ports_conflict
from tenure.packing.facts import (
    AffinityUnsatisfiable,
    AlternativesIgnored,
    Cause,
    ClaimInvalid,
    HostPortTaken,
    KeptOff,
    LabelUndefined,
    LimitReached,
    LimitsReached,
    MinValuesUnmet,
    NoInstanceTypes,
    NoNodeFits,
    NoOffering,
    NoPool,
    NoTypeMatches,
    Refusal,
    RequirementsConflict,
    RequirementsContradict,
    SpreadUnsatisfiable,
    TaintNotTolerated,
    TopologyFact,
    Why,
)
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.offers.limits import Budget
from tenure.packing.offers.narrowing import Narrowing
from tenure.packing.opening.drafts import shortfall
from tenure.packing.refusals.facts import AffinityNowhere, TypeCount
from tenure.packing.refusals.tally import indices, tally
from tenure.packing.refusals.texts import amount_text, taint_text
from tenure.packing.result import Unplaced
from tenure.packing.whysize import too_large

_UNMET: Final = Why.REQUIREMENTS_INCOMPATIBLE
_ORDER: Final = {why: position for position, why in enumerate(Why)}
#: Of the alternatives that a pool's nodes can have the labels for, so many are explained.
EXPLAINED: Final = 8
#: So many pools that refuse alike are told one by one.
ALIKE_MAX: Final = 5


def explain(
    one: PodClass,
    pools: Sequence[tuple[Catalogue, Budget]],
    *,
    node_count: int,
    kept_off: Sequence[KeptOff] = (),
    topology: Callable[[], TopologyFact | None] = lambda: None,
) -> Unplaced:
    """Why no node and no pool takes the pods of this class.

    ``kept_off``: where running pods do not let them in. ``topology``: which constraint is in the way,
    where one of them alone is.
    """
    nodes = [NoNodeFits(node_count)] if node_count else []
    named = pools_named(one.demand)
    if not pools and named is None:
        return Unplaced(why=Why.NO_POOL, facts=(*nodes, NoPool()))
    refusals = [
        refuse(one, catalogue, budget, kept_off=bool(kept_off))
        for catalogue, budget in pools
        if named is None or catalogue.template.pool in named
    ]
    # Where none of the named pools is offered, the pod requires a label that no pool has.
    why = max((refusal.why for refusal in refusals), key=_ORDER.__getitem__, default=_UNMET)
    found = topology() if why is Why.TOPOLOGY_UNSATISFIABLE or one.rules.near else None
    if why is not Why.TOPOLOGY_UNSATISFIABLE and not isinstance(found, AffinityNowhere):
        found = None  # Other pods could be near the pod if a pool had room.
    alone = [found] if found is not None else []
    facts = (*nodes, *alone, *_of_many(refusals), *kept_off, *_ignored(one))
    return Unplaced(why=why, facts=facts, named=named)


def _of_many(refusals: Sequence[Refusal]) -> list[Refusal]:
    """Those of very many pools that refuse alike are told once: a cluster may have fifty."""
    alike: dict[Refusal, list[Refusal]] = {}
    for one in refusals:
        alike.setdefault(msgspec.structs.replace(one, pool=""), []).append(one)
    told: list[Refusal] = []
    for same in alike.values():
        # What a pool's own limits or minValues are in the way of is asked for by its name.
        of_pool = isinstance(same[0].cause, LimitReached | LimitsReached | MinValuesUnmet)
        if len(same) > ALIKE_MAX and not of_pool:
            told.append(msgspec.structs.replace(same[0], alike=len(same) - 1))
        else:
            told += same
    order = {one.pool: position for position, one in enumerate(refusals)}
    return sorted(told, key=lambda one: order[one.pool])


def pools_named(demand: Demand) -> tuple[str, ...] | None:
    """The pools that the pod names in each of its alternatives; None: it may go to any pool."""
    names: set[str] = set()
    for wanted in demand.alternatives:
        pools = wanted.get(NODEPOOL)
        if pools is None or pools.complement:
            return None
        names |= pools.listed
    return tuple(sorted(names)) if names and not demand.left_out else None


def _ignored(one: PodClass) -> list[AlternativesIgnored]:
    more, kept = one.demand.left_out, len(one.demand.alternatives)
    return [AlternativesIgnored(kept, kept + more)] if more else []


def refuse(
    one: PodClass, catalogue: Catalogue, budget: Budget, *, kept_off: bool = False
) -> Refusal:
    """Why the pool cannot take this class, for the requirement alternative that came furthest.

    ``kept_off``: anti-affinity of running pods may be in the way.
    """
    pool = catalogue.template.pool
    taint = catalogue.refused_taint(one.demand.signature)
    if taint is not None:
        return Refusal(pool, TaintNotTolerated(taint_text(taint)))
    alternatives = one.demand.alternatives
    defined, known = catalogue.defined, catalogue.known_keys
    compatible = (wanted for wanted in alternatives if defined.is_compatible(wanted, known))
    # Where none is compatible, none came further than the first.
    explained = tuple(islice(compatible, EXPLAINED)) or alternatives[:1]
    found = [(_refuse(one, catalogue, budget, wanted), wanted) for wanted in explained]
    cause, wanted = max(found, key=lambda each: _ORDER[each[0].why])
    if kept_off and isinstance(cause, SpreadUnsatisfiable):
        cause = AffinityUnsatisfiable()
    many = len(alternatives) > EXPLAINED
    more = len(alternatives) + one.demand.left_out - 1 if many else 0
    return Refusal(pool, cause, more, _counted(one, catalogue, budget, wanted))


def _counted(
    one: PodClass, catalogue: Catalogue, budget: Budget, wanted: Requirements
) -> tuple[TypeCount, ...]:
    """Empty where no node of the pool can have the labels: that is said of the pool."""
    narrowing = catalogue.narrow(catalogue.whole, wanted)
    if narrowing is None or not catalogue.types or _impossible(wanted) is not None:
        return ()
    return tally(one, catalogue, budget, narrowing)


def _refuse(one: PodClass, catalogue: Catalogue, budget: Budget, wanted: Requirements) -> Cause:
    defined = catalogue.defined
    if (key := _impossible(wanted)) is not None:
        return RequirementsContradict(key, pod_alone=True, required=_without_volumes(one, key))
    if clash := defined.why_incompatible(wanted, catalogue.known_keys):
        return _clash(clash)
    if (few := _too_few_listed(defined.intersect(wanted))) is not None:
        return few
    if problem := catalogue.refusal(defined.intersect(wanted)):
        return ClaimInvalid(problem)
    narrowing = catalogue.narrow(catalogue.whole, wanted)
    assert narrowing is not None, "compatible requirements can be narrowed"
    if not narrowing.types:
        return _no_type(catalogue, narrowing)
    types = narrowing.types & catalogue.clear_of(one.demand.ports)
    if not types:
        return _port_taken(one, catalogue, narrowing.types)
    matching = indices(types)
    fitting = [i for i in matching if how_many(catalogue.available[i], one.wants, 1)]
    if one.missing or not fitting:
        return too_large(one, catalogue, matching)
    ranking = budget.on_hand(narrowing, catalogue.ranking(narrowing.places))
    for_sale = sorted({offer.type for offer in ranking}.intersection(fitting))
    if not for_sale:
        return NoOffering(
            len(fitting), catalogue.types[fitting[0]].name if len(fitting) == 1 else ""
        )
    within_limits = budget.affordable()
    affordable = [i for i in for_sale if within_limits >> i & 1]
    if not affordable:
        return _limit_reached(catalogue, budget, for_sale)
    offers = [offer for offer in ranking if offer.type in affordable]
    missing = shortfall(catalogue, narrowing.requirements, offers)
    if missing is not None:
        return MinValuesUnmet(*missing)
    near_or_far = one.rules.near or one.rules.far
    return AffinityUnsatisfiable() if near_or_far else SpreadUnsatisfiable()


def _too_few_listed(requirements: Requirements) -> MinValuesUnmet | None:
    """Where pool and pod together list fewer values than ``minValues`` asks for."""
    for key, one in sorted(requirements.items()):
        if one.min_values is not None and not one.complement and len(one.listed) < one.min_values:
            return MinValuesUnmet(key, one.min_values, len(one.listed))
    return None


def _clash(clash: Clash) -> Cause:
    wanted = str(clash.wanted)
    if clash.offered is not None:
        return RequirementsConflict(wanted, str(clash.offered))
    return LabelUndefined(wanted, clash.wanted.key, clash.similar)


def _impossible(wanted: Requirements) -> str | None:
    """A label of which the pod and its volumes allow no value together."""
    return next((key for key, one in sorted(wanted.items()) if one.impossible), None)


def _without_volumes(one: PodClass, key: str) -> str:
    """What the pod itself requires of the label; empty where that is no value either."""
    required = (each.allowed(key) for each in one.demand.signature.required)
    return next((str(each) for each in required if not each.impossible), "")


def _no_type(catalogue: Catalogue, narrowing: Narrowing) -> Cause:
    count = len(catalogue.types)
    if not count:
        return NoInstanceTypes()
    for _, requirement in sorted(narrowing.requirements.items()):
        if requirement.impossible:
            alone = catalogue.defined.allowed(requirement.key).impossible
            return RequirementsContradict(requirement.key, pool_alone=alone)
        if not catalogue.matching(Requirements.of([requirement])):
            return NoTypeMatches(count, str(requirement))
    return NoTypeMatches(count, f"all of {narrowing.requirements}")


def _port_taken(one: PodClass, catalogue: Catalogue, types: int) -> HostPortTaken:
    taken = (ports_conflict(one.demand.ports, catalogue.daemon_ports[i]) for i in indices(types))
    port = min(port for port in taken if port is not None)
    return HostPortTaken(port.port, port.protocol)


def _limit_reached(catalogue: Catalogue, budget: Budget, types: Sequence[int]) -> Cause:
    """About a resource of which even the smallest type needs too much, if there is one."""
    for name, left in sorted(budget.left.items()):
        cost, number = min((catalogue.capacity(i, name), i) for i in types)
        if cost > left:
            type_ = catalogue.types[number].name
            return LimitReached(name, _left(name, left), type_, amount_text(name, cost))
    return LimitsReached(
        tuple((_left(name, left), name) for name, left in sorted(budget.left.items()))
    )


def _left(name: str, nano: int) -> str:
    """Nodes may use more than a limit that was lowered; then nothing is left."""
    return amount_text(name, max(nano, 0))
