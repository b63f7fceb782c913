"""Who we are, to an API server: fixed, rotating, or printed by a program.

A credential is asked for before each request and told which identity the server said 401
to. Files are read again then and at the latest every minute, because projected tokens
rotate; a program's answer is used until a little before it expires. Nothing to present is
``Unavailable``: going on without an identity would only turn the mistake into another one.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import re
import signal
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

import msgspec

from tenure.errors import SpecError, Unavailable
from tenure.kube.client.kubeconfig import Access, ExecPlugin
from tenure.parse.files import read_text
from tenure.parse.jsontext import DECODE_ERRORS
from tenure.parse.limits import SMALL
from tenure.ports.clock import Clock

TOKEN_FILE_PERIOD: Final = timedelta(minutes=1)
#: A program's credential is renewed this long before it expires.
EXPIRY_MARGIN: Final = timedelta(seconds=30)
EXEC_TIMEOUT: Final = timedelta(seconds=60)
#: Bytes that are read from a program at once.
_PIECE: Final = 2**13
_SECONDS_TO_LEAVE: Final = 1.0
_MAY_BE_SECRET: Final = re.compile(r"(?=[\w+/=.~-]*[0-9])(?=[\w+/=.~-]*[A-Za-z])[\w+/=.~-]{20,}")


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What to present. The certificate, if any, needs a TLS context of its own."""

    token: str = ""
    client_cert: str = ""
    client_key: str = ""

    def __repr__(self) -> str:
        return "Identity(…)"  # Secrets do not belong in a log.


class Credentials(Protocol):
    async def identity(self) -> Identity: ...

    def rejected(self, identity: Identity) -> None:
        """The server said 401 to this one, which may no longer be the newest."""
        ...


class FixedCredentials:
    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    async def identity(self) -> Identity:
        return self._identity

    def rejected(self, identity: Identity) -> None:
        """Nothing else is known."""


class TokenFileCredentials:
    def __init__(self, path: Path, clock: Clock, beside: Identity | None = None) -> None:
        """``beside`` is the certificate to present together with the token."""
        self._path = path
        self._clock = clock
        self._read_at: float | None = None
        self._identity = beside or Identity()

    async def identity(self) -> Identity:
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= TOKEN_FILE_PERIOD.total_seconds():
            self._identity = msgspec.structs.replace(self._identity, token=self._read())
            self._read_at = now
        return self._identity

    def rejected(self, identity: Identity) -> None:
        if identity == self._identity:
            self._read_at = None

    def _read(self) -> str:
        try:
            token = read_text(self._path, limits=SMALL).strip()
        except SpecError as error:
            raise Unavailable(f"token file {self._path}: expected {error.expected}") from None
        except OSError as error:
            raise Unavailable(f"token file {self._path}: {error.strerror}") from None
        if not token:
            raise Unavailable(f"token file {self._path}: empty")
        return token


class _ExecStatus(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, frozen=True):
    status: _ExecStatus = _ExecStatus()


class ExecCredentials:
    def __init__(
        self,
        plugin: ExecPlugin,
        access: Access,
        clock: Clock,
        patience: timedelta = EXEC_TIMEOUT,
    ) -> None:
        self._plugin = plugin
        self._access = access
        self._clock = clock
        self._patience = patience
        self._identity: Identity | None = None
        self._expires_at: datetime | None = None
        self._lock = asyncio.Lock()

    async def identity(self) -> Identity:
        async with self._lock:  # One run of the program, however many requests wait for it.
            if self._identity is None or self._expired():
                status = self._understood(await self._printed())
                self._expires_at = status.expiration_timestamp
                self._identity = Identity(
                    token=status.token,
                    client_cert=status.client_certificate_data,
                    client_key=status.client_key_data,
                )
            return self._identity

    def rejected(self, identity: Identity) -> None:
        if identity == self._identity:
            self._identity = None

    def _expired(self) -> bool:
        return (
            self._expires_at is not None
            and self._clock.now() >= self._expires_at.astimezone(UTC) - EXPIRY_MARGIN
        )

    async def _printed(self) -> bytes:
        process = await self._started()
        try:
            async with asyncio.timeout(self._patience.total_seconds()):
                out, err = await _heard(process)
                await process.wait()
        except TimeoutError:
            raise self._failure("did not answer") from None
        except _TooMuchError:
            raise self._failure(f"printed more than {SMALL.size} bytes") from None
        finally:
            # It and whatever it started, also when no caller waits for it any longer.
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                # What is left in its pipes is read, so that they are closed.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_SECONDS_TO_LEAVE):
                        await process.communicate()
                await process.wait()
        if process.returncode:
            said = err.decode(errors="replace").strip().splitlines() or ["no message"]
            shown = _without_secrets(said[-1][:400])[:200]
            raise self._failure(f"ended with {process.returncode}: {shown}")
        return out

    async def _started(self) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                self._plugin.command,
                *self._plugin.args,
                env=self._environment(os.environ),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            hint = f". {self._plugin.install_hint}" if self._plugin.install_hint else ""
            raise self._failure(f"{error.strerror}{hint}") from None

    def _understood(self, printed: bytes) -> _ExecStatus:
        try:
            status = msgspec.json.decode(printed, type=_ExecCredential).status
        except DECODE_ERRORS:
            raise self._failure("printed something else than an ExecCredential") from None
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._failure("printed a certificate without its key, or a key alone")
        if not status.token and not status.client_certificate_data:
            raise self._failure("printed neither a token nor a certificate")
        return status

    def _failure(self, what: str) -> Unavailable:
        return Unavailable(f"credential program {self._plugin.command}: {what}")

    def _environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        spec: dict[str, object] = {"interactive": False}
        if self._plugin.provide_cluster_info:
            spec["cluster"] = {
                "server": self._access.server,
                "tls-server-name": self._access.tls_server_name,
                "insecure-skip-tls-verify": self._access.insecure,
                "certificate-authority-data": base64.b64encode(self._access.ca.encode()).decode(),
            }
        info = {"apiVersion": self._plugin.api_version, "kind": "ExecCredential", "spec": spec}
        said = msgspec.json.encode(info).decode()
        return {**inherited, **self._plugin.env, "KUBERNETES_EXEC_INFO": said}


class _TooMuchError(Exception):
    """A credential plugin prints without end."""


async def _heard(process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    """What it prints and what it complains of. Raises ``_TooMuchError``."""
    assert process.stdout is not None, "a pipe was asked for"
    assert process.stderr is not None, "a pipe was asked for"
    reading = [
        asyncio.create_task(each) for each in (_first(process.stdout), _last(process.stderr))
    ]
    try:
        out, err = await asyncio.gather(*reading)
    finally:
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
    return out, err


async def _first(stream: asyncio.StreamReader) -> bytes:
    """All of it, up to a limit: a credential is a few kilobytes. Raises ``_TooMuchError``."""
    read = bytearray()
    while piece := await stream.read(_PIECE):
        read += piece
        if len(read) > SMALL.size:
            raise _TooMuchError
    return bytes(read)


async def _last(stream: asyncio.StreamReader) -> bytes:
    """The end of it: the last line says why a program has failed."""
    read = b""
    while piece := await stream.read(_PIECE):
        read = (read + piece)[-_PIECE:]
    return read


def _without_secrets(line: str) -> str:
    """Long runs with letters and digits may be tokens or keys; words and paths are not so long."""
    return _MAY_BE_SECRET.sub("(not shown)", line)


def credentials_for(access: Access, clock: Clock) -> Credentials:
    """The first of: exec plugin, token file, token; the last two with the certificate, if any."""
    if access.exec_plugin is not None:
        return ExecCredentials(access.exec_plugin, access, clock)
    identity = Identity(
        token=access.token, client_cert=access.client_cert, client_key=access.client_key
    )
    if access.token_file is not None:
        return TokenFileCredentials(access.token_file, clock, identity)
    return FixedCredentials(identity)
