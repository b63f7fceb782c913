"""Whether kube-scheduler could bind the pods where a packing puts them, one after the other.

The filters of kube-scheduler's PodTopologySpread and InterPodAffinity plugins, read from their
documentation: counts are kept per constraint and domain. The first pod in an order that may be bound
is bound, again and again; owners of constraints come first, and domains take turns. Where no such
order leads to the end, every order of few pods is tried. Pods that are left then would stay pending.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import lru_cache
from random import Random
from typing import Any

import msgspec

from tenure.model.api.pod import LabelSelector, Pod, PodAffinityTerm, TopologySpreadConstraint
from tenure.packing.demand.problem import Problem
from tests.packing.judges.nodes import HOSTNAME, ZONE, Place
from tests.packing.judges.selectors import current, node_matches, selects, tolerated


class Term(msgspec.Struct, frozen=True, cache_hash=True):
    """A constraint of one pod: about which pods, over which key."""

    kind: str
    key: str
    selector: bytes
    namespaces: frozenset[str] | None
    owner_labels: tuple[tuple[str, str], ...]
    same: tuple[str, ...] = ()
    different: tuple[str, ...] = ()
    skew: int = 0
    domains_min: int = 0
    honor_affinity: bool = True
    honor_taints: bool = False

    def about(self, pod: Pod) -> bool:
        if self.namespaces is not None and pod.namespace not in self.namespaces:
            return False
        owner = dict(self.owner_labels)
        return selects(_decoded(self.selector), owner, pod.labels, self.same, self.different)


_ENCODE = msgspec.json.encode
#: Orders by chance that are tried, where so few pods are to be bound.
CHANCES = 10
FEW = 80
#: States that are looked at before an order is said not to exist.
STATES = 20_000


@lru_cache(4096)
def _decoded(selector: bytes) -> LabelSelector | None:
    return msgspec.json.decode(selector, type=LabelSelector | None)


def terms_of(pod: Pod, problem: Problem) -> list[Term]:
    found = [
        _spread(pod, one)
        for one in pod.spec.topology_spread_constraints
        if one.when_unsatisfiable == "DoNotSchedule" and one.label_selector is not None
    ]
    affinity = pod.spec.affinity
    for kind, part in (
        ("affinity", affinity and affinity.pod_affinity),
        ("anti", affinity and affinity.pod_anti_affinity),
    ):
        terms = part.required_during_scheduling_ignored_during_execution if part else ()
        found += [_affinity(kind, pod, term, problem) for term in terms]
    return found


def _owner(pod: Pod, *keys: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, pod.labels[key]) for key in keys if key in pod.labels))


def _spread(pod: Pod, one: TopologySpreadConstraint) -> Term:
    return Term(
        "spread",
        current(one.topology_key),
        _ENCODE(one.label_selector),
        frozenset({pod.namespace}),
        _owner(pod, *one.match_label_keys),
        one.match_label_keys,
        (),
        one.max_skew,
        one.min_domains or 0,
        one.node_affinity_policy != "Ignore",
        one.node_taints_policy == "Honor",
    )


def _affinity(kind: str, pod: Pod, term: PodAffinityTerm, problem: Problem) -> Term:
    namespaces: frozenset[str] | None = frozenset(term.namespaces or (pod.namespace,))
    if term.namespace_selector is not None:
        wanted = term.namespace_selector
        if not wanted.match_labels and not wanted.match_expressions:
            namespaces = None
        else:
            labels = getattr(problem, "namespaces", {})
            named = {
                name
                for name in {p.namespace for p in problem.pods} | set(labels)
                if selects(
                    wanted, {}, {"kubernetes.io/metadata.name": name, **labels.get(name, {})}
                )
            }
            namespaces = frozenset(named.union(term.namespaces))
    return Term(
        kind,
        current(term.topology_key),
        _ENCODE(term.label_selector),
        namespaces,
        _owner(pod, *term.match_label_keys, *term.mismatch_label_keys),
        term.match_label_keys,
        term.mismatch_label_keys,
    )


Order = Callable[[tuple[Place, Pod]], Any]


class Scheduler:
    """What is bound where, counted for every constraint that any pod has."""

    def __init__(
        self,
        places: list[Place],
        put: list[tuple[Place, list[Pod]]],
        waiting: frozenset[str],
        problem: Problem,
    ) -> None:
        self._places, self._problem = places, problem
        self._left = [(place, pod) for place, pods in put for pod in pods]
        self._terms: dict[int, list[Term]] = {}
        self._known: dict[tuple[str, frozenset[tuple[str, str]]], dict[Term, bool]] = {}
        everything = [pod for _, pod in self._left] + [p for place in places for p in place.there]
        self._all = {term for pod in everything for term in self._of(pod)}
        #: By constraint and domain: pods that it is about, by node.
        self._counts: dict[Term, dict[str, dict[str, int]]] = {term: {} for term in self._all}
        #: Terminating ones included.
        self._present: dict[Term, dict[str, int]] = {term: {} for term in self._all}
        #: By anti-affinity term and domain: pods that have it.
        self._owners: dict[Term, dict[str, int]] = {t: {} for t in self._all if t.kind == "anti"}
        #: By constraint and domain, over all nodes.
        self._totals: dict[Term, dict[str, int]] = {term: {} for term in self._all}
        self._domains: dict[str, set[str]] = {}
        self._by_name = {place.name: place for place in places}
        for place in places:
            for pod in place.there:
                if pod.uid not in waiting:
                    self._bind(place, pod)

    def left_pending(self) -> list[str]:
        """What no order of binding gets bound."""
        start = deepcopy((self._counts, self._present, self._owners, self._totals))
        orders: list[Order] = [self._order(), self._ranks(), self._spread_first(False)]
        orders.append(self._spread_first(True))
        few = len(self._left) <= FEW
        if few:
            orders += [self._by_chance(seed) for seed in range(CHANCES)]
        found: list[str] = []
        for order in orders:
            self._counts, self._present, self._owners, self._totals = deepcopy(start)
            found = self._pending(order)
            if not found:
                return []
        if few:
            self._counts, self._present, self._owners, self._totals = deepcopy(start)
            if self._any_order():
                return []
        return found

    def _by_chance(self, seed: int) -> Order:
        random = Random(seed)
        numbers = {pod.uid: random.random() for _, pod in self._left}
        return lambda each: (numbers[each[1].uid],)

    def _ranks(self) -> Order:
        """The first of each group in each domain, then the second ones, and so on."""
        seen: dict[tuple[Term, str | None], int] = {}
        ranks: dict[str, int] = {}
        for place, pod in sorted(self._left, key=lambda each: each[1].uid):
            rank = 0
            for term in self._about(pod):
                if term.kind == "spread":
                    key = term, place.domain(term.key)
                    seen[key] = seen.get(key, 0) + 1
                    rank = max(rank, seen[key])
            ranks[pod.uid] = rank
        return lambda each: (ranks[each[1].uid], each[1].uid)

    def _spread_first(self, starters: bool) -> Order:
        """Pods that are spread among themselves, then other owners, then the rest.

        ``starters``: before all of these, pods that must be near to pods of their own group.
        """

        def key(each: tuple[Place, Pod]) -> tuple[bool, int, str]:
            mine = self._of(each[1])
            over = [term for term in mine if term.kind == "spread" and term.key != HOSTNAME]
            own = any(term.about(each[1]) for term in over)
            first = any(term.kind == "affinity" and term.about(each[1]) for term in mine)
            return not (starters and first), 0 if own else 1 if over else 2, each[1].uid

        return key

    def _pending(self, order: Order) -> list[str]:
        left = sorted(self._left, key=order)
        step = 1 if len(left) <= FEW else len(left)
        while left:
            rest: list[tuple[Place, Pod]] = []
            bound = 0
            for place, pod in left:
                if bound < step and self._tried(place, pod):
                    bound += 1
                else:
                    rest.append((place, pod))
            if not bound:
                return [
                    f"{place.name}: pod {pod.uid} cannot be bound: {self._why(place, pod)}"
                    for place, pod in left
                ]
            left = rest
        return []

    def _any_order(self) -> bool:
        """Depth first; pods of one place that nothing tells apart are one choice."""
        kinds: dict[tuple[str, bytes], list[tuple[Place, Pod]]] = {}
        for place, pod in self._left:
            alike = _ENCODE((pod.namespace, pod.labels, pod.spec))
            kinds.setdefault((place.name, alike), []).append((place, pod))
        todo = sorted(kinds.values(), key=lambda alike: self._weight(alike[0][1]))
        seen: set[tuple[int, ...]] = set()

        def goes_on(left: tuple[int, ...]) -> bool:
            if not any(left):
                return True
            if left in seen or len(seen) >= STATES:
                return False
            seen.add(left)
            for i, alike in enumerate(todo):
                if not left[i]:
                    continue
                place, pod = alike[left[i] - 1]
                if self._tried(place, pod):
                    if goes_on((*left[:i], left[i] - 1, *left[i + 1 :])):
                        return True
                    self._bind(place, pod, -1)
            return False

        return goes_on(tuple(len(alike) for alike in todo))

    def _order(self) -> Order:
        """Pods that no spread counts first, then owners; each in turns over the zones."""
        turn: dict[tuple[str | None, bytes], int] = {}
        keys = {}
        for place, pod in self._left:
            zone = place.domain(ZONE)
            mine = self._of(pod)
            kind = zone, b"".join(term.selector for term in mine)
            turn[kind] = turn.get(kind, 0) + 1
            owner = any(term.kind == "spread" for term in mine)
            counts = any(term.kind == "spread" for term in self._about(pod))
            keys[pod.uid] = (counts, not owner, turn[kind], pod.uid)
        return lambda each: keys[each[1].uid]

    def _weight(self, pod: Pod) -> tuple[int, int, int]:
        """In how many spreads over domains it counts: who counts nowhere may always come first."""
        over = [t for t in self._about(pod) if t.kind == "spread" and t.key != HOSTNAME]
        own = self._of(pod)
        needed = [term for term in own if term.kind == "affinity"]
        return len(over), -sum(term.about(pod) for term in needed), -len(needed) - len(own)

    def _of(self, pod: Pod) -> list[Term]:
        terms = self._terms.get(id(pod))
        if terms is None:
            terms = self._terms[id(pod)] = terms_of(pod, self._problem)
        return terms

    def _about(self, pod: Pod) -> Iterator[Term]:
        key = pod.namespace, frozenset(pod.labels.items())
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = {term: term.about(pod) for term in self._all}
        return (term for term, yes in known.items() if yes)

    def _tried(self, place: Place, pod: Pod) -> bool:
        if self._why(place, pod):
            return False
        self._bind(place, pod)
        return True

    def _bind(self, place: Place, pod: Pod, count: int = 1) -> None:
        for term in self._about(pod):
            domain = place.domain(term.key)
            if domain is None:
                continue
            present = self._present[term]
            present[domain] = present.get(domain, 0) + count
            if pod.active:
                nodes = self._counts[term].setdefault(domain, {})
                nodes[place.name] = nodes.get(place.name, 0) + count
                totals = self._totals[term]
                totals[domain] = totals.get(domain, 0) + count
        for term in self._of(pod):
            domain = place.domain(term.key)
            if term.kind == "anti" and domain is not None:
                self._owners[term][domain] = self._owners[term].get(domain, 0) + count

    def _why(self, place: Place, pod: Pod) -> str:
        """Why it cannot be bound now; empty when it can."""
        for term in self._of(pod):
            domain = place.domain(term.key)
            if term.kind == "spread":
                if domain is None:
                    return f"the node has no {term.key}"
                ahead = self._count(term, domain, pod) + term.about(pod) - self._least(term, pod)
                if ahead > term.skew:
                    return f"{term.key} {domain} is {ahead} ahead, maxSkew is {term.skew}"
            elif term.kind == "anti":
                if domain is not None and self._present[term].get(domain, 0):
                    return f"a pod that it avoids is in {domain}"
            elif not self._affine(term, domain, pod):
                return f"no pod that it needs is in {domain}"
        about = set(self._about(pod)) if self._owners else set()
        for term, owners in self._owners.items():
            if (
                term in about
                and (domain := place.domain(term.key)) is not None
                and owners.get(domain)
            ):
                return f"a pod in {domain} avoids it"
        return ""

    def _affine(self, term: Term, domain: str | None, pod: Pod) -> bool:
        if domain is None:
            return False
        if self._present[term].get(domain, 0):
            return True
        return term.about(pod) and not any(self._present[term].values())

    def _counts_on(self, term: Term, place: Place, pod: Pod) -> bool:
        if term.honor_affinity and not node_matches(pod, place.name, place.labels):
            return False
        return not term.honor_taints or tolerated(place.taints, pod.spec.tolerations)

    def _count(self, term: Term, domain: str, pod: Pod) -> int:
        if not self._filters(term, pod):
            return self._totals[term].get(domain, 0)
        nodes = self._counts[term].get(domain, {})
        return sum(
            n for name, n in nodes.items() if self._counts_on(term, self._by_name[name], pod)
        )

    def _filters(self, term: Term, pod: Pod) -> bool:
        spec = pod.spec
        chooses = spec.node_selector or (spec.affinity and spec.affinity.node_affinity)
        return bool(term.honor_affinity and chooses) or term.honor_taints

    def _least(self, term: Term, pod: Pod) -> int:
        if term.key == HOSTNAME:
            return 0  # A new node can always be had.
        if self._filters(term, pod):
            places = [place for place in self._places if self._counts_on(term, place, pod)]
            domains = self._values(term.key, places)
        else:
            if term.key not in self._domains:
                self._domains[term.key] = self._values(term.key, self._places)
            domains = self._domains[term.key]
        if len(domains) < term.domains_min:
            return 0
        return min((self._count(term, domain, pod) for domain in domains), default=0)

    def _values(self, key: str, places: list[Place]) -> set[str]:
        return {domain for place in places if (domain := place.domain(key)) is not None}
