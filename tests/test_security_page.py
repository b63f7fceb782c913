"""docs/security.md: every right, every port and every limit that there is, is there as it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tenure.cli.settings.table import TABLE, Setting
from tenure.kube.webhook.server import LIMITS, REVIEWS_MAX
from tenure.parse.limits import BODY, FILE, SMALL, Limits
from tenure.runtime.telemetry.serving import HEALTH_LIMITS, JOURNAL_LIMITS, METRICS_LIMITS
from tenure.sim.serve import http
from testbed.manifests import BESIDE_KARPENTER
from tests.folders import ROOT
from tests.real.account import shipped
from tests.real.rights import Right, granted

PAGE: Final = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


def described() -> set[tuple[str, str]]:
    """Verb and resource of each row; what stands behind the resource says where."""
    found = set()
    for row in re.findall(r"^\| (`[^|]*): ([a-z, ]+) \|", PAGE, re.M):
        resources = re.findall(r"`([^`]+)`", row[0])
        group = resources.pop() if " of `" in row[0] else ""
        for resource in resources if group else resources[:1]:
            plural, _, subresource = resource.partition("/")
            full = f"{plural}.{group}/{subresource}" if group else resource
            found |= {(verb, full) for verb in row[1].split(", ")}
    return found


def manifests_of(path: Path) -> list[dict[str, Any]]:
    return list(filter(None, yaml.safe_load_all(path.read_text(encoding="utf-8"))))


RIGHTS: Final = granted(shipped())


@pytest.mark.parametrize("right", RIGHTS, ids=str)
def test_every_right_that_is_granted_is_explained(right: Right) -> None:
    assert (right.verb, right.resource) in described()


@pytest.mark.parametrize("right", granted(manifests_of(BESIDE_KARPENTER)), ids=str)
def test_every_right_beside_karpenter_is_in_its_table(right: Right) -> None:
    table = PAGE.partition("| beside Karpenter | what for |")[2].partition("\n\n")[0]
    kind, _, subresource = right.resource.partition("/")
    rows = [row for row in table.splitlines() if f"`{kind}`" in row]
    (row,) = [row for row in rows if row.startswith(f"| `{kind}`")] or rows
    verbs = row.partition("their `status`: ")[2] if subresource else row
    assert right.verb in re.findall(r"\w+", verbs)
    assert f"`{right.name}`" in row or not right.name


def test_what_is_granted_by_name_or_in_one_namespace_is_said() -> None:
    for right in RIGHTS:
        if right.name and right.resource not in ("leases.coordination.k8s.io",):
            assert re.search(rf"`{re.escape(right.resource)}` `{right.name}`", PAGE), right
        if right.resource == "configmaps":
            assert f"| `configmaps` in `{right.namespace}`: " in PAGE


def test_the_page_on_installing_leaves_the_table_of_rights_to_this_one() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    section = page.partition("\n## Rights\n")[2].partition("\n## ")[0]
    assert "(security.md#what-a-stolen-token-can-do)" in section
    assert not re.search(r"^\|", section, re.M), "nothing compares a second table with the rights"
    assert ("delete", "pods") not in described() or "delete any pod, past its PDB" in section


@pytest.mark.parametrize(
    "setting", [s for s in TABLE if s.flag.endswith("-port")], ids=lambda s: s.flag
)
def test_every_port_is_described(setting: Setting) -> None:
    assert f"| `--{setting.flag}` {setting.default}, " in PAGE


def row(start: str) -> str:
    (found,) = re.findall(rf"^\| {re.escape(start)}.*$", PAGE, re.M)
    return str(found)


def test_the_limits_of_ports_are_those_of_the_program() -> None:
    ports = {
        "`--metrics-port`": METRICS_LIMITS,
        "`--health-probe-port`": HEALTH_LIMITS,
        "`--webhook-port`": LIMITS,
        "`--journal-port`": JOURNAL_LIMITS,
        "`tenure up`": http.LIMITS,
    }
    for start, limits in ports.items():
        assert f"{limits.connections} connections" in row(start)
    assert f"{METRICS_LIMITS.requests} scrapes, {METRICS_LIMITS.request:.0f} s" in row("`--metrics")
    assert f"{LIMITS.body_size // 2**10} KiB, {LIMITS.body:.0f} s per body" in row("`--webhook")
    assert f"{REVIEWS_MAX} reviews" in row("`--webhook")
    assert f"{http.LIMITS.body_size // 2**20} MiB, {http.LIMITS.body:.0f} s" in row("`tenure up`")


def test_the_limits_of_input_are_those_of_the_program() -> None:
    columns = (FILE, SMALL, BODY)

    def cells(value: str) -> list[str]:
        return [f"{getattr(limits, value)}" for limits in columns]

    rows = {
        "size; also": "size",
        "lists and maps": "depth",
        "values, aliases": "values",
        "YAML documents": "documents",
        "characters of one number": "number",
    }
    assert set(rows.values()) == set(Limits.__struct_fields__)
    for start, field in rows.items():
        shown = [cell.strip().removesuffix(" bytes") for cell in row(start).split("|")[2:-1]]
        assert shown == cells(field)
