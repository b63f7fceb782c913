"""What an applied configuration makes of the object that is there."""

from __future__ import annotations

from typing import Any

from tenure.schema.structure.structural import Schema
from tenure.sim.apiserver.ownership.fieldsets import FieldSet, Path
from tenure.sim.apiserver.ownership.forms import UNTYPED, Form, elements, form_of, resolved, under


def merged(live: Any, config: Any, schema: Schema) -> Any:
    """The live value with everything that the configuration says."""
    form = form_of(config, schema)
    if form is Form.LEAF or form_of(live, schema) is not form:
        return config
    if form is Form.LIST:
        return _merged_list(live, config, schema)
    changed = dict(live)
    for key, value in config.items():
        below, _ = under(schema, key)
        changed[key] = merged(live[key], value, below) if key in live else value
    return changed


def _merged_list(live: list[Any], config: list[Any], schema: Schema) -> list[Any]:
    """Elements of the configuration in its order; others stay where they are between them."""
    below = resolved(schema).get("items", UNTYPED)
    there = {step: item for step, item, _ in elements(live, schema)}
    given = {step: item for step, item, _ in elements(config, schema)}
    whole = {
        step: merged(there[step], item, below) if step in there else item
        for step, item in given.items()
    }
    return [whole[step] if step in whole else there[step] for step in _order([*there], [*given])]


def _order(live: list[str], config: list[str]) -> list[str]:
    """The order of an API server: that of the configuration, and what only lives where it was."""
    shared = [step for step in config if step in live]
    given, out = set(config), list[str]()
    while live or config:
        elsewhere = live and live[0] in given and shared and shared[0] != live[0]
        if elsewhere and config and live[0] != config[0]:
            live = live[1:]  # Comes at the place where the configuration has it.
            continue
        if live and live[0] not in given:
            out.append(live[0])
            live = live[1:]
            continue
        if live and (live[0] in out or live[0] == config[0]):
            live = live[1:]
        if config:
            out.append(config[0])
            shared = shared[1:] if shared[:1] == config[:1] else shared
            config = config[1:]
    return out


def without(value: Any, paths: FieldSet, schema: Schema, at: Path = ()) -> Any:
    """The value without these fields and everything in them; None when nothing is left."""
    form = form_of(value, schema)
    if form is Form.LEAF or not value:
        return value
    if form is Form.MAP:
        kept: Any = {}
        for key, item in value.items():
            path = (*at, f"f:{key}")
            if path not in paths:
                kept[key] = without(item, paths, under(schema, key)[0], path)
        return kept
    return [
        without(item, paths, below, (*at, step))
        for step, item, below in elements(value, schema)
        if (*at, step) not in paths
    ]
