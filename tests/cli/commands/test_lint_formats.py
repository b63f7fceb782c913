"""``tenure lint --format``: for a workflow of GitHub, for code scanning, and for other programs."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tenure.cli.lint.formats.github import workflow_commands
from tenure.cli.lint.formats.sarif import to_sarif
from tenure.cli.lint.remarks import Ignored, Remark, Report
from tenure.cli.main import run
from tenure.schema.findings import CODES, Code, Finding
from tests.cli.commands.test_lint_ignores import BECAUSE, a_pool
from tests.folders import ROOT
from tests.jsonschemas import problems

SCHEMA = json.loads((ROOT / "tests" / "data" / "sarif" / "sarif-2.1.0-rtm.5.json").read_text())
IGNORING = a_pool(above=f"# tenure: ignore PeriodDriftsNodes {BECAUSE}")


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("my pools, all.yaml")
    path.write_text(IGNORING)
    return path


def a_remark(message: str = "odd", file: str = "", **place: int) -> Remark:
    finding = Finding(Code.UNKNOWN_FIELD, "spec.x", message)
    return Remark(about="NodePool/general", finding=finding, file=file, **place)


def test_sarif_has_rules_levels_and_places(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lint", str(written), "--format", "sarif"]) == 1
    log = json.loads(capsys.readouterr().out)
    assert list(problems(log, SCHEMA, SCHEMA)) == []
    (sarif_run,) = log["runs"]
    rules = sarif_run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [str(code) for code in CODES]
    warned, suppressed = sarif_run["results"]
    assert rules[warned["ruleIndex"]]["id"] == warned["ruleId"] == "RepairByForce"
    assert warned["level"] == "warning"
    assert warned["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "my%20pools%2C%20all.yaml"},
        "region": {"startLine": 8, "startColumn": 3},
    }
    assert (suppressed["ruleId"], suppressed["level"]) == ("PeriodDriftsNodes", "note")
    assert suppressed["suppressions"] == [
        {"kind": "inSource", "justification": "its nodes keep nothing"}
    ]


def test_sarif_of_a_cluster_names_the_object() -> None:
    log = json.loads(to_sarif(Report(remarks=[a_remark()], objects=1, notes=["one"]), "0.1.0"))
    assert list(problems(log, SCHEMA, SCHEMA)) == []
    (location,) = log["runs"][0]["results"][0]["locations"]
    assert location == {
        "logicalLocations": [{"fullyQualifiedName": "NodePool/general spec.x", "kind": "object"}]
    }


def test_sarif_says_what_could_not_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yaml").write_text("a: [")
    assert run(["lint", str(tmp_path / "bad.yaml"), "--format", "sarif"]) == 2
    log = json.loads(capsys.readouterr().out)
    assert list(problems(log, SCHEMA, SCHEMA)) == []
    (invocation,) = log["runs"][0]["invocations"]
    assert not invocation["executionSuccessful"]
    (told,) = invocation["toolExecutionNotifications"]
    assert "bad.yaml:2:1" in told["message"]["text"]


def test_the_schema_would_notice() -> None:
    """The check itself is checked: each of these is not SARIF."""
    log = json.loads(
        to_sarif(Report(remarks=[a_remark(file="a", line=1, column=1)], objects=1), "1")
    )
    result = log["runs"][0]["results"][0]
    region = result["locations"][0]["physicalLocation"]["region"]
    result["level"], region["startLine"] = "info", 0
    del result["message"]["text"]
    log["runs"][0]["tool"]["driver"]["odd"] = 1
    said = "\n".join(problems(log, SCHEMA, SCHEMA))
    for keyword in ("enum", "minimum", "anyOf", "additionalProperties"):
        assert f"breaks {keyword}" in said


def test_github_shows_findings_at_their_lines(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lint", str(written), "--format", "github"]) == 1
    warned, last = capsys.readouterr().out.splitlines()
    assert warned.startswith(
        "::warning file=my pools%2C all.yaml,line=8,col=3,title=RepairByForce::NodePool/general: spec.repair: "
    )
    assert last == "1 object: 0 errors, 1 warning, 0 info; 1 ignored by comments"


def test_what_github_would_take_for_its_own_signs_is_escaped() -> None:
    remark = a_remark("50% of\r\nit: a, b", "a:b,c%.yaml", line=2, column=3)
    said, _ = workflow_commands(Report(remarks=[remark], objects=1))
    properties, _, message = said.removeprefix("::error ").partition("::")
    assert properties == "file=a%3Ab%2Cc%25.yaml,line=2,col=3,title=UnknownField"
    assert message == ("NodePool/general: spec.x: 50%25 of%0D%0Ait: a, b. Correct its name.")


def test_github_is_told_what_could_not_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yaml").write_text("a: [")
    assert run(["lint", str(tmp_path / "bad.yaml"), "--format", "github"]) == 2
    assert capsys.readouterr().out.startswith("::error title=CannotBeRead::")


def test_json_has_the_fields_that_the_page_lists(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lint", str(written), "--format", "json"]) == 1
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert list(told) == ["objects", "findings", "ignored", "notes", "problems"]
    fields = ["severity", "code", "object", "field", "message", "advice", "file", "line", "column"]
    assert list(told["findings"][0]) == fields
    assert list(told["ignored"][0]) == [*fields, "because"]
    page = (ROOT / "docs" / "lint.md").read_text()
    assert all(f"`{name}`" in page for name in (*fields, "because", "objects"))


def test_what_is_ignored_does_not_fail() -> None:
    remark = a_remark()
    report = Report(remarks=(), objects=1, ignored=[Ignored(remark=remark, because="so")])
    assert not report.fails(remark.finding.severity)


BROKEN = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec: {}\n"


def test_github_is_told_no_file_of_what_came_in_on_the_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file of the pull request is called stdin."""
    monkeypatch.setattr("sys.stdin", io.StringIO(BROKEN))
    assert run(["lint", "-", "--format", "github"]) == 1
    said = capsys.readouterr().out.splitlines()[0]
    assert said.startswith("::error title=Invalid::NodePool/a: spec.template: got nothing")


def test_github_is_told_no_file_of_what_is_in_a_cluster() -> None:
    said, _ = workflow_commands(Report(remarks=[a_remark()], objects=1))
    assert said.startswith("::error title=UnknownField::NodePool/general: ")


def test_sarif_of_the_standard_input_names_the_object(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(BROKEN))
    assert run(["lint", "-", "--format", "sarif"]) == 1
    log = json.loads(capsys.readouterr().out)
    assert list(problems(log, SCHEMA, SCHEMA)) == []
    (location,) = log["runs"][0]["results"][0]["locations"]
    assert list(location) == ["logicalLocations"]
