"""Who may read the page: programs on this machine that name it by loopback, or holders of a token that may list."""

from __future__ import annotations

from typing import Final, Protocol

from aiohttp import web

from tenure.dashboard.web.review import Answer, Reviewer, sender_of
from tenure.runtime.telemetry.serving import LOOPBACK_HOSTS, names_loopback

BEARER: Final = "bearer"
NONE: Final = "none"
_SCHEME: Final = "bearer "


class Refused(Exception):
    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class Guard(Protocol):
    authentication: str

    def check_host(self, request: web.BaseRequest) -> None:
        """Raises ``Refused``."""
        ...

    async def check(self, request: web.BaseRequest) -> None:
        """Whether it may read what is of the cluster. Raises ``Refused``, and ``NotNow``."""
        ...


class LoopbackGuard:
    """No token: only programs on this machine get here, and no web page through its browser."""

    authentication = NONE

    def check_host(self, request: web.BaseRequest) -> None:
        if not names_loopback(request.host):
            hosts = ", ".join(LOOPBACK_HOSTS)
            raise Refused(403, f"the Host of the request is none of {hosts}")

    async def check(self, request: web.BaseRequest) -> None:
        return


class BearerGuard:
    authentication = BEARER

    def __init__(self, reviewer: Reviewer) -> None:
        self._reviewer = reviewer

    def check_host(self, request: web.BaseRequest) -> None:
        """Any: without a token there is nothing to be had."""

    async def check(self, request: web.BaseRequest) -> None:
        given = request.headers.getall("Authorization", [])
        if len(given) != 1 or not given[0].lower().startswith(_SCHEME):
            raise Refused(401, "a bearer token is required: Authorization: Bearer TOKEN")
        token = given[0][len(_SCHEME) :].strip()
        answer = await self._reviewer.answer(token, sender_of(request.remote))
        if answer is Answer.UNKNOWN:
            raise Refused(401, "the API server does not accept the token")
        if answer is Answer.FORBIDDEN:
            raise Refused(
                403, "the user of the token may not list pods, nodes and nodepools.karpenter.sh"
            )


def check_site(request: web.BaseRequest, *, navigates: bool) -> None:
    """What a browser says of the page that asks. ``navigates``: a user may come from a link."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    if site in ("none", "same-origin"):
        return
    if navigates and request.headers.get("Sec-Fetch-Mode") == "navigate":
        return
    raise Refused(403, "requests from other sites are refused")
