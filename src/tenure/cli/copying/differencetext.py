"""What became of a copied cluster, in words and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

from tenure.core.facts import counted
from tenure.model.cloud.offering import MICRO_DOLLARS, format_price
from tenure.sim.copied.difference import Difference, Scene, SceneNode
from tenure.sim.scenario.context import span

_SHOWN: Final = 8


def difference_lines(found: Difference) -> Iterator[str]:
    before, after = found.before, found.after
    yield ""
    took = timedelta(seconds=round((after.at - before.at).total_seconds()))
    yield f"What became of the cluster in {span(took)}"
    yield f"  nodes        {_change(len(before.nodes), len(after.nodes))}"
    yield from _nodes("gone", found.gone)
    yield from _nodes("new", found.came)
    yield f"  price        {price_text(before)} → {price_text(after)}"
    reasons = ", ".join(f"{count} {reason}" for reason, count in found.disruptions.items())
    yield f"  disruptions  {reasons or 'none'}"
    if after.draining:
        yield f"    draining   {len(after.draining)}, not gone yet"
        for line in _some(after.draining):
            yield f"               {line}"
    if after.drifted:
        yield f"    drifted    {after.drifted}, not replaced yet"
    yield f"  pods moved   {len(found.moved)} of {len(before.pods)}"
    for line in _some(_by_workload(found.moved)):
        yield f"               {line}"
    yield f"  pending      {_change(before.pending, after.pending)}"


def price_text(scene: Scene) -> str:
    """The sum of what is known, and of how many nodes nothing is known."""
    known = [one.price for one in scene.nodes.values() if one.price is not None]
    unknown = Counter(
        one.instance_type or "no type" for one in scene.nodes.values() if one.price is None
    )
    names = ", ".join(f"{count} {name}" for name, count in sorted(unknown.items()))
    said = [format_price(sum(known))] if known or not unknown else []
    return " + ".join([*said, *([f"unknown ({names})"] if unknown else [])])


def difference_json(found: Difference) -> dict[str, Any]:
    return {
        "type": "difference",
        "nodes": {
            "before": len(found.before.nodes),
            "after": len(found.after.nodes),
            "gone": [_as_json(one) for one in found.gone],
            "new": [_as_json(one) for one in found.came],
            "draining": found.after.draining,
            "drifted": found.after.drifted,
        },
        "price": {"before": _price(found.before), "after": _price(found.after)},
        "disruptions": found.disruptions,
        "podsMoved": found.moved,
        "podsPending": {"before": found.before.pending, "after": found.after.pending},
    }


def _as_json(node: SceneNode) -> dict[str, Any]:
    return {
        "name": node.name,
        "pool": node.pool,
        "instanceType": node.instance_type,
        "zone": node.zone,
        "capacityType": node.capacity_type,
        "dollarsPerHour": None if node.price is None else node.price / MICRO_DOLLARS,
    }


def _price(scene: Scene) -> dict[str, Any]:
    known = [one.price for one in scene.nodes.values() if one.price is not None]
    return {
        "dollarsPerHour": sum(known) / MICRO_DOLLARS if known else None,
        "nodesOfUnknownPrice": len(scene.nodes) - len(known),
    }


def _change(before: int, after: int) -> str:
    return f"{before} → {after}" if before != after else f"{before}, as before"


def _nodes(word: str, nodes: tuple[SceneNode, ...]) -> Iterator[str]:
    if not nodes:
        return
    yield f"    {word:<6}     {len(nodes)}"
    kinds = Counter(
        (one.pool or "no pool", one.instance_type or "no type", one.capacity_type, _each(one))
        for one in nodes
    )
    lines = (
        f"{count} × {type_}, {way}, {price} (pool {pool})"
        for (pool, type_, way, price), count in sorted(kinds.items())
    )
    for line in _some(lines):
        yield f"               {line}"


def _each(node: SceneNode) -> str:
    return "price unknown" if node.price is None else format_price(node.price)


def _by_workload(moved: Iterable[str]) -> Iterator[str]:
    """Pods of one workload share the beginning of their names."""
    names = Counter(name.rpartition("-")[0] or name for name in moved)
    for name, count in sorted(names.items()):
        yield f"{counted(count, 'pod')} of {name}"


def _some(lines: Iterable[str]) -> Iterator[str]:
    every = list(lines)
    yield from every[:_SHOWN]
    if len(every) > _SHOWN:
        yield f"and {len(every) - _SHOWN} more"
