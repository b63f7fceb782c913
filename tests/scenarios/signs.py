"""What can be seen of a node in a story: whether it leaves, is tainted, is replaced, and what is said."""

from __future__ import annotations

from typing import Any

from tenure.model.api.names import DISRUPTED_TAINT, REPLACED_BY, REPLACES
from tenure.model.api.resource import EVENTS, NODE_CLAIMS, NODES
from tenure.sim.scenario.dsl import Story


def is_leaving(story: Story, claim: str) -> bool:
    found = story.store.find(NODE_CLAIMS, "", claim)
    return found is None or "deletionTimestamp" in found["metadata"]


def is_gone(story: Story, claim: str) -> bool:
    return story.store.find(NODE_CLAIMS, "", claim) is None


def is_tainted(story: Story, node: str) -> bool:
    found = story.store.find(NODES, "", node)
    taints = found["spec"].get("taints", ()) if found is not None else ()
    return any(taint["key"] == DISRUPTED_TAINT for taint in taints)


def replacement_of(story: Story, claim: str) -> Any:
    """The claim that stands in for it; None while there is none."""
    found = story.store.find(NODE_CLAIMS, "", claim)
    assert found is not None
    uid = found["metadata"]["uid"]
    others = story.store.list(NODE_CLAIMS)
    return next((c for c in others if c["metadata"]["annotations"].get(REPLACES) == uid), None)


def says(story: Story, claim: str, type_: str) -> tuple[str, str] | None:
    found = story.store.find(NODE_CLAIMS, "", claim)
    assert found is not None
    told = {
        c["type"]: (c["status"], c["reason"]) for c in found.get("status", {}).get("conditions", ())
    }
    return told.get(type_)


def warned(story: Story, text: str) -> bool:
    return any(text in event["message"] for event in story.store.list(EVENTS))


def blocked(story: Story, claim: str) -> str:
    """What blocks the disruption of the claim now."""
    verdict = story.controller.evaluator.about("NodeClaim", claim)[0]
    assert verdict.reason.startswith("Disruption"), verdict
    return verdict.message


def is_as_before(story: Story, node: str, claim: str) -> None:
    """Nothing is left of a command."""
    assert not is_tainted(story, node)
    assert not is_leaving(story, claim)
    assert says(story, claim, "DisruptionReason") is None
    found = story.store.get(NODE_CLAIMS, "", claim)["metadata"]
    assert REPLACED_BY not in found["annotations"]
