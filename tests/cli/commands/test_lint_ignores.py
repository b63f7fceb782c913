"""``# tenure: ignore CODE because …`` and ``--ignore CODE``: a finding that is meant is taken back, with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tenure.cli.main import run

POOL = """\
{above}
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: general
spec:
  {block}
  repair: {{maxUnhealthy: 1}}  {beside}
  template:
    spec:
      terminationGracePeriod: 5m
      nodeClassRef: {{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}
      requirements: []
"""
BECAUSE = "because its nodes keep nothing"


def a_pool(*, above: str = "#", block: str = "#", beside: str = "") -> str:
    return POOL.format(above=above, block=block, beside=beside)


@pytest.fixture
def lint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def told(text: str, *options: str) -> dict[str, Any]:
        (tmp_path / "all.yaml").write_text(text)
        code = run(["lint", str(tmp_path / "all.yaml"), "--json", *options])
        return {**json.loads(capsys.readouterr().out), "exit": code}

    return told


def codes(findings: list[dict[str, Any]]) -> list[str]:
    return [finding["code"] for finding in findings]


@pytest.mark.parametrize("where", ["above", "block", "beside"])
def test_a_comment_takes_a_finding_back_and_keeps_its_reason(lint: Any, where: str) -> None:
    told = lint(a_pool(**{where: f"# tenure: ignore RepairByForce {BECAUSE}"}))
    assert (told["exit"], codes(told["findings"])) == (0, ["PeriodDriftsNodes"])
    (ignored,) = told["ignored"]
    assert (ignored["code"], ignored["line"]) == ("RepairByForce", 8)
    assert ignored["because"] == "its nodes keep nothing"


def test_without_a_comment_repair_by_force_is_a_warning(lint: Any) -> None:
    told = lint(a_pool())
    assert told["exit"] == 1
    assert [(one["code"], one["severity"]) for one in told["findings"]] == [
        ("RepairByForce", "warning"),
        ("PeriodDriftsNodes", "info"),
    ]


def test_several_codes_share_a_comment(lint: Any) -> None:
    told = lint(a_pool(above=f"# tenure: ignore RepairByForce, PeriodDriftsNodes {BECAUSE}"))
    assert (told["exit"], told["findings"], len(told["ignored"])) == (0, [], 2)


def test_a_comment_covers_its_own_object_and_no_other(lint: Any) -> None:
    named = a_pool(above=f"# tenure: ignore RepairByForce {BECAUSE}")
    told = lint(f"{named}---\n{a_pool().replace('general', 'other')}", "--ignore=PeriodDriftsNodes")
    assert [(one["code"], one["object"]) for one in told["findings"]] == [
        ("RepairByForce", "NodePool/other")
    ]


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("ignore RepairByForce", 'got "ignore RepairByForce", expected ignore CODE because'),
        ("ignore because of it", 'got "ignore because of it", expected ignore CODE because'),
        ("ignore RepairByForce because", "expected ignore CODE because and a reason"),
        ("ignroe RepairByForce because so", "expected ignore CODE because and a reason"),
        ("ignore RepairbyForce because so", "no code RepairbyForce; did you mean RepairByForce?"),
    ],
)
def test_an_incomplete_comment_ignores_nothing_and_is_a_finding(
    lint: Any, comment: str, said: str
) -> None:
    told = lint(a_pool(block=f"# tenure: {comment}"))
    assert codes(told["findings"]) == ["InvalidIgnore", "RepairByForce", "PeriodDriftsNodes"]
    wrong = told["findings"][0]
    assert (wrong["severity"], wrong["line"], wrong["column"]) == ("warning", 7, 3)
    assert said in wrong["message"]


def test_a_comment_with_nothing_to_ignore_is_told(lint: Any) -> None:
    told = lint(a_pool(block="# tenure: ignore NoNodeFits because it fits"), "--fail-on=error")
    assert codes(told["findings"]) == ["UnusedIgnore", "RepairByForce", "PeriodDriftsNodes"]
    unused = told["findings"][0]
    assert (unused["severity"], unused["line"]) == ("info", 7)
    assert unused["message"] == "line 8: there is no NoNodeFits on that line"


def test_text_that_looks_like_a_comment_ignores_nothing(lint: Any) -> None:
    text = a_pool() + f'  limits: {{"#x": "# tenure: ignore RepairByForce {BECAUSE}"}}\n'
    assert "RepairByForce" not in codes(lint(text)["ignored"])


def test_an_option_leaves_a_code_out_everywhere(lint: Any) -> None:
    told = lint(a_pool(), "--ignore=RepairByForce", "--ignore", "PeriodDriftsNodes")
    assert (told["exit"], told["findings"], told["ignored"]) == (0, [], [])


def test_a_code_that_does_not_exist_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "all.yaml").write_text(a_pool())
    assert run(["lint", str(tmp_path / "all.yaml"), "--ignore", "RepairByForced"]) == 2
    assert "Did you mean RepairByForce?" in capsys.readouterr().err


@pytest.mark.parametrize(("least", "code"), [("error", 0), ("warning", 1), ("info", 1)])
def test_the_exit_code_follows_the_severity(lint: Any, least: str, code: int) -> None:
    assert lint(a_pool(), "--fail-on", least)["exit"] == code


def test_info_alone_fails_only_where_that_is_asked_for(lint: Any) -> None:
    ignored = ("--ignore", "RepairByForce")
    assert lint(a_pool(), *ignored)["exit"] == 0
    assert lint(a_pool(), *ignored, "--fail-on", "info")["exit"] == 1


def test_the_first_line_counts_what_is_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "all.yaml").write_text(a_pool(above=f"# tenure: ignore RepairByForce {BECAUSE}"))
    run(["lint", str(tmp_path / "all.yaml")])
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "1 object: 0 errors, 0 warnings, 1 info; 1 ignored by comments"


def test_a_comment_at_the_end_of_the_file_says_that_nothing_is_below_it(lint: Any) -> None:
    told = lint(a_pool() + f"# tenure: ignore RepairByForce {BECAUSE}\n")
    (unused,) = [one for one in told["findings"] if one["code"] == "UnusedIgnore"]
    assert unused["message"] == ("nothing stands below the comment, so it ignores no RepairByForce")
