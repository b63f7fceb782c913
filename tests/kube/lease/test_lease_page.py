"""What docs/leader-election.md says that a replica says is what it says."""

from __future__ import annotations

import asyncio
import re

from tests.folders import ROOT
from tests.kube.karpenter import NAME
from tests.kube.leasereplicas import LeaseSetup, told
from tests.kube.transports import a_list

PAGE = ROOT / "docs" / "leader-election.md"


def documented() -> list[re.Pattern[str]]:
    """How the sentences begin, by the table: ``…`` stands for what differs."""
    _, _, table = PAGE.read_text().partition("| the sentence begins with |")
    rows = re.findall(r"^\| `(.*?)` \|", table, re.M)
    return [re.compile(".*".join(map(re.escape, row.split("…")))) for row in rows]


def sentences() -> list[str]:
    """Of a cluster in which everything happens."""
    said: list[str] = []

    async def story(setup: LeaseSetup) -> None:
        stuck = [""]
        a = setup.replica("a", stuck=lambda: stuck[0])
        await asyncio.sleep(60)
        b = setup.replica("b")
        await asyncio.sleep(10)
        b.die()
        a.way.down = True
        await asyncio.sleep(20)
        a.way.down = False
        await asyncio.sleep(10)
        stuck[0] = "the control loop makes no progress: a turn is overdue by 31 s"
        await asyncio.sleep(10)
        stuck[0] = ""
        await asyncio.sleep(30)
        beside = setup.replica("c", beside=True)
        await asyncio.sleep(10)
        beside.die()
        karpenter = await setup.karpenter()
        await asyncio.sleep(10)
        await karpenter.give_back()
        await asyncio.sleep(10)
        unreadable = {"metadata": {"name": NAME, "namespace": "a"}, "spec": {"renewTime": "?"}}
        a.way.instead["GET"] = a_list(unreadable)
        await asyncio.sleep(10)
        said.extend(a.said + b.said + beside.said)

    told(story, fresh=True)
    return said


def test_every_sentence_is_on_the_page_and_every_one_of_the_page_is_said() -> None:
    patterns, said = documented(), sentences()
    assert len(patterns) == 10
    for sentence in said:
        assert any(pattern.match(sentence) for pattern in patterns), sentence
    for pattern in patterns:
        assert any(map(pattern.match, said)), pattern.pattern
