"""Whether a bearer token may read the page: the API server is asked, by TokenReview and SubjectAccessReview.

Answers are kept for a minute at most, by a keyed hash of the token; the token itself is kept nowhere and said to no log.
Tokens that are not known are asked about at a limited rate, so that the API server is not flooded through the page.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from enum import Enum, auto
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
#: Tokens that are asked about in a second, and at once.
RATE: Final = 5.0
BURST: Final = 20
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


class Reviewer:
    def __init__(self, transport: Transport, *, speed: float = 1.0) -> None:
        """``transport``: without the fence of the Lease; a replica that stands by answers, too."""
        self._transport = transport
        self._speed = speed
        self._key = secrets.token_bytes(32)
        #: The latest last: the answer, and until when it counts.
        self._kept: OrderedDict[bytes, tuple[Answer, float]] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[Answer]] = {}
        self._tokens_left, self._counted_at = float(BURST), 0.0

    async def answer(self, token: str) -> Answer:
        """Raises ``NotNow`` where the API server does not say."""
        if not token or len(token) > _TOKEN_MAX or not token.isascii() or not token.isprintable():
            return Answer.UNKNOWN
        name = hashlib.blake2b(token.encode(), key=self._key, digest_size=32).digest()
        now = asyncio.get_running_loop().time()
        kept = self._kept.get(name)
        if kept is not None and kept[1] > now:
            return kept[0]
        task = self._asking.get(name)
        if task is None:
            if (
                kept is None or kept[0] is not Answer.ALLOWED
            ):  # Who was allowed waits for no others.
                self._take(now)
            task = asyncio.create_task(self._asked(name, token))
            self._asking[name] = task
        try:
            return await asyncio.shield(task)
        except (TenureError, TimeoutError, msgspec.MsgspecError):
            raise NotNow("the API server does not say whether the token may read this") from None

    def _take(self, now: float) -> None:
        gained = (now - self._counted_at) / self._speed * RATE
        self._tokens_left = min(float(BURST), self._tokens_left + gained)
        self._counted_at = now
        if self._tokens_left < 1:
            raise NotNow("too many unknown tokens; try again in a moment")
        self._tokens_left -= 1

    async def _asked(self, name: bytes, token: str) -> Answer:
        try:
            async with asyncio.timeout(ANSWER_MAX * self._speed):
                found = await self._review(token)
            seconds = KEPT if found is Answer.ALLOWED else DENIED_KEPT
            until = asyncio.get_running_loop().time() + seconds * self._speed
            self._kept.pop(name, None)
            self._kept[name] = found, until
            while len(self._kept) > ANSWERS_MAX:
                self._kept.popitem(last=False)
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
