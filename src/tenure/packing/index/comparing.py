"""Compares the index that is kept with one that is built anew: everything, by the names of nodes.

Both have to be taught the same first: what questions were about. Numbers of bins, shapes and columns
differ, so none of them is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tenure.packing.index.kept import KeptIndex

#: A table of the index, and what is in it by the names of nodes.
Part = tuple[str, Mapping[Any, Any]]


def teach(index: KeptIndex, by: KeptIndex) -> None:
    """What questions to the other one were about."""
    index.learn(by.groups.all())
    bins, domains = index.nodes.bins, index.nodes.domains
    for resource, amounts in zip(by.resources, by.nodes.bins.state()["fit"], strict=True):
        if (column := index.column(resource)) is not None:
            for amount in amounts:
                bins.learn(column, amount)
    for signature in by.nodes.bins.accepted():
        bins.accepting(signature)
    for spread, signature in list(by.nodes.domains.rules()):
        domains.rule(spread, signature)


def state(index: KeptIndex) -> dict[str, Mapping[Any, Any]]:
    """Everything that changes; tables with nothing in them are left out."""
    return {table: there for table, there in parts(index) if there}


def parts(index: KeptIndex) -> Iterator[Part]:
    """One table after the other."""
    nodes, found = index.nodes, index.nodes.bins.state()
    name = nodes.name
    yield "order", dict(enumerate(nodes.in_order()))
    yield "alive", _names(index, {"alive": nodes.bins.alive})
    yield "values", {each: dict(seat.values) for each, seat in index.seats().items()}
    yield "shape", {each: _shape(index, seat.number) for each, seat in index.seats().items()}
    for column, resource in enumerate(index.resources):
        free = {each: found["free"][seat.number][column] for each, seat in index.seats().items()}
        yield f"free {resource}", {each: amount for each, amount in free.items() if amount}
        yield f"fit {resource}", _names(index, found["fit"][column])
    signatures = {one: nodes.bins.accepting(one) for one in nodes.bins.accepted()}
    yield "accept", _names(index, signatures)
    yield "ports", {port: _named(index, numbers) for port, numbers in found["ports"].items()}
    for kind, groups in zip(("members", "present", "repelling"), found["groups"], strict=True):
        yield kind, {group: _named(index, numbers) for group, (numbers, _) in groups.items()}
        masks = {
            (group, count): mask
            for group, (_, levels) in groups.items()
            for count, mask in enumerate(levels, start=1)
        }
        yield f"{kind} at least", _names(index, masks)
    for key, by_value in nodes.masks.items():
        yield f"nodes in {key}", _names(index, by_value)
    yield from _domains(index)
    running = index.running.state().items()
    yield "pods", {kind: {name(n): count for n, count in bins.items()} for kind, bins in running}
    yield "avoided", dict(index.running.avoided)


def _domains(index: KeptIndex) -> Iterator[Part]:
    domains = index.nodes.domains
    found, looks = domains.state(), index.shapes.all
    yield "pods in domains", found["present"]
    yield "pods that avoid", found["owners"]
    for kind in ("counts", "nodes"):
        yield (
            f"{kind} of domains",
            {
                group: {(value, looks[shape]): n for (value, shape), n in table.items()}
                for group, table in found[kind].items()
            },
        )
    yield "rules", {key: dict(rule.counts) for key, rule in domains.rules().items()}


def _shape(index: KeptIndex, number: int) -> object:
    return index.shapes.all[index.nodes.bins.shapes[number]]


def _named(index: KeptIndex, numbers: Mapping[int, int]) -> dict[str, int]:
    return {index.nodes.name(number): count for number, count in numbers.items()}


def _names(index: KeptIndex, masks: Mapping[Any, int]) -> dict[Any, list[str]]:
    """The nodes of each mask; masks without any are left out."""
    name = index.nodes.name
    return {
        key: sorted(name(n) for n, bit in enumerate(reversed(f"{mask:b}")) if bit == "1")
        for key, mask in masks.items()
        if mask
    }


def difference(kept: KeptIndex, fresh: KeptIndex) -> str:
    """The first table and key that differ; empty where none does."""
    others = state(fresh)
    for table, there in parts(kept):
        other = others.get(table, {})
        if there != other:
            keys = [key for key in {**there, **other} if there.get(key) != other.get(key)]
            return f"{table}: {min(map(str, keys))}"
    return ""
