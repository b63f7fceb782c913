"""A ``tenure up`` of 500 nodes: the dump of a cluster, with its nodes many times over."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.sim.copied.clusters import KARPENTER, a_pool
from tests.up.running import Up

COUNT: Final = 500
_NODE, _CLAIM, _POOL = "Node", "NodeClaim", "NodePool"
_SETTING: Final = ("NodePool", "KWOKNodeClass", "PriorityClass", "DaemonSet")


@contextmanager
def many_nodes(folder: Path, *more: str) -> Iterator[tuple[Up, str]]:
    """It, and the address of its page."""
    folder.mkdir(exist_ok=True)
    file = folder / "cluster.jsonl"
    file.write_text("\n".join(map(json.dumps, _objects())), encoding="utf-8")
    up = Up(folder, "--from", str(file), *more)
    try:
        up.until_shown("The same in a browser: ")
        found = re.search(r"in a browser: (\S+)", up.screen)
        assert found is not None
        yield up, f"{found[1]}/"
    finally:
        up.end(signal.SIGINT)


def _objects() -> Iterator[dict[str, Any]]:
    known = [json.loads(line) for line in KARPENTER.read_bytes().splitlines()]
    for one in known:
        if one["kind"] == _POOL:
            one["spec"]["disruption"].update(a_pool()["spec"]["disruption"])
        if one["kind"] in _SETTING:
            yield one
    nodes = {one["metadata"]["name"]: one for one in known if one["kind"] == _NODE}
    claims = {one["status"]["nodeName"]: one for one in known if one["kind"] == _CLAIM}
    pairs = [(node, claims[name]) for name, node in sorted(nodes.items())]
    for number in range(COUNT):
        yield from _again(*pairs[number % len(pairs)], number)


def _again(node: dict[str, Any], claim: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """Both under names and UIDs of their own."""
    text = json.dumps([claim, node])
    names = {
        node["metadata"]["name"]: f"kwok-{number:03}",
        claim["metadata"]["name"]: f"general-{number:03}",
        claim["metadata"]["uid"]: f"00000000-0000-4000-8000-{number:012}",
        node["metadata"]["uid"]: f"00000000-0000-4000-9000-{number:012}",
    }
    for name, other in names.items():
        text = text.replace(name, other)
    yield from json.loads(text)
