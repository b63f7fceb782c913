"""The validating webhook: a small HTTPS server that API servers ask about our kinds.

Every so often it looks at its keys: renews what is due, has them trusted, presents the newest. A
look that fails is said in one line, once, and tried again; meanwhile the webhook goes on with what
it has, or does without. Nothing depends on it: API servers are told to ignore its silence, and
what it would have refused is said in the status of the object.

Each replica serves, whether it leads or not. Its two writes (Secret, configuration) name the
version they change, so they need no lease.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import msgspec
from aiohttp import web

from tenure.errors import TenureError
from tenure.kube.admission import Admission, Judgement
from tenure.kube.certs import Pair, facts_of, load_into
from tenure.kube.client import Client
from tenure.kube.webhookkeys import Keys, Lives
from tenure.kube.webhooksecret import KeySecret, make_trusted
from tenure.model.meta import format_time
from tenure.ports.clock import Clock
from tenure.ports.transport import JSON

#: Where API servers send their reviews.
PATH: Final = "/validate"
#: A review carries an object twice, and an object may be 1.5 MB.
REVIEW_MAX: Final = 2**23


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str
    #: Where it listens; empty is everywhere. Port 0 is any free one.
    host: str = ""
    port: int = 9443
    #: The Service in front of it, in the same namespace.
    service: str = "tenure-webhook"
    #: Where the keys are kept, in the same namespace.
    secret: str = "tenure-webhook-keys"  # noqa: S105  # a name
    #: Who asks us, as installed: without a caBundle, which is ours to fill in.
    configuration: str = "tenure"
    #: More names or addresses, for API servers that do not come through the Service.
    names: tuple[str, ...] = ()
    lives: Lives = Lives()
    #: How often it looks at its keys, and how soon again after trouble.
    look_every: timedelta = timedelta(minutes=1)
    retry_after: timedelta = timedelta(seconds=10)

    @property
    def all_names(self) -> tuple[str, ...]:
        return (f"{self.service}.{self.namespace}.svc", *self.names)


class Webhook:
    def __init__(
        self,
        *,
        client: Client,
        clock: Clock,
        admission: Admission,
        settings: WebhookSettings,
        say: Callable[[str], None],
        judged: Callable[[Judgement], None] = lambda _: None,
    ) -> None:
        """``say`` is given a line when something about the webhook changes; ``judged`` is told
        of each review."""
        self._client = client
        self._clock = clock
        self._admission = admission
        self._settings = settings
        self._say = say
        self._judged = judged
        self._secret = KeySecret(client, settings.secret, settings.namespace)
        self._presented: Pair | None = None
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._runner: web.AppRunner | None = None
        #: Why API servers may not be able to ask us; empty when all is well.
        self.trouble = "not started"

    @property
    def serving(self) -> bool:
        return self._runner is not None

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._runner is not None, "it serves"
        port: int = self._runner.addresses[0][1]
        return port

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
        trouble = await self._looked()
        if trouble != self.trouble:
            self.trouble = trouble
            self._say(f"webhook: {trouble or self._all_is_well()}")

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _looked(self) -> str:
        settings = self._settings
        try:
            keys = await self._secret.current(settings.all_names, self._clock.now(), settings.lives)
        except TenureError as error:
            where = f"Secret {settings.namespace}/{settings.secret}"
            return f"{where}: {error}; {self._meanwhile()}"
        # First trusted, then presented: nobody is to meet a certificate he does not know.
        distrust = await self._trusted(keys)
        return await self._served(keys.server) or distrust

    async def _trusted(self, keys: Keys) -> str:
        name = self._settings.configuration
        try:
            await make_trusted(self._client, name, keys.bundle)
        except TenureError as error:
            where = f"ValidatingWebhookConfiguration {name}"
            return f"{where}: {error}; API servers may not ask us"
        return ""

    async def _served(self, pair: Pair) -> str:
        if pair != self._presented:
            load_into(self._tls, pair)
            self._presented = pair
        if self._runner is None:
            try:
                self._runner = await self._started()
            except OSError as error:
                return f"cannot listen on port {self._settings.port}: {error.strerror}"
        return ""

    async def _started(self) -> web.AppRunner:
        app = web.Application(client_max_size=REVIEW_MAX)
        app.router.add_post(PATH, self._reviewed)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await runner.setup()
        site = web.TCPSite(
            runner, self._settings.host or None, self._settings.port, ssl_context=self._tls
        )
        try:
            await site.start()
        except OSError:
            await runner.cleanup()
            raise
        return runner

    async def _reviewed(self, request: web.Request) -> web.Response:
        answer, judgement = self._admission.answer(await request.read(), self._clock.now())
        self._judged(judgement)
        return web.Response(body=answer, content_type=JSON)

    def _all_is_well(self) -> str:
        assert self._presented is not None, "it serves"
        until = format_time(facts_of(self._presented.cert).ends_at)
        return f"serves on port {self.port}, with a certificate until {until}"

    def _meanwhile(self) -> str:
        return "it goes on with the keys it has" if self.serving else "it does without"
