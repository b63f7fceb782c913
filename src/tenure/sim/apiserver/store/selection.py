"""Selectors of list and watch requests, as predicates over stored objects.

Labels can be asked about freely; of the fields, only those that a kind offers.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.pod import LabelSelector
from tenure.model.matching.selectors import matches, parse_field_selector, parse_label_selector
from tenure.sim.apiserver.objects.kinds import Kind
from tenure.sim.apiserver.objects.refusals import bad_request
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.watch import Matches

_EVERYWHERE: Final = frozenset({"metadata.name", "metadata.namespace"})


def selected(kind: Kind, label_selector: str, field_selector: str) -> Matches | None:
    """What both selectors want; None when they want everything. Raises 400 if unreadable."""
    try:
        labels = parse_label_selector(label_selector) if label_selector else None
        offered = kind.fields | _EVERYWHERE
        fields = parse_field_selector(field_selector, offered) if field_selector else None
    except SpecError as error:
        raise bad_request(str(error)) from error
    if labels is None:
        return fields
    if fields is None:
        return lambda obj: labels(obj["metadata"].get("labels") or {})
    return lambda obj: labels(obj["metadata"].get("labels") or {}) and fields(obj)


def covers(selector: Obj | None, obj: Obj) -> bool:
    """Whether a ``LabelSelector`` object selects it: an absent one nothing, an empty one all."""
    if selector is None:
        return False
    return matches(msgspec.convert(selector, LabelSelector), obj["metadata"].get("labels") or {})


def written(selector: Obj | None) -> str:
    """A ``LabelSelector`` object as text: ``app=web,tier in (a,b)``; nothing for none."""
    selector = selector or {}
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for one in selector.get("matchExpressions") or []:
        key, operator = one.get("key", ""), one.get("operator", "")
        values = ",".join(sorted(one.get("values") or []))
        if operator in ("Exists", "DoesNotExist"):
            parts.append((key, key if operator == "Exists" else f"!{key}"))
        else:
            parts.append((key, f"{key} {operator.lower()} ({values})"))
    return ",".join(text for _, text in sorted(parts))
