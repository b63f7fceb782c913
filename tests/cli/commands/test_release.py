"""``tenure release``: what it takes, before any cluster is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure.cli.main import run


@pytest.mark.parametrize("flag", ["--beside-karpenter", "--beside-karpenter=true"])
def test_the_mode_may_be_named_as_in_every_other_command(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "no-kubeconfig"
    assert run(["release", flag, "--dry-run", "--kubeconfig", str(missing)]) == 2
    said = capsys.readouterr().err
    assert str(missing) in said, "the option is known, and the file is what is wrong"
    assert "beside-karpenter" not in said


def test_there_is_no_other_mode_to_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["release", "--beside-karpenter=false"]) == 2
    said = capsys.readouterr().err
    assert (
        "--beside-karpenter: got 'false', expected true: levers are set in that mode alone" in said
    )
