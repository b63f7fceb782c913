"""Where the binaries of the test bed are looked for, and what is said when they are nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.binaries import BINARIES, NAMES, SOURCES, Missing, cache, found
from testbed.build import build


def put(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


def test_assets_that_somebody_gave_come_before_the_cache(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(tmp_path / "assets")}
    put(cache(environment), "etcd", "kwok")
    assets = put(tmp_path / "assets", "etcd")
    places = found(["etcd", "kwok"], environment)
    assert places == {"etcd": assets / "etcd", "kwok": cache(environment) / "kwok"}


def test_what_is_missing_is_named_with_the_verb_that_gets_it(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    put(cache(environment), "etcd")
    (cache(environment) / "kwok").write_text("half of it")  # Nobody may run it.
    with pytest.raises(Missing) as caught:
        found(["etcd", "kube-apiserver", "kwok"], environment)
    lines = str(caught.value).splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("the test bed lacks kube-apiserver, kwok in ")
    assert lines[0].endswith("run `make bed`")


def test_every_binary_is_pinned_by_what_is_committed() -> None:
    for binary in BINARIES:
        for file in ("go.mod", "go.sum"):
            assert (SOURCES / binary.module / file).exists()


def test_what_is_there_is_not_built_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(NAMES, put(tmp_path, *NAMES))
    assert capsys.readouterr().out == f"bed: everything is there, in {tmp_path}\n"
