"""The plain manifests follow the chart, and a machine without helm can tell."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from testbed import manifests


@pytest.fixture(autouse=True)
def a_copy_and_no_helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(manifests.CHART, tmp_path / "chart")
    shutil.copy(manifests.MANIFEST, tmp_path / "tenure.yaml")
    monkeypatch.setattr(manifests, "ROOT", tmp_path)
    monkeypatch.setattr(manifests, "CHART", tmp_path / "chart")
    monkeypatch.setattr(manifests, "MANIFEST", tmp_path / "tenure.yaml")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)


def test_what_is_committed_is_what_was_rendered() -> None:
    assert manifests.stale() == ""
    assert manifests.main(["--check"]) == 0


@pytest.mark.parametrize("name", ["values.yaml", "crds/new.yaml", "templates/service.yaml"])
def test_a_change_of_the_chart_is_noticed_and_the_way_out_is_named(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with (manifests.CHART / name).open("a") as file:
        file.write("# another line\n")
    assert manifests.stale() == "the chart has changed"
    assert manifests.main([]) == 1
    assert "`make bed ARGS=helm`" in capsys.readouterr().err


def test_an_edit_by_hand_is_noticed() -> None:
    with manifests.MANIFEST.open("a") as file:
        file.write("# another line\n")
    assert manifests.stale() == "it was edited by hand"


def test_a_file_that_is_not_there_is_stale() -> None:
    manifests.MANIFEST.unlink()
    assert manifests.stale() == "it is missing"
