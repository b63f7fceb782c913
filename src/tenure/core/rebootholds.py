"""Why a reboot does not go ahead, or what has failed of one has no consequences for now.

Before the cloud is asked a reboot is called off, the first of these:

1. off         repair is switched off, or the pool's rules cannot be used;
2. veto        ``karpenter.sh/do-not-repair`` on the Node or the claim;
3. recovered   no condition of the Node that would be repaired means sick any more.

Once it is asked there is no way back. A reboot that fails under one of the first two leaves the
claim where it is: it is spared.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from tenure.core.leavingpods import DrainView
from tenure.core.reboots import rebooted_at
from tenure.core.repairholds import switched_off, veto_on, vetoed
from tenure.core.sickness import Rules, illnesses
from tenure.model.node import Node
from tenure.model.nodeclaim import NodeClaim
from tenure.model.nodepool import NodePool
from tenure.model.observations import RebootAnswer
from tenure.model.settings import Settings


class RebootView(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim
    nodes: tuple[Node, ...] = ()
    #: Its pool, what means sick there, and why its repair block is not used if it is not.
    pool: NodePool | None = None
    rules: Rules = Rules()
    broken: str = ""
    #: The pods of the Node, as long as they are asked to leave.
    drain: DrainView | None = None
    answer: RebootAnswer | None = None

    @property
    def node(self) -> Node | None:
        return self.nodes[0] if len(self.nodes) == 1 else None

    @property
    def recovered(self) -> bool:
        """Tolerated or not: an illness that changes its status meanwhile is no better for it."""
        if self.node is None:
            return False  # Nobody can tell.
        found = illnesses(self.node, self.rules, rebooted_at=rebooted_at(self.claim))
        return not any(illness.counts for illness in found)


class Hold(msgspec.Struct, frozen=True):
    why: str
    #: When it ends although nothing happens.
    until: datetime | None = None


def held(view: RebootView, settings: Settings, now: datetime) -> Hold | None:
    """By a person's word, whether or not the node is sick."""
    if off := switched_off(view.pool, view.broken, settings):
        return Hold(off)
    veto = veto_on(view.claim, view.node, now)
    return Hold(vetoed(veto), veto.ends_at) if veto is not None else None


def pointless(view: RebootView, settings: Settings, now: datetime) -> Hold | None:
    """Why a reboot that has not been issued is called off; None where it goes on."""
    hold = held(view, settings, now)
    if hold is None and view.recovered and view.node is not None:
        return Hold(f"Node {view.node.name} has recovered")
    return hold
