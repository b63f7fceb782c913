"""How we treat a server that is busy: what may be said again, when, and how often.

Only a server that could not serve us (429 or 5xx) is asked again, and a read also after
no answer at all. In the order in which the rules bite:

1. what could do harm is not repeated. A read never does; a create does not under a name
   that we chose, nor a patch or deletion that says which version or UID it is meant for.
   An eviction is never repeated: 429 and 500 are how PDBs say no, and the decider
   wants to hear it. After a write without an answer its effect is unknown, so
   its author looks first;
2. at most ``TRIES`` times in all;
3. not before the server wants it, else after a pause that doubles, with jitter;
4. never past the time of the whole call: what does not fit goes to the caller at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Any, Final

from tenure.errors import Unavailable
from tenure.kube.client.answers import error_from
from tenure.ports.transport import Request, Response, Transport

TRIES: Final = 4
PAUSE_MIN: Final = timedelta(milliseconds=250)


def names_itself(body: Mapping[str, Any]) -> bool:
    """A create that, repeated, meets itself instead of making another."""
    return bool((body.get("metadata") or {}).get("name"))


def names_version(body: Mapping[str, Any]) -> bool:
    """A patch that, repeated, meets a conflict instead of another client's change."""
    return bool((body.get("metadata") or {}).get("resourceVersion"))


def tests_version(operations: Sequence[Mapping[str, Any]]) -> bool:
    """A JSON patch that, repeated, fails its own test instead."""
    return any(
        (step.get("op"), step.get("path")) == ("test", "/metadata/resourceVersion")
        for step in operations
    )


async def ask(
    transport: Transport,
    request: Request,
    patience: asyncio.Timeout,
    *,
    harmless: bool,
    random: Random,
) -> Response:
    """The first answer of a server that is not busy, or the last that there is time for."""
    for tries in range(1, TRIES):
        wanted: timedelta | None = None
        try:
            response = await transport.request(request)
        except Unavailable:
            if (
                request.method != "GET"
                or (pause := _pause(tries, wanted, patience, random)) is None
            ):
                raise
        else:
            if not (harmless and _is_busy(response)):
                return response
            wanted = error_from(response).retry_after
            if (pause := _pause(tries, wanted, patience, random)) is None:
                return response
        await asyncio.sleep(pause)
    return await transport.request(request)


def _is_busy(response: Response) -> bool:
    """Whether the same request may get another answer, a little later."""
    return response.status == 429 or response.status >= 500


def _pause(
    tries: int, wanted: timedelta | None, patience: asyncio.Timeout, random: Random
) -> float | None:
    """Seconds until the next try, after so many; None when there is no time for it."""
    pause = (PAUSE_MIN * (1 << (tries - 1))).total_seconds()
    # Jitter of a half, so that calls that were refused together do not return together.
    pause *= 0.5 + random.random() / 2
    if wanted is not None:
        pause += wanted.total_seconds()
    until = patience.when()
    assert until is not None, "every call has a bound"
    return pause if asyncio.get_running_loop().time() + pause < until else None
