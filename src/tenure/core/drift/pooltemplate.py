"""What the claims of a pool are compared with: worked out once for each version of the pool."""

from __future__ import annotations

from typing import Final

import msgspec

from tenure.core.marks.templatehash import FieldHashes, field_hashes, folded
from tenure.errors import SpecError
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodepool import NodeClaimTemplate, NodePool
from tenure.model.matching.requirements import Requirements
from tenure.model.snapshot.derived import Derivation
from tenure.model.snapshot.governed import as_written
from tenure.model.snapshot.unreadable import is_unreadable


class PoolTemplate(msgspec.Struct, frozen=True):
    template: NodeClaimTemplate
    fields: FieldHashes
    hash: str
    requirements: Requirements


def _pool_template(pool: NodePool) -> PoolTemplate | None:
    """None where a part of it cannot be read: the pool's status says which."""
    template = as_written(pool).spec.template
    try:
        fields = field_hashes(template)
        requirements = Requirements.from_wire(template.spec.requirements)
    except SpecError:
        return None
    return PoolTemplate(template, fields, folded(fields), requirements)


TEMPLATE: Final = Derivation("what claims of the pool are compared with", _pool_template)


def same_template(old: ApiObject | None, new: ApiObject | None) -> bool:
    """Most changes of a pool are of its status."""
    if old is None or new is None or is_unreadable(old) or is_unreadable(new):
        return False
    assert isinstance(old, NodePool)
    assert isinstance(new, NodePool)
    if as_written(old).spec.template != as_written(new).spec.template:
        return False
    # An empty list equals one that is absent, and hashes to something else.
    was, is_now = _pool_template(old), _pool_template(new)
    return was is not None and is_now is not None and was.fields == is_now.fields
