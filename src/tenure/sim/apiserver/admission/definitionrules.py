"""What a CustomResourceDefinition has to say, and what is filled in where it does not say it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tenure.errors import Cause
from tenure.sim.apiserver.objects.refusals import malformed, required, unsupported
from tenure.sim.apiserver.objects.tree import Obj, dig

SCOPES: Final = ("Cluster", "Namespaced")


def with_defaults(obj: Obj) -> Obj:
    spec = obj.get("spec") or {}
    names = spec.get("names") or {}
    kind = names.get("kind") or ""
    made_up = {"singular": kind.lower(), "listKind": f"{kind}List"} if kind else {}
    filled = {**spec, "names": {**made_up, **names}, "conversion": spec.get("conversion") or _NONE}
    return {**obj, "spec": filled}


_NONE: Final[Obj] = {"strategy": "None"}


def definition_causes(obj: Obj) -> Iterator[Cause]:
    spec = obj["spec"]
    names = spec["names"]
    for field in ("group", "scope"):
        if not spec.get(field):
            yield required(f"spec.{field}")
    for field in ("plural", "kind"):
        if not names.get(field):
            yield required(f"spec.names.{field}")
    if spec.get("scope") and spec["scope"] not in SCOPES:
        yield unsupported("spec.scope", spec["scope"], SCOPES)
    name, expected = obj["metadata"]["name"], f"{names.get('plural')}.{spec.get('group')}"
    if name != expected:
        why = f'Invalid value: "{name}": must be spec.names.plural+"."+spec.group'
        yield malformed("metadata.name", why)
    yield from _version_causes(spec.get("versions") or [])


def _version_causes(versions: list[Any]) -> Iterator[Cause]:
    if sum(bool(one.get("storage")) for one in versions) != 1:
        why = "must have exactly one version marked as storage version"
        yield malformed("spec.versions", f"Invalid value: {why}")
    seen: set[str] = set()
    for index, one in enumerate(versions):
        at = f"spec.versions[{index}]"
        if one.get("name") in seen:
            yield malformed(f"{at}.name", "must be unique")
        seen.add(one.get("name", ""))
        schema = dig(one, "schema", "openAPIV3Schema")
        if not isinstance(schema, dict):
            yield required(f"{at}.schema.openAPIV3Schema", "schemas are required")
        elif schema.get("type") != "object":
            place = f"{at}.schema.openAPIV3Schema.type"
            if schema.get("type"):
                yield malformed(
                    place, f"Invalid value: {schema['type']!r}: must be object at the root"
                )
            else:
                yield required(place, "must not be empty at the root")


def change_causes(obj: Obj, old: Obj) -> Iterator[Cause]:
    """What cannot change once the kind is there."""
    for path in (("group",), ("scope",), ("names", "plural"), ("names", "kind")):
        if dig(obj["spec"], *path) != dig(old["spec"], *path):
            yield malformed(f"spec.{'.'.join(path)}", "field is immutable")
