"""Whether a bearer token may read the page: the API server is asked, by TokenReview and SubjectAccessReview.

Answers are kept for a minute at most, by a keyed hash of the token; the token itself is kept nowhere and said to no log.
Tokens that are not known are asked about at a limited rate, so that the API server is not flooded through the page: each sender
has a rate of its own, so that unknown tokens of one keep out no other, and all together have one.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final

import msgspec

from tenure.dashboard.web.source import NotNow
from tenure.errors import TenureError
from tenure.model.api.resource import NODE_POOLS, NODES, PODS
from tenure.ports.transport import Request, Transport

TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
#: What a reader of the page must be allowed to list, in all namespaces.
MUST_LIST: Final = (PODS, NODES, NODE_POOLS)
#: Seconds for which a yes and a no are kept.
KEPT: Final = 60.0
DENIED_KEPT: Final = 10.0
ANSWERS_MAX: Final = 1000
#: Tokens of one sender that are asked about in a second, and at once; and of all senders.
RATE: Final = 5.0
BURST: Final = 20
RATE_OF_ALL: Final = 20.0
BURST_OF_ALL: Final = 100
SENDERS_MAX: Final = 1000
#: Bits of an IPv6 address that one sender has for itself.
_NETWORK: Final = 64
ANSWER_MAX: Final = 10.0
_TOKEN_MAX: Final = 16_384


class Answer(Enum):
    ALLOWED = auto()
    #: The API server knows no user by this token.
    UNKNOWN = auto()
    #: The user may not list what the page shows.
    FORBIDDEN = auto()


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = {}


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _User = _User()


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


class _Rate:
    """So many in a second, and some at once."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, float(burst)
        self._left, self._counted_at = float(burst), 0.0

    def gain(self, now: float) -> bool:
        """Whether there is one."""
        self._left = min(self._burst, self._left + (now - self._counted_at) * self._rate)
        self._counted_at = now
        return self._left >= 1

    def take(self) -> None:
        self._left -= 1


def sender_of(address: str | None) -> str:
    """Of an IPv6 address its network: a sender has as many addresses there as it likes."""
    try:
        found = ip_address(address or "")
    except ValueError:
        return ""
    if isinstance(found, IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Address(int(found) >> (128 - _NETWORK) << (128 - _NETWORK)))


class _Answers:
    """Those of one kind, the latest last, each with the instant until which it counts."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, tuple[Answer, float]] = OrderedDict()

    def get(self, name: bytes) -> tuple[Answer, float] | None:
        return self._kept.get(name)

    def put(self, name: bytes, answer: Answer, until: float) -> None:
        self._kept.pop(name, None)
        self._kept[name] = answer, until
        while len(self._kept) > ANSWERS_MAX:
            self._kept.popitem(last=False)

    def drop(self, name: bytes) -> None:
        self._kept.pop(name, None)


class Reviewer:
    def __init__(self, transport: Transport, *, speed: float = 1.0) -> None:
        """``transport``: without the fence of the Lease; a replica that stands by answers, too."""
        self._transport = transport
        self._speed = speed
        self._key = secrets.token_bytes(32)
        #: Apart, so that those who are refused push out no user who reads.
        self._allowed, self._denied = _Answers(), _Answers()
        self._asking: dict[bytes, asyncio.Task[Answer]] = {}
        self._rate_of_all = _Rate(RATE_OF_ALL / speed, BURST_OF_ALL)
        self._rates: OrderedDict[str, _Rate] = OrderedDict()

    async def answer(self, token: str, sender: str) -> Answer:
        """``sender``: as ``sender_of`` names it. Raises ``NotNow`` where the API server does not say."""
        if not token or len(token) > _TOKEN_MAX or not token.isascii() or not token.isprintable():
            return Answer.UNKNOWN
        name = hashlib.blake2b(token.encode(), key=self._key, digest_size=32).digest()
        now = asyncio.get_running_loop().time()
        was_allowed = self._allowed.get(name)
        kept = was_allowed or self._denied.get(name)
        if kept is not None and kept[1] > now:
            return kept[0]
        task = self._asking.get(name)
        if task is None:
            if was_allowed is None:  # Who was allowed waits for no others.
                self._take(sender, now)
            task = asyncio.create_task(self._asked(name, token))
            self._asking[name] = task
        try:
            return await asyncio.shield(task)
        except (TenureError, TimeoutError, msgspec.MsgspecError):
            raise NotNow("the API server does not say whether the token may read this") from None

    def _take(self, sender: str, now: float) -> None:
        rate = self._rates.get(sender) or _Rate(RATE / self._speed, BURST)
        self._rates[sender] = rate
        self._rates.move_to_end(sender)
        while len(self._rates) > SENDERS_MAX:
            self._rates.popitem(last=False)
        if not (rate.gain(now) and self._rate_of_all.gain(now)):
            raise NotNow("too many unknown tokens; try again in a moment")
        rate.take()
        self._rate_of_all.take()

    async def _asked(self, name: bytes, token: str) -> Answer:
        try:
            async with asyncio.timeout(ANSWER_MAX * self._speed):
                found = await self._review(token)
            seconds = KEPT if found is Answer.ALLOWED else DENIED_KEPT
            until = asyncio.get_running_loop().time() + seconds * self._speed
            right, wrong = self._allowed, self._denied
            if found is not Answer.ALLOWED:
                right, wrong = wrong, right
            wrong.drop(name)
            right.put(name, found, until)
            return found
        finally:
            del self._asking[name]

    async def _review(self, token: str) -> Answer:
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        answered = await self._post(TOKEN_REVIEWS, body)
        status = msgspec.json.decode(answered, type=_TokenReview).status
        if not status.authenticated or not status.user.username:
            return Answer.UNKNOWN
        for resource in MUST_LIST:
            if not await self._may_list(status.user, resource.group, resource.plural):
                return Answer.FORBIDDEN
        return Answer.ALLOWED

    async def _may_list(self, user: _User, group: str, plural: str) -> bool:
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user.username,
                "uid": user.uid,
                "groups": user.groups,
                "extra": user.extra,
                "resourceAttributes": {"verb": "list", "group": group, "resource": plural},
            },
        }
        answered = await self._post(ACCESS_REVIEWS, body)
        return msgspec.json.decode(answered, type=_AccessReview).status.allowed

    async def _post(self, path: str, body: Mapping[str, Any]) -> bytes:
        request = Request(method="POST", path=path, body=msgspec.json.encode(body))
        response = await self._transport.request(request)
        if response.status not in (200, 201):
            raise NotNow(
                f"the API server refuses to review tokens (HTTP {response.status}): Tenure's ClusterRole "
                "lacks create on tokenreviews and subjectaccessreviews"
            )
        return response.body
