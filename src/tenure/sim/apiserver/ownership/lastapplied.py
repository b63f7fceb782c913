"""The way from client-side apply to server-side apply, for kubectl alone.

``kubectl apply`` notes what it applied in an annotation. Its first server-side apply may change what is
unchanged since then: it would be a conflict with itself. As long as the annotation is there, it is kept up to date, so that
there is a way back.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tenure.errors import SpecError
from tenure.parse import jsontext
from tenure.schema.structure.structural import Schema
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.ownership import fieldsets
from tenure.sim.apiserver.ownership.fieldsets import NOTHING, FieldSet, compared
from tenure.sim.apiserver.ownership.forms import Unmergeable

KUBECTL: Final = "kubectl"
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"


def own_fields(live: Obj, schema: Schema) -> FieldSet:
    """The fields of the live object that are as ``kubectl apply`` left them."""
    try:
        last = jsontext.body(_annotations(live).get(ANNOTATION, "").encode())
        if not isinstance(last, dict):
            return NOTHING
        changed = compared(last, live, schema)
        return fieldsets.fields_of(last, schema) - changed.modified - changed.removed
    except (SpecError, Unmergeable):
        return NOTHING


def noted(live: Obj, new: Obj, config: Obj) -> Obj:
    """The new object with the configuration in its annotation, if the live one has it."""
    if ANNOTATION not in _annotations(live):
        return new
    metadata = {key: value for key, value in config["metadata"].items() if key != "managedFields"}
    text = msgspec.json.encode({**config, "metadata": metadata}, order="deterministic").decode()
    annotations = {**_annotations(new), ANNOTATION: f"{text}\n"}
    return {**new, "metadata": {**new["metadata"], "annotations": annotations}}


def _annotations(obj: Obj) -> dict[str, str]:
    return obj.get("metadata", {}).get("annotations") or {}
