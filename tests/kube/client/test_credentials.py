"""Who we are: a file that rotates, or a program that is asked again when it has to be."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tenure.errors import Unavailable
from tenure.kube.client.credentials import (
    ExecCredentials,
    FixedCredentials,
    Identity,
    TokenFileCredentials,
    credentials_for,
)
from tenure.kube.client.kubeconfig import Access, ExecPlugin

SECRET = "hunter2-the-secret"
NOON = datetime(2031, 5, 2, 12, tzinfo=UTC)
HERE = Access(server="https://api.example", ca="PEM", tls_server_name="kubernetes")


class HandClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self._now = NOON

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - NOON).total_seconds()

    def advance(self, by: timedelta) -> None:
        self._now += by


def told(story: Coroutine[Any, Any, Any]) -> Any:
    """What comes out of a story in real time, which must not take long."""
    return asyncio.run(asyncio.wait_for(story, 240))


def refused(credentials: TokenFileCredentials | ExecCredentials) -> str:
    with pytest.raises(Unavailable) as caught:
        told(credentials.identity())
    assert SECRET not in str(caught.value)
    return caught.value.message


# Files.


def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path) -> None:
    (path := tmp_path / "token").write_text("first\n")
    clock = HandClock()
    credentials = TokenFileCredentials(path, clock)
    assert told(credentials.identity()).token == "first"
    path.write_text("second\n")
    clock.advance(timedelta(seconds=59))
    assert told(credentials.identity()).token == "first"
    clock.advance(timedelta(seconds=1))
    assert told(credentials.identity()).token == "second"


def test_a_rejected_token_is_read_again_at_once(tmp_path: Path) -> None:
    (path := tmp_path / "token").write_text("first")
    credentials = TokenFileCredentials(path, HandClock())
    first = told(credentials.identity())
    path.write_text("second")
    credentials.rejected(first)
    assert told(credentials.identity()).token == "second"


def test_a_late_rejection_of_an_old_token_changes_nothing(tmp_path: Path) -> None:
    (path := tmp_path / "token").write_text("first")
    credentials = TokenFileCredentials(path, HandClock())
    first = told(credentials.identity())
    path.write_text("second")
    credentials.rejected(first)
    told(credentials.identity())
    path.unlink()  # Reading it now would fail.
    credentials.rejected(first)
    assert told(credentials.identity()).token == "second"


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        pytest.param(None, "No such file or directory", id="it is gone"),
        pytest.param(b" \n", "empty", id="it is empty"),
        pytest.param(b"\xff" + SECRET.encode(), "expected text in UTF-8", id="it is no text"),
    ],
)
def test_without_a_token_no_request_is_sent_without_identity(
    tmp_path: Path, raw: bytes | None, why: str
) -> None:
    path = tmp_path / "token"
    if raw is not None:
        path.write_bytes(raw)
    assert refused(TokenFileCredentials(path, HandClock())) == f"token file {path}: {why}"


# Programs.


def a_program(folder: Path, body: str, **plugin: Any) -> ExecPlugin:
    """A program that notes each run in the file ``runs`` and then does ``body``."""
    path = folder / "login.py"
    path.write_text(f"import os, sys, time\nopen({str(folder / 'runs')!r}, 'a').write('.')\n{body}")
    return ExecPlugin(command=sys.executable, args=("-IS", str(path)), **plugin)


def printing(**status: Any) -> str:
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    return f"print({json.dumps({**answer, 'status': status})!r})"


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text())


def test_a_program_is_run_once_for_however_many_ask(tmp_path: Path) -> None:
    async def story() -> None:
        plugin = a_program(tmp_path, printing(token=SECRET))
        credentials = ExecCredentials(plugin, HERE, HandClock())
        asked = await asyncio.gather(*(credentials.identity() for _ in range(5)))
        assert {identity.token for identity in asked} == {SECRET}

    told(story())
    assert runs(tmp_path) == 1


def test_a_program_may_print_a_certificate(tmp_path: Path) -> None:
    body = printing(clientCertificateData="CERT", clientKeyData="KEY")
    credentials = ExecCredentials(a_program(tmp_path, body), HERE, HandClock())
    assert told(credentials.identity()) == Identity(client_cert="CERT", client_key="KEY")


def test_a_program_is_run_again_shortly_before_its_answer_expires(tmp_path: Path) -> None:
    async def story() -> None:
        body = printing(token="t", expirationTimestamp="2031-05-02T14:15:00+02:00")
        clock = HandClock()
        credentials = ExecCredentials(a_program(tmp_path, body), HERE, clock)
        for by, wanted in [(0, 1), (14 * 60 + 29, 1), (1, 2)]:
            clock.advance(timedelta(seconds=by))
            await credentials.identity()
            assert runs(tmp_path) == wanted

    told(story())


def test_a_program_is_run_again_when_its_answer_was_rejected_and_only_then(tmp_path: Path) -> None:
    async def story() -> None:
        plugin = a_program(tmp_path, printing(token="t"))
        credentials = ExecCredentials(plugin, HERE, HandClock())
        identity = await credentials.identity()
        credentials.rejected(Identity(token="an older one"))
        await credentials.identity()
        assert runs(tmp_path) == 1
        credentials.rejected(identity)
        await credentials.identity()

    told(story())
    assert runs(tmp_path) == 2


def test_a_program_is_told_about_the_cluster_and_keeps_its_own_environment(tmp_path: Path) -> None:
    said = "os.environ['KUBERNETES_EXEC_INFO'] + os.environ['MINE'] + os.environ['PATH']"
    body = f"open({str(tmp_path / 'said')!r}, 'w').write({said})\n{printing(token='t')}"
    plugin = a_program(tmp_path, body, env={"MINE": "|mine|"}, provide_cluster_info=True)
    told(ExecCredentials(plugin, HERE, HandClock()).identity())
    info, mine, path = (tmp_path / "said").read_text().split("|")
    assert (mine, path) == ("mine", os.environ["PATH"])
    spec = json.loads(info)["spec"]
    assert spec["interactive"] is False
    assert spec["cluster"] == {
        "server": "https://api.example",
        "tls-server-name": "kubernetes",
        "insecure-skip-tls-verify": False,
        "certificate-authority-data": "UEVN",
    }


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param("sys.exit('a\\nlog in first')", "ended with 1: log in first", id="it fails"),
        pytest.param("sys.exit(3)", "ended with 3: no message", id="it fails silently"),
        pytest.param(
            f"print('{SECRET}')", "printed something else than an ExecCredential", id="no JSON"
        ),
        pytest.param(
            f'sys.stdout.buffer.write(b\'{{"status": {{"token": "\\xff{SECRET}"}}}}\')',
            "printed something else than an ExecCredential",
            id="no text",
        ),
        pytest.param("print('{}')", "printed neither a token nor a certificate", id="nothing"),
        pytest.param(
            printing(clientCertificateData="CERT", token=SECRET),
            "printed a certificate without its key, or a key alone",
            id="a certificate without a key",
        ),
    ],
)
def test_a_program_that_does_not_help_is_named(tmp_path: Path, body: str, why: str) -> None:
    credentials = ExecCredentials(a_program(tmp_path, body), HERE, HandClock())
    assert refused(credentials) == f"credential program {sys.executable}: {why}"


def test_a_missing_program_is_named_with_the_hint_of_its_makers() -> None:
    plugin = ExecPlugin(command="no-such-program", install_hint="Install it.")
    said = refused(ExecCredentials(plugin, HERE, HandClock()))
    assert said == "credential program no-such-program: No such file or directory. Install it."


def test_a_program_that_never_answers_is_ended_with_all_it_started(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "held")  # Its reader sees the end when the last writer is gone.
    body = f"""
held = os.open({str(tmp_path / "held")!r}, os.O_WRONLY)
os.fork()
time.sleep(600)
"""
    plugin = a_program(tmp_path, body)
    reading = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    patience = timedelta(seconds=0.5)
    said = refused(ExecCredentials(plugin, HERE, HandClock(), patience))
    assert said.endswith("did not answer")
    os.set_blocking(reading, True)
    assert os.read(reading, 1) == b""
    os.close(reading)


def test_a_program_that_no_call_waits_for_any_longer_is_ended(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    body = f"os.open({str(tmp_path / 'alive')!r}, os.O_WRONLY)\ntime.sleep(600)"

    async def story() -> None:
        credentials = ExecCredentials(a_program(tmp_path, body), HERE, HandClock())
        asking = asyncio.ensure_future(credentials.identity())
        alive = await asyncio.to_thread(os.open, tmp_path / "alive", os.O_RDONLY)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await asyncio.to_thread(os.read, alive, 1) == b"", "the program is gone"
        os.close(alive)

    told(story())


# Which of them.


def test_a_program_comes_before_a_file_and_a_file_before_a_token(tmp_path: Path) -> None:
    plugin, file = ExecPlugin(command="x"), tmp_path / "token"
    file.write_text("from the file")
    everything = Access(
        server="https://a", token="t", token_file=file, client_cert="C", client_key="K"
    )
    both = credentials_for(everything, HandClock())
    assert told(both.identity()) == Identity(
        token="from the file", client_cert="C", client_key="K"
    ), "a certificate is presented beside the token"
    with_program = Access(server="https://a", token_file=file, exec_plugin=plugin)
    assert isinstance(credentials_for(with_program, HandClock()), ExecCredentials)
    fixed = credentials_for(Access(server="https://a", token=SECRET), HandClock())
    assert isinstance(fixed, FixedCredentials)
    identity = told(fixed.identity())
    fixed.rejected(identity)
    assert told(fixed.identity()).token == SECRET
    assert SECRET not in repr(identity)


def test_a_program_that_prints_without_end_is_ended(tmp_path: Path) -> None:
    plugin = a_program(tmp_path, "while True: print('x' * 100_000)")
    sentence = refused(ExecCredentials(plugin, HERE, HandClock()))
    assert sentence.endswith("printed more than 1048576 bytes")


def test_what_a_program_complains_without_end_is_not_kept(tmp_path: Path) -> None:
    body = "for _ in range(100): sys.stderr.write('x' * 100_000)\nsys.exit('\\nno login')"
    sentence = refused(ExecCredentials(a_program(tmp_path, body), HERE, HandClock()))
    assert sentence.endswith("ended with 1: no login")


def test_a_token_in_what_a_program_complains_of_is_not_shown(tmp_path: Path) -> None:
    token = "eyJhbGciOiJSUzI1NiIsImtpZCI6IjAifQ.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
    body = f"sys.exit('refused by the server: token {token} has expired')"
    sentence = refused(ExecCredentials(a_program(tmp_path, body), HERE, HandClock()))
    assert sentence.endswith("refused by the server: token (not shown) has expired")


def test_a_deep_answer_of_a_program_is_one_line(tmp_path: Path) -> None:
    plugin = a_program(tmp_path, "print('{\"x\":' + '[' * 200_000)")
    sentence = refused(ExecCredentials(plugin, HERE, HandClock()))
    assert sentence.endswith("printed something else than an ExecCredential")
