"""``tenure simulate``: a story people can read, and lines that programs can."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tenure.cli.main import run
from tests.builders import a_deployment
from tests.scenarios.files import a_story, written

FAILING = [{"name": "four run", "by": "2m", "pods": {"app": "web", "running": 4}}]


def test_the_history_the_expectations_and_the_sum(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", str(written(tmp_path, a_story()))]) == 0
    out = capsys.readouterr().out
    assert re.search(
        r"^08:00:0\d\.\d{3}  NodeClaim/general-\w+ +NeededForPods +needed for 3 pods", out, re.M
    )
    assert re.search(r"^08:00:\d\d\.\d{3}  3 Pods +Running +default/web-", out, re.M)
    assert "  met          by 3m: pods of app web: exactly 3 running\n" in out
    assert (
        "5m of cluster time, seed 0: 1 instance launched, 0 terminated; 1 node, 3 pods running"
        in out
    )
    assert "\nPassed: 1 of 1 expectation met, 0 failed; 0 promises broken\n" in out


def test_what_did_not_hold_is_said_and_gives_exit_code_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, a_story(expect=FAILING))
    assert run(["simulate", str(path)]) == 1
    out = capsys.readouterr().out
    assert "  FAILED       four run (by 2m): pods of app web: exactly 4 running\n" in out
    assert "found 3 in all, 3 running" in out
    assert "expect[0])" in out


def test_json_is_one_object_per_line_and_the_last_is_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", str(written(tmp_path, a_story(expect=FAILING))), "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["type"] for line in lines[:-1]} == {"event"}
    assert {"at", "source", "subject", "reason", "message", "action", "outcome"} <= lines[0].keys()
    result = lines[-1]
    assert (result["type"], result["fine"]) == ("result", False)
    assert result["findings"][0]["held"] == "failed"
    assert result["summary"]["podsRunning"] == 3


def test_verbose_tells_every_action(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(written(tmp_path, a_story()))
    run(["simulate", path])
    short = capsys.readouterr().out
    run(["simulate", path, "--verbose"])
    long = capsys.readouterr().out
    assert "[Launch ok]" in long
    assert "[Launch ok]" not in short
    assert len(long.splitlines()) > len(short.splitlines())


def test_days_are_fine_at_the_prompt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = a_story(objects=[], expect=[])
    assert run(["simulate", str(written(tmp_path, story)), "--until", "1d12h"]) == 0
    assert "36h of cluster time" in capsys.readouterr().out


def test_a_run_that_stops_before_an_expectation_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", str(written(tmp_path, a_story())), "--until", "10s"]) == 0
    out = capsys.readouterr().out
    assert "  not reached  by 3m: pods of app web" in out
    assert "\nPassed: 0 of 1 expectation met, 0 failed, 1 not reached; 0 promises broken\n" in out


def test_a_step_that_could_not_be_done_is_said_first_with_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [
        {"at": "4m", "scale": {"deployment": "webb", "replicas": 1}},
        {"at": "4m", "scale": {"deployment": "shop", "replicas": 1}},
        {"at": "4m", "cordon": {"node": {"app": "webb"}}},
        {"at": "4m", "cordon": {"node": {"pool": "generl"}}},
    ]
    assert run(["simulate", str(written(tmp_path, a_story(events=events)))]) == 1
    out = capsys.readouterr().out
    assert "\nFAILED: 4 steps could not be done; 1 of 1 expectation met, 0 failed;" in out
    assert "found there is no Deployment webb. Did you mean web?  (" in out
    assert "found there is no Deployment shop; there are web  (" in out
    assert "found there is no Node of app webb. Did you mean web?  (" in out
    assert "found there is no Node of pool generl. Did you mean general?  (" in out


def test_what_no_object_has_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pods = [{"app": "wbe", "stop-takes": "20s"}, {"app": "web"}, {"app": "later"}]
    later = a_deployment("later")
    events = [{"at": "1m", "apply": later}]
    agents = {"example.com/cni": "30s"}
    story = a_story(pods=pods, events=events) | {"startup-agents": agents}
    assert run(["simulate", str(written(tmp_path, story))]) == 0
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("pods[0].app: no object has the label app: wbe")
    assert second.endswith("no NodePool has the startup taint example.com/cni")


@pytest.mark.parametrize("copy", [["--from", "any.jsonl"], ["--from-cluster"]])
def test_a_list_of_a_copy_is_refused_and_says_where_to_look(
    copy: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", *copy, "--list"]) == 2
    assert "tenure up with the same --from serves the copy" in capsys.readouterr().err


def test_another_seed_is_another_story(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(written(tmp_path, a_story()))
    said = []
    for seed in ("1", "1", "2"):
        run(["simulate", path, "--seed", seed])
        said.append(capsys.readouterr().out.partition("\n")[2])
    assert said[0] == said[1]
    assert said[0] != said[2]


def test_the_list_names_objects_as_explain_takes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(written(tmp_path, a_story()))
    assert run(["simulate", path, "--list", "--at", "2m", "--seed", "3"]) == 0
    first, _, *rows, _, ask = capsys.readouterr().out.splitlines()
    assert first == "1 pool, 1 claim, 1 node, 3 pods at 2m (2026-01-05T08:02:00Z)"
    names = [row.split()[0] for row in rows]
    assert names[0] == "pool/general"
    assert [name.split("/")[0] for name in names[1:]] == ["claim", "node", "pod", "pod", "pod"]
    claim = next(name for name in names if name.startswith("claim/"))
    assert ask == f"Ask why: tenure explain {claim} --in {path} --at 2m --seed 3"
    for name in names:
        assert run(["explain", name, "--in", path, "--at", "2m", "--seed", "3"]) == 0


def test_the_list_shows_the_end_unless_told_otherwise_and_has_a_form_for_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(written(tmp_path, a_story()))
    assert run(["simulate", path, "--list", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (claim,) = [line for line in lines if line["what"].startswith("claim/")]
    assert claim["reason"] == "InService"
    assert claim["explain"] == f"tenure explain {claim['what']} --in {path} --at 5m"


def test_an_instant_without_the_list_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", str(written(tmp_path, a_story())), "--at", "2m"]) == 2
    assert "--at goes with --list" in capsys.readouterr().err


def test_an_older_form_is_noted_once_and_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [{"at": "2m", "cordon": {"app": "web"}}, {"at": "3m", "uncordon": {"app": "web"}}]
    path = written(tmp_path, a_story(events=events))
    assert run(["simulate", str(path)]) == 0
    (note,) = capsys.readouterr().err.splitlines()
    assert note.startswith(f"note: {path}:")
    assert note.endswith("cordon: {node: {app: web}} (and 1 more like it)")


def test_a_step_about_a_node_that_has_gone_is_said_and_changes_no_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [
        {"at": "2m", "scale": {"deployment": "web", "replicas": 0}},
        {"at": "2m", "delete": {"claim": {"pool": "general"}}},
        {"at": "4m", "cordon": {"node": {"pool": "general"}}},
    ]
    assert run(["simulate", str(written(tmp_path, a_story(events=events)))]) == 0
    out = capsys.readouterr().out
    assert "  not done     at 4m: cordon\n" in out
    assert "found the oldest Node of pool general is gone" in out
    assert "\nPassed: 1 of 1 expectation met, 0 failed; 1 step not done; 0 promises broken\n" in out
