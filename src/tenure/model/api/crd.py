"""A CustomResourceDefinition, as far as it says what the API server serves and stores of a kind."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tenure.model.api.meta import ApiObject, Wire


class Schema(Wire, frozen=True, kw_only=True):
    properties: Mapping[str, Schema] = {}

    def has(self, *path: str) -> bool:
        """Whether there is a field at that path."""
        if not path:
            return True
        found = self.properties.get(path[0])
        return found is not None and found.has(*path[1:])


class CrdValidation(Wire, frozen=True, kw_only=True):
    schema: Schema = msgspec.field(default=Schema(), name="openAPIV3Schema")


class CrdVersion(Wire, frozen=True, kw_only=True):
    name: str = ""
    served: bool = False
    validation: CrdValidation = msgspec.field(default=CrdValidation(), name="schema")


class CrdSpec(Wire, frozen=True, kw_only=True):
    versions: tuple[CrdVersion, ...] = ()


class CustomResourceDefinition(ApiObject, frozen=True, kw_only=True):
    spec: CrdSpec = CrdSpec()
