"""Why a pod found no place: one sentence, pool by pool, with the numbers.

Each pool is asked in the order of these, and the first that applies names the refusal:

1. taint          the pod does not tolerate one;
2. requirements   the pool's nodes cannot have the labels asked for;
3. types          no instance type has them;
4. host ports     a daemon holds the port on every type;
5. size           no type is large enough once daemons have come;
6. offerings      what fits cannot be had now;
7. limits         what fits is more than the pool may still buy;
8. minValues      what fits is less variety than the pool asks for.

A pod with several requirement alternatives is told about the one that came furthest, of the
first few that the pool's nodes can have the labels for.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from tenure.model.api.node import Taint
from tenure.model.values.quantity import UNIT
from tenure.model.values.requirements import Requirements
from tenure.model.values.taints import untolerated
from tenure.packing.catalogue import Catalogue, Narrowing
from tenure.packing.claims import shortfall
from tenure.packing.demand.classes import PodClass, how_many
from tenure.packing.demand.requests import ALTERNATIVES_MAX, ports_conflict
from tenure.packing.limits import Budget
from tenure.packing.result import Refusal, Unplaced, Why

_ORDER: Final = {why: position for position, why in enumerate(Why)}
#: Pods may ask for thousands of things that are not there; so many are named.
NAMED: Final = 3
#: Of the alternatives that a pool's nodes can have the labels for, so many are explained.
EXPLAINED: Final = 8
_BINARY: Final = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))


def explain(
    one: PodClass, pools: Sequence[tuple[Catalogue, Budget]], *, node_count: int
) -> Unplaced:
    """Why no node and no pool takes the pods of this class."""
    nodes = _no_node(node_count)
    if not pools:
        return Unplaced(why=Why.NO_POOL, message=f"{nodes}there is no pool to launch a node from")
    refusals = tuple(refuse(one, catalogue, budget) for catalogue, budget in pools)
    furthest = max(refusals, key=lambda refusal: _ORDER[refusal.why])
    said = "; ".join(
        [
            *(f"{refusal.pool}: {refusal.message}" for refusal in refusals),
            *_kept_out(one),
            *_left_out(one),
        ]
    )
    return Unplaced(why=furthest.why, message=nodes + said, refusals=refusals)


def _no_node(count: int) -> str:
    if count == 1:
        return "the only node does not take it; "
    return f"none of the {count} nodes takes it; " if count else ""


def _kept_out(one: PodClass) -> list[str]:
    return [
        f"the required anti-affinity of pod {out.by} keeps it off nodes with {out.key}={out.value}"
        for out in one.rules.kept_out
    ]


def _left_out(one: PodClass) -> list[str]:
    if not one.demand.left_out:
        return []
    count = ALTERNATIVES_MAX + one.demand.left_out
    which = f"{count:,} node-affinity alternatives (nodeSelectorTerms)"
    return [f"only the first {ALTERNATIVES_MAX} of its {which} are considered"]


def refuse(one: PodClass, catalogue: Catalogue, budget: Budget) -> Refusal:
    """The pool's no to this class, for the requirement alternative that came furthest."""
    pool = catalogue.template.pool
    taint = untolerated(catalogue.template.taints, one.demand.tolerations)
    if taint is not None:
        message = f"taint {taint_text(taint)} is not tolerated"
        return Refusal(pool, Why.TAINT_NOT_TOLERATED, message)
    alternatives = one.demand.alternatives
    defined, known = catalogue.defined, catalogue.known_keys
    compatible = (wanted for wanted in alternatives if defined.is_compatible(wanted, known))
    # Where none is compatible, none came further than the first.
    told = tuple(islice(compatible, EXPLAINED)) or alternatives[:1]
    found = [_refuse(one, catalogue, budget, wanted) for wanted in told]
    why, message = max(found, key=lambda each: _ORDER[each[0]])
    if len(alternatives) > EXPLAINED:
        more = len(alternatives) + one.demand.left_out - 1
        message += f" (and {more:,} more alternatives)"
    return Refusal(pool, why, message)


def _refuse(
    one: PodClass, catalogue: Catalogue, budget: Budget, wanted: Requirements
) -> tuple[Why, str]:
    defined = catalogue.defined
    if clash := defined.why_incompatible(wanted, catalogue.known_keys):
        return Why.REQUIREMENTS_INCOMPATIBLE, clash
    if refusal := catalogue.refusal(defined.intersect(wanted)):
        return Why.REQUIREMENTS_INCOMPATIBLE, f"no NodeClaim can ask for it: {refusal}"
    narrowing = catalogue.narrow(catalogue.whole, wanted)
    assert narrowing is not None, "compatible requirements can be narrowed"
    if not narrowing.types:
        return Why.NO_TYPE_MATCHES, _no_type(catalogue, narrowing)
    types = narrowing.types & catalogue.clear_of(one.demand.ports)
    if not types:
        return Why.HOST_PORT_TAKEN, _port_taken(one, catalogue, narrowing.types)
    matching = _indices(types)
    fitting = [i for i in matching if how_many(catalogue.room[i], one.wants, 1)]
    if one.missing or not fitting:
        return Why.TOO_LARGE, _too_large(one, catalogue, matching)
    for_sale = {offer.type for offer in catalogue.ranking(narrowing.places)}.intersection(fitting)
    if not for_sale:
        return Why.NO_OFFERING, _no_offering(catalogue, fitting, narrowing)
    affordable = [i for i in sorted(for_sale) if budget.affordable() >> i & 1]
    if not affordable:
        return Why.LIMIT_REACHED, _limit_reached(catalogue, budget, sorted(for_sale))
    offers = [o for o in catalogue.ranking(narrowing.places) if o.type in affordable]
    missing = shortfall(catalogue, narrowing.requirements, offers)
    if missing:
        return Why.MIN_VALUES_UNMET, missing
    return Why.TOPOLOGY_UNSATISFIABLE, "its spread constraints leave no place"


def _no_type(catalogue: Catalogue, narrowing: Narrowing) -> str:
    count = len(catalogue.types)
    if not count:
        return "it has no instance types"
    for _, requirement in sorted(narrowing.requirements.items()):
        if requirement.impossible:
            return f"its requirements on {requirement.key} exclude each other"
        if not catalogue.matching(Requirements.of([requirement])):
            return f"{_no_type_of(count)} {requirement}"
    return f"{_no_type_of(count)} all of {narrowing.requirements}"


def _no_type_of(count: int) -> str:
    if count == 1:
        return "its only instance type does not have"
    return f"none of its {count} instance types has"


def _port_taken(one: PodClass, catalogue: Catalogue, types: int) -> str:
    taken = (ports_conflict(one.demand.ports, catalogue.daemon_ports[i]) for i in _indices(types))
    port = min(port for port in taken if port is not None)
    return f"host port {port.port}/{port.protocol} is taken by a daemon on every instance type"


def _too_large(one: PodClass, catalogue: Catalogue, types: Sequence[int]) -> str:
    asked = []
    sizes = [
        (catalogue.resources[index], amount, max(catalogue.room[i][index] for i in types))
        for index, amount in one.wants
    ]
    for name, amount, largest in sorted([*sizes, *((*each, 0) for each in one.missing[:1])]):
        if largest < amount:
            wanted, there = amount_text(name, amount), amount_text(name, max(largest, 0))
            text = f"no instance type has {wanted} {name} free (largest {there})"
            return text + _nor_any(one, but=name) + _taken(catalogue, types, name, amount)
        asked.append(f"{amount_text(name, amount)} {name}")
    return f"no instance type has {' and '.join(asked)} free together"


def _taken(catalogue: Catalogue, types: Sequence[int], name: str, wanted: int) -> str:
    """Which DaemonSets leave too little of a type that would be large enough without them."""
    sizes = [(catalogue.types[i].allocatable.get(name, 0), i) for i in types]
    size, largest = max(sizes, default=(0, 0))
    if wanted > size:
        return ""
    daemons = [(d.requests.get(name, 0), d.name) for d in catalogue.daemons_on(largest)]
    daemons = sorted(((nano, by) for nano, by in daemons if nano), key=lambda d: (-d[0], d[1]))
    taken = amount_text(name, sum(nano for nano, _ in daemons))
    named = ", ".join(by for _, by in daemons[:NAMED])
    more = f" and {len(daemons) - NAMED:,} more" if len(daemons) > NAMED else ""
    which = f"DaemonSet{'s' if len(daemons) > 1 else ''} {named}{more}"
    return f"; {which} take{'' if len(daemons) > 1 else 's'} {taken} {name} of {catalogue.types[largest].name}"


def _nor_any(one: PodClass, *, but: str) -> str:
    """The first few of the resources that nothing offers, without the one named already."""
    told = int(any(name == but for name, _ in one.missing[:1]))
    names = [name for name, _ in one.missing[told : told + NAMED]]
    if not names:
        return ""
    more = len(one.missing) - told - len(names)
    return f", nor any {', '.join(names)}" + (f" and {more:,} more" if more else "")


def _no_offering(catalogue: Catalogue, fitting: Sequence[int], narrowing: Narrowing) -> str:
    count = len(fitting)
    which = catalogue.types[fitting[0]].name if count == 1 else f"{count} instance types"
    if not narrowing.places:
        return f"{which} would fit, but nothing is on offer in the zones and capacity types allowed"
    return f"{which} would fit, but {'it' if count == 1 else 'all of them'} cannot be had now"


def _limit_reached(catalogue: Catalogue, budget: Budget, types: Sequence[int]) -> str:
    """About a resource of which even the least hungry type is too much, if there is one."""
    for name, left in sorted(budget.left.items()):
        cost, number = min((catalogue.capacity(i, name), i) for i in types)
        if cost > left:
            needed = f"{catalogue.types[number].name} needs {amount_text(name, cost)}"
            return f"spec.limits.{name} leaves {_left(name, left)}, {needed}; raise that limit"
    left_text = " and ".join(
        f"{_left(name, left)} {name}" for name, left in sorted(budget.left.items())
    )
    return f"spec.limits leaves {left_text}, and no instance type that fits stays within that; raise a limit"


def _left(name: str, nano: int) -> str:
    """Nodes may use more than a limit that was lowered; then nothing is left."""
    return amount_text(name, max(nano, 0))


def taint_text(taint: Taint) -> str:
    """``key=value:Effect``, as kubectl writes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def amount_text(name: str, nano: int) -> str:
    """A readable amount: ``1.5Gi`` of memory, ``0.25`` of a cpu."""
    if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        for size, suffix in _BINARY:
            if abs(nano) >= size * UNIT:
                return f"{_short(nano / (size * UNIT))}{suffix}"
    return _short(nano / UNIT)


def _short(number: float) -> str:
    return f"{number:.3f}".rstrip("0").rstrip(".")


def _indices(types: int) -> list[int]:
    return [i for i in range(types.bit_length()) if types >> i & 1]
