"""The nodes of a pool as its budgets count them, and which of them are disrupted already.

Our nodes count that are initialized, or rebooting, until their instance terminates. New ones do
not: a replacement that is not up yet must not allow another disruption.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from tenure.core.marks.ownership import is_leaving, is_ours, uses_budgets
from tenure.core.marks.starts import current_label, label_keys
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import Budget
from tenure.model.api.window import LabelExpression
from tenure.model.matching.requirement import Requirement
from tenure.model.snapshot.derived import Derivation
from tenure.model.snapshot.snapshot import Snapshot


class FleetNode(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    #: Only those that a budget of the pool selects by: the others change nothing.
    labels: Mapping[str, str] = {}
    #: It is being deleted, or its replacement is under way.
    leaving: bool = False
    #: Its claim or Node is being deleted.
    terminating: bool = False
    rebooting: bool = False
    ready: bool = True


class Group(msgspec.Struct, frozen=True, dict=True):
    """Nodes that one budget counts together; each is in one of the three lists at the most."""

    nodes: tuple[FleetNode, ...] = ()

    @cached_property
    def leaving(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes if node.leaving)

    @cached_property
    def rebooting(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes if node.rebooting and not node.leaving)

    @cached_property
    def not_ready(self) -> tuple[str, ...]:
        waiting = (node for node in self.nodes if not node.ready)
        return tuple(node.name for node in waiting if not (node.leaving or node.rebooting))


#: The value of ``per`` that the nodes of a group have; None: not that label, or no ``per``.
Groups = Mapping[str | None, Group]

EMPTY: Final = Group()


class PoolFleet(msgspec.Struct, frozen=True, dict=True):
    #: Sorted by name.
    nodes: tuple[FleetNode, ...] = ()

    @cached_property
    def all(self) -> Group:
        return Group(self.nodes)

    def before_terminating(self, name: str) -> PoolFleet:
        """As budgets count right before that node terminates: it does not count yet, and of the
        others only those that terminate, not those whose replacements are awaited.

        Else two commands would wait for each other for ever once a budget is lowered.
        """
        return PoolFleet(tuple(_before_terminating(node, name) for node in self.nodes))

    @cached_property
    def _grouped(self) -> dict[tuple[tuple[LabelExpression, ...], str | None], Groups]:
        return {}

    def groups(self, budget: Budget) -> Groups:
        """The nodes that a budget selects, in the groups that it counts apart."""
        if budget.selector is None and budget.per is None:
            return {None: self.all}
        expressions = budget.selector.match_expressions if budget.selector is not None else ()
        key = (expressions, budget.per)
        if key not in self._grouped:  # Many candidates ask, and the answer is the same.
            self._grouped[key] = _grouped(budget, self.nodes)
        return self._grouped[key]


def _before_terminating(node: FleetNode, name: str) -> FleetNode:
    if node.name == name:
        return msgspec.structs.replace(node, leaving=False, rebooting=False, ready=True)
    if node.leaving == node.terminating:
        return node  # Nearly all of them.
    return msgspec.structs.replace(node, leaving=node.terminating)


def _grouped(budget: Budget, nodes: Sequence[FleetNode]) -> Groups:
    found: dict[str | None, list[FleetNode]] = {}
    for node in nodes:
        if selects(budget, node.labels):
            found.setdefault(group_of(budget, node.labels), []).append(node)
    return {value: Group(tuple(members)) for value, members in found.items()}


def selects(budget: Budget, labels: Mapping[str, str]) -> bool:
    expressions = budget.selector.match_expressions if budget.selector is not None else ()
    return all(
        Requirement.of(current_label(one.key), one.operator, one.values).matches(labels)
        for one in expressions
    )


def group_of(budget: Budget, labels: Mapping[str, str]) -> str | None:
    return None if budget.per is None else labels.get(current_label(budget.per))


def fleet_of(pool_name: str, snapshot: Snapshot) -> PoolFleet:
    pool = snapshot.pools.get(pool_name)
    keys = label_keys(pool) if pool is not None else ()
    by_name: dict[str, FleetNode] = {}
    for claim in snapshot.claims_of_pool(pool_name).values():
        if is_ours(claim, snapshot):
            for node in _nodes(claim, keys, snapshot):
                twin = by_name.get(node.name)
                by_name[node.name] = node if twin is None else _both(node, twin)
    return PoolFleet(tuple(by_name[name] for name in sorted(by_name)))


def _nodes(claim: NodeClaim, keys: Sequence[str], snapshot: Snapshot) -> tuple[FleetNode, ...]:
    nodes = tuple(snapshot.nodes_with_provider(claim.provider_id).values())
    return snapshot.derived.of(_FLEET_NODES, claim, keys, nodes)


def _fleet_nodes(
    claim: NodeClaim, keys: Sequence[str], nodes: tuple[Node, ...]
) -> tuple[FleetNode, ...]:
    if claim.instance_terminating:
        return ()
    return tuple(
        FleetNode(
            name=node.name,
            labels={key: node.labels[key] for key in keys if key in node.labels},
            leaving=is_leaving(claim, node),
            terminating=claim.deleting or node.deleting,
            rebooting=claim.rebooting,
            ready=node.ready,
        )
        for node in nodes
        if uses_budgets(claim, node)
    )


#: Every gate and every status of a pool asks for all of its nodes.
_FLEET_NODES: Final = Derivation("nodes that budgets count", _fleet_nodes)


def _both(one: FleetNode, twin: FleetNode) -> FleetNode:
    """Two claims of one instance are one node, disrupted if either says so."""
    return msgspec.structs.replace(
        one,
        leaving=one.leaving or twin.leaving,
        terminating=one.terminating or twin.terminating,
        rebooting=one.rebooting or twin.rebooting,
    )
