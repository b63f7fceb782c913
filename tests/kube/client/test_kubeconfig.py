"""Which server, how to trust it, who we are: read from a file that a user wrote."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenure.errors import SpecError
from tenure.kube.client.kubeconfig import in_cluster_access, load_access

SECRET = "hunter2-the-secret"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def written(folder: Path, *, cluster: Any = None, user: Any = None, **context: Any) -> Path:
    """A kubeconfig with one context ``here``, which is the current one."""
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", **context}}],
        "clusters": [{"name": "c", "cluster": cluster or {"server": "https://api.example:6443"}}],
        "users": [{"name": "u", "user": {} if user is None else user}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


def refused(path: Path, context: str = "") -> SpecError:
    with pytest.raises(SpecError) as caught:
        load_access(path, context)
    assert str(path) in str(caught.value), "an error names the file"
    assert SECRET not in str(caught.value)
    return caught.value


def test_the_current_context_says_where_and_who(tmp_path: Path) -> None:
    path = written(tmp_path, user={"token": f"{SECRET}\n"}, namespace="team")
    access = load_access(path)
    assert access.server == "https://api.example:6443"
    assert (access.token, access.namespace) == (SECRET, "team")
    assert not access.insecure


def test_another_context_can_be_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path)
    document = yaml.safe_load(path.read_text())
    document["contexts"].append({"name": "there", "context": {"cluster": "d"}})
    document["clusters"].append({"name": "d", "cluster": {"server": "https://d.example/"}})
    path.write_text(yaml.safe_dump(document))
    access = load_access(path, "there")
    assert access.server == "https://d.example", "without the slash that paths begin with"
    assert access.token == "", "a context needs no user"


def test_a_missing_context_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    error = refused(written(tmp_path), "elsewhere")
    assert (error.got, error.hint) == ("elsewhere", "There is: here.")


def test_without_a_current_context_one_must_be_named(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("{}")
    error = refused(path)
    assert (error.at, error.hint) == (f"{path}: current-context", "There are: none.")


@pytest.mark.parametrize("gone", ["clusters", "users"])
def test_a_context_must_lead_somewhere(tmp_path: Path, gone: str) -> None:
    path = written(tmp_path)
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), gone: None}))
    assert refused(path).at == f"{path}: {gone}"


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "pki").mkdir()
    for name in ("ca", "crt", "key"):
        (tmp_path / "pki" / name).write_text(f"PEM of {name}")
    access = load_access(
        written(
            tmp_path,
            cluster={"server": "https://a", "certificate-authority": "pki/ca"},
            user={
                "client-certificate": "pki/crt",
                "client-key": str(tmp_path / "pki" / "key"),
                "tokenFile": "pki/token",
            },
        )
    )
    assert (access.ca, access.client_cert) == ("PEM of ca", "PEM of crt")
    assert access.client_key == "PEM of key"
    assert access.token_file == tmp_path / "pki" / "token"


def test_data_wins_over_a_path(tmp_path: Path) -> None:
    cluster = {
        "server": "https://a",
        "certificate-authority": "no/such/file",
        "certificate-authority-data": encoded("PEM"),
        "tls-server-name": "kubernetes",
        "insecure-skip-tls-verify": True,
    }
    access = load_access(written(tmp_path, cluster=cluster))
    assert (access.ca, access.tls_server_name, access.insecure) == ("PEM", "kubernetes", True)


@pytest.mark.parametrize(
    ("user", "field"),
    [
        pytest.param({"client-key-data": f"{SECRET}!"}, "client-key-data", id="no base64"),
        pytest.param({"client-key-data": "//79"}, "client-key-data", id="base64 of no text"),
        pytest.param({"client-certificate": "gone"}, "client-certificate", id="a missing file"),
        pytest.param({"client-key-data": encoded(SECRET)}, "client-certificate", id="a key alone"),
        pytest.param({"client-certificate-data": "UA=="}, "client-key", id="no key"),
        pytest.param({"as": "another-user", "token": SECRET}, "as", id="acting as another"),
        pytest.param({"auth-provider": {"name": SECRET}}, "auth-provider", id="an old plugin"),
        pytest.param({"username": "me", "password": SECRET}, "username", id="a password"),
        pytest.param({"exec": {"env": [{"value": SECRET}]}}, "exec.command", id="no program"),
        pytest.param({"exec": {"command": "aws", "args": [SECRET]}}, "exec.apiVersion", id="old"),
    ],
)
def test_a_user_that_cannot_be_used_is_refused_at_its_field(
    tmp_path: Path, user: dict[str, Any], field: str
) -> None:
    path = written(tmp_path, user=user)
    assert refused(path).at == f"{path}: user.{field}"


@pytest.mark.parametrize(
    ("exec_", "field"),
    [
        pytest.param({"env": [{"value": SECRET}]}, "env", id="a variable without a name"),
        pytest.param({"env": {"A": SECRET}}, "env", id="a mapping for a list"),
        pytest.param({"interactiveMode": "Always"}, "interactiveMode", id="wants a user"),
    ],
)
def test_a_program_that_cannot_be_run_is_refused(
    tmp_path: Path, exec_: dict[str, Any], field: str
) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "x", **exec_}
    path = written(tmp_path, user={"exec": plugin})
    assert refused(path).at == f"{path}: user.exec.{field}"


def test_an_exec_plugin_is_read_whole(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "aws",
        "args": ["eks", "get-token"],
        "env": [{"name": "PROFILE", "value": SECRET}],
        "provideClusterInfo": True,
        "installHint": "Install the aws program.\n",
    }
    read = load_access(written(tmp_path, user={"exec": plugin})).exec_plugin
    assert read is not None
    assert (read.command, read.args, read.env) == ("aws", ("eks", "get-token"), {"PROFILE": SECRET})
    assert (read.provide_cluster_info, read.install_hint) == (True, "Install the aws program.")
    assert SECRET not in repr(read)


def test_a_program_with_a_path_lies_beside_the_file(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "./bin/login"}
    read = load_access(written(tmp_path, user={"exec": plugin})).exec_plugin
    assert read is not None
    assert Path(read.command) == tmp_path / "bin" / "login"


@pytest.mark.parametrize(
    ("cluster", "field"),
    [
        pytest.param({"server": "api.example:6443"}, "cluster.server", id="no scheme"),
        pytest.param(
            {"server": "https://a", "proxy-url": f"http://me:{SECRET}@p"},
            "cluster.proxy-url",
            id="a proxy",
        ),
        pytest.param("https://a", "cluster", id="a word for a mapping"),
    ],
)
def test_a_cluster_that_cannot_be_used_is_refused_at_its_field(
    tmp_path: Path, cluster: Any, field: str
) -> None:
    path = written(tmp_path, cluster=cluster)
    assert refused(path).at == f"{path}: {field}"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(None, "a kubeconfig", id="no file"),
        pytest.param(
            b"token: [" + SECRET.encode(), "got '(not shown)', expected YAML", id="broken YAML"
        ),
        pytest.param(b"\xff\xfe\xfa" + SECRET.encode(), "text in UTF-8", id="no text"),
        pytest.param(SECRET.encode(), "a mapping", id="one word"),
        pytest.param(b"", "got 'an empty file', expected a kubeconfig", id="nothing"),
    ],
)
def test_what_is_no_kubeconfig_is_refused_without_showing_it(
    tmp_path: Path, raw: bytes | None, expected: str
) -> None:
    path = tmp_path / "kubeconfig"
    if raw is not None:
        path.write_bytes(raw)
    assert expected in str(refused(path))


def test_a_secret_is_not_in_what_is_printed(tmp_path: Path) -> None:
    access = load_access(written(tmp_path, user={"token": SECRET}))
    assert repr(access) == "Access(server='https://api.example:6443')"


def service_account(folder: Path) -> Path:
    for name, text in {"token": SECRET, "ca.crt": "PEM", "namespace": "tenure\n"}.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("host", "server"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
def test_a_pod_finds_its_own_cluster(tmp_path: Path, host: str, server: str) -> None:
    environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
    access = in_cluster_access(environment, service_account(tmp_path))
    assert access is not None
    assert (access.server, access.ca, access.namespace) == (server, "PEM", "tenure")
    assert access.token_file == tmp_path / "token", "read again and again: it rotates"
    assert access.token == ""


def test_outside_of_a_cluster_there_is_none(tmp_path: Path) -> None:
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    assert in_cluster_access({}, service_account(tmp_path)) is None
    assert in_cluster_access(environment, tmp_path / "nowhere") is None


def test_a_cluster_without_an_authority_is_not_trusted_blindly(tmp_path: Path) -> None:
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    (service_account(tmp_path) / "ca.crt").unlink()
    with pytest.raises(SpecError, match=r"ca\.crt"):
        in_cluster_access(environment, tmp_path)


def test_a_user_in_the_url_is_refused_and_not_shown(tmp_path: Path) -> None:
    path = written(tmp_path)
    document = yaml.safe_load(path.read_text())
    document["clusters"][0]["cluster"]["server"] = f"https://admin:{SECRET}@api.example:6443"
    path.write_text(yaml.safe_dump(document))
    assert "a URL without a user in it" in str(refused(path))
