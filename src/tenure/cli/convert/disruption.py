"""When nodes expire, are consolidated and are repaired: TTLs of a Provisioner, fields of a NodePool."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from tenure.cli.convert.conversion import Conversion
from tenure.cli.convert.fields import Fields
from tenure.cli.convert.report import Code
from tenure.errors import SpecError
from tenure.model.values.duration import NEVER, parse_duration
from tenure.schema.structure.crd import CUSTOM_KINDS
from tenure.schema.structure.validate import schema_for

_EXPIRE: Final = "spec.template.spec.expireAfter"
_POLICY: Final = "spec.disruption.consolidationPolicy"
_AFTER: Final = "spec.disruption.consolidateAfter"


def lifetimes(done: Conversion, spec: Fields, kept_by: str | None, *, is_old: bool) -> None:
    """``kept_by``: the field that keeps every Node of the pool from being consolidated, if any.

    ``is_old``: what is absent happens never, as in v1alpha5.
    """
    _expiration(done, spec, is_old=is_old)
    _consolidation(done, spec, kept_by, is_old=is_old)
    done.put("spec.disruption.budgets", _default("disruption", "budgets"))
    _repair(done, spec, is_old=is_old)
    if is_old:
        done.note(
            Code.WRITTEN_OUT,
            "drift is always on: a Node that differs from its NodePool is replaced, within budgets; a "
            "MaintenanceWindow with actions: [Drift] blocks it",
        )


def _expiration(done: Conversion, spec: Fields, *, is_old: bool) -> None:
    by_seconds, by_span = spec.seconds("ttlSecondsUntilExpired"), spec.span("ttlAfterCreated")
    if by_seconds is not None and by_span is not None:
        expected = "one of ttlAfterCreated and ttlSecondsUntilExpired"
        spec.refuse(SpecError("spec.ttlAfterCreated", by_span, expected, "Remove one of them."))
    found, origin = by_span, "spec.ttlAfterCreated"
    if by_seconds is not None:
        found, origin = by_seconds, "spec.ttlSecondsUntilExpired"
    if found is None:
        found = NEVER if is_old else _default("template", "spec", "expireAfter")
        why = "without ttlSecondsUntilExpired no node expired" if is_old else "the default"
        done.note(Code.WRITTEN_OUT, f"{_EXPIRE} is {found}: {why}")
    elif found != NEVER and not parse_duration(found):
        message = f"expired each node at once; with {_EXPIRE} {found} no node expires"
        done.note(Code.NO_SUCCESSOR, message, origin)
    done.put(_EXPIRE, found, origin)


def _consolidation(done: Conversion, spec: Fields, kept_by: str | None, *, is_old: bool) -> None:
    written = spec.peek("ttlSecondsAfterEmpty")
    empty = spec.seconds("ttlSecondsAfterEmpty")
    block = spec.inner("consolidation")
    enabled = block.flag("enabled")
    done.report_left(block)
    if enabled and empty is not None:
        expected = "no consolidation.enabled: true beside it, as in every release"
        error = SpecError("spec.ttlSecondsAfterEmpty", written, expected, "Remove one of them.")
        spec.refuse(error)
    policy = _default("disruption", "consolidationPolicy")
    after = _default("disruption", "consolidateAfter")
    if empty is not None:
        _put(done, "WhenEmpty", empty, "spec.ttlSecondsAfterEmpty")
    elif enabled and kept_by is not None:
        _put(done, policy, NEVER, "spec.consolidation.enabled")
        message = f"kept every Node of the pool from being consolidated, so {_AFTER} is {NEVER}"
        done.note(Code.CHANGED, message, kept_by)
    elif enabled:
        _put(done, policy, after, "spec.consolidation.enabled")
    elif enabled is None and not is_old:
        _put(done, policy, after)
        done.note(Code.WRITTEN_OUT, f"{_POLICY} is {policy}, {_AFTER} is {after}: the defaults")
    else:
        _put(done, "WhenEmpty", NEVER, "spec.consolidation.enabled")
        if enabled is None:
            why = "without consolidation and ttlSecondsAfterEmpty no node was consolidated"
            done.note(Code.WRITTEN_OUT, f"{_AFTER} is {NEVER}: {why}")


def _put(done: Conversion, policy: str, after: str, origin: str | None = None) -> None:
    done.put(_POLICY, policy, origin)
    done.put(_AFTER, after, origin)


def _repair(done: Conversion, spec: Fields, *, is_old: bool) -> None:
    """Graceful, because a Provisioner launched the replacement first, whatever the reason."""
    at, tolerated = spec.path("ttlAfterNotReady"), spec.span("ttlAfterNotReady")
    if tolerated is not None:
        policies = [{"conditionType": "Ready", "toleration": tolerated}]
        done.put("spec.repair.policies", policies, at)
        done.put("spec.repair.terminationMode", "Graceful", at)
    elif is_old:
        done.put("spec.repair.defaultTolerationDuration", NEVER)
        done.put("spec.repair.terminationMode", "Graceful")
        done.note(
            Code.WRITTEN_OUT,
            f"spec.repair.defaultTolerationDuration is {NEVER}: no unhealthy node was repaired; remove "
            "spec.repair to have them repaired",
        )


@cache
def _defaults() -> Any:
    """A NodePool as the API server stores it."""
    schema = schema_for("karpenter.sh", "NodePool", CUSTOM_KINDS)
    assert schema is not None
    return schema.default({"spec": {"template": {"spec": {}}}})["spec"]


def _default(*path: str) -> Any:
    value = _defaults()
    for step in path:
        value = value[step]
    return value
