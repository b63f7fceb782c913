"""The webhook on a real API server: what people see of it, its certificates, and life without it."""

from __future__ import annotations

import asyncio
import json
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from tenure.kube.certfacts import split
from tenure.kube.certs import make_authority
from tenure.kube.client.client import Client
from tenure.kube.webhook.admission import Admission
from tenure.kube.webhook.webhook import Webhook, WebhookSettings
from tenure.providers.kwok.nodeclass import KWOK_KIND
from testbed.controlplane import ControlPlane
from testbed.manifests import CHART
from tests.real.account import NAMESPACE, account
from tests.real.cluster import patient
from tests.real.process import PATIENCE
from tests.real.programs import KUBECTL, run, said
from tests.real.webhooking import (
    BAD,
    PROBE,
    SENTENCE,
    Site,
    a_window,
    free_port,
    reviews,
    site,
    until_asked,
)
from tests.schema.objects import an_object

DAY: Final = timedelta(days=1)
KIND: Final = "validatingwebhookconfiguration"
CA: Final = b64encode(
    make_authority("theirs", now=datetime.now(UTC), valid=DAY).cert.encode()
).decode()


@pytest.fixture
def here(cluster: ControlPlane, tmp_path: Path) -> Iterator[Site]:
    with site(cluster, tmp_path) as made:
        yield made


def test_a_bad_object_is_refused_in_our_words_and_a_good_one_is_stored(here: Site) -> None:
    with here.replica() as replica:
        until_asked(here, replica)
        asked = reviews(replica, "refused")
        assert SENTENCE in here.refused(BAD)
        assert SENTENCE in here.refused(BAD, "--dry-run=server")
        assert "created" in here.apply(a_window())
        assert SENTENCE in here.refused(BAD), "a change for the worse"
        assert reviews(replica, "refused") == asked + 3


def test_advice_comes_as_a_warning(here: Site) -> None:
    with here.replica() as replica:
        until_asked(here, replica)
        written = [{"key": "a.example/b", "operator": "In", "values": [v]} for v in ("x", "y")]
        pool = an_object("NodePool", {"spec.template.spec.requirements": written})
        told = here.apply(pool)
        assert "Warning: spec.template.spec.requirements: those on a.example/b contradict" in told
        assert "created" in told
        elsewhere = {"group": "example.com", "kind": "Machine", "name": "a"}
        theirs = an_object("NodePool", {"spec.template.spec.nodeClassRef": elsewhere})
        theirs["metadata"]["name"] = "theirs"
        assert "Machine of example.com is left to another provider" in here.apply(theirs)
        assert reviews(replica, "warned") == 2
        plain = an_object("NodePool", {"metadata.name": "plain"})
        assert here.apply(plain) == "nodepool.karpenter.sh/plain created\n", "defaults are no wish"


def test_without_it_writes_go_through_and_the_status_says_the_same(here: Site) -> None:
    assert "created" in here.apply(BAD), "the webhook is not called: it passes"
    with here.replica("a", None, "--disable-leader-election") as replica:
        until_asked(here, replica)
        window = ("maintenancewindow/sample",)
        replica.until(lambda: "Valid" in here.conditions(*window), "a status")
        valid = here.conditions(*window)["Valid"]
        assert (valid["status"], valid["message"]) == ("False", SENTENCE)


def test_a_mistake_that_slipped_in_does_not_lock_its_object(here: Site) -> None:
    here.apply(BAD)
    with here.replica() as replica:
        until_asked(here, replica)
        here.kubectl("label", "maintenancewindow/sample", "a=b")
        finalizer = '{"metadata":{"finalizers":["example.com/hold"]}}'
        here.kubectl("patch", "maintenancewindow/sample", "--type=merge", "-p", finalizer)
        assert reviews(replica, "allowed") == 0, "metadata is not reviewed"
        changed = {**BAD, "spec": {**BAD["spec"], "actions": ["Drift", "Rebalance"]}}
        assert "Warning: wrong as before: spec.schedules[0].cron" in here.apply(changed)
        here.kubectl("delete", "maintenancewindow/sample", "--wait=false")
        no_finalizers = '{"metadata":{"finalizers":null}}'
        here.kubectl("patch", "maintenancewindow/sample", "--type=merge", "-p", no_finalizers)
        assert here.get("maintenancewindows")["items"] == []


def test_tenure_itself_is_never_asked_about(here: Site) -> None:
    """Else a webhook that cannot be reached would cost it seconds at every claim."""
    claim = an_object("NodeClaim", {"spec.resources": {"requests": {"cpu": "1e1.5"}}})
    with here.replica() as replica:
        until_asked(here, replica)
        assert not here.passes(claim)
        assert here.passes(claim, account(here.plane))


def test_two_replicas_share_their_certificate_and_say_no_key(here: Site) -> None:
    other_port = free_port()
    with here.replica("a") as one, here.replica("b", other_port) as other:
        for replica in (one, other):
            replica.until_said("webhook: serves on port")
        assert here.certificate() == here.certificate(other_port)
        data = here.get("secret/tenure-webhook", "-n", NAMESPACE)["data"]
        logs = one.log_file.read_text() + other.log_file.read_text()
        for name in ("ca.key", "tls.key"):
            assert data[name] not in logs
            assert b64decode(data[name]).decode().splitlines()[1] not in logs


def test_a_secret_with_nonsense_is_mended(here: Site) -> None:
    nonsense = '{"data":{"ca.crt":"bm8=","ca.key":"bm8=","tls.crt":"bm8=","tls.key":"bm8="}}'
    words = ("patch", "secret/tenure-webhook", "-n", NAMESPACE, "--type=merge", "-p", nonsense)
    here.kubectl(*words)
    with here.replica() as replica:
        until_asked(here, replica)
        assert SENTENCE in here.refused(BAD)


def test_without_a_configuration_it_says_so_once_and_does_its_work(here: Site) -> None:
    here.kubectl("delete", "validatingwebhookconfiguration/tenure-webhook")
    with here.replica() as replica:
        line = replica.until_said("webhook: there is no ValidatingWebhookConfiguration")
        assert line["level"] == "info"
        replica.until_ready()


def test_an_upgrade_keeps_keys_and_trust(cluster: ControlPlane) -> None:
    def helm(*words: str) -> str:
        return said(cluster.kubeconfig, "helm", *words, "--namespace=upgraded")

    def kubectl(*words: str) -> str:
        return said(cluster.kubeconfig, KUBECTL, "--namespace=upgraded", *words)

    secret, configuration = "secret/tenure-up-webhook", f"{KIND}/tenure-up-webhook"
    trust = {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": CA}
    helm("install", "tenure-up", str(CHART), "--create-namespace", "--skip-crds")
    try:
        kubectl("patch", secret, "--type=merge", "-p", '{"data":{"tls.key":"a2V5"}}')
        kubectl("patch", configuration, "--type=json", "-p", json.dumps([trust]))
        helm("upgrade", "tenure-up", str(CHART), "--set", "replicas=3,additionalLabels.a=b")
        assert (
            kubectl("get", secret, "-o", "jsonpath={.data.tls\\.key}{.metadata.labels.a}")
            == "a2V5b"
        )
        path = "jsonpath={.webhooks[0].clientConfig.caBundle}"
        assert kubectl("get", configuration, "-o", path) == CA
    finally:
        helm("uninstall", "tenure-up")


# -- its certificates, while it is asked ------------------------------------------------


class Calendar:
    """A clock that can be some days behind: the API server's own cannot be moved."""

    def __init__(self) -> None:
        self.behind = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) - self.behind

    def monotonic(self) -> float:
        return time.monotonic()


def test_certificates_are_renewed_while_they_are_used_and_no_object_passes_unreviewed(
    here: Site,
) -> None:
    asyncio.run(_rotation(here))


async def _rotation(here: Site) -> None:
    calendar = Calendar()
    async with patient(account(here.plane)) as client:
        webhook = _webhook(client, calendar, here.port)
        # An authority of which a third is left in a few minutes, and a server that it signed.
        for days in (243.4, 180, 120, 60, 5):
            calendar.behind = days * DAY
            await webhook.look()
        while await asyncio.to_thread(here.passes, PROBE):
            await asyncio.sleep(0)  # The API server has not heard of us yet.
        refusals: list[str] = []
        asking = asyncio.create_task(_keep_asking(here, refusals))
        before = await asyncio.to_thread(here.certificate)
        calendar.behind = timedelta(minutes=6)
        await webhook.look()
        assert len(split(await asyncio.to_thread(lambda: here.trust))) == 2, "old and new"
        assert await asyncio.to_thread(here.certificate) == before, "known first, used later"
        await asyncio.to_thread(here.heard)
        calendar.behind = timedelta()
        await webhook.look()
        assert await asyncio.to_thread(here.certificate) != before
        await _asked_again(asking, refusals)
        await webhook.close()

        # Another replica in its place: every connection is a new one.
        heir = _webhook(client, calendar, here.port)
        await heir.look()
        assert SENTENCE in await asyncio.to_thread(here.refused, BAD)
        await heir.close()


async def _keep_asking(here: Site, refusals: list[str]) -> None:
    """Ends where one is let pass."""
    while True:
        refusals.append(await asyncio.to_thread(here.refused, BAD, "--dry-run=server"))


async def _asked_again(asking: asyncio.Task[None], refusals: list[str]) -> None:
    """Once more and then no longer; not one of all was let pass."""
    count = len(refusals)
    while len(refusals) < count + 2 and not asking.done():
        await asyncio.sleep(0.05)
    if asking.done():
        asking.result()
    asking.cancel()
    await asyncio.wait([asking])
    assert all(SENTENCE in refusal for refusal in refusals)


def _webhook(client: Client, calendar: Calendar, port: int) -> Webhook:
    return Webhook(
        client=client,
        clock=calendar,
        admission=Admission({("karpenter.kwok.sh", "KWOKNodeClass")}, (KWOK_KIND,)),
        settings=WebhookSettings(namespace=NAMESPACE, is_pod=False, host="127.0.0.1", port=port),
        say=lambda _: None,
        complain=lambda line: pytest.fail(line),
    )


#: What a stolen token would be used for: have objects of others sent to an address of its own.
WIDER: Final = {
    "every Secret": ("/webhooks/0/rules/0/resources", ["*"]),
    "another group": ("/webhooks/0/rules/0/apiGroups", ["*"]),
    "another address": ("/webhooks/0/clientConfig/url", "https://192.0.2.1/validate"),
    "failures that count": ("/webhooks/0/failurePolicy", "Fail"),
    "no conditions": ("/webhooks/0/matchConditions", []),
    "another name": ("/webhooks/0/name", "other.tenure.dev"),
    "another selector": ("/webhooks/0/objectSelector", {"matchLabels": {"a": "b"}}),
}


def test_tenures_account_changes_certificates_in_its_configuration_and_nothing_else(
    here: Site,
) -> None:
    def patched(path: str, value: object) -> str:
        operations = json.dumps([{"op": "replace", "path": path, "value": value}])
        words = ("patch", f"{KIND}/tenure-webhook", "--type=json", "--dry-run=server")
        return run(account(here.plane), KUBECTL, *words, "-p", operations).stderr

    deadline = time.monotonic() + PATIENCE
    while not patched(*WIDER["every Secret"]):  # The API server hears of the policy by and by.
        assert time.monotonic() < deadline
    denied = {name: patched(*change) for name, change in WIDER.items()}
    assert [
        name for name, answer in denied.items() if "ValidatingAdmissionPolicy" not in answer
    ] == []
    with here.replica() as replica:
        until_asked(here, replica)
    assert patched("/webhooks/0/clientConfig/caBundle", CA) == ""


@pytest.mark.parametrize(
    "words",
    [
        ("create", "validatingwebhookconfigurations"),
        ("delete", "validatingwebhookconfigurations/tenure-webhook"),
        ("patch", "validatingwebhookconfigurations/other"),
        ("get", "validatingwebhookconfigurations/other"),
        ("patch", "mutatingwebhookconfigurations/tenure-webhook"),
        ("create", "secrets"),
        ("get", "secrets/other"),
        ("list", "secrets"),
        ("list", "configmaps"),
        ("get", "configmaps/kube-root-ca.crt"),
        ("create", "clusterroles"),
        ("create", "pods"),
        ("create", "serviceaccounts/token"),
    ],
    ids=" ".join,
)
def test_tenures_account_may_not(here: Site, words: tuple[str, str]) -> None:
    answer = run(account(here.plane), KUBECTL, "auth", "can-i", *words, "-n", NAMESPACE)
    assert answer.stdout.strip() == "no", answer
