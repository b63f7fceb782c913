"""What the page's server answers, and to whom."""

from __future__ import annotations

import asyncio
import re
import traceback
from contextlib import suppress

import msgspec
import pytest

from tenure.dashboard.fleet.values import Change, Frame, History
from tenure.dashboard.web import feed, stream
from tenure.dashboard.web.server import ENTRIES_MAX
from tenure.dashboard.web.subscribers import QUEUE_MAX, Subscriber
from tenure.dashboard.web.visible import visible
from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.api.resource import NODE_CLAIMS, PODS
from tenure.sim.scenario.dsl import Story
from tests.builders import SECOND, Manifest, a_deployment, a_pod
from tests.dashboard.web.site import BAD, GOOD, POOR, Reviews, bearer, listening, opened, told

CANARY = "canary-7f3a91"
API = (
    "/api/fleet",
    "/api/stream",
    "/api/history",
    "/api/calendar",
    "/api/entries",
    "/api/why?subject=Node/x",
)


def test_fleet_history_entries_and_about_are_of_the_cluster() -> None:
    async def story(world: Story) -> None:
        async with opened(world) as site:
            frame = msgspec.convert(await site.json("/api/fleet"), Frame)
            assert [node.phase for node in frame.nodes] == ["in service"]
            assert frame.cluster == "embedded cluster"
            history = msgspec.convert(await site.json("/api/history"), History)
            assert [lane.key for lane in history.lanes] == [frame.nodes[0].key]
            about = await site.json("/api/about")
            assert (about["authentication"], about["mode"], about["speed"]) == ("none", "up", None)
            name = world.delete_claim()
            await asyncio.to_thread(world.run, SECOND)
            entries = await site.json(f"/api/entries?subject=NodeClaim/{name}&limit=1")
            assert [one["subject"] for one in entries] == [f"NodeClaim/{name}"]
            assert len(await site.json("/api/entries?limit=9999")) <= ENTRIES_MAX

    told(story)


def test_why_is_what_explain_says_with_its_text() -> None:
    async def story(world: Story) -> None:
        name = world.the(NODE_CLAIMS)["metadata"]["name"]
        async with opened(world) as site:
            answer = await site.json(f"/api/why?subject=NodeClaim/{name}")
            assert answer["subject"] == f"NodeClaim/{name}"
            assert answer["reason"] == "InService"
            assert name in answer["text"]
            pod = world.the(PODS)["metadata"]["name"]
            assert (await site.json(f"/api/why?subject=Pod/default/{pod}"))["around"]

    told(story)


@pytest.mark.parametrize(
    ("subject", "status", "sentence"),
    [
        ("NodeClaim/none", 404, "there is no NodeClaim/none"),
        ("VolumeAttachment/csi-1", 404, "has no explanation"),
        ("PodDisruptionBudget/default/web", 404, "there is no PodDisruptionBudget/default/web"),
        ("Pod/web", 404, "is named with its namespace"),
        ("<script>", 404, "has no explanation"),
        ("Secret/default/a", 404, "MaintenanceWindow, NodePoolPolicy, PodDisruptionBudget"),
        ("", 400, "subject is missing"),
        ("x" * 700, 400, "subject is missing or too long"),
    ],
)
def test_what_cannot_be_explained_is_said(subject: str, status: int, sentence: str) -> None:
    async def story(world: Story) -> None:
        async with opened(world) as site:
            found, body, headers = await site.get(f"/api/why?subject={subject}")
            assert found == status
            assert sentence in msgspec.json.decode(body)["error"]
            assert headers["Content-Type"] == "application/json"

    told(story)


def test_the_calendar_is_the_forecast_and_made_once_for_all() -> None:
    async def story(world: Story) -> None:
        async with opened(world) as site:
            answers = await asyncio.gather(*(site.json("/api/calendar") for _ in range(5)))
            assert {answer["at"] for answer in answers} == {answers[0]["at"]}
            assert [pool["name"] for pool in answers[0]["pools"]] == ["general"]

    told(story)


def test_the_stream_begins_with_a_frame_and_goes_on_with_what_changes() -> None:
    async def story(world: Story) -> None:
        async with opened(world) as site, listening(site) as events:
            event, first = await events.next()
            frame = msgspec.convert(first, Frame)
            assert (event, len(frame.nodes)) == ("frame", 1)
            world.delete_claim()
            await asyncio.to_thread(world.run, 2 * SECOND)
            change = msgspec.convert(await events.until("change"), Change)
            phases = {node.key: node.phase for node in change.nodes}
            assert phases[frame.nodes[0].key] == "draining"
            entries = await events.until("entries")
            assert any(one["reason"] == "Draining" for one in entries)

    told(story)


def test_so_many_pages_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: Story) -> None:
        async with opened(world) as site:
            monkeypatch.setattr(site.server.feed.subscribers, "_most", 1)
            async with listening(site):
                status, body, headers = await site.get("/api/stream")
                assert (status, headers["Retry-After"]) == (503, "2")
                assert "pages are open already" in body
            for _ in range(200):  # The server hears that the reader has left.
                if not len(site.server.feed.subscribers):
                    break
                await asyncio.sleep(0.01)
            async with listening(site):
                pass

    told(story)
    assert feed.STREAMS_MAX >= 20


def test_a_reader_who_does_not_read_is_dropped() -> None:
    async def story() -> None:
        slow = Subscriber()
        for number in range(QUEUE_MAX + 1):
            slow.put(b"%d" % number)
        assert slow.lost
        assert await slow.take() == b""

    asyncio.run(story())


# -- who may read --------------------------------------------------------------------------


def test_every_answer_is_closed_to_other_pages() -> None:
    async def story(world: Story) -> None:
        async with opened(world) as site:
            for path in ("/", "/nothing", "/api/fleet", "/api/nothing"):
                _, _, headers = await site.get(path)
                assert headers["Content-Security-Policy"].startswith(
                    "default-src 'none'; script-src 'self'"
                )
                assert headers["X-Content-Type-Options"] == "nosniff"
                assert headers["Referrer-Policy"] == "no-referrer"
                assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
                assert not [name for name in headers if name.lower().startswith("access-control")]
                assert headers["Server"] == "Tenure", "no version of what it is made of"

    told(story)


def test_only_reads() -> None:
    async def story(world: Story) -> None:
        async with opened(world) as site:
            for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
                assert (await site.get("/api/fleet", method))[0] == 405
            assert (await site.get("/../../etc/passwd"))[0] == 404
            assert (await site.get("/%2e%2e/secret"))[0] == 404

    told(story)


@pytest.mark.parametrize(
    "host", ["attacker.example", "10.0.0.7", "localhost.attacker.example", "[x"]
)
def test_another_host_is_refused(host: str) -> None:
    async def story(world: Story) -> None:
        async with opened(world) as site:
            for path in ("/", "/api/about", "/api/fleet"):
                assert (await site.get(path, Host=host))[0] == 403
            assert (await site.get("/api/fleet", Host="localhost:1"))[0] == 200

    told(story)


@pytest.mark.parametrize(
    ("path", "site_", "mode", "status"),
    [
        ("/api/fleet", "cross-site", "cors", 403),
        ("/api/fleet", "same-site", "no-cors", 403),
        ("/api/fleet", "cross-site", "navigate", 403),
        ("/", "cross-site", "no-cors", 403),
        ("/", "cross-site", "navigate", 200),
        ("/api/fleet", "same-origin", "cors", 200),
    ],
)
def test_another_site_is_refused(path: str, site_: str, mode: str, status: int) -> None:
    async def story(world: Story) -> None:
        async with opened(world) as site:
            sent = {"Sec_Fetch_Site": site_, "Sec_Fetch_Mode": mode}
            assert (await site.get(path, **sent))[0] == status

    told(story)


def test_without_a_token_there_is_the_shell_and_nothing_else() -> None:
    async def story(world: Story) -> None:
        async with opened(world, bearer(Reviews())) as site:
            assert (await site.get("/", Host="tenure.example"))[0] == 200
            assert await site.json("/api/about") == {"authentication": "bearer"}
            for path in API:
                status, body, headers = await site.get(path)
                assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
                assert list(msgspec.json.decode(body)) == ["error"]
                assert headers["Server"] == "Tenure"
                for token in ("Basic x", "Bearer", "Bearer ", f"Bearer {BAD}"):
                    assert (await site.get(path, Authorization=token))[0] == 401
                status, body, _ = await site.get(path, Authorization=f"Bearer {POOR}")
                assert status == 403
                assert body == (
                    '{"error":"the user of the token may not list pods, nodes and '
                    'nodepools.karpenter.sh"}'
                )
            assert (await site.get("/api/about", Authorization=f"Bearer {BAD}"))[0] == 401

    told(story)


def test_a_token_that_may_list_reads_and_is_asked_about_once() -> None:
    reviews = Reviews()

    async def story(world: Story) -> None:
        async with opened(world, bearer(reviews)) as site:
            token = f"Bearer {GOOD}"
            await asyncio.gather(*(site.json("/api/fleet", Authorization=token) for _ in range(5)))
            assert (await site.json("/api/about", Authorization=token))["mode"] == "up"
            async with listening(site, Authorization=token) as events:
                assert (await events.next())[0] == "frame"

    told(story)
    kinds = [one["kind"] for one in reviews.asked]
    assert kinds == ["TokenReview", *["SubjectAccessReview"] * 3]
    listed = [one["spec"]["resourceAttributes"] for one in reviews.asked[1:]]
    assert [(one["verb"], one["group"], one["resource"]) for one in listed] == [
        ("list", "", "pods"),
        ("list", "", "nodes"),
        ("list", "karpenter.sh", "nodepools"),
    ]
    assert all(one["spec"]["user"] == "reader" for one in reviews.asked[1:])


def test_tokens_are_asked_about_at_a_limited_rate() -> None:
    reviews = Reviews()

    async def story(world: Story) -> None:
        async with opened(world, bearer(reviews)) as site:
            statuses = {
                (await site.get("/api/fleet", Authorization=f"Bearer no-{number}"))[0]
                for number in range(60)
            }
            assert statuses == {401, 503}

    told(story)
    assert len(reviews.asked) < 40


def test_an_api_server_that_refuses_reviews_lets_no_token_in() -> None:
    reviews = Reviews()
    reviews.status = 403

    async def story(world: Story) -> None:
        async with opened(world, bearer(reviews)) as site:
            status, body, _ = await site.get("/api/fleet", Authorization=f"Bearer {GOOD}")
            assert status == 503
            assert "lacks create on tokenreviews" in body

    told(story)


# -- what comes from outside ---------------------------------------------------------------


def hostile() -> Manifest:
    made = a_deployment("hostile", replicas=1)
    pod = made["spec"]["template"]
    pod["metadata"]["annotations"] = {"note": f"{CANARY}<script>alert(1)</script>" + "x" * 200_000}
    pod["metadata"]["labels"]["tier"] = CANARY
    container = pod["spec"]["containers"][0]
    container["env"] = [{"name": "PASSWORD", "value": CANARY}]
    container["args"] = [CANARY]
    container["envFrom"] = [{"secretRef": {"name": CANARY}}]
    pod["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = CANARY
    before = {"name": "init", "image": "i", "command": [CANARY], "env": container["env"]}
    pod["spec"]["initContainers"] = [before]
    pod["spec"]["imagePullSecrets"] = [{"name": CANARY}]
    pod["spec"]["hostAliases"] = [{"ip": "10.0.0.1", "hostnames": [CANARY]}]
    return made


def a_secret() -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": CANARY, "namespace": "default"},
        "stringData": {"password": CANARY},
    }


def test_no_value_of_a_pod_reaches_an_answer() -> None:
    async def story(world: Story) -> None:
        async with opened(world) as site, listening(site) as events:
            _, frame = await events.next()
            names = [node["name"] for node in frame["nodes"]]
            pods = [pod["metadata"]["name"] for pod in world.all(PODS)]
            subjects = [f"NodeClaim/{name}" for name in names]
            subjects += [f"Pod/default/{name}" for name in pods]
            subjects += ["NodePool/general"]
            paths = ["/api/fleet", "/api/history", "/api/calendar", "/api/entries", "/api/about"]
            paths += [f"/api/why?subject={subject}" for subject in subjects]
            for path in paths:
                status, body, _ = await site.get(path)
                assert status == 200, (path, body)
                assert CANARY not in body, path
                assert len(body) < 200_000
            assert CANARY not in str(frame)

    told(story, hostile(), a_secret(), a_pod("lonely", nodeSelector={"nowhere": "true"}))


def test_no_token_reaches_a_log_an_answer_or_a_fault(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    paths = ["/", "/api/about", "/api/fleet", "/api/why?subject=NodePool/general", "/api/nothing"]
    tokens = (GOOD, POOR, BAD, CANARY, f"{CANARY} {CANARY}", CANARY * 2000)

    async def story(world: Story) -> None:
        reviews = Reviews()
        async with opened(world, bearer(reviews)) as site:

            async def asked(*more: str) -> None:
                for path in (*paths, *more):
                    for token in tokens:
                        _, body, headers = await site.get(path, Authorization=f"Bearer {token}")
                        assert token not in body
                        assert token not in str(headers)

            await asked()
            reviews.status = 500
            await asked()

            def broken() -> None:
                raise RuntimeError("a fault")

            reviews.status = 201
            monkeypatch.setattr(site.server.feed, "frame", broken)
            monkeypatch.setattr(site.server, "_entries", broken)
            await asked("/api/entries")
            said = "".join(
                line
                for fault in site.faults
                for line in traceback.TracebackException.from_exception(
                    fault, capture_locals=False
                ).format()
            )
            assert not any(token in said for token in tokens)
            site.faults.clear()

    told(story)
    assert not any(token in caplog.text for token in tokens)


def test_a_page_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a socket: nothing waits for it any more, and its place is free again."""
    monkeypatch.setattr(stream, "WRITE_MAX", 0.05)

    async def story(world: Story) -> None:
        async with opened(world) as site:
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port, limit=1024)
            writer.write(b"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            readers = site.server.feed.subscribers
            (one,) = readers
            message = b": " + b"x" * 2**20 + b"\n\n"
            for _ in range(QUEUE_MAX + 10):
                await readers.put_to_each(message)
            for _ in range(500):
                if not len(readers):
                    break
                await asyncio.sleep(0.01)
            assert not len(readers)
            assert one.lost
            assert await one.take() == b"", "what waited for it is let go"
            with suppress(ConnectionError):
                while await reader.read(2**20):
                    pass
            writer.transport.abort()

    told(story)


def test_nothing_that_a_user_writes_turns_the_writing_round() -> None:
    turned = a_pod("lonely")
    turned["metadata"]["annotations"] = {DO_NOT_DISRUPT: "\u202eeslaf\u2066\u200b\x1b[31m"}

    async def story(world: Story) -> None:
        async with opened(world) as site:
            _, body, _ = await site.get("/api/why?subject=Pod/default/lonely")
            assert "�eslaf���[31m" in body
            assert not re.search("[\u200b-\u200f\u202a-\u202e\u2066-\u2069]", body)
            assert "\\u001b" not in body
            msgspec.json.decode(body)

    told(story, turned)
    assert feed.encoded(["\u202eeslaf\x1b"]) == '["�eslaf�"]'.encode(), "frames and entries, too"


@pytest.mark.parametrize("text", [r"a\u001b", r"a\\u001b", 'quoted "\n"', "naïve 日本 …", "\\"])
def test_what_can_be_seen_is_told_as_it_is(text: str) -> None:
    assert msgspec.json.decode(visible(msgspec.json.encode([text]))) == [text]
