"""What a run came to, in numbers and in sentences that need no prior knowledge."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Final

import msgspec

from tenure.cli.view import labels as words
from tenure.core.facts import some
from tenure.core.marks.command import command_of
from tenure.core.reasons import Reason
from tenure.model.api.meta import find_condition
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.cloud.instance import Instance
from tenure.sim.cloud.billing import Owed, Unpriced
from tenure.sim.cloud.cloud import CloudEvent
from tenure.sim.history import Entry
from tenure.sim.world import World


class Departure(msgspec.Struct, kw_only=True, rename="camel"):
    """A node that has terminated, or terminates."""

    name: str
    why: str
    since: datetime
    gone_at: datetime | None = None
    #: The claims that were initialized before; None: it was not to be replaced.
    replacements: list[str] | None = None
    #: Reasons that blocked its drain, with how many pods each concerned.
    blocked_by: dict[str, int] = {}


class Summary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    elapsed_seconds: float
    launched: dict[str, int]
    pods_started: int
    waited_median_seconds: float
    waited_longest_seconds: float
    departures: list[Departure]
    #: None where nothing of it is known.
    spent_micro_dollars: int | None
    hourly_micro_dollars: int | None
    instances_of_unknown_price: Unpriced
    instances_running: int
    #: Running instances that no claim knows.
    instances_leaked: int
    promises_broken: int


class Chronicle:
    """Watches a world from its beginning and sums it up at any time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._launched: Counter[str] = Counter()
        self._waited: dict[str, timedelta] = {}
        self._departures: dict[str, Departure] = {}
        self._blocked: dict[str, set[str]] = {}
        world.cloud.listen(self._on_instance)
        world.history.listen(self._on_entry)

    def look(self) -> None:
        """Note which pods run now, and how long they had to wait for that."""
        for pod in self._world.controller.snapshot().pods.values():
            ready = find_condition(pod.status.conditions, "Ready")
            if pod.uid in self._waited or ready is None or ready.status != "True":
                continue
            if ready.last_transition_time is not None:
                self._waited[pod.uid] = ready.last_transition_time - pod.created_at

    def sum_up(self) -> Summary:
        world = self._world
        waited = [span.total_seconds() for span in self._waited.values()]
        claimed = {claim["metadata"]["uid"] for claim in world.store.list(NODE_CLAIMS)}
        running = world.cloud.instances()
        return Summary(
            elapsed_seconds=world.elapsed.total_seconds(),
            launched=dict(sorted(self._launched.items())),
            pods_started=len(waited),
            waited_median_seconds=median(waited) if waited else 0.0,
            waited_longest_seconds=max(waited, default=0.0),
            departures=list(self._departures.values()),
            spent_micro_dollars=world.cloud.bill.owed(world.now).amount,
            hourly_micro_dollars=world.cloud.bill.owed_hourly().amount,
            instances_of_unknown_price=world.cloud.bill.unpriced,
            instances_running=len(running),
            instances_leaked=sum(instance.claim_uid not in claimed for instance in running),
            promises_broken=len(world.checkers.violations),
        )

    def _on_instance(self, event: CloudEvent, instance: Instance) -> None:
        if event is CloudEvent.LAUNCHED:
            self._launched[f"{instance.instance_type} {instance.capacity_type}"] += 1

    def _on_entry(self, entry: Entry) -> None:
        kind, _, name = entry.subject.partition("/")
        if entry.source != "tenure" or entry.ended is not None:
            return
        if kind == "NodeClaim" and (why := self._why(name, entry)):
            self._departures.setdefault(name, why)
        elif kind == "NodeClaim" and entry.reason == Reason.RELEASING:
            if (departure := self._departures.get(name)) is not None:
                departure.gone_at = entry.at
        elif kind == "Pod" and entry.reason in _BLOCKED:
            self._count_blocked(entry)

    def _why(self, name: str, entry: Entry) -> Departure | None:
        """Why the claim terminates; the first reason that is said of it counts."""
        if entry.reason != Reason.REPLACED:
            why = _WHY.get(entry.reason, "")
            return Departure(name=name, why=why, since=entry.at) if why else None
        snapshot = self._world.controller.snapshot()
        claim = snapshot.claims.get(name)
        if claim is None:
            return None
        command = command_of(claim, snapshot)
        return Departure(
            name=name,
            why=f"disrupted for the reason {command.reason}",
            since=entry.at,
            replacements=list(command.names),
        )

    def _count_blocked(self, entry: Entry) -> None:
        """Count a pod that blocks the drain of its node."""
        _, namespace, name = entry.subject.split("/")
        snapshot = self._world.controller.snapshot()
        pod = snapshot.pods.get(f"{namespace}/{name}")
        node = snapshot.nodes.get(pod.spec.node_name) if pod is not None else None
        claim = snapshot.claim_of(node) if node is not None else None
        departure = self._departures.get(claim.name) if claim is not None else None
        if departure is None:
            return
        seen = self._blocked.setdefault(f"{departure.name}/{entry.reason}", set())
        seen.add(entry.subject)
        departure.blocked_by[entry.reason] = len(seen)


#: Why a node terminates, where no command says it.
_WHY: Final[dict[str, str]] = {
    Reason.CLAIM_DELETED: "NodeClaim deleted",
    Reason.NODE_DELETED: "Node deleted",
}

_BLOCKED: Final[dict[str, str]] = {
    Reason.EVICTION_WAITS: "had to wait for a PDB",
    Reason.EVICTION_REFUSED: "could not be evicted because of a PDB",
    Reason.PROTECTED: "protected by karpenter.sh/do-not-disrupt",
}

_MARGIN: Final = 14


def sentences(summary: Summary, width: int = 80) -> list[str]:
    """The summary for a user who sees it for the first time, in lines."""
    elapsed = words.span(timedelta(seconds=summary.elapsed_seconds))
    launched = ", ".join(f"{count} × {what}" for what, count in summary.launched.items())
    instances = words.count(sum(summary.launched.values()), "instance")
    paragraphs = [
        ("Leaks", _leaks(summary)),
        ("Launched", f"{instances}: {launched}"),
        ("Pods", _pods(summary)),
        *(("Terminated", said) for said in _departed(summary.departures)),
        ("Cost", _cost(summary, elapsed)),
    ]
    lines = [f"What Tenure did in {elapsed} of the cluster's time"]
    for title, text in paragraphs:
        lines += _paragraph(title, text, width)
    return lines


def _paragraph(title: str, text: str, width: int) -> list[str]:
    first, rest = f"  {title:<{_MARGIN - 2}}", " " * _MARGIN
    return textwrap.wrap(
        text, width=width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


def _pods(summary: Summary) -> str:
    return (
        f"{summary.pods_started} started; from creation to Ready they took "
        f"{summary.waited_median_seconds:.0f}s in the median, "
        f"{summary.waited_longest_seconds:.0f}s at most"
    )


def _departed(departures: Sequence[Departure]) -> Iterator[str]:
    """Those for the same reason together."""
    groups: dict[object, list[Departure]] = {}
    for one in departures:
        groups.setdefault((one.why, one.replacements is None, not one.replacements), []).append(one)
    for same in groups.values():
        names = some(one.name for one in same)
        who = f"{len(same)} nodes ({names})" if len(same) > 1 else names
        yield f"{who}: {same[0].why}{_replaced(same)}; {_gone(same)}; {_blocked(same)}"


def _replaced(same: Sequence[Departure]) -> str:
    if same[0].replacements is None:
        return ""
    claims = [name for one in same for name in one.replacements or ()]
    if not claims:
        return ", and not replaced"
    each = "each " if len(same) > 1 else ""
    verb = "was" if len(claims) == 1 else "were"
    return f", {each}after {words.count(len(claims), 'replacement')} ({some(claims)}) {verb} initialized"


def _gone(same: Sequence[Departure]) -> str:
    took = sorted(one.gone_at - one.since for one in same if one.gone_at is not None)
    said = []
    if took:
        shortest, longest = words.span(took[0]), words.span(took[-1])
        said.append(f"gone after {shortest if shortest == longest else f'{shortest} to {longest}'}")
    if still := len(same) - len(took):
        said.append("still terminating" if len(same) == 1 else f"{still} still terminating")
    return ", ".join(said)


def _blocked(same: Sequence[Departure]) -> str:
    counts = Counter[str]()
    for one in same:
        counts.update(one.blocked_by)
    blocked = (f"{words.count(pods, 'pod')} {_BLOCKED[reason]}" for reason, pods in counts.items())
    return ", ".join(blocked) or "no pod blocked the drain"


def _cost(summary: Summary, elapsed: str) -> str:
    instances = words.count(summary.instances_running, "instance")
    unknown = summary.instances_of_unknown_price
    spent = Owed(summary.spent_micro_dollars or 0, unknown.ever)
    hourly = Owed(summary.hourly_micro_dollars or 0, unknown.now)
    told = (
        f"{words.owed(spent)} in {elapsed}; the {instances} that still run "
        f"cost {words.owed(hourly, ' an hour')}"
    )
    return "; ".join(filter(None, (told, str(unknown))))


def _leaks(summary: Summary) -> str:
    if summary.instances_leaked or summary.promises_broken:
        return (
            f"{words.count(summary.instances_leaked, 'instance')} leaked, "
            f"{words.count(summary.promises_broken, 'promise')} broken: please report this"
        )
    return "none: every instance that runs belongs to a claim, and no promise was broken"
