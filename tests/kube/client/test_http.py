"""The transport to a real API server, against a small one on loopback: real sockets, real TLS."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Coroutine
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tenure.errors import SpecError, Unavailable
from tenure.kube.client.credentials import FixedCredentials, Identity
from tenure.kube.client.http import HttpStream, HttpTransport, Limits
from tenure.kube.client.kubeconfig import Access
from tenure.ports.transport import MERGE_PATCH, Request, Response
from tests.kube.servers import Handler, Pki, serving

ANONYMOUS = FixedCredentials(Identity())
SOON = timedelta(seconds=0.1)
PODS = Request(method="GET", path="/api/v1/pods")
WATCH = Request(method="GET", path="/api/v1/pods", query={"watch": "true"})


#: Seconds; an idle machine needs a fraction of one.
PATIENCE = 120.0


def told(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, PATIENCE))


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("pki"))


async def fine(request: web.Request) -> web.Response:
    return web.Response(text="fine")


def plain(port: int) -> Access:
    return Access(server=f"http://127.0.0.1:{port}")


def secure(port: int, ca: str, **more: Any) -> Access:
    return Access(server=f"https://127.0.0.1:{port}", ca=ca, **more)


async def answer_of(
    access: Access,
    request: Request = PODS,
    identity: Identity | None = None,
    limits: Limits = Limits(),  # noqa: B008  # frozen
) -> Response:
    credentials = FixedCredentials(identity or Identity())
    async with HttpTransport(access, credentials, limits=limits) as transport:
        return await transport.request(request)


# Trust.


def test_a_server_of_the_right_authority_is_talked_to(pki: Pki) -> None:
    async def story() -> None:
        async with serving(fine, pki.here) as port:
            answer = await answer_of(secure(port, pki.authority.pem))
            assert (answer.status, answer.body) == (200, b"fine")

    told(story())


@pytest.mark.parametrize(
    ("access", "why"),
    [
        pytest.param({"ca": "stranger"}, "certificate verify failed", id="another authority"),
        pytest.param({"ca": ""}, "certificate verify failed", id="an unknown authority"),
        pytest.param({"tls_server_name": "elsewhere"}, "Hostname mismatch", id="another name"),
    ],
)
def test_a_server_that_cannot_prove_itself_is_not_talked_to(
    pki: Pki, access: dict[str, Any], why: str
) -> None:
    asked: list[str] = []

    async def note(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response()

    async def story() -> None:
        ca = pki.stranger.pem if access.get("ca") == "stranger" else access.get("ca")
        trusted = pki.authority.pem if ca is None else ca
        async with serving(note, pki.here) as port:
            with pytest.raises(Unavailable, match=why):
                await answer_of(
                    secure(port, trusted, tls_server_name=access.get("tls_server_name", ""))
                )

    told(story())
    assert asked == []


def test_the_name_to_expect_can_be_given(pki: Pki) -> None:
    async def story() -> None:
        async with serving(fine, pki.named) as port:
            trusted = secure(port, pki.authority.pem)
            with pytest.raises(Unavailable, match="IP address mismatch"):
                await answer_of(trusted)
            named = secure(port, pki.authority.pem, tls_server_name="kubernetes.default.svc")
            assert (await answer_of(named)).status == 200

    told(story())


def test_only_a_kubeconfig_that_says_so_is_not_verified(pki: Pki) -> None:
    async def story() -> None:
        async with serving(fine, pki.here) as port:
            assert (await answer_of(secure(port, "", insecure=True))).status == 200

    told(story())


def test_a_client_certificate_is_presented(pki: Pki) -> None:
    async def who(request: web.Request) -> web.Response:
        assert request.transport is not None
        subject = request.transport.get_extra_info("peercert")["subject"]
        return web.json_response([part[0][1] for part in subject])

    async def story() -> None:
        async with serving(who, pki.here, pki.authority.pair.cert) as port:
            access = secure(port, pki.authority.pem)
            me = Identity(client_cert=pki.me.cert.read_text(), client_key=pki.me.key.read_text())
            assert (await answer_of(access, identity=me)).body == b'["team", "me"]'
            with pytest.raises(Unavailable):
                await answer_of(access)

    told(story())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has files in memory")
def test_a_client_certificate_needs_no_place_on_a_disk(
    pki: Pki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "not there"))

    async def story() -> None:
        async with serving(fine, pki.here, pki.authority.pair.cert) as port:
            me = Identity(client_cert=pki.me.cert.read_text(), client_key=pki.me.key.read_text())
            assert (await answer_of(secure(port, pki.authority.pem), identity=me)).status == 200

    told(story())


def test_a_certificate_may_change_while_we_are_connected(pki: Pki) -> None:
    class Turning(FixedCredentials):
        """Anonymous at first, then me."""

        async def identity(self) -> Identity:
            now, self._identity = self._identity, me
            return now

    me = Identity(client_cert=pki.me.cert.read_text(), client_key=pki.me.key.read_text())

    async def story() -> None:
        async with serving(fine, pki.here, pki.authority.pair.cert) as port:
            access = secure(port, pki.authority.pem)
            async with HttpTransport(access, Turning(Identity())) as transport:
                with pytest.raises(Unavailable):
                    await transport.request(PODS)
                assert (await transport.request(PODS)).status == 200

    told(story())


@pytest.mark.parametrize("broken", ["ca", "client_cert", "client_key", "another's key"])
def test_a_broken_certificate_is_a_mistake_in_the_kubeconfig(pki: Pki, broken: str) -> None:
    async def story() -> None:
        pem = {
            "ca": pki.authority.pem,
            "client_cert": pki.me.cert.read_text(),
            "client_key": pki.me.key.read_text(),
        }
        if broken == "another's key":
            pem["client_key"] = pki.here.key.read_text()
        else:
            pem[broken] = "hunter2"
        ca = pem.pop("ca")
        with pytest.raises(SpecError) as caught:
            await answer_of(secure(1, ca), identity=Identity(**pem))
        assert "usable certificates" in str(caught.value)
        assert "hunter2" not in str(caught.value)

    told(story())


# Requests.


class Noted:
    """Answers in order, the last one again and again; keeps what it was asked."""

    def __init__(self, *answers: int) -> None:
        self._answers = list(answers)
        self.asked: list[web.Request] = []
        self.bodies: list[bytes] = []

    async def __call__(self, request: web.Request) -> web.Response:
        self.asked.append(request)
        self.bodies.append(await request.read())
        status = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return web.Response(status=status, body=b"said", headers={"Retry-After": "7"})


def test_a_request_arrives_as_it_was_meant() -> None:
    async def story() -> None:
        server = Noted(429)
        patch = Request(
            method="PATCH",
            path="/api/v1/namespaces/a/pods/b/status",
            query={"fieldManager": "a b&c", "dryRun": "All"},
            body=b'{"status": {}}',
            content_type=MERGE_PATCH,
        )
        async with serving(server) as port:
            answer = await answer_of(plain(port), patch, Identity(token="t"))
        assert (answer.status, answer.body, answer.headers["Retry-After"]) == (429, b"said", "7")
        (asked,) = server.asked
        assert (asked.method, asked.path) == ("PATCH", patch.path)
        assert dict(asked.query) == patch.query
        assert server.bodies == [patch.body]
        assert asked.headers["Content-Type"] == MERGE_PATCH
        assert asked.headers["Authorization"] == "Bearer t"
        assert (asked.headers["Accept"], asked.headers["User-Agent"]) == (
            "application/json",
            "tenure",
        )

    told(story())


def test_a_server_behind_a_path_is_reached_there_and_an_anonymous_user_sends_no_token() -> None:
    async def story() -> None:
        server = Noted(200)
        async with serving(server) as port:
            await answer_of(Access(server=f"http://127.0.0.1:{port}/k8s/clusters/c-1"))
        (asked,) = server.asked
        assert asked.path == "/k8s/clusters/c-1/api/v1/pods"
        assert not {"Authorization", "Content-Type"} & set(asked.headers)

    told(story())


def test_a_redirect_is_an_answer_and_is_not_followed_with_our_token() -> None:
    async def story() -> None:
        server = Noted(302)
        async with serving(server) as port:
            assert (await answer_of(plain(port), identity=Identity(token="t"))).status == 302
        assert len(server.asked) == 1

    told(story())


class Rotating:
    """A new token after each rejection."""

    def __init__(self) -> None:
        self.rejections: list[str] = []

    async def identity(self) -> Identity:
        return Identity(token=f"token-{len(self.rejections)}")

    def rejected(self, identity: Identity) -> None:
        self.rejections.append(identity.token)


@pytest.mark.parametrize(
    ("answers", "status", "tokens"),
    [
        pytest.param([401, 200], 200, ["token-0", "token-1"], id="a token that had rotated"),
        pytest.param([401, 401], 401, ["token-0", "token-1"], id="asked again only once"),
        pytest.param([403], 403, ["token-0"], id="only for 401"),
    ],
)
def test_a_rejected_identity_is_asked_for_once_more(
    answers: list[int], status: int, tokens: list[str]
) -> None:
    async def story() -> None:
        server, credentials = Noted(*answers), Rotating()
        create = Request(method="POST", path="/api/v1/nodes", body=b"{}")
        async with serving(server) as port, HttpTransport(plain(port), credentials) as transport:
            assert (await transport.request(create)).status == status
        assert [r.headers["Authorization"] for r in server.asked] == [f"Bearer {t}" for t in tokens]
        assert set(server.bodies) == {b"{}"}, "the body is sent again, too"

    told(story())


@pytest.mark.parametrize("token", ["two\nlines", "kø"])
def test_a_token_that_no_header_can_carry_is_not_shown(token: str) -> None:
    async def story() -> None:
        with pytest.raises(Unavailable) as caught:
            await answer_of(plain(1), identity=Identity(token=token))
        assert str(caught.value).endswith("the token has characters that no header can carry")

    told(story())


# No answer.


def test_a_port_without_a_listener_is_no_answer() -> None:
    async def story() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # Bound, but not listening.
            access = plain(taken.getsockname()[1])
            with pytest.raises(Unavailable) as caught:
                await answer_of(access)
            where = f"GET /api/v1/pods: Cannot connect to host 127.0.0.1:{taken.getsockname()[1]}"
            assert str(caught.value).endswith(f"{where}: Connection refused")
            async with HttpTransport(access, ANONYMOUS) as transport:
                with pytest.raises(Unavailable, match="Cannot connect"):
                    await transport.stream(WATCH)

    told(story())


def test_a_connection_that_is_cut_before_the_answer_is_no_answer_and_not_repeated() -> None:
    asked: list[str] = []

    async def cut(request: web.Request) -> web.Response:
        asked.append(request.method)
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def story() -> None:
        create = Request(method="POST", path="/api/v1/nodes", body=b"{}")
        async with serving(cut) as port:
            with pytest.raises(Unavailable, match="POST /api/v1/nodes"):
                await answer_of(plain(port), create)
        assert asked == ["POST"]

    told(story())


@pytest.mark.parametrize(
    ("query", "limits"),
    [
        pytest.param({}, Limits(answer=SOON), id="one"),
        pytest.param({"limit": "500"}, Limits(list_page=SOON), id="a list"),
    ],
)
def test_an_answer_that_takes_too_long_is_no_answer(query: dict[str, str], limits: Limits) -> None:
    async def story() -> None:
        request = Request(method="GET", path=PODS.path, query=query)
        async with serving(_silent) as port:
            with pytest.raises(Unavailable, match="GET /api/v1/pods: timed out"):
                await answer_of(plain(port), request, limits=limits)

    told(story())


def test_a_list_may_take_longer_than_other_answers() -> None:
    async def story() -> None:
        arrived, over = asyncio.Event(), asyncio.Event()

        async def slow(request: web.Request) -> web.Response:
            arrived.set()
            await over.wait()
            return web.Response(text="{}")

        request = Request(method="GET", path=PODS.path, query={"limit": "500"})
        limits = Limits(answer=SOON)
        async with serving(slow) as port:
            listed = asyncio.create_task(answer_of(plain(port), request, limits=limits))
            await arrived.wait()
            with pytest.raises(Unavailable, match="timed out"):
                await answer_of(plain(port), PODS, limits=limits)
            over.set()
            assert (await listed).status == 200

    told(story())


async def _silent(request: web.Request) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError("no test sets it")


class PausedLoop(asyncio.SelectorEventLoop):
    """A loop whose clock can jump: as if the process had been stopped."""

    paused = 0.0

    def time(self) -> float:
        return super().time() + self.paused


def test_a_cancellation_is_not_lost_in_a_call_that_times_out_after_a_pause() -> None:
    """As after SIGSTOP: every timer of the call is due, and the elector ends the term."""
    loop, arrived = PausedLoop(), asyncio.Event()

    async def silent(request: web.Request) -> web.Response:
        arrived.set()
        return await _silent(request)

    async def work(transport: HttpTransport) -> None:
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await transport.request(PODS)
        await asyncio.Event().wait()  # For the next thing to do.

    async def story() -> None:
        limits = Limits(answer=timedelta(seconds=PATIENCE))
        async with (
            serving(silent) as port,
            HttpTransport(plain(port), ANONYMOUS, limits=limits) as transport,
        ):
            task = asyncio.create_task(work(transport))
            await arrived.wait()
            loop.paused += 2 * PATIENCE
            loop.call_soon(task.cancel)
            await asyncio.wait({task}, timeout=PATIENCE)
            assert task.cancelled()

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(story())


def test_a_closed_transport_sends_nothing() -> None:
    async def story() -> None:
        server = Noted(200)
        async with serving(server) as port:
            transport = HttpTransport(plain(port), ANONYMOUS)
            await transport.request(PODS)
            await transport.close()
            await transport.close()
            with pytest.raises(Unavailable, match="closed"):
                await transport.request(PODS)
        assert len(server.asked) == 1

    told(story())


# Watches.


def sending(*chunks: bytes, then: str = "ends") -> Handler:
    """A watch that sends these, each on its own, and then ends, is cut, or goes on."""

    async def handler(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for chunk in chunks:
            await answer.write(chunk)
        if then == "is cut":
            assert request.transport is not None
            request.transport.abort()
        elif then == "goes on":
            await asyncio.Event().wait()
        return answer

    return handler


async def opened(transport: HttpTransport) -> HttpStream:
    stream = await transport.stream(WATCH)
    assert isinstance(stream, HttpStream)
    return stream


async def lines_of(handler: Handler, limits: Limits = Limits()) -> list[bytes]:  # noqa: B008  # frozen
    async with (
        serving(handler) as port,
        HttpTransport(plain(port), ANONYMOUS, limits=limits) as transport,
    ):
        return [line async for line in await opened(transport)]


def test_a_watch_is_read_line_by_line_until_the_server_ends_it() -> None:
    async def story() -> None:
        lines = await lines_of(sending(b'{"a', b'": 1}\n{"b": 2}\n', b'{"c": 3}\n'))
        assert lines == [b'{"a": 1}\n', b'{"b": 2}\n', b'{"c": 3}\n']

    told(story())


def test_a_line_may_hold_the_largest_object_there_can_be() -> None:
    async def story() -> None:
        large = b"x" * 3_000_000 + b"\n"
        assert await lines_of(sending(large, b"small\n")) == [large, b"small\n"]

    told(story())


def test_a_line_that_is_no_object_ends_the_watch() -> None:
    async def story() -> None:
        with pytest.raises(Unavailable, match="a line longer than"):
            await lines_of(sending(b"x" * 101 + b"\n"), Limits(line=100))

    told(story())


def test_a_watch_that_is_cut_is_an_error_and_not_an_end() -> None:
    async def story() -> None:
        with pytest.raises(Unavailable, match="GET /api/v1/pods"):
            await lines_of(sending(b"one\n", then="is cut"))

    told(story())


def test_a_watch_that_says_nothing_for_too_long_is_dead() -> None:
    async def story() -> None:
        with pytest.raises(Unavailable, match="GET /api/v1/pods: timed out"):
            await lines_of(sending(b"one\n", then="goes on"), Limits(watch_silence=SOON))

    told(story())


def test_a_watch_that_we_end_ends_for_its_reader_and_for_the_server() -> None:
    async def story() -> None:
        left = asyncio.Event()

        async def handler(request: web.Request) -> web.StreamResponse:
            try:
                return await sending(b"one\n", then="goes on")(request)
            finally:
                left.set()

        async with serving(handler) as port, HttpTransport(plain(port), ANONYMOUS) as transport:
            stream = await opened(transport)
            lines = aiter(stream)
            assert await anext(lines) == b"one\n"
            waiting = asyncio.ensure_future(anext(lines, None))
            await asyncio.sleep(0)  # Let it begin to wait.
            await stream.close()
            assert await waiting is None
            await stream.close()  # Safe to call twice.
            await left.wait()

    told(story())


def test_a_refused_watch_is_an_answer_with_its_headers() -> None:
    async def story() -> None:
        async with serving(Noted(429)) as port, HttpTransport(plain(port), ANONYMOUS) as transport:
            answer = await transport.stream(WATCH)
        assert isinstance(answer, Response)
        assert (answer.status, answer.body, answer.headers["Retry-After"]) == (429, b"said", "7")

    told(story())
