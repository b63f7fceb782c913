"""What a pod asks for, checked as an API server does: amounts, spreads, affinities, selectors.

Amounts are not negative, and no request is above its limit. A spread says over what and
how uneven it may be. Selectors use the operators there are, with values where an operator
compares and without them where it does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tenure.errors import Cause, SpecError
from tenure.model.values.quantity import parse_quantity
from tenure.sim.apiserver.objects.refusals import malformed, required, unsupported, untouchable
from tenure.sim.apiserver.objects.tree import Obj, dig

_WHEN_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_WITH_VALUES: Final = ("In", "NotIn")
_WITHOUT_VALUES: Final = ("Exists", "DoesNotExist")
#: Only of node affinities; each compares with exactly one number.
_COMPARING: Final = ("Gt", "Lt")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def resource_causes(resources: Any, at: str) -> Iterator[Cause]:
    """``resources`` of a container."""
    requests, limits = _amounts(dig(resources, "requests")), _amounts(dig(resources, "limits"))
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            if amount.startswith("-") and _nano(amount):
                yield malformed(f"{at}.{field}[{name}]", "must be greater than or equal to 0")
    for name, amount in requests.items():
        limit = limits.get(name, amount)
        if limit != amount and _nano(amount) > _nano(limit):
            message = f"must be less than or equal to {name} limit of {limit}"
            yield malformed(f"{at}.requests", message)


def _amounts(amounts: Any) -> dict[str, str]:
    given = amounts if isinstance(amounts, dict) else {}
    return {name: amount for name, amount in given.items() if isinstance(amount, str)}


def _nano(amount: str) -> int:
    try:
        return parse_quantity(amount)
    except SpecError:
        return 0  # What cannot be read compares with nothing.


def spread_causes(constraints: Any, at: str) -> Iterator[Cause]:
    for here, one in _objects(constraints, at):
        skew = one.get("maxSkew", 0)
        if isinstance(skew, int) and skew < 1:
            yield malformed(f"{here}.maxSkew", "must be greater than zero")
        if not one.get("topologyKey"):
            yield required(f"{here}.topologyKey")
        otherwise = one.get("whenUnsatisfiable", "")
        if otherwise not in _WHEN_UNSATISFIABLE:
            yield unsupported(f"{here}.whenUnsatisfiable", otherwise, _WHEN_UNSATISFIABLE)
        yield from selector_causes(one.get("labelSelector"), f"{here}.labelSelector")


def affinity_causes(affinity: Any, at: str) -> Iterator[Cause]:
    terms = dig(affinity, "nodeAffinity", _REQUIRED, "nodeSelectorTerms")
    for here, term in _objects(terms, f"{at}.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"):
        yield from _expressions(term.get("matchExpressions"), here, _COMPARING)
    preferred = dig(affinity, "nodeAffinity", _PREFERRED)
    for here, term in _objects(preferred, f"{at}.nodeAffinity.{_PREFERRED}"):
        expressions = dig(term, "preference", "matchExpressions")
        yield from _expressions(expressions, f"{here}.preference", _COMPARING)
    for field in ("podAffinity", "podAntiAffinity"):
        for here, term in _objects(dig(affinity, field, _REQUIRED), f"{at}.{field}.{_REQUIRED}"):
            yield from selector_causes(term.get("labelSelector"), f"{here}.labelSelector")
        for here, term in _objects(dig(affinity, field, _PREFERRED), f"{at}.{field}.{_PREFERRED}"):
            selector = dig(term, "podAffinityTerm", "labelSelector")
            yield from selector_causes(selector, f"{here}.podAffinityTerm.labelSelector")


def selector_causes(selector: Any, at: str) -> Iterator[Cause]:
    """A label selector, whosever it is."""
    yield from _expressions(dig(selector, "matchExpressions"), at, ())


def _expressions(expressions: Any, at: str, more: tuple[str, ...]) -> Iterator[Cause]:
    for here, one in _objects(expressions, f"{at}.matchExpressions"):
        operator, values = one.get("operator", ""), one.get("values")
        if operator in _WITH_VALUES and not values:
            message = "must be specified when `operator` is 'In' or 'NotIn'"
            yield required(f"{here}.values", message)
        elif operator in _WITHOUT_VALUES and values:
            message = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield untouchable(f"{here}.values", message)
        elif operator not in (*_WITH_VALUES, *_WITHOUT_VALUES, *more):
            yield malformed(f"{here}.operator", "not a valid selector operator")


def _objects(items: Any, at: str) -> Iterator[tuple[str, Obj]]:
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict):
            yield f"{at}[{index}]", item
