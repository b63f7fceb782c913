"""Reads a body as an API server's decoder does, before metadata, defaults or rules are looked at.

Built-in kinds are known to the last field; of custom kinds only the metadata is read here, the
rest is their schema's (``tenure.sim.apiserver.admission.admission``).
"""

from __future__ import annotations

from tenure.sim.apiserver.objects.kinds import Kind
from tenure.sim.apiserver.objects.strictness import Strictness
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.shapes.decoding import Mistake, as_read, metadata_mistakes, mistakes


def read_object(kind: Kind, obj: Obj, old: Obj | None, strictness: Strictness) -> Obj:
    """The object as far as it can be read. Raises 400, or 422 for a patch."""
    found = list(_mistakes(kind, obj, old))
    for mistake in found:
        if mistake.fatal:
            raise strictness.unreadable(kind.resource, str(mistake))
    if not found:
        return obj
    strictness.meet_unknown(kind.resource, (mistake.at for mistake in found if mistake.unknown))
    return as_read(kind.resource, obj)


def _mistakes(kind: Kind, obj: Obj, old: Obj | None) -> list[Mistake]:
    if not kind.custom:
        return list(mistakes(kind.resource, obj, old))
    metadata = metadata_mistakes(obj.get("metadata"), old and old["metadata"])
    return [mistake for mistake in metadata if mistake.fatal]
