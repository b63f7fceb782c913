"""The figures of ``make kills``."""

from __future__ import annotations

from testbed.kills import kind, lines, read

OUTPUT = """
frozen-2: Karpenter made 29 writes, and was killed after 1 (PATCH /apis/karpenter.sh/v1/nodepools/a/status), 5 (PATCH /api/v1/nodes/n)
.
frozen-2: Karpenter made 31 writes, and was killed after 5 (POST /apis/karpenter.sh/v1/nodeclaims)
.
"""


def test_each_story_has_its_writes_and_those_that_karpenter_did_not_survive() -> None:
    assert lines(read(OUTPUT)) == [
        "kills: frozen-2: 2 runs, 29 to 31 writes, 3 kills after 2 different writes",
        "kills: 1 after PATCH nodepools/status",
        "kills: 1 after PATCH nodes",
        "kills: 1 after POST nodeclaims",
    ]


def test_a_kind_of_write_has_no_names() -> None:
    assert kind("/api/v1/namespaces/web/pods/web-1/eviction") == "pods/eviction"
    assert kind("/api/v1/nodes/n/status") == "nodes/status"
    assert kind("/api/v1/namespaces") == "namespaces"
    assert kind("/apis/karpenter.sh/v1/nodeclaims/web-1") == "nodeclaims"
