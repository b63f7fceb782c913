"""Conflicts of server-side apply, in the API server's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tenure.errors import ApiError, Cause
from tenure.sim.apiserver.objects.refusals import FIELD_MANAGER_CONFLICT
from tenure.sim.apiserver.ownership.fieldsets import FieldSet, Path
from tenure.sim.apiserver.ownership.managers import Manager


def check_conflicts(conflicts: Mapping[Manager, FieldSet]) -> None:
    """Raises 409 that names every field and its manager, if there is one."""
    found = [(one, path) for one, paths in sorted(conflicts.items()) for path in sorted(paths)]
    if not found:
        return
    causes = [
        Cause(reason=FIELD_MANAGER_CONFLICT, message=f"conflict with {one}", field=shown(path))
        for one, path in found
    ]
    if len(found) == 1:
        manager, path = found[0]
        told = f"Apply failed with 1 conflict: conflict with {manager}: {shown(path)}"
    else:
        told = f"Apply failed with {len(found)} conflicts: {_listed(conflicts)}"
    raise ApiError(told, status=409, reason="Conflict", causes=causes)


def _listed(conflicts: Mapping[Manager, FieldSet]) -> str:
    lines: list[str] = []
    for manager, paths in sorted(conflicts.items()):
        if paths:
            lines += [f"conflicts with {manager}:", *(f"- {shown(path)}" for path in sorted(paths))]
    return "\n".join(lines)


def shown(path: Path) -> str:
    """``.spec.containers[name="web"].image``"""
    return "".join(map(_shown_step, path))


def _shown_step(step: str) -> str:
    kind, _, text = step.partition(":")
    if kind == "f":
        return f".{text}"
    if kind == "v":
        return f"[={text}]"
    keys = msgspec.json.decode(text, type=dict[str, Any])
    return f"[{','.join(f'{key}={msgspec.json.encode(value).decode()}' for key, value in keys.items())}]"
