"""The demo as people meet it: what it tells, in which form, and how it ends."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tenure.cli.commands.demo import DEFAULT_SPEED, demo

TENURE = str(Path(sys.executable).with_name("tenure"))


def told(*arguments: str) -> Result:
    result = CliRunner().invoke(demo, arguments, standalone_mode=False)
    assert result.exception is None, result.exception
    return result


@pytest.fixture(scope="module")
def plain() -> str:
    return told().output


@pytest.fixture(scope="module")
def as_json() -> list[dict[str, Any]]:
    return [json.loads(line) for line in told("--json").output.splitlines()]


def in_this_order(text: str, *turns: str) -> None:
    """Each of them after the one before it."""
    place = 0
    for turn in turns:
        found = text.find(turn, place)
        assert found != -1, f"no {turn!r} in:\n{text[place:]}"
        place = found + len(turn)


def test_the_story_goes_from_an_empty_cluster_to_nodes_that_left(plain: str) -> None:
    in_this_order(
        plain,
        "*** a NodePool and a MaintenanceWindow are created",
        "NeededForPods",
        "InService",
        "*** the kernel of the node under the report hangs",
        "Releasing",
        "*** a user changes the template of the NodePool",
        "DisruptionBlocked: Drift of Node",
        "*** the maintenance window opens",
        "EvictionWaits",
        "Releasing",
        "What Tenure did",
    )


def instant_of(text: str, pattern: str) -> list[str]:
    return re.findall(rf"^(\S+)  {pattern}", text, re.M)


@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_a_new_template_waits_for_its_window_and_rolls_one_node_at_a_time(seed: str) -> None:
    plain = told("--seed", seed).output
    (changed,) = instant_of(plain, r"\*\*\* a user changes the template")
    assert changed < "08:04:30", "the wait can be seen"
    assert "is not active before 08:05:00" in plain
    after = plain[plain.index("a user changes the template") :]
    starts = re.findall(
        r"^(\S+)  node-(\S+) Replacing: creating replacement NodeClaim (\S+)$", after, re.M
    )
    assert len(starts) == 3, "every node that had drifted"
    assert min(at for at, _, _ in starts) == "08:05:00", "as soon as the window opens"
    end = ""
    for at, old, new in starts:
        assert at >= end, "one at a time"
        (ready,) = instant_of(after, f"{new} InService")
        (replaced,) = instant_of(after, f"node-{old} Replaced")
        (end,) = instant_of(after, f"node-{old} InstanceTerminating")
        assert at < ready <= replaced <= end, "the new node first"
    assert "Leaks       none" in plain


@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_an_unhealthy_node_is_replaced_before_it_leaves_and_waits_for_a_protected_pod(
    seed: str,
) -> None:
    plain = told("--seed", seed).output
    (node,) = re.findall(r"node-(general-\w+) NodeUnhealthy: KernelDeadlock=True", plain)
    (replacement,) = re.findall(rf"(general-\w+) NeededAsReplacement: .*{node}", plain)
    in_this_order(
        plain,
        "the node is unhealthy",
        f"node-{node} NodeUnhealthy",
        f"node-{node} Replacing",
        f"{replacement} Launched",
        f"node-{node} Replaced: replacement NodeClaim {replacement} is initialized",
        "Evicted",
        "DoNotDisruptGracePeriodElapsed",
        f"node-{node} InstanceTerminating",
        f"{node} Releasing",
    )
    begins = plain.index(f"node-{node} Replaced")
    assert "Evicted" not in plain[:begins], "no pod leaves before the replacement is there"
    (report,) = re.findall(r"(report-\S+) DoNotDisrupt: .* until (\S+?)[;\n]", plain)
    assert f"{report[1]}  {report[0]} Evicted" in plain, "at the very end of its protection"


def test_it_takes_about_twenty_seconds(as_json: list[dict[str, Any]]) -> None:
    assert 15 < as_json[-1]["summary"]["elapsedSeconds"] / DEFAULT_SPEED < 25


def test_the_summary_says_why_each_node_terminated_and_what_blocked_it(plain: str) -> None:
    summary = " ".join(plain.partition("What Tenure did")[2].split())
    assert re.search(
        r"disrupted for the reason Unhealthy, after 1 replacement \(\S+\) was initialized", summary
    )
    assert "1 pod protected by karpenter.sh/do-not-disrupt" in summary
    drifted = (
        r"3 nodes \(\S+, \S+, \S+\): disrupted for the reason Drifted, each after 3 replacements"
    )
    assert re.search(drifted, summary), "what is true of three is said once"
    assert "pods had to wait for a PDB" in summary
    assert "Leaks none" in summary


def test_plain_lines_fit_no_terminal_codes_in(plain: str) -> None:
    assert "\x1b" not in plain


def test_json_is_one_event_per_line_and_then_the_summary(as_json: list[dict[str, Any]]) -> None:
    *events, last = as_json
    assert all({"at", "source", "subject", "reason"} <= set(event) for event in events)
    assert [event["at"][:19] for event in events] == sorted(event["at"][:19] for event in events)
    assert {event["type"] for event in events} == {"event"}
    assert (list(last), last["type"]) == (["type", "summary"], "result")
    assert not [name for name in last["summary"] if "_" in name], "camel case, as in Kubernetes"


def test_the_summary_agrees_with_the_events(as_json: list[dict[str, Any]]) -> None:
    *events, last = as_json
    launched = [e for e in events if (e["action"], e["outcome"]) == ("Launch", "ok")]
    left = {e["subject"].partition("/")[2] for e in events if e["reason"] == "Releasing"}
    summary = last["summary"]
    assert sum(summary["launched"].values()) == len(launched) > 0
    names = {departure["name"] for departure in summary["departures"]}
    assert names <= left
    assert len(names) == 4
    assert summary["instancesRunning"] == len(launched) - len(names)
    assert summary["instancesLeaked"] == summary["promisesBroken"] == 0


def test_the_same_seed_tells_the_same_story_and_another_seed_another(plain: str) -> None:
    assert told("--seed", "0").output == plain
    other = told("--seed", "1").output
    assert other != plain
    assert "Leaks       none" in other


@pytest.mark.parametrize("form", ["--plain", "--json"])
def test_a_reader_who_has_seen_enough_is_no_error(form: str) -> None:
    with subprocess.Popen(  # noqa: S603  # our own program
        [TENURE, "demo", form], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
