"""A real Prometheus that scrapes one replica, with the rules that the chart ships."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml

from testbed.binaries import found
from testbed.controlplane import free_ports
from tests.folders import ROOT
from tests.real.process import LOOK_EVERY, PATIENCE

Json = dict[str, Any]
RULES: Final = ROOT / "charts" / "tenure" / "files" / "rules.yaml"


class Prometheus:
    def __init__(self, port: int) -> None:
        self._port = port

    def asked(self, path: str, **words: str) -> Any:
        """What it answers; a query that it does not understand is an error with its own words."""
        try:
            asked = f"http://127.0.0.1:{self._port}{path}?{urlencode(words)}"
            with urlopen(asked, timeout=PATIENCE) as answer:
                return json.load(answer)["data"]
        except HTTPError as error:
            if error.code == HTTPStatus.SERVICE_UNAVAILABLE:
                raise ConnectionError("it has not started yet") from None
            raise AssertionError(f"{words}: {error.read().decode()}") from None

    def value(self, query: str) -> list[Json]:
        found: list[Json] = self.asked("/api/v1/query", query=query)["result"]
        return found

    def names(self) -> set[str]:
        return set(self.asked("/api/v1/label/__name__/values"))

    def until_some(self, query: str) -> list[Json]:
        deadline = time.monotonic() + PATIENCE
        while not (series := self.value(query)):
            assert time.monotonic() < deadline, f"no series for {query} within {PATIENCE:.0f} s"
            time.sleep(LOOK_EVERY)
        return series

    def until_up(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if self.value("up == 1"):
                    return
            except (URLError, ConnectionError):
                pass
            assert time.monotonic() < deadline, "nothing was scraped in time"
            time.sleep(LOOK_EVERY)


@contextmanager
def prometheus(folder: Path, metrics_port: int) -> Iterator[Prometheus]:
    """As the chart's ServiceMonitor has it, but each second."""
    (port,) = free_ports(1)
    config = folder / "prometheus.yaml"
    target = {"targets": [f"127.0.0.1:{metrics_port}"], "labels": {"namespace": "tenure"}}
    config.write_text(
        yaml.safe_dump(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(RULES)],
                "scrape_configs": [{"job_name": "tenure", "static_configs": [target]}],
            }
        )
    )
    command = [
        str(found(["prometheus"])["prometheus"]),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'series'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603  # our own words
    try:
        yield Prometheus(port)
    finally:
        process.kill()
        process.wait()
