"""Why a reboot does not go ahead, or what has failed of one has no consequences for now.

Once committed a reboot is carried out, even if the condition clears meanwhile. Before the cloud is
asked it is called off by a user's word alone, the first of these (the deletion of the claim ends
it at any time, see ``rebooting``):

1. off         node repair is switched off;
2. veto        ``karpenter.sh/do-not-repair`` on the Node or the claim.

Once it is asked there is no way back. A reboot that fails under one of these, or while the pool's
rules cannot be used, leaves the claim where it is: it is spared.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from tenure.core.health.health import examine
from tenure.core.health.rules import Rules
from tenure.core.repair.gates import SWITCHED_OFF, switched_off, veto_on, vetoed
from tenure.core.terminate.pods import DrainView
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import RebootAnswer


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
    #: A pod of the Node that has not finished and cannot be read, and why; empty where there is none.
    unreadable: str = ""

    @property
    def node(self) -> Node | None:
        return self.nodes[0] if len(self.nodes) == 1 else None

    @property
    def recovered(self) -> bool:
        """Tolerated or not: an illness that changes its status meanwhile is no better for it."""
        if self.node is None:
            return False  # Nobody can tell.
        found = examine(self.claim, self.node, self.rules).ill
        return not any(illness.counts for illness in found)


class Hold(msgspec.Struct, frozen=True):
    why: str
    #: When it ends although nothing happens.
    until: datetime | None = None


def held(view: RebootView, settings: Settings, now: datetime) -> Hold | None:
    """Why a node whose reboot has failed is not replaced for that; None where it is."""
    if off := switched_off(view.pool, view.broken, settings):
        return Hold(off)
    return _veto(view, now)


def stopped(view: RebootView, settings: Settings, now: datetime) -> Hold | None:
    """Why a reboot that the cloud was not asked for is called off; None where it goes on."""
    return _veto(view, now) if settings.node_repair else Hold(SWITCHED_OFF)


def _veto(view: RebootView, now: datetime) -> Hold | None:
    veto = veto_on(view.claim, view.node, now)
    return Hold(vetoed(veto), veto.ends_at) if veto is not None else None
