"""What can be said of a reason to disrupt beforehand, without asking its method."""

from __future__ import annotations

import msgspec

from tenure.model.api.window import ACTIONS


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    #: As budgets, the claim's mark and metrics name it.
    reason: str
    #: Whether it is a choice, which ``--voluntary-disruption=false`` switches off; repair is none,
    #: and has a switch of its own.
    voluntary: bool = True
    #: Whether nodes that are not Ready use the budgets of their pool.
    not_ready_counts: bool = True
    #: Whether ``karpenter.sh/do-not-disrupt`` on the Node or its claim blocks it.
    node_protection_counts: bool = True
    #: Whether it may start although pods block it, where a grace period or a drain bound makes
    #: sure that it ends.
    eventual: bool = False
    #: Whether its pods must have capacity elsewhere before it terminates.
    needs_replacement: bool = True
    #: Whether a pod that is there, or comes meanwhile, ends it.
    only_empty: bool = False
    #: Whether it is called off when its pods have no room without one more node.
    only_fitting: bool = False
    #: Whether it makes nodes fewer or cheaper: ``consolidationPolicy`` and ``consolidateAfter`` of the pool count.
    consolidates: bool = False
    #: The actions by which maintenance windows name it.
    window_actions: frozenset[str] = frozenset(ACTIONS)
