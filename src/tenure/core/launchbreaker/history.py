"""The launches that were made for an owner's pods, and their results.

Read from existing claims, from the pools' ledgers, and from what this process saw of removed claims
(the first of a family: the ledger has them from the third on). A launch has *failed its owner* when
its Node is in service, none of the owner's pods runs there, and the pods it was made for run nowhere
else either. A launch does not count if Tenure, the cloud or an interruption is the cause: the claim
is being deleted, replaced or rebooted, or its instance or Node is lost. One that is removed because
its pods left it at once counts as if it were there.

A pod that succeeded on a Node, or whose containers failed by themselves, has used it.

A launch was *wasted* when others deleted its claim or Node within 10m of its creation, before a
pod of the owner had used it. What Tenure removes is not; how that is known: ``removed``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.launchbreaker.ledger import (
    Entry,
    Kept,
    ledger_of,
    marked_served,
    read_launched_for,
)
from tenure.core.launchbreaker.owners import (
    OWNER,
    REVISION,
    family_of,
    namespace_of,
    owner_of,
)
from tenure.core.launchbreaker.pastlaunch import PastLaunch, launches_of
from tenure.core.launchbreaker.running import running_since
from tenure.core.marks.ownership import is_our_pool
from tenure.model.api import names
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.snapshot.snapshot import Snapshot

#: Launches are recorded for this long: enough to derive the longest back-off from their number.
REMEMBERED: Final = timedelta(hours=3)
#: How many launches an hour may be in vain, for one family or namespace, whatever the cause.
IN_VAIN_MAX: Final = 60


class OwnerHistory(msgspec.Struct, frozen=True, kw_only=True):
    """By claim name; oldest first."""

    launches: tuple[PastLaunch, ...] = ()
    opened: datetime | None = None
    closed: datetime | None = None
    #: For an open breaker: since when a pod of the owner runs that started after it opened.
    running_since: datetime | None = None


class History(msgspec.Struct, frozen=True, kw_only=True):
    owners: Mapping[str, OwnerHistory] = {}
    #: By pod UID, for the pods that need capacity.
    owner_of: Mapping[str, str] = {}
    #: By pod UID, too: the revision of its owner's template.
    revision_of: Mapping[str, str] = {}
    #: By namespace of these pods: launches for owners there that need no node now and none of whose
    #: pods stayed.
    neighbours: Mapping[str, tuple[PastLaunch, ...]] = {}
    #: By owner in a namespace with many launches: since when a pod of it runs.
    running: Mapping[str, datetime] = {}
    #: Only pools that Tenure manages.
    pools: Mapping[str, NodePool] = {}

    def __bool__(self) -> bool:
        return bool(self.owners or self.neighbours)


def launch_history(snapshot: Snapshot, pods: Iterable[Pod]) -> History:
    """For the owners of ``pods``, which need capacity, and for those in a pool's ledger.

    If no pod needs capacity, only the ledgers are read: the result could not differ.
    """
    whose, revisions = {}, {}
    of = snapshot.derived.of
    for pod in pods:
        whose[pod.uid], revisions[pod.uid] = of(OWNER, pod), of(REVISION, pod)
    pools = {n: pool for n, pool in sorted(snapshot.pools.items()) if is_our_pool(pool, snapshot)}
    ledgers = {name: ledger_of(pool) for name, pool in pools.items()}
    remembered = {owner for ledger in ledgers.values() for owner in ledger}
    if not whose and not remembered:
        return History()
    wanted = {*whose.values(), *remembered}
    families = {family_of(owner) for owner in whose.values()}
    namespaces = {namespace_of(owner) for owner in whose.values()}
    aside: list[PastLaunch] = []
    found: dict[str, dict[str, PastLaunch]] = {owner: {} for owner in wanted}
    for pool, ledger in ledgers.items():
        for owner, entry in ledger.items():
            found[owner] |= {kept.claim: _remembered(owner, kept, pool) for kept in entry.launches}
    for launch in _of_claims(snapshot, wanted, namespaces) if whose else ():
        aside.append(launch)
        if launch.owner not in wanted and family_of(launch.owner) not in families:
            continue
        known = found.setdefault(launch.owner, {})
        if (kept := known.get(launch.claim)) is not None:
            launch = msgspec.structs.replace(  # noqa: PLW2901
                launch,
                returned=kept.returned,
                wasted=launch.wasted or kept.wasted,
            )
        known[launch.claim] = launch
    entries = {owner: [one[owner] for one in ledgers.values() if owner in one] for owner in found}
    owners = {
        owner: _merged(launches, entries[owner])
        for owner, launches in sorted(found.items())
        if launches or entries[owner]
    }
    owners |= _with_running_pods(owners, snapshot)
    all_launches = [*aside, *(one for known in found.values() for one in known.values())]
    # A node that was launched for several owners is one node.
    nodes = {(namespace_of(one.owner), one.claim) for one in all_launches}
    running = _running(snapshot, Counter(namespace for namespace, _ in nodes))
    return History(
        owners=owners,
        owner_of=whose,
        revision_of=revisions,
        neighbours=_neighbours(aside, {*whose.values(), *running}),
        running=running,
        pools=pools,
    )


def _neighbours(
    launches: Collection[PastLaunch], others: Collection[str]
) -> dict[str, tuple[PastLaunch, ...]]:
    """By namespace: launches of no use to any owner there, except those for ``others``."""
    used = {one.claim for one in launches if not one.useless}
    found: dict[str, list[PastLaunch]] = {}
    for one in launches:
        if one.claim not in used and one.owner not in others:
            found.setdefault(namespace_of(one.owner), []).append(one)
    return {namespace: tuple(known) for namespace, known in found.items()}


def _running(snapshot: Snapshot, launches: Mapping[str, int]) -> dict[str, datetime]:
    """By owner, in namespaces with many launches only: since when a pod of it runs."""
    many = {namespace for namespace, count in launches.items() if count >= IN_VAIN_MAX}
    return running_since(snapshot, many) if many else {}


def remembered_launches(snapshot: Snapshot, pods: Iterable[Pod]) -> History:
    """The history for callers that only need the open breakers: empty if every ledger is."""
    if not any(ledger_of(pool) for pool in snapshot.pools.values()):
        return History()
    return launch_history(snapshot, pods)


def served_launches(snapshot: Snapshot) -> tuple[tuple[NodeClaim, str], ...]:
    """Claims that do not record yet that a pod has ended by itself on them, and the new annotation.

    The pod may be removed soon, and a replica that starts after that could not know.
    """
    found: list[tuple[NodeClaim, str]] = []
    for uid, owners in snapshot.observations.served_claims.items():
        claim = next(iter(snapshot.claims_with_uid(uid).values()), None)
        said = claim.annotations.get(names.LAUNCHED_FOR, "") if claim is not None else ""
        if claim is None or claim.deleting or not said:
            continue
        if any(one.owner in owners and not one.served for one in read_launched_for(said)):
            found.append((claim, marked_served(said, owners)))
    return tuple(sorted(found, key=lambda one: one[0].name))


def _remembered(owner: str, kept: Kept, pool: str) -> PastLaunch:
    return PastLaunch(
        owner=owner,
        claim=kept.claim,
        pool=pool,
        at=kept.at,
        returned=kept.returned,
        wasted=kept.wasted,
        helped=kept.returned is None and not kept.wasted,
    )


def _merged(launches: Mapping[str, PastLaunch], entries: Iterable[Entry]) -> OwnerHistory:
    entries = list(entries)
    closed = max((entry.closed for entry in entries if entry.closed), default=None)
    opened = max((entry.opened for entry in entries if entry.opened), default=None)
    if opened is not None and closed is not None and opened <= closed:
        opened = None
    return OwnerHistory(
        launches=tuple(sorted(launches.values(), key=lambda one: (one.at, one.claim))),
        opened=opened,
        closed=closed,
    )


def _of_claims(
    snapshot: Snapshot, owners: Collection[str], namespaces: Collection[str]
) -> Iterator[PastLaunch]:
    yield from _gone(snapshot, owners, namespaces)
    yield from _living(snapshot, owners, namespaces)


def _gone(
    snapshot: Snapshot, owners: Collection[str], namespaces: Collection[str]
) -> Iterator[PastLaunch]:
    for claim in snapshot.observations.departed_claims.values():
        for one in read_launched_for(claim.launched_for):
            if not one.served and (one.owner in owners or namespace_of(one.owner) in namespaces):
                yield PastLaunch(
                    owner=one.owner,
                    claim=claim.name,
                    pool=claim.pool,
                    at=claim.created_at,
                    wasted=not claim.left_at_once,
                    left_at_once=claim.left_at_once,
                )


def _living(
    snapshot: Snapshot, owners: Collection[str], namespaces: Collection[str]
) -> Iterator[PastLaunch]:
    marked = [
        claim for claim in snapshot.claims.values() if names.LAUNCHED_FOR in claim.annotations
    ]
    # The current time is not needed: what is this much older than the newest is at least that old.
    newest = max((claim.created_at for claim in marked), default=None)
    for claim in marked:
        if newest is None or newest - claim.created_at > REMEMBERED:
            continue
        for one in launches_of(claim, snapshot):
            if one.owner in owners or namespace_of(one.owner) in namespaces:
                yield one


def _with_running_pods(
    owners: Mapping[str, OwnerHistory], snapshot: Snapshot
) -> dict[str, OwnerHistory]:
    """Those with an open breaker, and since when a pod runs that started after it opened.

    This reads all pods, once and only while a breaker is open.
    """
    opened = {owner: known.opened for owner, known in owners.items() if known.opened is not None}
    if not opened:
        return {}
    first, namespaces = min(opened.values()), {namespace_of(owner) for owner in opened}
    since: dict[str, datetime] = {}
    for pod in snapshot.pods.values():
        started = pod.status.start_time
        if started is None or started < first or pod.namespace not in namespaces:
            continue
        owner = owner_of(pod) if pod.active and pod.status.phase == "Running" else ""
        if owner in opened and started >= opened[owner]:
            since[owner] = min(started, since.get(owner, started))
    return {
        owner: msgspec.structs.replace(owners[owner], running_since=at)
        for owner, at in since.items()
    }
