"""The webhook on the test bed: what is shipped, with a URL, as no Service leads to this machine."""

from __future__ import annotations

import json
import random
import socket
import ssl
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from testbed.controlplane import ControlPlane
from tests.real.account import NAMESPACE, account, shipped
from tests.real.process import PATIENCE, Process, tenure_run
from tests.real.programs import KUBECTL, run, said
from tests.schema.objects import an_object

Json = dict[str, Any]
#: In our words; and the object that they are about.
SENTENCE: Final = (
    "spec.schedules[0].cron: got '61 * * * *', expected a cron expression such as 0 6 * * 1-5. "
    "The minute 61 is out of 0–59."
)
NAME: Final = "tenure-webhook"
CONFIGURATION: Final = f"validatingwebhookconfiguration/{NAME}"


def a_window(cron: str = "0 6 * * 1-5", name: str = "sample") -> Json:
    schedules = [{"cron": cron, "duration": "8h"}]
    window = an_object("MaintenanceWindow", {"spec.schedules": schedules})
    return {**window, "metadata": {"name": name}}


#: Asks where nothing answers about objects with this label, and refuses them therefore.
MARKER: Final[Json] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "marker"},
    "webhooks": [
        {
            "name": "marker.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "resources": ["configmaps"],
                    "operations": ["CREATE"],
                }
            ],
            "objectSelector": {"matchLabels": {"example.com/marked": "yes"}},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ],
}
MARKED: Final[Json] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "marked", "labels": {"example.com/marked": "yes"}},
}
BAD: Final = a_window("61 * * * *")
PROBE: Final = a_window("61 * * * *", "probe")


class Site:
    """A cluster where API servers are told to ask on a port of ours."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self.folder = folder
        self.port = free_port()

    def replica(self, name: str = "a", port: int | None = None, *flags: str) -> Any:
        return tenure_run(
            account(self.plane),
            self.folder,
            f"--webhook-port={port or self.port}",
            f"--leader-election-namespace={NAMESPACE}",
            *flags,
            name=name,
        )

    # -- as a person -------------------------------------------------------------------

    def kubectl(self, *words: str, stdin: str = "") -> str:
        """It has to succeed; warnings come with what it says."""
        ended = run(self.plane.kubeconfig, KUBECTL, *words, stdin=stdin)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout + ended.stderr

    def apply(self, obj: Json, *flags: str) -> str:
        return self.kubectl("apply", *flags, "-f", "-", stdin=json.dumps(obj))

    def refused(self, obj: Json, *flags: str) -> str:
        """What kubectl says of the refusal."""
        words = ("apply", *flags, "-f", "-")
        ended = run(self.plane.kubeconfig, KUBECTL, *words, stdin=json.dumps(obj))
        assert ended.returncode != 0, f"it was let pass: {ended.stdout}"
        return ended.stderr

    def passes(self, obj: Json, who: Path | None = None) -> bool:
        """Whether it would be stored; it is not."""
        words = ("create", "--dry-run=server", "-f", "-")
        ended = run(who or self.plane.kubeconfig, KUBECTL, *words, stdin=json.dumps(obj))
        return ended.returncode == 0

    def get(self, *what: str) -> Json:
        text = said(self.plane.kubeconfig, KUBECTL, "get", *what, "-o", "json")
        found: Json = json.loads(text)
        return found

    def conditions(self, *what: str) -> dict[str, Json]:
        status = self.get(*what).get("status", {})
        return {each["type"]: each for each in status.get("conditions", [])}

    def heard(self) -> None:
        """Until the API server goes by every configuration that was written before: it hears of
        them in their order, so one that is written last shows that."""
        self.apply(MARKER)
        deadline = time.monotonic() + PATIENCE
        while self.passes(MARKED):
            assert time.monotonic() < deadline, "the API server does not hear of configurations"
        self.kubectl("delete", f"{MARKER['kind']}/marker".lower())

    # -- as an API server --------------------------------------------------------------

    @property
    def trust(self) -> str:
        (webhook,) = self.get(CONFIGURATION)["webhooks"]
        return b64decode(webhook["clientConfig"]["caBundle"]).decode()

    def certificate(self, port: int | None = None) -> bytes:
        """What is presented there, verified as the configuration says."""
        context = ssl.create_default_context(cadata=self.trust)
        address = ("127.0.0.1", port or self.port)
        with (
            socket.create_connection(address, timeout=10) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
        ):
            presented = secure.getpeercert(binary_form=True)
            assert presented is not None
            return presented


@contextmanager
def site(plane: ControlPlane, folder: Path) -> Iterator[Site]:
    """For as long as the block lasts the webhook is installed as it is shipped."""
    made = Site(plane, folder)
    objects = [each for each in shipped() if each["metadata"]["name"] == NAME]
    (configuration,) = (o for o in objects if o["kind"] == "ValidatingWebhookConfiguration")
    (webhook,) = configuration["webhooks"]
    webhook["clientConfig"] = {"url": f"https://127.0.0.1:{made.port}/validate"}
    # The default; on a busy machine the first handshake may take a while.
    webhook["timeoutSeconds"] = 10
    kinds = ("Secret", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    others = [o for o in objects if o["kind"] in kinds]
    assert len(others) == len(kinds)
    text = yaml.safe_dump_all([configuration, *others])
    made.kubectl("apply", "-f", "-", stdin=text)
    try:
        yield made
    finally:
        made.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=text)


def until_asked(here: Site, process: Process) -> None:
    """Until it serves, and the API server has heard whom to ask and whom to believe."""
    process.until_said("webhook: serves on port")
    process.until(lambda: not here.passes(PROBE), "question from the API server")


def reviews(process: Process, answer: str) -> int:
    """How often it gave that answer."""
    _, page = process.get("/metrics")
    series = f'tenure_webhook_reviews_total{{answer="{answer}"}} '
    found = [line for line in page.splitlines() if line.startswith(series)]
    return int(float(found[0].removeprefix(series))) if found else 0


def free_port() -> int:
    """Not one of those that connections get for themselves: it stays free until we need it."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
