"""Which verdicts an explanation has, and which of them governs."""

from __future__ import annotations

from datetime import UTC, datetime

from tenure.cli.cluster.embedded import scene_of
from tenure.cli.cluster.question import Question
from tenure.cli.explain.explanation import Explanation, explanation
from tenure.cli.explain.text import as_text
from tenure.core.reasons import Reason
from tenure.core.repair.facts import RepairDueSince
from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, SECOND, a_deployment, a_node_class, a_pod, a_pool

PROTECTED = {"metadata": {"annotations": {DO_NOT_DISRUPT: "true"}}}


def explained(story: Story, question: Question) -> Explanation:
    answer = explanation(question, scene_of(story))
    assert answer is not None
    return answer


def test_a_reboot_governs_and_not_what_protects_the_node_from_other_disruption() -> None:
    pod = a_pod("report")
    pod["metadata"]["annotations"] = {DO_NOT_DISRUPT: "1h"}
    with Story(a_node_class(), a_pool(), pod) as story:
        story.run(3 * MINUTE)
        node = story.the(NODES)["metadata"]["name"]
        story.store.patch(NODES, "", node, PROTECTED)
        story.run(1 * SECOND)
        quiet = explained(story, Question(NODES, node))
        story.kubelets.set_condition(node, "KWOKRebootRequired", "True", "Test")
        story.run(45 * SECOND)
        rebooting = explained(story, Question(NODES, node))
    protection = Reason.PROTECTED_FOR_EVER
    assert [one.reason for one in quiet.verdicts] == [
        protection,
        Reason.IN_SERVICE,
        Reason.UNCONSOLIDATABLE,
    ]
    assert [one.reason for one in rebooting.verdicts] == [Reason.REBOOTING, protection]


def test_a_pending_pod_is_explained_with_the_claim_that_is_launched_for_it() -> None:
    with Story(a_node_class(), a_pool(), a_deployment(replicas=1)) as story:
        story.run(10 * SECOND)
        pod, claim = (story.the(kind)["metadata"]["name"] for kind in (PODS, NODE_CLAIMS))
        answer = explained(story, Question(PODS, pod, "default"))
    assert [one.reason for one in answer.verdicts] == [Reason.NOMINATED]
    assert {str(one.subject) for one in answer.around} == {f"NodeClaim/{claim}"}
    assert f"NodeClaim/{claim} (lifecycle)" in as_text(answer)


def test_a_repair_that_falls_due_later_is_not_due_since_then() -> None:
    pod = a_pod("report")
    pod["metadata"]["annotations"] = {DO_NOT_DISRUPT: "1h"}
    with Story(a_node_class(), a_pool(), pod) as story:
        story.run(3 * MINUTE)
        node = story.the(NODES)["metadata"]["name"]
        story.kubelets.set_condition(node, "KWOKRebootRequired", "True", "Test")
        story.run(45 * SECOND)
        answer = explained(story, Question(NODES, node))
    (drain,) = answer.timetables
    assert drain.repair.unset_at == datetime(2026, 1, 5, 8, 4, 15, tzinfo=UTC)
    assert not any(isinstance(fact, RepairDueSince) for fact in drain.repair.unset)
