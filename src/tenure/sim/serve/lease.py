"""The Lease of a served cluster: Tenure in it holds it, so that nothing else acts beside it.

A ``tenure run``, or Karpenter, that is pointed at the cluster waits as a second replica would.
Other programs count in real seconds: at any speed the Lease is renewed as often as theirs would be.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, Final

from tenure.kube.client.client import Client
from tenure.kube.lease.elector import Elector
from tenure.model.api.resource import LEASES
from tenure.model.settings import Settings
from tenure.ports.clock import Clock
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.transport import InProcessTransport
from tenure.sim.serve.pace import PacedLoop

#: How the identity of every ``tenure up`` begins.
IDENTITY: Final = "tenure-up_"


def unheld_lease(settings: Settings) -> dict[str, Any]:
    """Never held: one that is missing may have been deleted under a holder, and is waited for."""
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": settings.lease_name, "namespace": settings.lease_namespace},
        "spec": {},
    }


def elector_of(
    store: Store,
    clock: Clock,
    settings: Settings,
    *,
    loop: PacedLoop,
    report: Callable[[str], object],
) -> Elector:
    """``report`` is told when the Lease is lost, and to whom."""

    def warn(sentence: str) -> None:
        report(sentence)

    return Elector(
        client=Client(InProcessTransport(Api(store))),
        clock=clock,
        settings=settings,
        identity=f"{IDENTITY}{secrets.token_hex(4)}",
        warn=warn,
        # Real seconds, but of a loop that is late none pass: it does not lose its Lease by that.
        steady=lambda: loop.time() / loop.speed,
        loop_speed=loop.speed,
    )
