"""NodePoolPolicies: every case of the inline fields, which have the same types, and their selector."""

from __future__ import annotations

from typing import Final

from tests.schema.cases.case import Case
from tests.schema.cases.duration import DURATIONS
from tests.schema.cases.pool import BUDGETS, POLICIES, REPAIR
from tests.schema.cases.window import SELECTORS

#: Where an inline field stands, and where the policy has it.
_MOVED: Final = {
    "spec.template.spec.readinessTTL": "spec.readinessTTL",
    "spec.template.spec.initializationTTL": "spec.initializationTTL",
    "spec.template.spec.expireAfter": "spec.expireAfter",
    "spec.disruption.maxPodProtection": "spec.maxPodProtection",
    "spec.disruption.budgets": "spec.budgets",
    "spec.repair": "spec.repair",
}


def _moved(path: str) -> str | None:
    for old, new in _MOVED.items():
        if path == old or path.startswith((f"{old}.", f"{old}[")):
            return new + path.removeprefix(old)
    return None


def _of_policy(case: Case) -> list[Case]:
    moved = ((_moved(path), value) for path, value in case.changes.items())
    changes = {path: value for path, value in moved if path is not None}
    if case.kind != "NodePool" or case.before is not None or len(changes) < len(case.changes):
        return []
    field = _moved(case.field) or case.field
    return [Case(f"{case.says}, in a policy", "NodePoolPolicy", changes, field, case.message)]


def _selecting(says: str, selector: object, field: str = "", message: str = "") -> Case:
    at = f"spec.nodePools{field}" if message else ""
    return Case(says, "NodePoolPolicy", {"spec.nodePools": selector}, at, message)


_WINDOW: Final = "a window with "
POOL_POLICIES = [
    *(moved for case in (*DURATIONS, *BUDGETS, *POLICIES, *REPAIR) for moved in _of_policy(case)),
    *(moved for case in SELECTORS if case.kind == "NodePool" for moved in _of_policy(case)),
    *(
        _selecting(
            f"pools by {case.says.removeprefix(_WINDOW)}",
            case.changes["spec.selector"],
            case.field.removeprefix("spec.selector"),
            case.message,
        )
        for case in SELECTORS
        if case.kind == "MaintenanceWindow" and "matchLabels" not in case.says
    ),
    _selecting("every pool", {}),
    _selecting("pools by name", {"names": ["general", "spot"]}),
    _selecting("pools by labels", {"matchLabels": {"team": "a"}}),
    _selecting("a pool without a name", {"names": [""]}, ".names[0]", "at least 1"),
    _selecting("a pool twice", {"names": ["a", "a"]}, ".names[1]", "Duplicate"),
    _selecting(
        "a label value that is none", {"matchLabels": {"a": "b c"}}, ".matchLabels.a", "match"
    ),
]
