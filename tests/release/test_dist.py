"""What ``make dist`` builds: the same from the same commit, of the tag's version, with materials and licences."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Final

import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from release import chart, licences, sbom
from release.dist import SUMS, build
from release.version import semver
from testbed.binaries import Missing, found
from tests.folders import ROOT

AT: Final = 1_800_000_000


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist") / "first"
    build(folder)
    return folder


def one(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


def test_everything_is_the_same_bit_for_bit_the_second_time(dist: Path, tmp_path: Path) -> None:
    build(tmp_path / "second")
    names = sorted(path.name for path in dist.iterdir())
    assert names == sorted(path.name for path in (tmp_path / "second").iterdir())
    assert len(names) == 8
    assert [
        n for n in names if (dist / n).read_bytes() != (tmp_path / "second" / n).read_bytes()
    ] == []


def test_the_sums_are_those_of_the_files(dist: Path) -> None:
    lines = (dist / SUMS).read_text().splitlines()
    assert len(lines) == len(list(dist.iterdir())) - 1
    for line in lines:
        hash_, name = line.split("  ")
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == hash_


def test_the_wheel_says_its_version_and_has_the_examples_and_no_tests(dist: Path) -> None:
    names = zipfile.ZipFile(one(dist, "*.whl")).namelist()
    assert "tenure/examples/scenarios/fifty-pods.yaml" in names
    assert "tenure/__main__.py" in names
    assert [name for name in names if "__pycache__" in name or name.startswith("tests")] == []


# -- the version is the tag --------------------------------------------------------------------


def a_checkout(folder: Path) -> Path:
    """What is needed to build, in a repository of its own."""
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder)
    for name in ("src/tenure/__init__.py", "examples/freeze.yaml"):
        (folder / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    command = ["git", *who, *words]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603


def committed(folder: Path) -> Path:
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


def built(source: Path, out: Path, kind: str = "--wheel") -> Path:
    words = ("--quiet", "--no-build-isolation", "--python", sys.executable, "--out-dir", str(out))
    command = [str(sbom.UV), "build", kind, *words, str(source)]
    subprocess.run(command, cwd=source.parent, check=True, capture_output=True)  # noqa: S603
    return one(out, "*.whl" if kind == "--wheel" else "*.tar.gz")


def test_a_tagged_commit_has_the_version_of_the_tag_and_so_has_its_sdist(tmp_path: Path) -> None:
    checkout = committed(a_checkout(tmp_path / "checkout"))
    git(checkout, "tag", "v3.2.1")
    assert built(checkout, tmp_path / "a").name == "tenure-3.2.1-py3-none-any.whl"
    packed = built(checkout, tmp_path / "b", "--sdist")
    assert packed.name == "tenure-3.2.1.tar.gz"
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    assert built(tmp_path / "unpacked" / "tenure-3.2.1", tmp_path / "c").name.startswith(
        "tenure-3.2.1-"
    )


def test_after_a_tag_it_says_how_far_and_which_commit(tmp_path: Path) -> None:
    checkout = committed(a_checkout(tmp_path / "checkout"))
    git(checkout, "tag", "v3.2.1")
    git(checkout, "commit", "--quiet", "--allow-empty", "--message", "second")
    name = built(checkout, tmp_path / "out").name
    assert re.fullmatch(r"tenure-3\.2\.2\.dev1\+g[0-9a-f]+-py3-none-any\.whl", name)


def test_before_the_first_tag_and_without_git(tmp_path: Path) -> None:
    alone = a_checkout(tmp_path / "copied")
    git(tmp_path, "init", "--quiet")  # Of someone else, around it.
    assert built(alone, tmp_path / "a").name.startswith("tenure-0.1.dev0")
    name = built(committed(a_checkout(tmp_path / "untagged")), tmp_path / "b").name
    assert re.fullmatch(r"tenure-0\.1\.dev1\+g[0-9a-f]+-py3-none-any\.whl", name)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.2.3", "1.2.3"),
        ("1.2", "1.2.0"),
        ("0.1.dev1585+gc19f242f2.d20261118", "0.1.0-dev.1585"),
        ("2.0.0rc1", "2.0.0-rc.1"),
        ("2.0.0b2.dev4", "2.0.0-beta.2.dev.4"),
    ],
)
def test_helm_and_registries_get_the_version_as_they_want_it(version: str, expected: str) -> None:
    assert semver(version) == expected


# -- the chart ------------------------------------------------------------------------------------


def test_the_chart_has_the_version_and_every_file_of_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "chart.tgz"
    file.write_bytes(chart.package("4.5.6", AT))
    with tarfile.open(file) as archive:
        members = archive.getmembers()
        about = archive.extractfile("tenure/Chart.yaml")
        assert about is not None
        read = yaml.safe_load(about)
    assert (read["version"], read["appVersion"]) == ("4.5.6", "4.5.6")
    expected = {
        f"tenure/{p.relative_to(chart.CHART)}" for p in chart.CHART.rglob("*") if p.is_file()
    }
    assert {member.name for member in members} == expected
    assert {(member.mtime, member.uid, member.mode) for member in members} == {(AT, 0, 0o644)}


def test_helm_renders_the_packed_chart_as_it_renders_the_folder(tmp_path: Path) -> None:
    try:
        helm = str(found(["helm"])["helm"])
    except Missing as missing:
        pytest.skip(f"{missing}: `make bed ARGS=helm` builds it")
    version = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())["version"]
    file = tmp_path / "chart.tgz"
    file.write_bytes(chart.package(version, AT))

    def rendered(path: Path) -> str:
        words = (
            "template",
            "tenure",
            str(path),
            "--include-crds",
            "--set",
            "karpenterCRDs.install=true",
        )
        run = subprocess.run([helm, *words], capture_output=True, text=True, check=True)  # noqa: S603
        return run.stdout

    assert "kind: Deployment" in rendered(file)
    assert rendered(file) == rendered(chart.CHART)


# -- materials and licences -----------------------------------------------------------------------


def test_the_bill_of_materials_is_valid_and_names_all_that_is_locked(dist: Path) -> None:
    bom = json.loads((dist / "sbom.cdx.json").read_text())
    components = {one["name"]: one for one in bom["components"]}
    assert {"aiohttp", "click", "msgspec", "yarl"} <= components.keys()
    assert "pytest" not in components
    assert all(one["version"] and one["externalReferences"] for one in components.values())
    assert components["click"]["licenses"] == [{"expression": "BSD-3-Clause"}]
    for part in components.values():
        del part["externalReferences"][1:]  # Checking an address takes a quarter of a second.
    assert JsonStrictValidator(SchemaVersion.V1_5).validate_str(json.dumps(bom)) is None
    assert bom["metadata"]["component"]["version"] == one(dist, "*.whl").name.split("-")[1]


def test_every_library_has_a_licence_that_we_take(dist: Path) -> None:
    names = sbom.names(sbom.locked())
    known = list(licences.licences(names))
    assert len(known) == len(names), "of one that is not installed here nothing is known"
    assert [one for one in known if not licences.allowed(one.licence)] == []
    page = (dist / "licences.md").read_text()
    assert all(f"| {one.name} | {one.version} | {one.licence} |" in page for one in known)


@pytest.mark.parametrize(
    ("expression", "fine"),
    [
        ("MIT", True),
        ("Apache-2.0 AND MIT", True),
        ("GPL-3.0-only OR MIT", True),
        ("(MIT OR GPL-3.0-only)", True),
        ("GPL-3.0-only", False),
        ("MIT AND AGPL-3.0-only", False),
        ("unknown", False),
        ("", False),
    ],
)
def test_what_is_taken(expression: str, fine: bool) -> None:
    assert licences.allowed(expression) is fine


def test_the_plugin_of_kubectl_is_an_archive_that_its_manifest_names(dist: Path) -> None:
    plugin = one(dist, "kubectl-tenure-*.tar.gz")
    manifest = yaml.safe_load((dist / "krew.yaml").read_text())
    hash_ = hashlib.sha256(plugin.read_bytes()).hexdigest()
    for platform in manifest["spec"]["platforms"]:
        assert platform["sha256"] == hash_
        assert platform["uri"].endswith(f"/{plugin.name}")
    with tarfile.open(plugin) as archive:
        entries = {entry.name: entry for entry in archive}
        program = archive.extractfile("kubectl-tenure")
        assert program is not None
        assert program.read().startswith(b"#!/bin/sh")
    assert entries["kubectl-tenure"].mode == 0o755
    assert set(entries) == {"LICENSE", "kubectl-tenure", one(dist, "*.whl").name}
