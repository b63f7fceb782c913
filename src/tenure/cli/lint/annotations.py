"""Durations in annotations: of Nodes and NodeClaims, where Karpenter reads none, and of pods, where it counts otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tenure.core.protect.protection import positive
from tenure.model.api.names import DO_NOT_DISRUPT, DO_NOT_REPAIR
from tenure.schema.fieldmarks import DURATION, POD_DURATION
from tenure.schema.fields import UsedField
from tenure.schema.findings import Finding


def durations_on(annotations: Any, at: str) -> Iterator[Finding]:
    """``at``: the path of the metadata."""
    for name in (DO_NOT_DISRUPT, DO_NOT_REPAIR):
        value = annotations.get(name) if isinstance(annotations, Mapping) else None
        if isinstance(value, str) and positive(value) is not None:
            yield UsedField(f"{at}.annotations.{name}", DURATION).finding


def duration_on_pod(annotations: Any, at: str) -> Iterator[Finding]:
    """``at``: the path of the pod's metadata."""
    value = annotations.get(DO_NOT_DISRUPT) if isinstance(annotations, Mapping) else None
    if isinstance(value, str) and positive(value) is not None:
        yield UsedField(f"{at}.annotations.{DO_NOT_DISRUPT}", POD_DURATION).finding
