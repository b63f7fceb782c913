"""A node class of any provider, as far as Tenure reads it; the spec is its provider's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenure.model.api.meta import ApiObject, Condition, Wire


class NodeClassStatus(Wire, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()


class NodeClass(ApiObject, frozen=True, kw_only=True):
    """Tenure reads whether it is Ready, and hands the object to its provider."""

    spec: Mapping[str, Any] = {}
    status: NodeClassStatus = NodeClassStatus()
