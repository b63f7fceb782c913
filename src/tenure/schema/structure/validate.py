"""The schemas of custom kinds, ready to use by a store or a webhook.

In the API server's order: ``prune`` what is unknown, ``default`` what is absent, then
``validate``: first the structure, all errors; then the rules, unless the structure is
so wrong that they could not rely on it, which is said in one more error.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from tenure.model.api.resource import Resource
from tenure.schema.structure import cel, fielderror, shape
from tenure.schema.structure.check import ABSENT, structural_errors
from tenure.schema.structure.crd import CUSTOM_KINDS, CustomKind, schema_of
from tenure.schema.structure.fielderror import FieldError
from tenure.schema.structure.structural import Schema

Json = dict[str, Any]


class ResourceSchema:
    """What is valid for one kind. Objects are plain JSON and are never changed."""

    def __init__(self, resource: Resource, schema: Schema) -> None:
        self.resource = resource
        self.schema: Schema = shape.with_metadata(schema)
        self._rules = cel.compile_rules(self.schema)

    def prune(self, obj: Json, old: Json | None = None) -> Json:
        """The object without the fields that the schema does not know.

        ``old`` is the stored object this one was made from, if any: parts that both share
        are taken as they are. It changes nothing but the time it takes.
        """
        pruned: Json = shape.prune(obj, self.schema, old)
        return pruned

    def unknown_fields(self, obj: Json) -> list[str]:
        """Paths of the fields that ``prune`` would drop."""
        return [unknown.field for unknown in shape.unknown_fields(obj, self.schema)]

    def default(self, obj: Json, old: Json | None = None) -> Json:
        """The object with the schema's defaults filled in and without nulls; ``old`` as above."""
        filled: Json = shape.default(obj, self.schema, old)
        return filled

    def validate(self, obj: Json, old: Json | None = None) -> list[FieldError]:
        """Everything that is wrong; with ``old``, only what the change has made wrong."""
        before = ABSENT if old is None else old
        errors = list(structural_errors(obj, self.schema, "", before))
        if self._rules is None:
            return errors
        if any(error.reason in fielderror.BLOCKING for error in errors):
            return [*errors, fielderror.UNCHECKED]
        return [*errors, *self._rules.errors(obj, "", before)]


class CustomResourceSchema(ResourceSchema):
    """The schema of a kind of ours or of a provider."""

    def __init__(self, kind: CustomKind) -> None:
        super().__init__(kind.resource, schema_of(kind))
        self.kind = kind


#: Built once per process: compiling the rules takes a while.
built_schema = cache(CustomResourceSchema)


def kind_for(
    group: str, kind: str, kinds: Iterable[CustomKind] = CUSTOM_KINDS
) -> CustomKind | None:
    return next((one for one in kinds if one.resource.group_kind == (group, kind)), None)


def schema_for(
    group: str, kind: str, kinds: Iterable[CustomKind] = CUSTOM_KINDS
) -> CustomResourceSchema | None:
    """The schema of one of these kinds; None for any other."""
    custom = kind_for(group, kind, kinds)
    return built_schema(custom) if custom is not None else None
