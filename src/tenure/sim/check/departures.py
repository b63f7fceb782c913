"""Whether a claim that Tenure deletes may go, by the objects as they are and simple arithmetic.

Nothing here knows the deciders or ``tenure.safety``. Of each rule the answer is a sentence, empty
where the rule is kept. Rules that do not apply are not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api import resource as r
from tenure.model.api.meta import BEGINNING, later, read_instant
from tenure.model.cloud.repairs import RepairStatement
from tenure.model.settings import Settings
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.check import read
from tenure.sim.check.choices import expires_at, is_left_over, occupies, unfounded
from tenure.sim.check.read import State
from tenure.sim.check.starts import Start, too_many
from tenure.sim.check.truth import has_own_ttl, settled_claim, settled_pool

_POOL: Final = "karpenter.sh/nodepool"
_TTL: Final = timedelta(minutes=15)
#: The actions by which a window names a reason; a reason that is not listed has all of them.
_ACTIONS: Final = {
    "Unhealthy": {"Repair"},
    "Empty": {"Consolidation", "EmptyConsolidation"},
    "Expired": {"Expiration"},
    "Drifted": {"Drift"},
    "Rebalance": {"Rebalance"},
    "Underutilized": {"Consolidation", "NonEmptyConsolidation"},
}

#: A rule and what is said where it is broken; empty where it is kept.
Answer = tuple[str, str]


class Departure(msgspec.Struct, frozen=True, kw_only=True):
    claim: Obj
    state: State
    now: datetime
    settings: Settings
    statements: tuple[RepairStatement, ...]
    #: The cloud has an instance for it.
    has_instance: bool
    #: Beside Karpenter, which repairs nodes itself.
    left: bool = False
    #: The cloud has announced that it takes its instance back.
    interrupted: bool = False
    #: Those on its Nodes that Tenure must know of.
    pods: tuple[Obj, ...] = ()
    #: Pods of terminating Nodes that are nominated to it, for as long as Tenure must know of them.
    nominated: tuple[str, ...] = ()
    #: Whether a claim differs from what is asked for.
    differs: Callable[[Obj, State], bool]
    #: Why a command or reboot of it begins now; None: the claim is deleted.
    begins: str | None = None
    #: UIDs of the claims that its replacements replace: they are to leave at once.
    together: frozenset[str] = frozenset()
    #: Of its pool, as they were noted.
    starts: tuple[Start, ...] = ()
    #: It is a reboot that drains nothing, and needs no budget.
    unpaced: bool = False
    #: It is a reboot whose drain is over: only a user may still call it off.
    drained: bool = False

    def answers(self) -> Iterator[Answer]:
        if self.begins is not None:
            yield from self._begins(self.begins)
            return
        nodes = list(read.nodes_of(self.claim, self.state[r.NODES]))
        if not self.has_instance or any(map(read.is_leaving, nodes)):
            yield "unfounded deletion", ""  # Nothing is lost, or a user deleted the Node.
            return
        if read.annotation(self.claim, read.INTERRUPTION) is not None:
            unheard = "the cloud has not announced that it takes the instance back"
            yield "unfounded deletion", "" if self.interrupted else unheard
            return
        by_age = () if self.settings.beside_karpenter else tuple(self._expired())
        if by_age and not any(sentence for _, sentence in by_age):
            yield from by_age  # Whatever command is under way.
            return
        reason = read.annotation(self.claim, "karpenter.sh/disruption-reason")
        replaced = read.annotation(self.claim, "karpenter.sh/replaced-by") is not None
        left_over = not (replaced and reason) and self._is_left_over(nodes)
        yield "past a veto", "" if left_over else self._veto(nodes, reason or "Unhealthy")
        if replaced and reason is not None and not self._is_forced():
            yield from self._replaced(nodes, reason)
        elif left_over or self._timed_out() or self._lost(nodes) or self._reboot_failed():
            yield "unfounded deletion", ""
        else:
            forced = tuple(self._forced(nodes))
            # Its age is no ground right now; another one may be.
            yield from by_age if by_age and any(sentence for _, sentence in forced) else forced

    # -- one way or the other ----------------------------------------------------------

    def _begins(self, reason: str) -> Iterator[Answer]:
        nodes = list(read.nodes_of(self.claim, self.state[r.NODES]))
        yield "past a veto", self._veto(nodes, reason)
        if self.drained or not read.says(self.claim, "Initialized"):
            return
        if not self.unpaced:
            yield "beyond budgets", self._beyond_budgets(nodes, reason)
            if not self.settings.beside_karpenter:  # Starts are not recorded there.
                yield "too many starts", self._beyond_budgets(nodes, reason, starts=True)
        yield "inside a window", self._window(nodes, reason)
        yield "past a switch", self._off(reason)
        if not self.unpaced:
            yield "past protected pods", self._protected(reason)

    def _replaced(self, nodes: Sequence[Obj], reason: str) -> Iterator[Answer]:
        initialized = read.says(self.claim, "Initialized")
        repair = reason == "Unhealthy"
        yield "before its replacements", self._replacements()
        yield "before its group", self._group()
        if not self.settings.beside_karpenter:  # Karpenter taints it once its claim is deleted.
            yield "open Node", self._open(nodes)
        if initialized:
            yield "beyond budgets", self._beyond_budgets(nodes, reason)
        if not repair or initialized:
            yield "inside a window", self._window(nodes, reason)
        if not repair:
            yield "past protected pods", self._protected(reason)
            yield "past a switch", self._off(reason)
            yield "unfounded deletion", self._unfounded(reason)
        if repair and initialized:
            yield "past a switch", self._off(reason)
            yield "unfounded deletion", self._healthy(nodes)
        if repair:
            yield "past a breaker", self._breaker()

    def _expired(self) -> Iterator[Answer]:
        """Nothing, where its age alone does not end it."""
        if self._expires_always():
            nodes = list(read.nodes_of(self.claim, self.state[r.NODES]))
            yield "past a switch", self._off("Expired")
            yield "inside a window", self._window(nodes, "Expired")

    def _unfounded(self, reason: str) -> str:
        if reason == "Drifted" and not self.differs(self.claim, self.state):
            return "it does not differ from what is asked for"
        if reason == "Empty" and (expected := self._expected()):
            return expected
        return unfounded(self._settled, reason, self._pool, self.pods, self.now)

    def _expected(self) -> str:
        """Pods that are still to come: it replaces a claim, or they are nominated and on their way."""
        uids = (read.annotation(self.claim, "karpenter.sh/replaces") or "").split(",")
        for name, one in sorted(self.state[r.NODE_CLAIMS].items()):
            if one["metadata"]["uid"] in uids:
                return f"the pods of claim {name} are to come"
        return f"pod {self.nominated[0]} is to come" if self.nominated else ""

    def _forced(self, nodes: Sequence[Obj]) -> Iterator[Answer]:
        yield "unfounded deletion", self._healthy(nodes) or self._not_forceful()
        yield "past a switch", self._off("Unhealthy")
        yield "inside a window", self._window(nodes, "Unhealthy")
        yield "past a breaker", self._breaker()

    # -- rules -------------------------------------------------------------------------

    @property
    def _pool(self) -> Obj | None:
        pool = self.state[r.NODE_POOLS].get(read.labels(self.claim).get(_POOL, ""))
        return settled_pool(pool, self.state.get(r.NODE_POOL_POLICIES) or {})

    @property
    def _settled(self) -> Obj:
        """The claim with the times that a policy gives it."""
        return settled_claim(self.claim, self.state)

    def _is_left_over(self, nodes: Sequence[Obj]) -> bool:
        """A replacement that nothing waits for, and no user protects."""
        left_over = is_left_over(self.claim, self.state[r.NODE_CLAIMS], self.pods)
        return left_over and not self._veto(nodes, "Empty")

    def _veto(self, nodes: Sequence[Obj], reason: str) -> str:
        key = read.DO_NOT_REPAIR if reason == "Unhealthy" else read.DO_NOT_DISRUPT
        for thing in (self.claim, *nodes):
            value = read.annotation(thing, key)
            if value in (None, "false") or (value == "true" and _is_lever(thing, key)):
                continue
            seen, _, at = (read.annotation(thing, f"{key}-since") or "").rpartition(" ")
            since, lasts = read_instant(at) if seen == value else None, read.span(value)
            if since is None or not lasts or self.now < later(since, lasts):
                return f'{thing["metadata"]["name"]} says {key}: "{value}"'
        return ""

    def _protected(self, reason: str) -> str:
        """A pod that must not be evicted, where no deadline will end the drain."""
        bounded = read.span(self.claim["spec"].get("terminationGracePeriod")) is not None
        if reason == "Unhealthy" or (bounded and reason in ("Expired", "Drifted")):
            return ""
        cap = dig(self._pool, "spec", "disruption", "maxPodProtection")
        for pod in self.pods:
            until = read.protected_until(pod, cap, self.settings.protection_clock)
            if until is not None and self.now < until and not read.is_drained(pod):
                return f"pod {pod['metadata']['name']} is protected until {until}"
        return ""

    def _replacements(self) -> str:
        uid = self.claim["metadata"]["uid"]
        named = read.annotation(self.claim, "karpenter.sh/replaced-by")
        static = self._pool is not None and "replicas" in self._pool["spec"]
        if self.settings.beside_karpenter and not named and static:
            return ""  # Karpenter keeps their number.
        if self.settings.beside_karpenter and not named:
            # Nothing says there that pods fit on other Nodes.
            moving = [pod["metadata"]["name"] for pod in self.pods if _moves(pod)]
            return f"pod {moving[0]} has no replacement" if moving else ""
        for name in (read.annotation(self.claim, "karpenter.sh/replaced-by") or "").split(","):
            found = self.state[r.NODE_CLAIMS].get(name) if name else None
            if not name:
                continue
            if found is None or uid not in (read.annotation(found, "karpenter.sh/replaces") or ""):
                return f"its replacement {name} does not exist"
            if read.is_leaving(found) or not read.says(found, "Initialized"):
                return f"its replacement {name} is not Initialized"
        return ""

    def _group(self) -> str:
        """A claim that the same replacements replace, and that neither goes nor has a command."""
        named = read.annotation(self.claim, "karpenter.sh/replaced-by") or ""
        uids = self.replaced_by(named)
        for name, other in sorted(self.state[r.NODE_CLAIMS].items()):
            goes = read.is_leaving(other) or read.annotation(other, read.INTERRUPTION) is not None
            marked = read.annotation(other, "karpenter.sh/replaced-by") is not None
            if other["metadata"]["uid"] in uids and not goes and not marked:
                return f"{name} is replaced together with it, and is not marked"
        return ""

    def replaced_by(self, names: str) -> set[str]:
        """The UIDs of all claims that these claims replace."""
        claims = self.state[r.NODE_CLAIMS]
        news = [claims[name] for name in names.split(",") if name in claims]
        lists = (read.annotation(new, "karpenter.sh/replaces") or "" for new in news)
        return {uid for one in lists for uid in one.split(",")}

    def _open(self, nodes: Sequence[Obj]) -> str:
        open_ = [n for n in nodes if not read.has_taint(n, "karpenter.sh/disrupted")]
        return f"Node {open_[0]['metadata']['name']} takes new pods" if open_ else ""

    def _off(self, reason: str) -> str:
        if reason != "Unhealthy":
            on = self.settings.voluntary_disruption
            return "" if on else "voluntary disruption is switched off"
        if self.left:
            return "repair is Karpenter's"
        return "" if self.settings.node_repair else "node repair is switched off"

    def _expires_always(self) -> bool:
        policy = dig(self._pool, "spec", "disruption", "expirationPolicy")
        return policy == "Always" and self.now >= expires_at(self._settled, spread=False)

    def _not_forceful(self) -> str:
        pool = self._pool
        block = dig(pool, "spec", "repair")
        if self.settings.beside_karpenter and block is None:
            return "its pool has no repair block"
        if pool is None or (block is None and self.settings.legacy_node_repair):
            return ""
        entries = dig(block, "policies") or []
        modes = {dig(block, "terminationMode"), *(one.get("terminationMode") for one in entries)}
        return "" if "Forceful" in modes else "no policy of its pool is Forceful"

    def _is_forced(self) -> bool:
        """Its time is over already, and a policy of its pool is Forceful: it waits for nothing."""
        stamp = read_instant(read.annotation(self.claim, read.STAMP) or "")
        return stamp is not None and stamp <= self.now and not self._not_forceful()

    def _healthy(self, nodes: Sequence[Obj]) -> str:
        """Whether no Node of it has been unhealthy for the shortest toleration there is."""
        due = [
            later(read_instant(one.get("lastTransitionTime") or "") or BEGINNING, tolerated)
            for node in nodes
            for one in read.conditions(node)
            if (tolerated := self._toleration(one)) is not None
        ]
        if not due:
            return "no Node of it is unhealthy"
        return "" if min(due) <= self.now else f"it is tolerated until {min(due)}"

    def _toleration(self, condition: Obj) -> timedelta | None:
        type_, status = condition["type"], condition["status"]
        stated = [s for s in self.statements if (s.condition_type, s.status) == (type_, status)]
        block = dig(self._pool, "spec", "repair")
        entries = [
            one
            for one in dig(block, "policies") or ()
            if one["conditionType"] == type_ and one.get("status") in (None, status)
        ]
        if not stated and not entries:
            return None
        spans = [read.span(one.get("toleration")) for one in entries]
        spans += [read.span(dig(block, "defaultTolerationDuration"))]
        spans += [one.toleration for one in self.statements]
        return min(one for one in spans if one is not None)

    def _timed_out(self) -> bool:
        if read.says(self.claim, "Initialized"):
            return False
        spec = self._settled["spec"]
        spans = [read.span(spec.get("readinessTTL")) or _TTL] if self._has_ttl() else []
        spans += [one] if (one := read.span(spec.get("initializationTTL"))) is not None else []
        created = read.instant(self.claim, "metadata", "creationTimestamp") or BEGINNING
        return bool(spans) and self.now >= later(created, min(spans))

    def _has_ttl(self) -> bool:
        """Beside Karpenter only a readinessTTL counts that a user has written."""
        return not self.settings.beside_karpenter or has_own_ttl(self.claim, self.state)

    def _lost(self, nodes: Sequence[Obj]) -> bool:
        lost = read.condition(self.claim, "NodeLost")
        if lost.get("status") == "True":
            since = read_instant(lost.get("lastTransitionTime") or "")
        else:
            since = read_instant(read.annotation(self.claim, "tenure.dev/node-lost") or "")
        if nodes or since is None or not self._has_ttl():
            return False
        ttl = read.span(self._settled["spec"].get("readinessTTL")) or _TTL
        return self.now >= later(since, ttl)

    def _reboot_failed(self) -> bool:
        issued = read.condition(self.claim, "RebootIssued")
        failed = read.says(self.claim, "Rebooting", "False") and issued.get("status") == "False"
        return failed and issued.get("reason") != "Spared"

    def _breaker(self) -> str:
        """Only where the pool's policies leave no doubt which Nodes are unhealthy."""
        pool, block = self._pool, dig(self._pool, "spec", "repair") or {}
        if pool is None or block.get("policies") or "Never" in block.values():
            return ""
        name = pool["metadata"]["name"]
        nodes = [n for n in self.state[r.NODES].values() if read.labels(n).get(_POOL) == name]
        watched = {(s.condition_type, s.status) for s in self.statements}
        unhealthy = [
            node
            for node in nodes
            if read.labels(node).get("karpenter.sh/initialized") == "true"
            and any((c["type"], c["status"]) in watched for c in read.conditions(node))
        ]
        limit = str(block.get("maxUnhealthy", "20%"))
        try:
            allowed = read.share(limit, len(nodes))
        except ValueError:
            allowed = 0
        many = f"{len(unhealthy)} of {len(nodes)} Nodes are unhealthy, maxUnhealthy is {limit}"
        return many if len(unhealthy) > allowed else ""

    # -- budgets -----------------------------------------------------------------------

    def _beyond_budgets(self, nodes: Sequence[Obj], reason: str, *, starts: bool = False) -> str:
        """``starts``: of those with ``within``, which count starts; else of all others."""
        if self._pool is None or not nodes:
            return ""
        fleet = list(self._fleet(reason))
        budgets = dig(self._pool, "spec", "disruption", "budgets") or ()
        for budget in (one for one in budgets if ("within" in one) is starts):
            try:
                said = self._beyond(budget, nodes[0], reason, fleet)
            except (SpecError, ValueError, KeyError) as error:
                said = f"a budget cannot be read: {error}"
            if said:
                return said
        return ""

    def _beyond(
        self, budget: Obj, node: Obj, reason: str, fleet: Sequence[tuple[Obj, bool]]
    ) -> str:
        if budget.get("reasons") and reason not in budget["reasons"]:
            return ""
        cron, lasts = budget.get("schedule"), budget.get("duration")
        if (cron is None) != (lasts is None):
            raise ValueError("schedule and duration belong together")
        if cron and not read.is_scheduled(cron, lasts or "", budget.get("timeZone"), self.now):
            return ""
        selector, per = budget.get("selector"), budget.get("per")
        if not read.is_selected(selector, read.labels(node)):
            return ""
        own = read.labels(node).get(per) if per else None
        group = [
            (one, taken)
            for one, taken in fleet
            if read.is_selected(selector, read.labels(one))
            and (per is None or read.labels(one).get(per) == own)
        ]
        name = node["metadata"]["name"]
        others = [o["metadata"]["name"] for o, t in group if t and o["metadata"]["name"] != name]
        allowed = read.share(str(budget.get("nodes", "10%")), len(group))
        if "within" in budget:
            return too_many(budget, allowed, node, self.starts, self.now)
        if len(others) + 1 <= allowed:
            return ""
        return f"{allowed} of {len(group)} Nodes may leave at once, {len(others)} others do: {', '.join(others)}"

    def _fleet(self, reason: str) -> Iterator[tuple[Obj, bool]]:
        pool = read.labels(self.claim).get(_POOL)
        for claim in self.state[r.NODE_CLAIMS].values():
            rebooting = read.says(claim, "Rebooting")
            counted = read.says(claim, "Initialized") or rebooting
            if read.labels(claim).get(_POOL) != pool or not counted:
                continue
            if read.says(claim, "InstanceTerminating"):
                continue
            for node in read.nodes_of(claim, self.state[r.NODES]):
                gone = read.is_leaving(claim) or read.is_leaving(node) or rebooting
                if self.begins is not None:
                    gone = gone or read.annotation(claim, "karpenter.sh/replaced-by") is not None
                    gone = gone or claim["metadata"]["uid"] in self.together
                unready = reason != "Unhealthy" and not read.says(node, "Ready")
                yield node, gone or unready

    # -- windows -----------------------------------------------------------------------

    def _window(self, nodes: Sequence[Obj], reason: str) -> str:
        actions = _ACTIONS.get(reason, set().union(*_ACTIONS.values()))
        for node in nodes[:1]:
            allowed: list[bool] = []
            for name, window in sorted(self.state[r.MAINTENANCE_WINDOWS].items()):
                spec = window.get("spec") or {}
                if not set(spec.get("actions") or ()) & actions:
                    continue
                if not read.is_selected(spec.get("selector"), read.window_labels(node)):
                    continue
                if spec.get("type") == "Allow":
                    allowed.append(self._is_active(spec, unreadable=False))
                elif self._is_active(spec, unreadable=True):
                    return f"MaintenanceWindow {name} blocks {reason} now"
            if allowed and not any(allowed):
                return f"no MaintenanceWindow allows {reason} now"
        return ""

    def _is_active(self, spec: Obj, *, unreadable: bool) -> bool:
        """``unreadable``: what counts where that cannot be read."""
        schedules, dates = spec.get("schedules") or (), spec.get("dates") or ()
        if not schedules and not dates:
            return True
        try:
            on = [
                read.is_scheduled(s["cron"], s["duration"], s.get("timeZone"), self.now)
                for s in schedules
            ]
        except (SpecError, KeyError):
            return unreadable
        for one in dates:
            start, end = read_instant(one.get("from", "")), read_instant(one.get("until", ""))
            on.append(start is not None and end is not None and start <= self.now < end)
        return any(on)


def _is_lever(thing: Obj, key: str) -> bool:
    """A word of Tenure's own to Karpenter, beside which it runs."""
    return read.annotation(thing, f"tenure.dev/{key.removeprefix('karpenter.sh/')}-by") == "tenure"


def _moves(pod: Obj) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    controlled = any(one.get("controller") for one in owners)
    return controlled and occupies(pod) and not read.is_drained(pod)
