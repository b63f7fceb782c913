"""Which taints a pod puts up with, exactly as Kubernetes reads tolerations.

A toleration matches a taint when each of these holds:

1. effect     equal, or the toleration names none;
2. key        equal, or the toleration names none;
3. operator   ``Exists``, or ``Equal`` (also when empty) with an equal value.

How long a ``NoExecute`` taint is tolerated is not asked here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from tenure.model.api.node import Taint

if TYPE_CHECKING:  # The pod asks here about its own tolerations.
    from tenure.model.api.pod import Toleration

#: Effects that keep a pod away; ``PreferNoSchedule`` is only a wish.
HARD_EFFECTS: Final = ("NoSchedule", "NoExecute")


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations matches the taint."""
    for toleration in tolerations:  # noqa: SIM110 - most pods have none, and there are many pods
        if _matches(toleration, taint):
            return True
    return False


def untolerated(
    taints: Iterable[Taint],
    tolerations: Collection[Toleration],
    effects: Collection[str] = HARD_EFFECTS,
) -> Taint | None:
    """The first taint of these effects that nothing tolerates; None when there is none."""
    for taint in taints:
        if taint.effect in effects and not tolerates(tolerations, taint):
            return taint
    return None


def _matches(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
