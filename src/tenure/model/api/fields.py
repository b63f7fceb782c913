"""How the fields of our own kinds are described: a sentence, a pattern, limits, a default.

The words end up in the generated CRDs (``kubectl explain`` shows them) and never in the
decoder: everything goes into ``extra_json_schema``, so an object that an older schema let
in still decodes. What makes a field *valid* beyond its own shape is in ``tenure.schema``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

#: Marks a field that must be present. The generator lifts it into the parent's ``required``.
REQUIRED: Final = "x-required"

#: A quantity may be written ``cpu: 500`` as well as ``cpu: "500"``, and the API keeps either form.
Quantity = str | int | float

#: Karpenter's durations: whole hours, minutes and seconds only.
PLAIN_DURATION: Final = r"^([0-9]+(s|m|h))+$"
PLAIN_DURATION_OR_NEVER: Final = r"^(([0-9]+(s|m|h))+|Never)$"
#: Budgets count in minutes; the trailing ``0s`` is what Go prints.
MINUTES_DURATION: Final = r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$"
#: As those, and one day at the most.
DAY_DURATION: Final = (
    r"^((24h(0m)?|(1?[0-9]|2[0-3])h([0-5]?[0-9]m)?|"
    r"([0-9]{1,3}|1[0-3][0-9]{2}|14[0-3][0-9]|1440)m)(0s)?)$"
)

_GO_UNITS = "ns|us|µs|μs|ms|s|m|h"
_GO_TERMS = rf"(([0-9]+(\.[0-9]*)?|\.[0-9]+)({_GO_UNITS}))+"
#: Any duration that Go reads and that is not negative.
GO_DURATION: Final = rf"^\+?(0|{_GO_TERMS})$"
GO_DURATION_OR_NEVER: Final = rf"^(\+?(0|{_GO_TERMS})|Never)$"

#: Loose, as Karpenter's: what slips through is reported in a status condition.
CRON: Final = (
    r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))"
    r"|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$"
)
#: A share of a pool or a number of its nodes.
PERCENT_OR_COUNT: Final = r"^((100|[0-9]{1,2})%|[0-9]+)$"
QUALIFIED_NAME: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?"
    r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
)
LABEL_VALUE: Final = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
TIME_ZONE: Final = r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$"

#: Longer than any duration in use; the API server's cost estimate wants a bound.
DURATION_LENGTH: Final = 64
QUALIFIED_NAME_LENGTH: Final = 316
LABEL_VALUE_LENGTH: Final = 63

ATOMIC: Final = {"x-kubernetes-list-type": "atomic"}
SET: Final = {"x-kubernetes-list-type": "set"}
CONDITIONS: Final = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}


def described(description: str, /, *, required: bool = False, **schema: Any) -> msgspec.Meta:
    """What a field means, and its JSON-schema keywords; none of them is enforced on decode."""
    if required:
        schema[REQUIRED] = True
    return msgspec.Meta(description=description, extra_json_schema=schema)


def duration(description: str, /, pattern: str, **schema: Any) -> msgspec.Meta:
    return described(description, pattern=pattern, maxLength=DURATION_LENGTH, **schema)


def quantities(description: str, /) -> msgspec.Meta:
    return described(description, additionalProperties=QUANTITY_SCHEMA)


#: Kubernetes' own schema of a quantity.
QUANTITY_SCHEMA: Final = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": QUANTITY,
    "x-kubernetes-int-or-string": True,
}
