"""What a tenant writes into an annotation moves no cursor of who asks why."""

from __future__ import annotations

import unicodedata

import msgspec

from tenure.cli.page import answers
from tenure.cli.page.worldpage import WorldProgram
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, a_cluster, a_deployment

_ESCAPES = "4h \x1b[2J\x1b]52;c;ZXZpbA==\x07 \u202etxet"


def test_an_annotation_moves_no_cursor() -> None:
    workload = a_deployment(replicas=1)
    template = workload["spec"]["template"]["metadata"]
    template["annotations"] = {"karpenter.sh/do-not-disrupt": _ESCAPES}
    with Story(*a_cluster(workload)) as story:
        story.start()
        story.run(5 * MINUTE)
        seen = WorldProgram(story, 1.0).evaluated()
        pod = next(iter(seen.snapshot.pods.values()))
        said = msgspec.json.decode(answers.why(seen, f"Pod/{pod.key}"))
    assert "InvalidDoNotDisruptAnnotation" in said["text"]
    bad = {one for one in said["text"] if one != "\n" and unicodedata.category(one) in ("Cc", "Cf")}
    assert not bad, f"explain prints {sorted(map(ascii, bad))}"
