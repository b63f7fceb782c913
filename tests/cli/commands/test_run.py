"""``tenure run`` as a process without a cluster: bad input, servers that are away, and its end."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

from tenure.cli.cluster.access import trust_notes
from tenure.cli.main import run
from tenure.kube.client.kubeconfig import Access
from tests.real.process import Process, tenure_run

SECRET = "a-token-that-must-not-leak"


def a_kubeconfig(folder: Path, port: int) -> Path:
    path = folder / "kubeconfig"
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "me", "user": {"token": SECRET}}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


@contextmanager
def listening() -> Iterator[int]:
    """A port where connections are taken and nothing is ever said."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(100)
        yield taken.getsockname()[1]


@contextmanager
def away() -> Iterator[int]:
    """A port where nothing listens, and no other program begins to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


class _Refusing(BaseHTTPRequestHandler):
    """Accepts no credentials, like a server whose token has expired."""

    protocol_version = "HTTP/1.1"
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = b'{"kind":"Status","code":401,"reason":"Unauthorized","message":"Unauthorized"}'
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name there
        """It is never read."""


@contextmanager
def refusing() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def ends_with(process: Process, code: int) -> None:
    assert process.stop() == code
    assert process.lines()[-1]["message"] == "stopped"


def test_a_server_that_is_away_is_waited_for_and_said_in_words(tmp_path: Path) -> None:
    with away() as port, tenure_run(a_kubeconfig(tmp_path, port), tmp_path) as tenure:
        said = tenure.until_said("the API server: GET /version: Cannot connect to host")
        assert said["advice"] == "is the API server up, and the address right? It is tried again"
        assert " 503" not in said["message"], "there was no answer, so there is no status code"
        status, body = tenure.get("/readyz")
        assert status == 503
        assert "[-] the API server: " in body
        assert "[-] pods: not synced: " in body
        status, body = tenure.get("/healthz")
        assert (status, body.partition(":")[0]) == (200, "ok"), "a restart would not help"
        assert tenure.get("/metrics")[0] == 200
        ends_with(tenure, 0)
        assert SECRET not in tenure.log_file.read_text()


def test_a_server_that_never_answers_does_not_block_the_exit(tmp_path: Path) -> None:
    with listening() as port, tenure_run(a_kubeconfig(tmp_path, port), tmp_path) as tenure:
        assert tenure.get("/readyz")[0] == 503
        began = time.monotonic()
        ends_with(tenure, 0)
        assert time.monotonic() - began < 25, "well within what a kubelet waits for"


def test_credentials_that_are_no_longer_good_are_said_so_and_tried_again(tmp_path: Path) -> None:
    with refusing() as port, tenure_run(a_kubeconfig(tmp_path, port), tmp_path) as tenure:
        said = tenure.until_said("the API server: 401 Unauthorized")
        assert said["advice"] == "the API server does not know us: check the credentials"
        asked = len(_Refusing.asked)
        tenure.until(lambda: len(_Refusing.asked) > asked + 20, "another try")
        assert tenure.running
        assert len(tenure.lines()) < 60, "it is said once for each kind, not once for each try"
        ends_with(tenure, 0)
        assert SECRET not in tenure.log_file.read_text()


def test_a_port_that_is_taken_is_one_line_and_exit_code_two(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = a_kubeconfig(tmp_path, 1)  # It is never asked.
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))  # noqa: S104  # where it would listen
        taken.listen()
        port = taken.getsockname()[1]
        assert run(["run", f"--kubeconfig={kubeconfig}", f"--metrics-port={port}"]) == 2
    assert capfd.readouterr().err == (
        f"--metrics-port: got {port}, expected a port that is free. "
        "Address already in use. 0 takes any free port.\n"
    )


WRONG = {
    "a value": (["--batch-idle-duration=soon"], "--batch-idle-duration: got 'soon', expected"),
    "a flag": (["--batch-idel-duration=1s"], "No such option"),
    "a kubeconfig": (["--kubeconfig=nowhere"], "nowhere"),
    "a provider": (["--provider=moon"], "--provider: got 'moon', expected one of the providers"),
    "a file of instance types": (["--instance-types-file=nowhere.json"], "nowhere.json"),
    "a file of settings": (["--config=nowhere.yaml"], "--config: got 'nowhere.yaml', expected a"),
}


@pytest.mark.parametrize(("flags", "sentence"), WRONG.values(), ids=WRONG.keys())
def test_what_a_user_must_correct_is_one_line_and_exit_code_two(
    flags: list[str], sentence: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = a_kubeconfig(tmp_path, 1)  # It is never asked.
    assert run(["run", f"--kubeconfig={kubeconfig}", *flags]) == 2
    err = capfd.readouterr().err
    assert sentence in err
    assert err.count("\n") == 1


def test_the_help_has_every_setting_with_its_default_and_its_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from tenure.cli.settings.table import TABLE

    assert run(["run", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    for setting in TABLE:
        assert f"--{setting.flag} " in told
        assert setting.environment in told
        assert " ".join(setting.reason.split()) in told, setting.flag
        assert f"[default: {setting.default_words}; {setting.environment}]" in told


def test_an_unsafe_way_to_the_api_server_is_said() -> None:
    plain, open_ = Access(server="http://api:80"), Access(server="https://api", insecure=True)
    assert [note for note in trust_notes(plain) if "not encrypted" in note]
    assert [note for note in trust_notes(open_) if "is not verified" in note]
    assert list(trust_notes(Access(server="https://api"))) == []
