"""Turn a model type into the structural schema that a CRD carries.

The types say what a field is; the words, patterns, limits and defaults come from the
``Meta`` beside them. What Kubernetes asks of a structural schema is done on the way:
references are inlined, ``x | None`` becomes "not required", a type stands beside each
enum, and a field marked required is lifted into its parent's list.

Taints and conditions are Kubernetes' own shapes, shared with nodes and pods, so their
schema is written out here.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

import msgspec

from tenure.model.api.fields import QUALIFIED_NAME, QUALIFIED_NAME_LENGTH, REQUIRED
from tenure.model.api.meta import ApiObject, Condition
from tenure.model.api.node import Taint

Schema = dict[str, Any]

_TAINT: Final[Schema] = {
    "type": "object",
    "description": "Keeps pods away that do not tolerate it.",
    "required": ["effect", "key"],
    "properties": {
        "key": {
            "type": "string",
            "description": "The key that a toleration names.",
            "minLength": 1,
            "pattern": QUALIFIED_NAME,
        },
        "value": {
            "type": "string",
            "description": "The value that a toleration may ask for.",
            "pattern": QUALIFIED_NAME,
        },
        "effect": {
            "type": "string",
            "description": "What happens to pods that do not tolerate the taint.",
            "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"],
        },
        "timeAdded": {
            "type": "string",
            "description": "When the taint was added.",
            "format": "date-time",
        },
    },
}

_CONDITION: Final[Schema] = {
    "type": "object",
    "description": "One aspect of the object's state.",
    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
    "properties": {
        "type": {
            "type": "string",
            "description": "The aspect, in CamelCase.",
            "maxLength": QUALIFIED_NAME_LENGTH,
            "pattern": QUALIFIED_NAME,
        },
        "status": {
            "type": "string",
            "description": "Whether it holds: True, False or Unknown.",
            "enum": ["True", "False", "Unknown"],
        },
        "reason": {
            "type": "string",
            "description": "Why, as one word for programs.",
            "minLength": 1,
            "maxLength": 1024,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "message": {
            "type": "string",
            "description": "Why, as a sentence for users; it may be empty.",
            "maxLength": 32768,
        },
        "lastTransitionTime": {
            "type": "string",
            "description": "When the status last changed.",
            "format": "date-time",
        },
        "observedGeneration": {
            "type": "integer",
            "description": "The generation of the object that the status was computed from.",
            "format": "int64",
            "minimum": 0,
        },
    },
}

_BORROWED: Final[Mapping[type, Schema]] = {Taint: _TAINT, Condition: _CONDITION}

_PLAIN: Final[Mapping[type, str]] = {
    msgspec.inspect.StrType: "string",
    msgspec.inspect.IntType: "integer",
    msgspec.inspect.FloatType: "number",
    msgspec.inspect.BoolType: "boolean",
}


def structural_schema(kind: type[ApiObject]) -> Schema:
    """The ``openAPIV3Schema`` of a kind, without rules (those are added by path)."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    schema = _struct(info)
    schema["description"] = _first_sentence(kind)
    schema["properties"] |= {
        "apiVersion": {"type": "string", "description": "Group and version of this object."},
        "kind": {"type": "string", "description": "What this object is."},
        "metadata": {"type": "object"},
    }
    return schema


def _first_sentence(kind: type) -> str:
    assert kind.__doc__ is not None
    return kind.__doc__.split("\n\n")[0].strip()


def _schema(info: msgspec.inspect.Type) -> Schema:
    if isinstance(info, msgspec.inspect.Metadata):
        return _described(info)
    if isinstance(info, msgspec.inspect.StructType):
        return _struct(info)
    if isinstance(info, msgspec.inspect.VarTupleType):
        return {"type": "array", "items": _schema(info.item_type)}
    if isinstance(info, msgspec.inspect.DictType):
        return {"type": "object", "additionalProperties": _schema(info.value_type)}
    if isinstance(info, msgspec.inspect.DateTimeType):
        return {"type": "string", "format": "date-time"}
    if isinstance(info, msgspec.inspect.UnionType):
        return _optional(info)
    if isinstance(info, msgspec.inspect.AnyType):
        return {}  # What is there is another program's.
    return {"type": _PLAIN[type(info)]}


def _optional(info: msgspec.inspect.UnionType) -> Schema:
    """``x | None`` is x; a union of several real types is described by its ``Meta``."""
    present = [t for t in info.types if not isinstance(t, msgspec.inspect.NoneType)]
    return _schema(present[0]) if len(present) == 1 else {}


def _described(info: msgspec.inspect.Metadata) -> Schema:
    words = deepcopy(info.extra_json_schema or {})
    return {**_schema(info.type), **words}


def _struct(info: msgspec.inspect.StructType) -> Schema:
    if info.cls in _BORROWED:
        return deepcopy(_BORROWED[info.cls])
    properties = {field.encode_name: _schema(field.type) for field in info.fields}
    required = sorted(name for name, schema in properties.items() if schema.pop(REQUIRED, False))
    schema: Schema = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema
