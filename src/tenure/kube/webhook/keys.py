"""The webhook's own keys: when each is renewed, and that clients trust it all the time.

An authority of our own signs the server's certificate; API servers trust the bundle of our
authorities, newest first. In this order:

1. nothing usable is there, or it cannot be read   everything anew;
2. the authority has a third of its life left      a new one joins the bundle, in front;
3. an authority has run out                        it leaves the bundle;
4. the server's certificate has a third of its     signed anew by the newest authority, once that has
   life left, or an older authority signed it      been in the bundle long enough to be known;
5. the server is to have other names, or its       the same, at once: no client can use the old one.
   certificate cannot be used

Pure: what to keep next follows from what is kept and from the time. Two replicas that look at
the same keys see the same need, and the one that writes first has renewed for both.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.kube.certfacts import UNREADABLE, Facts, facts_of, is_whole, split
from tenure.kube.certs import SKEW, Pair, issue, make_authority

#: From when an authority is in the Secret until every API server has certainly heard of it.
SETTLE: Final = timedelta(minutes=5)


class Lives(msgspec.Struct, frozen=True, kw_only=True):
    """How long certificates are valid. Short lives are renewed often, so that it is known to work."""

    authority: timedelta = timedelta(days=365)
    server: timedelta = timedelta(days=90)


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    #: PEM of every authority that is to be trusted, newest first.
    bundle: str
    #: The newest authority, which signs.
    authority: Pair
    server: Pair

    def __repr__(self) -> str:
        return "Keys(…)"  # Secrets do not belong in a log.


def renewed(
    keys: Keys | None, names: Collection[str], now: datetime, lives: Lives | None = None
) -> Keys:
    """What to keep from now on; the very same keys where nothing is due."""
    lives = lives or Lives()
    trusted = _trusted(keys, now) if keys else None
    if keys is None or not trusted:
        return _fresh(names, now, lives)
    authority, bundle = keys.authority, trusted
    if now >= facts_of(authority.cert).renew_at:
        authority = _new_authority(now, lives)
        bundle = [authority.cert, *trusted]
    server = keys.server
    if _is_due(server, authority, bundle, names, now):
        server = _new_server(authority, names, now, lives)
    return Keys(bundle="".join(bundle), authority=authority, server=server)


def _trusted(keys: Keys, now: datetime) -> list[str]:
    """The bundle without what has run out; nothing where the newest cannot sign now."""
    try:
        living = [each for each in split(keys.bundle) if now < facts_of(each).ends_at]
        newest = facts_of(keys.authority.cert)
        can_sign = newest.signs and newest.holds_at(now) and is_whole(keys.authority)
    except UNREADABLE:
        return []
    return living if can_sign else []


def _is_due(
    server: Pair, authority: Pair, bundle: Iterable[str], names: Collection[str], now: datetime
) -> bool:
    facts = _usable(server, bundle, now)
    if facts is None or facts.names != frozenset(names):
        return True
    newest = facts_of(authority.cert)
    is_known = now >= newest.starts_at + SKEW + SETTLE
    return is_known and (now >= facts.renew_at or facts.issuer_key_id != newest.key_id)


def _usable(server: Pair, bundle: Iterable[str], now: datetime) -> Facts | None:
    try:
        facts = facts_of(server.cert)
        is_good = is_whole(server) and facts.holds_at(now)
    except UNREADABLE:
        return None
    signers = {facts_of(each).key_id for each in bundle}
    return facts if is_good and facts.issuer_key_id in signers else None


def _fresh(names: Collection[str], now: datetime, lives: Lives) -> Keys:
    authority = _new_authority(now, lives)
    server = _new_server(authority, names, now, lives)
    return Keys(bundle=authority.cert, authority=authority, server=server)


def _new_authority(now: datetime, lives: Lives) -> Pair:
    # Each has a name of its own: a verifier looks for the signer by name first.
    return make_authority(
        f"tenure webhook {now:%Y-%m-%dT%H:%M:%SZ}", now=now, valid=lives.authority
    )


def _new_server(authority: Pair, names: Collection[str], now: datetime, lives: Lives) -> Pair:
    ips = sorted(filter(_is_address, names))
    dns = sorted(name for name in names if not _is_address(name))
    name = (dns or ips)[0]
    return issue(authority, name, dns=dns, ips=ips, now=now, valid=lives.server)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
