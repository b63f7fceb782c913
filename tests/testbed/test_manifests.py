"""The plain manifests follow the chart, and a machine without helm can tell."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from testbed import manifests


@pytest.fixture(autouse=True)
def a_copy_and_no_helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(manifests.CHART, tmp_path / "chart")
    copies = {shutil.copy(path, tmp_path): told for path, told in manifests.MANIFESTS.items()}
    monkeypatch.setattr(manifests, "ROOT", tmp_path)
    monkeypatch.setattr(manifests, "CHART", tmp_path / "chart")
    monkeypatch.setattr(manifests, "MANIFESTS", {Path(path): told for path, told in copies.items()})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)


@pytest.fixture(params=["tenure.yaml", "tenure-beside-karpenter.yaml"])
def manifest(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


def test_what_is_committed_is_what_was_rendered(manifest: Path) -> None:
    assert manifests.stale(manifest) == ""
    assert manifests.main(["--check"]) == 0


@pytest.mark.parametrize("name", ["values.yaml", "crds/new.yaml", "templates/service.yaml"])
def test_a_change_of_the_chart_is_noticed_and_the_way_out_is_named(
    name: str, manifest: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (manifests.CHART / name).open("a") as file:
        file.write("# another line\n")
    assert manifests.stale(manifest) == "the chart has changed"
    assert manifests.main([]) == 1
    assert capsys.readouterr().err.count("`make bed ARGS=helm`") == 2


def test_an_edit_by_hand_is_noticed(manifest: Path) -> None:
    with manifest.open("a") as file:
        file.write("# another line\n")
    assert manifests.stale(manifest) == "it was edited by hand"
    assert manifests.main(["--check"]) == 1


def test_a_file_that_is_not_there_is_stale(manifest: Path) -> None:
    manifest.unlink()
    assert manifests.stale(manifest) == "it is missing"
