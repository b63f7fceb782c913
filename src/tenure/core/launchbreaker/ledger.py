"""What is remembered of launches, and where: on claims as long as they live, then on their pool.

A claim says by an annotation for whose pods it was created (``launched-for``), and of which of these
owners a pod has come to a good end there. That, its creation and its Node are all that the launch
breaker needs, as long as the claim is there. Of owners whose
pods were pending again, the pool's annotation ``launch-breaker`` keeps the launches of the last
hours as well, so that neither a restart nor the end of a claim makes Tenure forget. Both are short
on purpose: some pods of each owner, some owners of each claim, some launches of each pool.

What cannot be read counts as not there: it is written anew from what the claims say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from tenure.core.launchbreaker.owners import owner_of, revision_of
from tenure.model.api.meta import Instant
from tenure.model.api.names import LAUNCH_BREAKER, LAUNCHED_FOR
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.parse.jsontext import DECODE_ERRORS

#: On a claim: so many owners, and of each so many pods by name.
OWNERS_MAX: Final = 50
PODS_MAX: Final = 3
#: On a pool: so many launches, the newest.
LAUNCHES_MAX: Final = 300
#: What is longer was not written by us, and is not read.
LENGTH_MAX: Final = 64 * 1024


class For(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """That a claim was created for pods of this owner."""

    owner: str
    #: How many.
    pods: int = 1
    #: Some of them, by name.
    names: tuple[str, ...] = ()
    #: Of the owner's template; where there are several, of most of the pods.
    revision: str = ""
    #: A pod of the owner has come to a good end on the claim's Node.
    served: bool = False


class Kept(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A launch for one owner, as its pool remembers it."""

    claim: str
    at: Instant
    #: When its Node came; only where the owner's pods were pending again afterwards.
    returned: Instant | None = None
    #: The claim was deleted soon after its creation, and no pod of the owner had ended well there.
    wasted: bool = False


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a pool remembers of one owner."""

    launches: tuple[Kept, ...] = ()
    #: When the launch was made that opened the breaker; None while it is closed.
    opened: Instant | None = None
    #: Launches before this count no more: a pod of the owner had run for long enough.
    closed: Instant | None = None


Ledger = Mapping[str, Entry]

_FOR: Final = msgspec.json.Decoder(tuple[For, ...])
_LEDGER: Final = msgspec.json.Decoder(dict[str, Entry])
_ENCODER: Final = msgspec.json.Encoder()
_EMPTY: Final[Ledger] = {}


def launched_for(pods: Iterable[Pod]) -> str:
    """What a new claim says of the pods that it is created for."""
    of: dict[str, list[Pod]] = {}
    for pod in pods:
        of.setdefault(owner_of(pod), []).append(pod)
    largest = sorted(of.items(), key=lambda item: (-len(item[1]), item[0]))[:OWNERS_MAX]
    said = [
        For(owner, len(pods), tuple(sorted(pod.name for pod in pods)[:PODS_MAX]), _revision(pods))
        for owner, pods in sorted(largest)
    ]
    return _ENCODER.encode(said).decode()


def unserved_owners(claim: NodeClaim) -> frozenset[str]:
    """The owners for which it was created, without those whose pods have come to a good end."""
    said = read_launched_for(claim.annotations.get(LAUNCHED_FOR, ""))
    return frozenset(one.owner for one in said if not one.served)


def marked_served(text: str, owners: Container[str]) -> str:
    """What a claim said of its pods, with those owners whose pods have come to a good end."""
    said = [
        msgspec.structs.replace(one, served=one.served or one.owner in owners)
        for one in read_launched_for(text)
    ]
    return _ENCODER.encode(said).decode()


def _revision(pods: Iterable[Pod]) -> str:
    counts = Counter(map(revision_of, pods))
    return max(counts, key=lambda revision: (counts[revision], revision))


@lru_cache(16384)  # One for each claim of a large cluster: they are read at every placement.
def read_launched_for(text: str) -> tuple[For, ...]:
    if not text or len(text) > LENGTH_MAX:
        return ()
    try:
        return _FOR.decode(text)
    except DECODE_ERRORS:
        return ()


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
    """As the pool's annotation has it; None when there is nothing to remember.

    What is too much to be read again loses the oldest first, never all of it.
    """
    newest = sorted(
        ((kept.at, owner, kept) for owner, entry in ledger.items() for kept in entry.launches),
        key=lambda item: (item[0], item[1], item[2].claim),
    )[-LAUNCHES_MAX:]
    closed = [(e.closed, owner, None) for owner, e in ledger.items() if e.closed is not None]
    of: dict[str, list[Kept]] = {}
    left = LENGTH_MAX - len("{}")
    for _, owner, kept in sorted([*newest, *closed], key=lambda item: item[:2], reverse=True):
        alone = {} if owner in of else {owner: _with(ledger[owner], ())}
        left -= len(_ENCODER.encode((alone, kept))) + len('"launches":[],')
        if left < 0:
            break
        of.setdefault(owner, []).extend([kept] if kept is not None else [])
    short = {owner: _with(ledger[owner], of[owner][::-1]) for owner in sorted(of)}
    return _ENCODER.encode(short).decode() if short else None


def _with(entry: Entry, launches: Iterable[Kept]) -> Entry:
    return msgspec.structs.replace(entry, launches=tuple(launches))
