"""Which specs the suites hold. Ginkgo tells without a cluster, by a dry run."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.conformance.report import Spec, description, specs
from testbed.conformance.suites import SUITES, Suites


@dataclass(frozen=True)
class Catalogue:
    specs: tuple[Spec, ...]
    #: By suite: what Ginkgo calls it.
    descriptions: dict[str, str]

    def focus(self, spec: Spec) -> str:
        """A pattern in Go's syntax that this spec alone matches."""
        text = f"{self.descriptions[spec.suite]} {spec.name}"
        return f"^{re.sub(r'([^A-Za-z0-9_ /,:-])', _escaped, text)}$"


def _escaped(found: re.Match[str]) -> str:
    sign = found[0]
    return f"\\{sign}" if sign.isascii() else sign


def catalogue(suites: Suites, names: Sequence[str] = SUITES) -> Catalogue:
    reports = {name: _dry_run(suites, name) for name in names}
    found = [spec for name, report in reports.items() for spec in specs(name, report)]
    return Catalogue(tuple(found), {name: description(report) for name, report in reports.items()})


def _dry_run(suites: Suites, name: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        subprocess.run(  # noqa: S603  # what we have built
            [suites.suite(name), "--ginkgo.dry-run", "--ginkgo.succinct",
             f"--ginkgo.json-report={report}"],
            cwd=suites.folder(name), stdout=subprocess.DEVNULL, check=True,
        )  # fmt: skip
        return report.read_text()
