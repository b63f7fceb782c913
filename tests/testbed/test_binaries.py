"""Where the binaries of the test bed are looked for, and what is said when they are nowhere."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed import binaries, karpentersource
from testbed.binaries import (
    BINARIES,
    KARPENTER_RELEASE,
    NAMES,
    SOURCES,
    Missing,
    cache,
    found,
    home,
    karpenter_module,
    pins,
)
from testbed.build import BuildFailed, build


def put(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


def homes(environment: Mapping[str, str]) -> dict[str, Path]:
    return {binary.name: home(binary, environment) for binary in BINARIES}


def test_given_assets_come_before_the_cache(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(tmp_path / "assets")}
    folders = homes(environment)
    for name in ("etcd", "kwok"):
        put(folders[name], name)
    assets = put(tmp_path / "assets", "etcd")
    places = found(["etcd", "kwok"], environment)
    assert places == {"etcd": assets / "etcd", "kwok": folders["kwok"] / "kwok"}


def test_what_is_missing_is_named_with_the_verb_that_gets_it(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    folders = homes(environment)
    put(folders["etcd"], "etcd")
    put(folders["kwok"])
    (folders["kwok"] / "kwok").write_text("half of it")  # It must not be run.
    with pytest.raises(Missing) as caught:
        found(["etcd", "kube-apiserver", "kwok"], environment)
    lines = str(caught.value).splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("the test bed lacks kube-apiserver, kwok in ")
    assert lines[0].endswith("run `make bed`")


def test_another_version_of_one_module_is_another_folder_for_that_module_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {binary.module: pins(binary.module) for binary in BINARIES}
    shutil.copytree(SOURCES, tmp_path / "go")
    monkeypatch.setattr(binaries, "SOURCES", tmp_path / "go")
    (tmp_path / "go" / "kwok" / "go.sum").write_text("another version\n")
    changed = [module for module, old in before.items() if pins(module) != old]
    assert changed == ["kwok"]


def test_every_binary_is_pinned_by_what_is_committed() -> None:
    for binary in BINARIES:
        for file in ("go.mod", "go.sum"):
            assert (SOURCES / binary.module / file).exists()


def test_an_older_karpenter_has_pins_and_a_folder_of_its_own() -> None:
    older = [path.name.removeprefix("karpenter-") for path in SOURCES.glob("karpenter-*")]
    assert older
    for release in older:
        module = karpenter_module({KARPENTER_RELEASE: release})
        assert karpentersource.pin(SOURCES / module).version.startswith(f"v{release}.")
        assert pins(module) != pins("karpenter")
    assert karpenter_module({}) == "karpenter"


def test_a_karpenter_that_is_not_pinned_is_refused_with_those_that_are() -> None:
    with pytest.raises(SystemExit, match=rf"{KARPENTER_RELEASE}=1\.5: pinned are .*1\.6"):
        karpenter_module({KARPENTER_RELEASE: "1.5"})


def test_what_is_there_is_not_built_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(tmp_path / "assets")}
    put(tmp_path / "assets", *NAMES)
    put(homes(environment)["karpenter-kwok"], "karpenter-kwok")
    build(NAMES, environment)
    assert capsys.readouterr().out == f"bed: everything is there, in {cache(environment)}\n"


def a_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A `go` of our own on the PATH, for `go build`: its sixth word is the file to make."""
    put(folder, "go")
    listing = '[ "$1" = list ] && echo one && echo two && exit'
    (folder / "go").write_text(f"#!/bin/sh\n{listing}\n{script}\n")
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


def test_a_binary_appears_when_it_is_whole_and_the_next_build_takes_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    half_of_kwok = 'case "$6" in */kwok) echo half > "$6"; echo "disk is full" >&2; exit 1;; esac'
    whole = 'printf "#!/bin/sh\n" > "$6"; chmod +x "$6"'
    a_compiler(tmp_path / "bin", monkeypatch, f"{half_of_kwok}\n{whole}")
    with pytest.raises(BuildFailed, match=r"kwok \(2 of 2\): go build failed\ndisk is full"):
        build(["etcd", "kwok"], environment)
    folders = homes(environment)
    assert os.listdir(folders["kwok"]) == [".lock"]

    capsys.readouterr()
    a_compiler(tmp_path / "bin", monkeypatch, whole)
    build(["etcd", "kwok"], environment)
    said = capsys.readouterr().out
    assert said.startswith("bed: building kwok into ")
    assert "bed: kwok (1 of 1): compiling what is new of its 2 packages\n" in said
    assert found(["etcd", "kwok"], environment)["kwok"] == folders["kwok"] / "kwok"


def test_an_unpacked_binary_in_the_assets_does_not_count_because_its_kinds_are_not_there(
    tmp_path: Path,
) -> None:
    assets = put(tmp_path / "assets", "karpenter-kwok")
    environment = {"XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(assets)}
    with pytest.raises(Missing, match="lacks karpenter-kwok"):
        found(["karpenter-kwok"], environment)


def test_karpenter_is_built_in_its_source_which_stays_for_its_kinds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    pinned = karpentersource.pin()
    with zipfile.ZipFile(tmp_path / "module.zip", "w") as archive:
        archive.writestr(
            f"{karpentersource.MODULE}@{pinned.version}/go.mod", "module k\n\ngo 9.9\n"
        )
    answer = json.dumps({"Zip": str(tmp_path / "module.zip"), "Sum": pinned.sum})
    script = [
        f"[ $1 = mod ] && echo '{answer}' && exit",
        "[ $1 = env ] && echo go1.26.8 && exit",
        'cp go.mod "$6" && chmod +x "$6"',  # It shows where it was built.
    ]
    a_compiler(tmp_path / "bin", monkeypatch, "\n".join(script))
    build(["karpenter-kwok"], environment)
    built = found(["karpenter-kwok"], environment)["karpenter-kwok"]
    assert built.read_text() == "module k\n\ngo 1.26.8\n"
    assert (built.parent / "source" / "go.mod").exists()
