"""How launches are recorded: on their claims as long as these exist, then on their pool.

A claim's annotation ``launched-for`` names the owners for whose pods it was created, and which of
them had a pod that ended by itself there. With its creation time and its Node, that is all that the launch
breaker needs as long as the claim exists. For owners whose pods were pending again, the pool's
annotation ``launch-breaker`` also keeps the launches of the last hours, so that they survive a
restart and the removal of the claim. Both are limited: a few pods of each owner, a few owners of
each claim, a few launches of each pool.

An annotation that cannot be parsed counts as missing: it is written again from the claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Final

import msgspec

from tenure.core.launchbreaker.owners import namespace_of, owner_of, revision_of
from tenure.model.api.meta import BEGINNING, Instant
from tenure.model.api.names import LAUNCH_BREAKER, LAUNCHED_FOR
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.parse.jsontext import DECODE_ERRORS

#: On a claim: the maximum number of owners, and of pod names for each.
OWNERS_MAX: Final = 50
PODS_MAX: Final = 3
#: On a pool: the maximum number of launches; the newest are kept.
LAUNCHES_MAX: Final = 300
#: Longer annotations were not written by Tenure, and are not read.
LENGTH_MAX: Final = 64 * 1024


class For(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An owner for whose pods a claim was created."""

    owner: str
    #: How many.
    pods: int = 1
    #: Some of them, by name.
    names: tuple[str, ...] = ()
    #: The revision of the owner's template; if there are several, that of most of the pods.
    revision: str = ""
    #: A pod of the owner has ended by itself on the claim's Node.
    served: bool = False


class Kept(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A launch for one owner, as recorded on its pool."""

    claim: str
    at: Instant
    #: When its Node appeared; only if the owner's pods were pending again afterwards.
    returned: Instant | None = None
    #: The claim was deleted soon after its creation, and no pod of the owner had ended by itself there.
    wasted: bool = False


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pool's record of one owner."""

    launches: tuple[Kept, ...] = ()
    #: The time of the launch that opened the breaker; None while it is closed.
    opened: Instant | None = None
    #: Launches before this count no more: a pod of the owner had run for long enough.
    closed: Instant | None = None


Ledger = Mapping[str, Entry]

_FOR: Final = msgspec.json.Decoder(tuple[For, ...])
_LEDGER: Final = msgspec.json.Decoder(dict[str, Entry])
_ENCODER: Final = msgspec.json.Encoder()
_EMPTY: Final[Ledger] = {}


def launched_for(pods: Iterable[Pod]) -> str:
    """The annotation of a new claim about the pods that it is created for."""
    of: dict[str, list[Pod]] = {}
    for pod in pods:
        of.setdefault(owner_of(pod), []).append(pod)
    largest = sorted(of.items(), key=lambda item: (-len(item[1]), item[0]))[:OWNERS_MAX]
    said = [
        For(owner, len(pods), tuple(sorted(pod.name for pod in pods)[:PODS_MAX]), _revision(pods))
        for owner, pods in sorted(largest)
    ]
    text = _ENCODER.encode(said).decode()
    if len(text) > LENGTH_MAX:  # The owners have to be known, their pods need not.
        text = _ENCODER.encode([msgspec.structs.replace(one, names=()) for one in said]).decode()
    return text


def unserved_owners(claim: NodeClaim) -> frozenset[str]:
    """The owners for which it was created, without those that had a pod succeed there."""
    return frozenset(one.owner for one in launched_of(claim) if not one.served)


def marked_served(text: str, owners: Container[str]) -> str:
    """The same annotation, with ``owners`` marked as served: a pod of each has ended by itself there."""
    said = [
        msgspec.structs.replace(one, served=one.served or one.owner in owners)
        for one in read_launched_for(text)
    ]
    return _ENCODER.encode(said).decode()


def _revision(pods: Iterable[Pod]) -> str:
    counts = Counter(map(revision_of, pods))
    return max(counts, key=lambda revision: (counts[revision], revision))


def read_launched_for(text: str) -> tuple[For, ...]:
    if not text or len(text) > LENGTH_MAX:
        return ()
    try:
        return _FOR.decode(text)
    except DECODE_ERRORS:
        return ()


def launched_of(claim: NodeClaim) -> tuple[For, ...]:
    return read_launched_for(claim.annotations.get(LAUNCHED_FOR, ""))


def ledger_of(pool: NodePool) -> Ledger:
    text = pool.annotations.get(LAUNCH_BREAKER, "")
    return _read_ledger(text) if text else _EMPTY


@lru_cache(256)
def _read_ledger(text: str) -> Ledger:
    if len(text) > LENGTH_MAX:
        return _EMPTY
    try:
        return _LEDGER.decode(text)
    except DECODE_ERRORS:
        return _EMPTY


def written(ledger: Ledger) -> str | None:
    """The text of the pool's annotation; None when there is nothing to record.

    If it would be too long, each owner loses its oldest launches first; then owners are left out,
    open breakers last. Namespaces get equal shares: the owners of one namespace, however many and
    however long their names, do not displace those of another.
    """
    of: dict[str, list[Kept]] = {}
    left, launches_left = LENGTH_MAX - len("{}"), LAUNCHES_MAX
    for owner, kept in _by_importance(ledger):
        if kept is not None and launches_left == 0:
            continue
        alone = {} if owner in of else {owner: _with(ledger[owner], ())}
        length = len(_ENCODER.encode((alone, kept))) + len('"launches":[],')
        if length > left:
            continue
        left -= length
        launches_left -= kept is not None
        of.setdefault(owner, []).extend([kept] if kept is not None else [])
    short = {owner: _with(ledger[owner], of[owner][::-1]) for owner in sorted(of)}
    return _ENCODER.encode(short).decode() if short else None


def _by_importance(ledger: Ledger) -> list[tuple[str, Kept | None]]:
    """Owners and their launches, each owner's newest first; None: only that its breaker closed."""
    turns: Counter[tuple[str, bool]] = Counter()
    ranked: list[tuple[int, bool, int, str, Kept | None]] = []
    for owner, entry in sorted(ledger.items(), key=_newest, reverse=True):
        closed = entry.opened is None
        turn = turns[namespace_of(owner), closed]
        turns[namespace_of(owner), closed] += 1
        launches = sorted(entry.launches, key=lambda kept: (kept.at, kept.claim), reverse=True)
        items: list[Kept | None] = [*launches]
        if not items and entry.closed is not None:
            items = [None]
        ranked += [(age, closed, turn, owner, kept) for age, kept in enumerate(items)]
    ranked.sort(key=lambda item: item[:3])  # What is equal stays in order: the newest first.
    return [(owner, kept) for _, _, _, owner, kept in ranked]


def _newest(item: tuple[str, Entry]) -> tuple[datetime, str]:
    owner, entry = item
    instants = (*(kept.at for kept in entry.launches), entry.closed or BEGINNING)
    return max(instants), owner


def _with(entry: Entry, launches: Iterable[Kept]) -> Entry:
    return msgspec.structs.replace(entry, launches=tuple(launches))
