"""The CEL rules of Tenure's kinds, by path: what a pattern or a limit cannot say.

A path names a place in the schema; ``[]`` stands for each element of a list. A rule
speaks about ``self``, the value at that place, and about ``oldSelf`` where it compares
with what was there before. Every message begins with "must" and says what is wanted,
with an example where one helps.

Rules are written so that they cannot fail to evaluate (``has()`` comes first), and
without functions that only Kubernetes has: two engines must agree on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from tenure.model.api import fields
from tenure.model.api.names import CAPACITY_TYPE, HOSTNAME, NODEPOOL


class Rule(msgspec.Struct, frozen=True, gc=False):
    rule: str
    message: str

    @property
    def compares(self) -> bool:
        """It evaluates a change, so it is silent when there is nothing to compare with."""
        return "oldSelf" in self.rule


RulesByPath = Mapping[str, tuple[Rule, ...]]

_NO_DAYS: Final = "days are no unit, so for 1d use 24h"


def _matches(pattern: str, wanted: str, *, positive: bool = False) -> tuple[Rule, ...]:
    rule = f"self.matches(r'{pattern}')"
    if positive:
        rule += " && (self == 'Never' || self.matches('[1-9]'))"
    return (Rule(rule, wanted),)


WHOLE_SECONDS: Final = _matches(
    fields.PLAIN_DURATION,
    f"must be whole hours, minutes or seconds, for example 90s, 15m or 1h30m; {_NO_DAYS}",
)
_PLAIN_OR_NEVER: Final = _matches(
    fields.PLAIN_DURATION_OR_NEVER,
    "must be whole hours, minutes or seconds, for example 90s, 15m or 720h, or Never; " + _NO_DAYS,
)
_MINUTES: Final = _matches(
    fields.MINUTES_DURATION,
    f"must be hours and minutes, for example 30m, 8h or 8h30m; {_NO_DAYS}",
)
_DAY: Final = _matches(
    fields.DAY_DURATION,
    f"must be hours and minutes above zero and at most 24h, for example 30m or 1h; {_NO_DAYS}",
    positive=True,
)
_SPAN: Final = _matches(
    fields.GO_DURATION, f"must be a Go duration, for example 90s, 15m or 1h30m; {_NO_DAYS}"
)
_SPAN_OR_NEVER: Final = _matches(
    fields.GO_DURATION_OR_NEVER,
    f"must be a Go duration, for example 90s, 15m or 1h30m, or Never; {_NO_DAYS}",
)
_POSITIVE: Final = _matches(
    fields.GO_DURATION,
    f"must be a Go duration above zero, for example 90s, 15m or 1h30m; {_NO_DAYS}",
    positive=True,
)
_POSITIVE_OR_NEVER: Final = _matches(
    fields.GO_DURATION_OR_NEVER,
    f"must be a Go duration above zero, for example 90s, 15m or 1h30m, or Never; {_NO_DAYS}",
    positive=True,
)


def _not_empty(example: str) -> tuple[Rule, ...]:
    return (Rule("self != ''", f"must not be empty; use for example {example}"),)


#: The domain and everything that ends like it: ``mykarpenter.sh/x`` is refused too, as by Karpenter.
_RESERVED_DOMAIN: Final = "r'^[^/]*karpenter[.]sh(/.*)?$'"
_RESERVED_MESSAGE: Final = (
    f"must not use the domain karpenter.sh, which is reserved except for {CAPACITY_TYPE}; "
    "use one of your own, for example example.com/team"
)
_NODEPOOL_MESSAGE: Final = f"must not name {NODEPOOL}, which the pool itself sets; leave it out"
_HOSTNAME_MESSAGE: Final = (
    f"must not name {HOSTNAME}, which differs from node to node; leave it out"
)

_KEY_OF_A_CLAIM: Final = (
    Rule(
        f"self in ['{CAPACITY_TYPE}', '{NODEPOOL}'] || !self.matches({_RESERVED_DOMAIN})",
        _RESERVED_MESSAGE,
    ),
    Rule(f"self != '{HOSTNAME}'", _HOSTNAME_MESSAGE),
)
_KEY_OF_A_POOL: Final = (*_KEY_OF_A_CLAIM, Rule(f"self != '{NODEPOOL}'", _NODEPOOL_MESSAGE))

_POOL_LABELS: Final = (
    Rule(
        f"self.all(x, x in ['{CAPACITY_TYPE}', '{NODEPOOL}'] || !x.matches({_RESERVED_DOMAIN}))",
        _RESERVED_MESSAGE,
    ),
    Rule(f"self.all(x, x != '{NODEPOOL}')", _NODEPOOL_MESSAGE),
    Rule(f"self.all(x, x != '{HOSTNAME}')", _HOSTNAME_MESSAGE),
)

_WHOLE_NUMBER: Final = (
    "has(x.values) && size(x.values) == 1 && x.values[0].matches('^[0-9]{1,18}$')"
)
_REQUIREMENTS: Final = (
    Rule(
        "self.all(x, x.operator != 'In' || (has(x.values) && size(x.values) > 0))",
        'must have at least one value for the operator In, for example values: ["linux"]',
    ),
    Rule(
        f"self.all(x, !(x.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || ({_WHOLE_NUMBER}))",
        "must have exactly one whole number, not negative, for the operators Gt, Lt, Gte and Lte, "
        'for example values: ["16"]',
    ),
    Rule(
        "self.all(x, x.operator != 'In' || !has(x.minValues) || "
        "(has(x.values) && size(x.values) >= x.minValues))",
        "must have as many values as minValues asks for; add values or lower minValues",
    ),
)
_SELECTOR: Final = (
    Rule(
        "self.all(x, !(x.operator in ['In', 'NotIn']) || (has(x.values) && size(x.values) > 0))",
        'must have at least one value for the operators In and NotIn, for example values: ["spot"]',
    ),
    Rule(
        "self.all(x, !(x.operator in ['Exists', 'DoesNotExist']) || "
        "!has(x.values) || size(x.values) == 0)",
        "must have no values for the operators Exists and DoesNotExist; leave them out",
    ),
    Rule(
        f"self.all(x, !(x.operator in ['Gt', 'Lt']) || ({_WHOLE_NUMBER}))",
        'must have exactly one whole number for the operators Gt and Lt, for example values: ["16"]',
    ),
)
_NO_LABELS: Final = (
    Rule(
        "size(self) == 0",
        "must be left out; use matchExpressions, for example {key: team, operator: In, values: [db]}",
    ),
)

_NODE_CLASS: Final[RulesByPath] = {
    "nodeClassRef.group": _not_empty("karpenter.k8s.aws"),
    "nodeClassRef.kind": _not_empty("EC2NodeClass"),
    "nodeClassRef.name": _not_empty("default"),
}
_TEMPLATE: Final[RulesByPath] = {
    **_NODE_CLASS,
    "requirements": _REQUIREMENTS,
    "terminationGracePeriod": WHOLE_SECONDS,
    "expireAfter": _PLAIN_OR_NEVER,
    "readinessTTL": _POSITIVE,
    "initializationTTL": _POSITIVE_OR_NEVER,
}


#: Those of them that a policy may set.
_TIMES: Final = ("readinessTTL", "initializationTTL", "expireAfter")


def _under(prefix: str, rules: RulesByPath) -> RulesByPath:
    return {f"{prefix}.{path}": there for path, there in rules.items()}


_BUDGETS: Final = (
    Rule(
        "self.all(x, has(x.schedule) == has(x.duration))",
        "must have schedule and duration together, "
        'for example schedule: "0 9 * * mon-fri", duration: 8h',
    ),
    Rule(
        "self.all(x, !has(x.timeZone) || has(x.schedule))",
        "must have a schedule where it has a timeZone; add one or leave the zone out",
    ),
)
#: Of each budget, below the list.
_BUDGET: Final[RulesByPath] = {
    "duration": _MINUTES,
    "within": _DAY,
    "per": (
        Rule(
            f"!self.matches(r'{fields.PLAIN_DURATION}')",
            "must be a node label, for example topology.kubernetes.io/zone; "
            "for at most so many starts in a span of time use within",
        ),
    ),
    "selector.matchExpressions": _SELECTOR,
    "selector.matchLabels": _NO_LABELS,
}
_REPAIR: Final[RulesByPath] = {
    "spec.repair": (
        Rule(
            "!has(self.policies) || self.policies.all(p, !has(p.terminationGracePeriod) || "
            "(has(p.terminationMode) ? p.terminationMode == 'Graceful' : "
            "has(self.terminationMode) && self.terminationMode == 'Graceful'))",
            "must have terminationMode: Graceful where a policy has a terminationGracePeriod: "
            "a forceful end does not drain",
        ),
    ),
    "spec.repair.defaultTolerationDuration": _SPAN_OR_NEVER,
    "spec.repair.policies[].toleration": _SPAN_OR_NEVER,
    "spec.repair.policies[].terminationGracePeriod": _SPAN,
}

_POOL: Final[RulesByPath] = {
    "spec": (
        Rule(
            "has(self.replicas) == has(oldSelf.replicas)",
            "must not gain or lose replicas later; create another NodePool instead",
        ),
        Rule(
            "!has(self.replicas) || !has(self.limits) || "
            "self.limits.all(resource, resource == 'nodes')",
            "must have no limit but nodes beside replicas, for example limits: {nodes: 10}",
        ),
        Rule(
            "!has(self.replicas) || !has(self.weight)",
            "must have no weight beside replicas: such a pool takes no part in scheduling",
        ),
    ),
    "spec.template.metadata.labels": _POOL_LABELS,
    "spec.template.spec.requirements[].key": _KEY_OF_A_POOL,
    "spec.template.spec.nodeClassRef": (
        Rule(
            "self.group == oldSelf.group",
            "must keep its group; create another NodePool instead",
        ),
        Rule(
            "self.kind == oldSelf.kind",
            "must keep its kind; create another NodePool instead",
        ),
    ),
    "spec.disruption.consolidateAfter": _PLAIN_OR_NEVER,
    "spec.disruption.maxPodProtection": _POSITIVE,
    "spec.disruption.budgets": _BUDGETS,
    **_under("spec.disruption.budgets[]", _BUDGET),
    **_REPAIR,
}

_CLAIM: Final[RulesByPath] = {
    "spec": (
        Rule("self == oldSelf", "must not change; delete the claim, and its pool makes another"),
    ),
    "spec.requirements[].key": _KEY_OF_A_CLAIM,
}

_WINDOW: Final[RulesByPath] = {
    "spec.schedules[].duration": _POSITIVE,
    "spec.dates[]": (
        Rule(
            # The API server hands out timestamps here and we hand out strings; this reads both.
            "timestamp(self.from) < timestamp(self.until)",
            "must have until later than from, "
            "for example from: 2026-12-20T00:00:00Z, until: 2027-01-04T00:00:00Z",
        ),
    ),
    "spec.selector.matchExpressions": _SELECTOR,
    "spec.selector.matchLabels": _NO_LABELS,
}

_POOL_POLICY: Final[RulesByPath] = {
    "spec.nodePools.matchExpressions": _SELECTOR,
    **{f"spec.{name}": _TEMPLATE[name] for name in _TIMES},
    "spec.maxPodProtection": _POSITIVE,
    "spec.budgets": _BUDGETS,
    **_under("spec.budgets[]", _BUDGET),
    **_REPAIR,
}

RULES: Final[Mapping[str, RulesByPath]] = {
    "NodePool": {**_POOL, **_under("spec.template.spec", _TEMPLATE)},
    "NodeClaim": {**_CLAIM, **_under("spec", _TEMPLATE)},
    "MaintenanceWindow": _WINDOW,
    "NodePoolPolicy": _POOL_POLICY,
}
