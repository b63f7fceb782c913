"""What happens to an object between the request and the shelf.

What comes from outside is read first: types, and fields that do not exist (``tenure.sim.apiserver.admission.reading``).
Built-in kinds: nulls are dropped, amounts become text, defaults are filled in, a few rules
checked (``tenure.sim.apiserver.admission.amounts``, ``tenure.sim.apiserver.admission.defaults``, ``tenure.sim.apiserver.admission.validation``). Custom kinds:
unknown fields are pruned, the schema's defaults filled in, then schema and CEL rules checked. The
custom half is a port, because the same rules also serve the webhook.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from tenure.errors import Cause
from tenure.model.api.resource import NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from tenure.schema.structure.validate import ResourceSchema
from tenure.sim.apiserver.admission.amounts import with_text_amounts
from tenure.sim.apiserver.admission.defaults import create_defaults, update_defaults, with_qos
from tenure.sim.apiserver.admission.limitranges import limited
from tenure.sim.apiserver.admission.reading import read_object
from tenure.sim.apiserver.admission.validation import creation_causes, update_causes
from tenure.sim.apiserver.objects.customkinds import schema_for
from tenure.sim.apiserver.objects.kinds import Kind
from tenure.sim.apiserver.objects.refusals import invalid
from tenure.sim.apiserver.objects.strictness import Strictness
from tenure.sim.apiserver.objects.tree import Obj, without_nulls


class Admission(Protocol):
    """The rules of the custom kinds. ``obj`` is never changed in place."""

    def prune(self, kind: Kind, obj: Obj, old: Obj | None) -> Obj:
        """The object without unknown fields; itself when it has none."""
        ...

    def unknown_fields(self, kind: Kind, obj: Obj) -> Sequence[str]: ...

    def default(self, kind: Kind, obj: Obj, old: Obj | None) -> Obj: ...

    def validate(self, kind: Kind, obj: Obj, old: Obj | None) -> Sequence[Cause]: ...


class Schemas:
    """The rules of the custom kinds, as their CRDs say them."""

    def prune(self, kind: Kind, obj: Obj, old: Obj | None) -> Obj:
        return rules_of(kind).prune(obj, old)

    def unknown_fields(self, kind: Kind, obj: Obj) -> Sequence[str]:
        return rules_of(kind).unknown_fields(obj)

    def default(self, kind: Kind, obj: Obj, old: Obj | None) -> Obj:
        return rules_of(kind).default(obj, old)

    def validate(self, kind: Kind, obj: Obj, old: Obj | None) -> Sequence[Cause]:
        return [error.cause() for error in rules_of(kind).validate(obj, old)]


def rules_of(kind: Kind) -> ResourceSchema:
    """The schema of a custom kind."""
    if kind.definition is not None:
        return kind.definition.schema
    schema = schema_for(kind.resource.group, kind.resource.kind)
    assert schema is not None, f"{kind.resource} is a custom kind without a schema"
    return schema


class Gate:
    """Admits objects of every kind; ``priority`` looks up a PriorityClass by name."""

    def __init__(
        self,
        custom: Admission,
        *,
        priority: Callable[[str], tuple[str, int, str]],
        limit_ranges: Callable[[str], Sequence[Obj]] = lambda _: (),
        default_class: Callable[[], str] = lambda: "",
    ) -> None:
        """``limit_ranges``: those of a namespace. ``default_class``: the default StorageClass."""
        self._custom = custom
        self._priority = priority
        self._limit_ranges = limit_ranges
        self._default_class = default_class
        #: Changes that others make to a new pod, as mutating webhooks do.
        self.webhooks: list[Callable[[Obj], Obj]] = []

    def read(self, kind: Kind, obj: Obj, old: Obj | None, strictness: Strictness) -> Obj:
        """What came from outside, as far as it can be read. Raises 400, or 422 for a patch."""
        obj = read_object(kind, obj, old, strictness)
        if not kind.custom:
            return obj
        known = self._custom.prune(kind, obj, old)
        if known is not obj:
            unknown = self._custom.unknown_fields(kind, obj)
            strictness.meet_unknown(kind.resource, unknown)
        return known

    def create(self, kind: Kind, obj: Obj) -> Obj:
        """The object to store; its metadata is settled already."""
        if kind.custom:
            return self._admit_custom(kind, obj, None)
        obj = with_text_amounts(kind.resource, _cleared(obj))
        obj = create_defaults(kind.resource, obj, self._priority)
        if kind.resource == PODS:
            obj = self._admit_pod(obj)
        elif kind.resource == PERSISTENT_VOLUME_CLAIMS:
            obj = self._admit_claim(obj)
        if causes := list(creation_causes(kind.resource, obj)):
            raise invalid(kind.resource, obj["metadata"]["name"], causes)
        return obj

    def _admit_pod(self, pod: Obj) -> Obj:
        for webhook in self.webhooks:
            pod = webhook(pod)
        for one in self._limit_ranges(pod["metadata"]["namespace"]):
            pod = limited(pod, one)
        return with_qos(pod)

    def _admit_claim(self, claim: Obj) -> Obj:
        spec = claim.get("spec") or {}
        if "storageClassName" in spec or not (default := self._default_class()):
            return claim
        return {**claim, "spec": {**spec, "storageClassName": default}}

    def update(self, kind: Kind, obj: Obj, old: Obj) -> Obj:
        if kind.custom:
            if _only_metadata_differs(obj, old):
                return obj  # The rest was found good when it came in.
            return self._admit_custom(kind, obj, old)
        for key, value in obj.items():
            # Metadata is settled, and in a status a null does no harm: the hot path stays short.
            if value is not old.get(key) and key not in ("metadata", "status"):
                obj = {**obj, key: _cleared(value)}
        part = "status" if kind.resource == NODES else "spec"
        if obj.get(part) is not old.get(part):
            obj = with_text_amounts(kind.resource, obj)
        obj = update_defaults(kind.resource, obj, old)
        if causes := list(update_causes(kind.resource, obj, old)):
            raise invalid(kind.resource, old["metadata"]["name"], causes)
        return obj

    def _admit_custom(self, kind: Kind, obj: Obj, old: Obj | None) -> Obj:
        obj = self._custom.prune(kind, obj, old)
        obj = self._custom.default(kind, obj, old)
        if causes := self._custom.validate(kind, obj, old):
            raise invalid(kind.resource, obj["metadata"]["name"], causes)
        return obj


def _cleared(tree: Any) -> Any:
    """Without nulls. That there are none is seen sooner in the bytes than in the tree."""
    return without_nulls(tree) if b"null" in msgspec.json.encode(tree) else tree


def _only_metadata_differs(obj: Obj, old: Obj) -> bool:
    return len(obj) == len(old) and all(
        value is old.get(key) for key, value in obj.items() if key != "metadata"
    )
