"""In ``tenure up`` a pod that is not started again succeeds; what was there at the start runs on."""

from __future__ import annotations

import pytest

from tenure.model.api.resource import JOBS, PODS
from tenure.sim.actors.kubelet.completion import RUNS_FOR, Completion
from tenure.sim.scenario.dsl import Story
from tenure.sim.serve.welcome import WELCOME
from tests.builders import MINUTE, a_job, a_pod

LAUNCHED = 2 * MINUTE


def phase(story: Story, name: str) -> str:
    return str(story.store.find(PODS, "default", name)["status"]["phase"])  # type: ignore[index]  # it is there


def served(*there: dict[str, object]) -> Story:
    story = Story(*WELCOME, *there)
    story.kubelets.set_completion(Completion(story.store))
    return story


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_pod_that_is_not_started_again_succeeds(policy: str) -> None:
    with served() as story:
        story.apply(a_pod("hook", restartPolicy=policy))
        story.apply(a_pod("lonely"))
        story.run(LAUNCHED)
        assert phase(story, "lonely") == "Running"
        pod = story.store.find(PODS, "default", "hook")
        assert pod is not None
        assert pod["status"]["phase"] == "Succeeded"
        (container,) = pod["status"]["containerStatuses"]
        ended = container["state"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("Completed", 0)
        assert not container["ready"]


def test_a_job_completes() -> None:
    with served() as story:
        story.apply(a_job("sum"))
        story.run(LAUNCHED)
        (job,) = story.store.list(JOBS)
        assert job["status"]["succeeded"] == 1
        assert [c["type"] for c in job["status"]["conditions"]] == [
            "SuccessCriteriaMet",
            "Complete",
        ]


def test_an_annotation_says_how_long_it_runs_and_how_it_ends() -> None:
    with served() as story:
        for name, seconds, code in (("long", "600", "0"), ("bad", "1", "3")):
            pod = a_pod(name, restartPolicy="Never")
            said = {"sim.tenure.dev/run-seconds": seconds, "sim.tenure.dev/exit-code": code}
            story.apply({**pod, "metadata": {**pod["metadata"], "annotations": said}})
        story.run(LAUNCHED + RUNS_FOR)
        assert (phase(story, "long"), phase(story, "bad")) == ("Running", "Failed")
        bad = story.store.find(PODS, "default", "bad")
        assert bad is not None
        (container,) = bad["status"]["containerStatuses"]
        assert container["state"]["terminated"]["exitCode"] == 3
        assert container["state"]["terminated"]["reason"] == "Error"


def test_what_was_there_at_the_start_runs_on_and_so_do_the_later_pods_of_its_job() -> None:
    with served(a_pod("copied", restartPolicy="Never"), a_job("sum")) as story:
        story.run(LAUNCHED)
        assert phase(story, "copied") == "Running"
        (first,) = (pod for pod in story.store.list(PODS) if pod["metadata"].get("ownerReferences"))
        story.store.delete(PODS, "default", first["metadata"]["name"])
        story.run(LAUNCHED)
        (second,) = (
            pod for pod in story.store.list(PODS) if pod["metadata"].get("ownerReferences")
        )
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        assert second["status"]["phase"] == "Running"
