"""The validating webhook: API servers ask us about our kinds before they store them.

Every so often it looks at its keys: who asks us, under which names; renews what is due; has it
trusted; presents the newest. A look that fails is said in one line, once, and tried again;
meanwhile the webhook goes on with what it has, or does without. Nothing depends on it: API servers
are told to ignore its silence, and what it would have refused is said in the status of the object.

Each replica serves, whether it leads or not. Its two writes (Secret, configuration) name the
version they change, so they need no lease.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Collection
from datetime import timedelta

import msgspec

from tenure.errors import Conflict, NotFound, TenureError
from tenure.kube.certfacts import facts_of
from tenure.kube.certs import Pair, load_into
from tenure.kube.client.client import Client
from tenure.kube.webhook.admission import Admission, Review
from tenure.kube.webhook.keys import Keys, Lives
from tenure.kube.webhook.registration import Registration, make_trusted, read_registration
from tenure.kube.webhook.secret import TRIES, KeySecret
from tenure.kube.webhook.server import ReviewServer
from tenure.model.api.meta import format_time
from tenure.ports.clock import Clock


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True):
    #: Of the ValidatingWebhookConfiguration, and of the Secret that keeps the keys.
    name: str = "tenure-webhook"
    #: Of the Secret.
    namespace: str
    #: Whether Services lead here, as they do to a pod. Elsewhere we are asked by URL or not at all.
    is_pod: bool = True
    #: Where it listens; empty is everywhere. Port 0 is any free one.
    host: str = ""
    port: int = 9443
    lives: Lives = Lives()
    #: How often it looks at its keys, and how soon again after trouble.
    look_every: timedelta = timedelta(minutes=1)
    retry_after: timedelta = timedelta(seconds=10)


class Webhook:
    def __init__(
        self,
        *,
        client: Client,
        clock: Clock,
        admission: Admission,
        settings: WebhookSettings,
        say: Callable[[str], None],
        complain: Callable[[str], None],
        reviewed: Callable[[Review], None] = lambda _: None,
    ) -> None:
        """``say`` and ``complain`` are given a line when something about the webhook changes;
        ``reviewed`` is told of each review, in a thread."""
        self._client = client
        self._clock = clock
        self._admission = admission
        self._settings = settings
        self._say = say
        self._complain = complain
        self._reviewed = reviewed
        self._secret = KeySecret(client, settings.name, settings.namespace)
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._server = ReviewServer(self._answer, self._tls)
        self._presented: Pair | None = None
        self._said = ""
        #: Why API servers may not be able to ask us; empty when all is well.
        self.trouble = "not started"

    @property
    def port(self) -> int | None:
        """Where it listens, if it does."""
        return self._server.port

    async def run(self) -> None:
        """Until it is cancelled."""
        try:
            while True:
                await self.look()
                pause = self._settings.retry_after if self.trouble else self._settings.look_every
                await asyncio.sleep(pause.total_seconds())
        finally:
            await self.close()

    async def look(self) -> None:
        """Once: keys, trust, service. Says what has changed."""
        try:
            self.trouble, is_loud = await self._looked(), True
        except _NotAsked as error:
            self.trouble, is_loud = f"{error}; {self._meanwhile()}", False
        except _Trouble as error:
            self.trouble, is_loud = f"{error}; {self._meanwhile()}", True
        line = self.trouble or self._all_is_well()
        if line != self._said:
            self._said = line
            (self._complain if self.trouble and is_loud else self._say)(f"webhook: {line}")

    async def close(self) -> None:
        await self._server.close()

    async def _looked(self) -> str:
        """What is wrong although it serves. Raises ``_Trouble``."""
        for _ in range(TRIES):
            registration = await self._registration()
            names = registration.names(services=self._settings.is_pod)
            if not names:
                raise _NotAsked(f"{self._configuration} does not lead here")
            keys = await self._keys(names)
            try:
                # First trusted, then presented: no client is to meet a certificate that it does not trust.
                distrust = await self._trusted(registration, keys)
            except Conflict:
                continue  # Then keys or names may be new, too.
            return await self._served(keys.server) or distrust
        raise _Trouble(f"{self._configuration} changes under us")

    async def _registration(self) -> Registration:
        try:
            return await read_registration(self._client, self._settings.name)
        except NotFound:
            raise _NotAsked(
                f"there is no {self._configuration}: the API server asks no webhook"
            ) from None
        except TenureError as error:
            raise _Trouble(f"{self._configuration}: {error}") from error

    async def _keys(self, names: Collection[str]) -> Keys:
        settings = self._settings
        try:
            return await self._secret.current(names, self._clock.now(), settings.lives)
        except TenureError as error:
            where = f"Secret {settings.namespace}/{settings.name}"
            raise _Trouble(f"{where}: {error}") from error

    async def _trusted(self, registration: Registration, keys: Keys) -> str:
        """Raises ``Conflict``."""
        try:
            await make_trusted(self._client, self._settings.name, registration, keys.bundle)
        except Conflict:
            raise
        except TenureError as error:
            return f"{self._configuration}: {error}; API servers may not believe us"
        return ""

    async def _served(self, pair: Pair) -> str:
        try:
            if pair != self._presented:
                load_into(self._tls, pair)
                self._presented = pair
            if self.port is None:
                await self._server.open(self._settings.host, self._settings.port)
        except OSError as error:
            return f"cannot serve on port {self._settings.port}: {_why(error)}"
        return ""

    def _answer(self, body: bytes) -> bytes:
        answer, reviewed = self._admission.answer(body, self._clock.now())
        self._reviewed(reviewed)
        return answer

    def _all_is_well(self) -> str:
        assert self._presented is not None, "it serves"
        until = format_time(facts_of(self._presented.cert).ends_at)
        return f"serves on port {self.port}, with a certificate until {until}"

    def _meanwhile(self) -> str:
        return "it does without" if self.port is None else "it goes on with the keys it has"

    @property
    def _configuration(self) -> str:
        return f"ValidatingWebhookConfiguration {self._settings.name}"


def _why(error: OSError) -> str:
    """Without the address, which has been named."""
    if isinstance(error, ssl.SSLError) or error.errno is None:
        return str(error)
    return os.strerror(error.errno)


class _Trouble(Exception):
    """A sentence that ends a look."""


class _NotAsked(_Trouble):
    """… and that is no error: the webhook is not installed, or not for us."""
