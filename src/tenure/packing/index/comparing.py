"""Compares the index that is kept with one that is built anew: everything, by the names of nodes.

Both have to be taught the same first: what questions were about. Numbers of bins, shapes and columns
differ, so none of them is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tenure.packing.index.kept import KeptIndex

#: Reads a table of an index, by the names of nodes.
Read = Callable[[KeptIndex], Mapping[Any, Any]]


def teach(index: KeptIndex, by: KeptIndex) -> None:
    """What questions to the other one were about."""
    index.learn(by.groups.all())
    bins, domains = index.nodes.bins, index.nodes.domains
    for column, resource in enumerate(by.resources):
        own = index.column(resource)
        if own is not None:
            for amount in by.nodes.bins.levels(column):
                bins.learn(own, amount)
    for signature in by.nodes.bins.accepted():
        bins.accepting(signature)
    for spread, signature in list(by.nodes.domains.rules()):
        domains.rule(spread, signature)


def state(index: KeptIndex) -> dict[str, Mapping[Any, Any]]:
    """Everything that changes; tables with nothing in them are left out."""
    found = {table: read(index) for table, read in tables(index).items()}
    return {table: there for table, there in found.items() if there}


def tables(index: KeptIndex) -> dict[str, Read]:
    """How each table is read."""
    found: dict[str, Read] = {
        "order": lambda index: dict(enumerate(index.nodes.in_order())),
        "alive": lambda index: _names(index, {"alive": index.nodes.bins.alive}),
        "values": lambda index: {name: seat.values for name, seat in index.seats().items()},
        "shape": lambda index: {
            name: _shape(index, seat.number) for name, seat in index.seats().items()
        },
        "accept": _accepting,
        "ports": lambda index: {
            port: _named(index, numbers) for port, numbers in index.nodes.bins.ports().items()
        },
        "pods": lambda index: {
            kind: _named(index, bins) for kind, bins in index.running.state().items()
        },
        "avoided": lambda index: dict(index.running.avoided),
        "rules": lambda index: {
            key: dict(rule.counts) for key, rule in index.nodes.domains.rules().items()
        },
    }
    for resource in index.resources:
        found[f"free {resource}"] = partial(_free, resource)
        found[f"fit {resource}"] = partial(_fit, resource)
    for kind in ("members", "present", "repelling"):
        found[kind] = partial(_counted, kind)
        found[f"{kind} at least"] = partial(_at_least, kind)
    for key in index.nodes.masks:
        found[f"nodes in {key}"] = partial(_in_domains, key)
    for kind in ("present", "owners", "counts", "nodes"):
        found[f"domains: {kind}"] = partial(_domains, kind)
    return found


def difference(table: str, kept: KeptIndex, fresh: KeptIndex) -> str:
    """The first key of the table that differs; empty where none does."""
    there = tables(kept)[table](kept)
    read = tables(fresh).get(table)
    other = read(fresh) if read is not None else {}
    if there == other:
        return ""
    keys = [key for key in {**there, **other} if there.get(key) != other.get(key)]
    return f"{table}: {min(map(str, keys))}"


def _free(resource: str, index: KeptIndex) -> dict[str, int]:
    column, rows = index.column(resource), index.nodes.bins.free
    assert column is not None
    found = {name: rows[seat.number][column] for name, seat in index.seats().items()}
    return {name: amount for name, amount in found.items() if amount}


def _fit(resource: str, index: KeptIndex) -> dict[Any, list[str]]:
    column = index.column(resource)
    assert column is not None
    return _names(index, index.nodes.bins.levels(column))


def _accepting(index: KeptIndex) -> dict[Any, list[str]]:
    bins = index.nodes.bins
    return _names(index, {one: bins.accepting(one) for one in bins.accepted()})


def _counted(kind: str, index: KeptIndex) -> dict[Any, dict[str, int]]:
    groups = index.nodes.bins.counted(kind).items()
    return {group: _named(index, numbers) for group, (numbers, _) in groups}


def _at_least(kind: str, index: KeptIndex) -> dict[Any, list[str]]:
    masks = {
        (group, count): mask
        for group, (_, levels) in index.nodes.bins.counted(kind).items()
        for count, mask in enumerate(levels, start=1)
    }
    return _names(index, masks)


def _in_domains(key: str, index: KeptIndex) -> dict[Any, list[str]]:
    return _names(index, index.nodes.masks[key])


def _domains(kind: str, index: KeptIndex) -> Mapping[Any, Any]:
    found, looks = index.nodes.domains.state()[kind], index.shapes.all
    if kind in ("present", "owners"):
        return found  # type: ignore[no-any-return]
    return {
        group: {(value, looks[shape]): n for (value, shape), n in table.items()}
        for group, table in found.items()
    }


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
