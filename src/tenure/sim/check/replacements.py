"""Watches for replacements that are of no use: launched for a command that never begins.

A replacement is Initialized, runs no pods, and the claim that it replaces neither terminates nor
has ever named it. After a command that was rolled back, or where pods have moved in, a replacement
may stay: it is a Node like any other then.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from tenure.model.api import resource as r
from tenure.model.api.meta import format_time
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.check import read
from tenure.sim.virtual.environment import Environment

#: How long a replacement may wait for its command, and how often that is looked at.
PATIENCE: Final = timedelta(hours=1)
PERIOD: Final = timedelta(minutes=10)
_REPLACES: Final = "karpenter.sh/replaces"
_REPLACED_BY: Final = "karpenter.sh/replaced-by"


class Replacements:
    def __init__(
        self, environment: Environment, store: Store, check: Callable[[str], object]
    ) -> None:
        """``check`` is told each time that the promise was looked at; empty: it is kept."""
        self._environment, self._store, self._check = environment, store, check
        #: Names of replacements, by the UID of the claim that has named them.
        self._named: set[tuple[str, str]] = set()
        #: Since when each replacement has been idle, by its UID; None: it was not, last time.
        self._idle: dict[str, datetime | None] = {}
        store.subscribe(r.NODE_CLAIMS, self._on_claim, replay=True)

    def _on_claim(self, _type: str, claim: Obj, _old: Obj | None) -> None:
        uid = claim["metadata"]["uid"]
        for name in (read.annotation(claim, _REPLACED_BY) or "").split(","):
            self._named.add((uid, name))
        awaited = read.annotation(claim, _REPLACES) and read.says(claim, "Initialized")
        if awaited and uid not in self._idle:
            self._look(claim["metadata"]["name"], uid)

    def _look(self, name: str, uid: str) -> None:
        claim = self._store.find(r.NODE_CLAIMS, "", name)
        if claim is None or claim["metadata"]["uid"] != uid or not self._replaced(claim):
            return  # It, or what it replaces, is gone: there is nothing to wait for.
        now = self._environment.now()
        since = (self._idle.get(uid) or now) if self._is_idle(claim) else None
        self._idle[uid] = since
        if since is not None and now - since > PATIENCE:
            self._check(f"claim {name} has replaced nothing since {format_time(since)}")
            return  # Said once.
        self._check("")
        self._environment.after(PERIOD, self._look, name, uid)

    def _replaced(self, claim: Obj) -> list[Obj]:
        uids = (read.annotation(claim, _REPLACES) or "").split(",")
        records = self._store.shelf(r.NODE_CLAIMS).records.values()
        return [one.obj for one in records if one.obj["metadata"]["uid"] in uids]

    def _is_idle(self, claim: Obj) -> bool:
        if read.is_leaving(claim) or not read.says(claim, "Initialized") or self._runs_pods(claim):
            return False
        name = claim["metadata"]["name"]
        return not any(
            read.is_leaving(one) or (one["metadata"]["uid"], name) in self._named
            for one in self._replaced(claim)
        )

    def _runs_pods(self, claim: Obj) -> bool:
        """Whether pods are there that a drain would have to move."""
        records = self._store.shelf(r.NODES).records
        nodes = {name: record.obj for name, record in records.items()}
        own = {node["metadata"]["name"] for node in read.nodes_of(claim, nodes)}
        pods = (record.obj for record in self._store.shelf(r.PODS).records.values())
        return any(dig(pod, "spec", "nodeName") in own and not read.is_drained(pod) for pod in pods)
