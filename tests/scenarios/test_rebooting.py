"""A node is rebooted in place, told in virtual time; it begins where a repair commits to it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
import pytest

from tenure.errors import InstanceGone, ProviderError, RebootNotSupported
from tenure.model.api.meta import format_time
from tenure.model.api.names import (
    DO_NOT_DISRUPT,
    DO_NOT_REPAIR,
    INITIALIZED,
    REBOOT_GRACE_PERIOD,
    REBOOT_HISTORY,
    REBOOT_PRE_BOOT_ID,
    REBOOTING_TAINT,
)
from tenure.model.api.resource import EVENTS, NODE_CLAIMS, NODES, PODS, Resource
from tenure.model.settings import Settings
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.cloud.cloud import CloudEvent
from tests.builders import (
    MINUTE,
    SECOND,
    Manifest,
    a_deployment,
    a_node_class,
    a_pdb,
    a_pool,
    a_requirement,
)
from tests.runtime.worlds import Tapped

#: Capacity for every pod on one node, with some to spare.
BIG = a_requirement("node.kubernetes.io/instance-type", "m7i.2xlarge")


BROKEN_CONDITION = "KWOKRebootRequired"


class Rebooted(Tapped):
    """Three pods that may go and one that may not, all on one node."""

    def __init__(self, *more: Manifest, **pool: Any) -> None:
        held = a_deployment("held", annotations={DO_NOT_DISRUPT: "true"})
        super().__init__(
            a_node_class(),
            a_pool(requirements=[BIG], **pool),
            a_deployment(replicas=3),
            held,
            *more,
        )

    def settle(self) -> None:
        self.run(3 * MINUTE)
        assert self.running() == 4
        assert len(self.all(NODES)) == 1
        self.first_claim, self.first_node = self.the(NODE_CLAIMS), self.the(NODES)

    def commit(self, bound: str | None = "1m0s") -> None:
        """As a repair does it: history and bound, then the condition. A reboot is the cure."""
        make_unhealthy(self)
        self.cloud.listen(self._cured)
        name, at = self.the(NODE_CLAIMS)["metadata"]["name"], format_time(self.now)
        notes = {REBOOT_HISTORY: at, REBOOT_GRACE_PERIOD: bound}
        self.store.patch(NODE_CLAIMS, "", name, {"metadata": {"annotations": notes}})
        told = [
            ("Rebooting", "RebootRequested", "KWOKRebootRequired=True"),
            ("DisruptionReason", "Unhealthy", ""),
        ]
        conditions = [
            *self.the(NODE_CLAIMS)["status"]["conditions"],
            *(
                {
                    "type": type_,
                    "status": "True",
                    "reason": reason,
                    "message": message,
                    "lastTransitionTime": at,
                }
                for type_, reason, message in told
            ),
        ]
        body = {"status": {"conditions": conditions}}
        self.store.patch(NODE_CLAIMS, "", name, body, subresource="status")

    def _cured(self, event: CloudEvent, _: object) -> None:
        if event is CloudEvent.REBOOTING:
            recover(self)

    @property
    def claim(self) -> Obj:
        return self.the(NODE_CLAIMS)

    @property
    def node(self) -> Obj:
        return self.the(NODES)

    def says(self, type_: str) -> tuple[str, str]:
        found = {c["type"]: c for c in self.claim["status"]["conditions"]}
        one = found.get(type_, {"status": "", "reason": ""})
        return one["status"], one["reason"]

    def uids(self, app: str) -> set[str]:
        return {pod["metadata"]["uid"] for pod in self.all(PODS, app=app)}

    def events(self) -> set[str]:
        return {event["reason"] for event in self.all(EVENTS)}

    @property
    def boot(self) -> str:
        boot: str = self.node["status"]["nodeInfo"]["bootID"]
        return boot

    def counted(self, name: str, **labels: str) -> float:
        value = self.controller.metrics.registry.get_sample_value(f"karpenter_nodes_{name}", labels)
        return value or 0.0

    def until(self, type_: str, status: str, at_most: timedelta = 30 * MINUTE) -> None:
        self.run_while(lambda: self.says(type_)[0] != status, at_most=at_most, step=SECOND)
        assert self.says(type_)[0] == status


def make_unhealthy(story: Rebooted) -> None:
    name = story.node["metadata"]["name"]
    story.kubelets.set_condition(name, BROKEN_CONDITION, "True", "Leak", "memory leaks")


def recover(story: Rebooted) -> None:
    story.kubelets.set_condition(
        story.node["metadata"]["name"], BROKEN_CONDITION, "False", "NoLeak"
    )


def ends_well(story: Rebooted) -> None:
    """The same claim, the same Node, another boot, and no other node was needed."""
    assert len(story.all(NODE_CLAIMS)) == len(story.all(NODES)) == 1
    assert story.claim["metadata"]["uid"] == story.first_claim["metadata"]["uid"]
    assert story.node["metadata"]["uid"] == story.first_node["metadata"]["uid"]
    assert story.boot.endswith("-boot-2"), "once, and no more"
    assert story.cloud.launch_count == 1
    assert story.says("Rebooting") == ("False", "RebootSucceeded")
    assert story.says("Initialized")[0] == "True"
    assert story.says("RebootIssued") == story.says("DisruptionReason") == ("", "")
    assert story.node["metadata"]["labels"][INITIALIZED] == "true"
    assert not story.node["spec"].get("taints")
    assert REBOOT_PRE_BOOT_ID not in story.claim["metadata"]["annotations"]
    assert story.running() == 4
    story.checkers.assert_kept()


def test_pods_that_may_go_go_and_the_others_are_taken_along() -> None:
    with Rebooted() as story:
        story.settle()
        web, held = story.uids("web"), story.uids("held")
        story.commit()
        story.until("RebootIssued", "True")
        assert not web & story.uids("web"), "evicted"
        assert story.uids("held") == held, "protected until the bound, and left then"
        assert story.says("Initialized") == ("Unknown", "Rebooting")
        story.run(MINUTE / 2)
        assert INITIALIZED not in story.node["metadata"]["labels"]
        assert story.running("web") == 0, "there is no room for them but here"
        story.until("Rebooting", "False")
        story.run(MINUTE)
        ends_well(story)
        assert story.uids("held") == held
        assert "RebootObserved" in story.events()
        assert "RebootFailed" not in story.events()
        claim = story.claim["metadata"]["name"]
        told = story.reasons(f"NodeClaim/{claim}")
        assert story.counted("reboots_total", result="succeeded") == 1
        assert 120 <= story.counted("reboot_duration_seconds_sum", result="succeeded") <= 130
        assert 60 <= story.counted("reboot_recovery_duration_seconds_sum") <= 70
        order = ["RebootRequested", "RebootIssued", "RebootObserved", "RebootSucceeded"]
        assert [reason for reason in dict.fromkeys(told) if reason in order] == order


def test_the_drain_lasts_no_longer_than_its_bound_and_the_reboot_comes_then() -> None:
    with Rebooted() as story:
        story.settle()
        story.commit("2m")
        at = story.seconds
        story.until("RebootIssued", "True")
        (asked_at,) = story.cloud_tap.times("reboot")
        assert 120 <= asked_at - at <= 122


def test_a_bound_of_nothing_takes_every_pod_along() -> None:
    with Rebooted() as story:
        story.settle()
        web = story.uids("web")
        story.commit("0s")
        story.until("Rebooting", "False")
        story.run(MINUTE)
        assert story.uids("web") == web
        ends_well(story)


def test_without_a_bound_it_waits_for_a_protected_pod_and_says_who() -> None:
    with Rebooted() as story:
        story.settle()
        story.commit(None)
        story.run(60 * MINUTE)
        assert story.boot.endswith("-boot-1")
        claim = story.claim["metadata"]["name"]
        verdict = story.controller.evaluator.about("NodeClaim", claim)[0]
        assert verdict.reason == "RebootRequested"
        assert any("held" in blocker.subject.name for blocker in verdict.blockers)


def test_budgets_are_respected_until_the_bound() -> None:
    with Rebooted(a_pdb("web", minAvailable=3)) as story:
        story.settle()
        web = story.uids("web")
        story.commit()
        story.until("Rebooting", "False")
        story.run(MINUTE)
        assert story.uids("web") == web
        ends_well(story)


def test_no_new_pod_comes_while_it_reboots_and_no_new_node_does() -> None:
    with Rebooted() as story:
        story.settle()
        story.commit()
        story.run(10 * SECOND)
        assert REBOOTING_TAINT in {taint["key"] for taint in story.node["spec"]["taints"]}
        story.apply(a_deployment("late", replicas=1))
        story.until("Rebooting", "False")
        assert story.running("late") == 0 or story.boot.endswith("-boot-2")
        story.run(2 * MINUTE)
        assert story.running("late") == 1
        assert story.cloud.launch_count == 1


def test_nothing_is_launched_for_the_pods_of_a_node_that_is_full_while_it_reboots() -> None:
    """An evicted pod is still there when the pod that replaces it is scheduled."""
    small = a_requirement("node.kubernetes.io/instance-type", "m7i.large")
    with Tapped(a_node_class(), a_pool(requirements=[small]), a_deployment(replicas=2)) as story:
        story.run(3 * MINUTE)
        node = story.the(NODES)["metadata"]["name"]
        story.kubelets.set_condition(node, BROKEN_CONDITION, "True", "Leak")
        story.run(MINUTE)
        assert story.running() == 0
        story.kubelets.set_condition(node, BROKEN_CONDITION, "False", "NoLeak")
        story.run(5 * MINUTE)
        assert story.running() == 2
        assert story.the(NODES)["status"]["nodeInfo"]["bootID"].endswith("-boot-2")
        assert story.cloud.launch_count == 1


# -- how it is called off ----------------------------------------------------------------


def veto(story: Rebooted, resource: Resource = NODES, value: str | None = "true") -> None:
    (thing,) = story.all(resource)
    body = {"metadata": {"annotations": {DO_NOT_REPAIR: value}}}
    story.store.patch(resource, "", thing["metadata"]["name"], body)


def switch_off(story: Rebooted) -> None:
    off = Settings(node_repair=False)
    story.options = msgspec.structs.replace(story.options, settings=off)
    story.crash()


@pytest.mark.parametrize(
    "why",
    [
        pytest.param(veto, id="the Node is vetoed"),
        pytest.param(partial(veto, resource=NODE_CLAIMS), id="the claim is vetoed"),
        pytest.param(switch_off, id="repair is switched off"),
    ],
)
def test_a_reboot_that_the_cloud_was_not_asked_for_yet_is_called_off(
    why: Callable[[Rebooted], None],
) -> None:
    """A pod that must not be disturbed holds the drain, which nothing bounds."""
    with Rebooted() as story:
        story.settle()
        story.commit(None)
        story.run(MINUTE)
        assert story.node["spec"]["taints"], "it waits for its drain"
        why(story)
        story.run(MINUTE)
        called_off(story)
        assert "RebootCancelled" in story.events()
        assert story.counted("reboots_total", result="cancelled") == 1
        (held,) = story.all(PODS, app="held")
        story.store.delete(PODS, "default", held["metadata"]["name"])
        story.run(60 * MINUTE)
        called_off(story)


@pytest.mark.parametrize("when", ["before its drain", "in its drain", "while the cloud is asked"])
def test_a_reboot_that_is_committed_is_carried_out_although_the_condition_clears(
    when: str,
) -> None:
    with Rebooted() as story:
        story.settle()
        story.commit()
        if when == "in its drain":
            story.run(20 * SECOND)
        elif when == "while the cloud is asked":
            unanswered(story)
        recover(story)
        story.cloud_tap.spoil = lambda *_: None
        story.until("Rebooting", "False")
        story.run(MINUTE)
        ends_well(story)
        assert "RebootCancelled" not in story.events()


def unanswered(story: Rebooted) -> None:
    """The cloud is asked, and does not answer."""
    throttled = ProviderError("throttled")
    story.cloud_tap.spoil = lambda verb, _: throttled if verb == "reboot" else None
    story.until("RebootIssued", "Unknown")


# -- the claim is deleted ----------------------------------------------------------------

STEPS: dict[str, Callable[[Rebooted], object]] = {
    "as it is committed": lambda _: None,
    "in its drain": lambda story: story.run(20 * SECOND),
    "while the cloud is asked": unanswered,
    "once the cloud has accepted": lambda story: story.until("RebootIssued", "True"),
    "while the node is away": lambda story: story.run_while(
        lambda: story.count("nodes", "not-ready") == 0, at_most=5 * MINUTE, step=SECOND
    ),
    "once it is back": lambda story: story.run_while(
        lambda: story.boot.endswith("-boot-1"), at_most=5 * MINUTE, step=SECOND
    ),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("what", [NODE_CLAIMS, NODES], ids=["claim", "Node"])
def test_a_deletion_ends_the_reboot_at_every_step(step: str, what: Resource) -> None:
    """The protected pod holds the leaving node: the bound of the reboot is none for its end."""
    with Rebooted() as story:
        story.settle()
        held = story.uids("held")
        story.commit()
        STEPS[step](story)
        story.store.delete(
            what, "", (story.claim if what is NODE_CLAIMS else story.node)["metadata"]["name"]
        )
        asked = len(story.cloud_tap.of("reboot"))
        story.run(10 * SECOND)
        old = story.store.get(NODE_CLAIMS, "", story.first_claim["metadata"]["name"])
        said = {c["type"]: (c["status"], c["reason"]) for c in old["status"]["conditions"]}
        assert said["Rebooting"] in {("False", "RebootCancelled"), ("False", "RebootSucceeded")}
        assert "RebootIssued" not in said
        assert not {REBOOT_PRE_BOOT_ID, REBOOT_GRACE_PERIOD} & old["metadata"]["annotations"].keys()
        story.run(60 * MINUTE)
        node = story.store.get(NODES, "", story.first_node["metadata"]["name"])
        assert REBOOTING_TAINT not in {taint["key"] for taint in node["spec"]["taints"]}
        assert held <= story.uids("held"), "no pod was force deleted"
        assert len(story.cloud_tap.of("reboot")) == asked
        story.checkers.assert_kept()


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("where", [NODES, NODE_CLAIMS], ids=["Node", "claim"])
def test_a_veto_calls_a_reboot_off_until_the_cloud_is_asked(step: str, where: Resource) -> None:
    with Rebooted() as story:
        story.settle()
        story.commit()
        STEPS[step](story)
        early = story.says("Rebooting")[0] == "True" and story.says("RebootIssued")[0] == ""
        veto(story, where)
        story.cloud_tap.spoil = lambda *_: None
        story.until("Rebooting", "False")
        story.run(3 * MINUTE)
        if early:
            called_off(story)
        else:
            ends_well(story)


@pytest.mark.parametrize("fatal", range(1, 15))
def test_a_crash_after_any_call_of_a_reboot_whose_claim_is_deleted_heals(fatal: int) -> None:
    with closing(Crashing(fatal, dies=True)) as story:
        story.commit()
        story.play(MINUTE / 3)
        story.delete_claim()
        story.play(2 * MINUTE)
        old = story.store.get(NODE_CLAIMS, "", story.first_claim["metadata"]["name"])
        said = {c["type"]: (c["status"], c["reason"]) for c in old["status"]["conditions"]}
        assert said["Rebooting"] == ("False", "RebootCancelled")
        assert not {REBOOT_PRE_BOOT_ID, REBOOT_GRACE_PERIOD} & old["metadata"]["annotations"].keys()
        assert story.cloud_tap.of("reboot") == []


# -- what another has begun --------------------------------------------------------------


def begun_by_karpenter(story: Rebooted, reason: str, **notes: str) -> None:
    """As Karpenter writes it: no history, and no condition of ours."""
    name, at = story.claim["metadata"]["name"], format_time(story.now)
    body = {"metadata": {"annotations": {REBOOT_GRACE_PERIOD: "1m0s", **notes}}}
    story.store.patch(NODE_CLAIMS, "", name, body)
    told = {
        "Rebooting": ("True", reason),
        "DisruptionReason": ("True", "Unhealthy"),
        **({"Initialized": ("Unknown", "Rebooting")} if reason == "RebootIssued" else {}),
    }
    kept = [c for c in story.claim["status"]["conditions"] if c["type"] not in told]
    conditions = [
        *kept,
        *(
            {
                "type": type_,
                "status": status,
                "reason": why,
                "message": "",
                "lastTransitionTime": at,
            }
            for type_, (status, why) in told.items()
        ),
    ]
    told_body = {"status": {"conditions": conditions}}
    story.store.patch(NODE_CLAIMS, "", name, told_body, subresource="status")


def test_a_reboot_that_karpenter_has_issued_is_watched_until_the_node_is_back() -> None:
    with Rebooted() as story:
        story.settle()
        make_unhealthy(story)
        story.cloud.listen(story._cured)
        before = {REBOOT_PRE_BOOT_ID: story.boot}
        name = story.node["metadata"]["name"]
        begun_by_karpenter(story, "RebootIssued", **before)
        story.run(20 * SECOND)
        assert story.cloud_tap.of("reboot") == [], "it has been asked for"
        story.kubelets.reboot(name, MINUTE)
        recover(story)
        story.until("Rebooting", "False")
        story.run(2 * MINUTE)
        ends_well(story)


def test_a_reboot_that_karpenter_has_requested_is_carried_out() -> None:
    with Rebooted() as story:
        story.settle()
        make_unhealthy(story)
        story.cloud.listen(story._cured)
        begun_by_karpenter(story, "RebootRequested")
        story.until("Rebooting", "False")
        story.run(2 * MINUTE)
        ends_well(story)
        assert len(story.cloud_tap.of("reboot")) == 1


def called_off(story: Rebooted) -> None:
    assert story.says("Rebooting") == ("False", "RebootCancelled")
    assert story.says("RebootIssued") == story.says("DisruptionReason") == ("", "")
    assert story.says("Initialized")[0] == "True"
    assert not story.node["spec"].get("taints"), "it takes pods again"
    assert story.claim["metadata"]["annotations"][REBOOT_HISTORY].endswith("Z cancelled")
    assert story.claim["metadata"]["uid"] == story.first_claim["metadata"]["uid"]
    assert story.boot.endswith("-boot-1")
    assert story.cloud_tap.of("reboot") == []
    assert story.cloud.launch_count == 1
    assert story.running() == 4
    story.checkers.assert_kept()


def test_a_reboot_that_was_called_off_does_not_count_against_two_in_a_day() -> None:
    with Rebooted() as story:
        story.settle()
        story.commit(None)
        story.run(MINUTE)
        veto(story)
        story.run(MINUTE)
        called_off(story)
        veto(story, value=None)
        story.until("RebootIssued", "True")
        story.until("Rebooting", "False")
        story.run(MINUTE)
        ends_well(story)
        history = story.claim["metadata"]["annotations"][REBOOT_HISTORY]
        assert len(history.split(",")) == 1
        assert "cancelled" not in history


# -- how it fails ------------------------------------------------------------------------


@pytest.mark.parametrize("error", [RebootNotSupported, InstanceGone])
def test_a_cloud_that_will_not_reboot_it_has_it_replaced_at_once(error: type[Exception]) -> None:
    with Rebooted() as story:
        story.settle()
        story.cloud_tap.spoil = lambda verb, _: error("not here") if verb == "reboot" else None
        story.commit()
        story.until("Rebooting", "False")
        assert story.says("Rebooting") == ("False", "RebootFailed")
        assert story.says("RebootIssued") == ("False", "ProviderError")
        failed_at = story.seconds
        story.run(10 * MINUTE)
        replaced(story)
        assert len(story.cloud_tap.of("reboot")) == 1, "it is final"
        assert story.counted("reboots_total", result="provider_error") == 1
        ended_at = story.cloud_tap.times("terminate")[0]
        assert ended_at - failed_at < 65, "its drain had the reboot's bound, too"


def test_a_cloud_that_does_not_answer_is_asked_again_and_given_up_after_five_minutes() -> None:
    with Rebooted() as story:
        story.settle()
        failing = ProviderError("throttled")
        story.cloud_tap.spoil = lambda verb, _: failing if verb == "reboot" else None
        story.commit("0s")
        story.until("RebootIssued", "Unknown")
        began = story.now
        story.until("Rebooting", "False")
        # With the first try that fails after that.
        assert 5 * MINUTE <= story.now - began <= 6 * MINUTE
        assert len(story.cloud_tap.of("reboot")) > 3
        story.run(10 * MINUTE)
        replaced(story)


def test_a_node_that_does_not_come_back_is_replaced_after_twenty_minutes() -> None:
    with Rebooted() as story:
        story.settle()
        story.commit("0s")
        story.until("RebootIssued", "True")
        issued = story.now
        name = story.node["metadata"]["name"]
        story.at(story.elapsed + 30 * SECOND, lambda: story.kubelets.halt(name))
        story.until("Rebooting", "False")
        assert abs(story.now - issued - 20 * MINUTE) <= 2 * SECOND
        assert story.says("RebootIssued") == ("False", "RecoveryTimeout")
        story.run(10 * MINUTE)
        replaced(story)
        assert story.counted("reboots_total", result="recovery_timeout") == 1


def replaced(story: Rebooted) -> None:
    assert "RebootFailed" in story.events()
    assert len(story.all(NODE_CLAIMS)) == 1
    assert story.claim["metadata"]["uid"] != story.first_claim["metadata"]["uid"]
    assert story.running() == 4
    assert story.cloud.launch_count == 2
    story.checkers.assert_kept()


def test_a_bound_that_means_nothing_keeps_node_and_claim_as_they_are() -> None:
    with Rebooted() as story:
        story.settle()
        story.commit("-5m")
        story.run(20 * SECOND)
        assert story.says("Rebooting") == ("False", "RebootFailed")
        assert story.claim["metadata"]["uid"] == story.first_claim["metadata"]["uid"]
        assert "RebootFailed" in story.events()
        assert story.cloud_tap.of("reboot") == []
        assert story.running() == 4
        assert story.counted("reboots_total", result="invalid_request") == 1


def test_a_claim_that_is_deleted_meanwhile_goes_the_ordinary_way() -> None:
    with Rebooted(template={"terminationGracePeriod": "5m"}) as story:
        story.settle()
        story.commit("30m")
        story.run(20 * SECOND)
        story.delete_claim()
        story.run(15 * MINUTE)
        assert story.cloud_tap.of("reboot") == []
        assert story.claim["metadata"]["uid"] != story.first_claim["metadata"]["uid"]
        assert story.running() == 4


def fails_under_a_veto(story: Rebooted) -> None:
    """It comes while the cloud is being asked, which does not answer."""
    story.settle()
    throttled = ProviderError("throttled")
    story.cloud_tap.spoil = lambda verb, _: throttled if verb == "reboot" else None
    story.commit("0s")
    story.until("RebootIssued", "Unknown")
    veto(story)
    story.run(60 * MINUTE)
    assert story.says("Rebooting") == ("False", "RebootFailed")
    assert story.says("RebootIssued") == ("False", "Spared")
    assert story.says("DisruptionReason") == ("", "")
    assert not story.node["spec"].get("taints"), "it takes pods again"
    assert story.claim["metadata"]["uid"] == story.first_claim["metadata"]["uid"]
    assert story.counted("reboots_total", result="provider_error") == 1
    assert story.running() == 4


def test_a_node_whose_reboot_fails_under_a_veto_is_replaced_when_that_ends() -> None:
    with Rebooted() as story:
        fails_under_a_veto(story)
        asked = len(story.cloud_tap.of("reboot"))
        veto(story, value=None)
        story.run(15 * MINUTE)
        replaced(story)
        assert len(story.cloud_tap.of("reboot")) == asked, "it is not tried again"


def test_a_node_that_is_well_again_when_the_veto_ends_stays_and_may_be_rebooted_later() -> None:
    with Rebooted() as story:
        fails_under_a_veto(story)
        recover(story)
        veto(story, value=None)
        story.run(60 * MINUTE)
        assert story.claim["metadata"]["uid"] == story.first_claim["metadata"]["uid"]
        assert story.says("RebootIssued") == ("", "")
        story.cloud_tap.spoil = lambda *_: None
        make_unhealthy(story)
        story.until("Rebooting", "True")


# -- clocks of new nodes -----------------------------------------------------------------


def test_a_reboot_does_not_start_the_clocks_of_a_new_node_again() -> None:
    """It has been initialized once: neither TTL counts any more, however long it takes."""
    ttls = {"readinessTTL": "5m", "initializationTTL": "5m"}
    with Rebooted(template=ttls) as story:
        story.settle()
        story.run(10 * MINUTE)
        story.commit("0s")
        story.until("RebootIssued", "True")
        assert story.says("ReadyOnce") == ("True", "Initialized")
        name = story.node["metadata"]["name"]
        story.kubelets.silence(name)
        story.run(15 * MINUTE)
        story.kubelets.resume(name)
        story.run(2 * MINUTE)
        ends_well(story)


# -- crashes -----------------------------------------------------------------------------

#: How many calls the story is expected to have from the commitment on.
CALLS = 18


class Crashing(Rebooted):
    """Tenure dies after that call, or its answer is lost; from the commitment on."""

    def __init__(self, fatal: int, *, dies: bool) -> None:
        super().__init__()
        self.settle()
        self.count_of_calls = 0
        self._fatal, self._dies, self._happened = fatal, dies, False
        for tap in (self.api_tap, self.cloud_tap):
            tap.spoil = self._counted
            tap.lose = self._lost

    def _counted(self, verb: str, what: str) -> None:
        self.count_of_calls += self._counts(verb, what)

    def _lost(self, verb: str, what: str) -> bool:
        if not self._counts(verb, what) or self.count_of_calls != self._fatal or self._happened:
            return False
        self._happened = True
        if self._dies:
            self.api_tap.freeze()
            self.cloud_tap.freeze()
        return not self._dies

    def _counts(self, verb: str, what: str) -> bool:
        return (
            verb not in ("GET", "WATCH", "types", "list", "get", "drift", "image")
            and "/events" not in what
        )

    def play(self, for_: timedelta) -> None:
        end = self.now + for_
        while self.now < end:
            self.run(SECOND)
            if self.api_tap.frozen:
                self.crash()
                self.api_tap.thaw()
                self.cloud_tap.thaw()


def test_the_story_has_as_many_calls_as_are_tried() -> None:
    with closing(Crashing(0, dies=True)) as story:
        story.commit()
        story.play(8 * MINUTE)
        ends_well(story)
        assert 12 < story.count_of_calls <= CALLS


@pytest.mark.parametrize("dies", [True, False], ids=["dies", "loses the answer"])
@pytest.mark.parametrize("fatal", range(1, CALLS + 1))
def test_a_crash_after_any_call_heals(fatal: int, dies: bool) -> None:
    with closing(Crashing(fatal, dies=dies)) as story:
        story.commit()
        story.play(8 * MINUTE)
        ends_well(story)


@pytest.mark.parametrize("fatal", range(1, 11))
def test_a_crash_after_any_call_of_a_reboot_that_is_called_off_heals(fatal: int) -> None:
    with closing(Crashing(fatal, dies=True)) as story:
        story.commit(None)
        story.play(MINUTE / 3)
        veto(story)
        story.play(2 * MINUTE)
        called_off(story)


@pytest.mark.parametrize("fatal", range(1, 31, 2))
def test_a_crash_after_any_call_of_a_reboot_that_fails_heals(fatal: int) -> None:
    with closing(Crashing(fatal, dies=True)) as story:
        refused = RebootNotSupported("not here")
        counted = story.cloud_tap.spoil

        def spoil(verb: str, what: str) -> Exception | None:
            counted(verb, what)
            return refused if verb == "reboot" else None

        story.cloud_tap.spoil = spoil
        story.commit()
        story.play(12 * MINUTE)
        replaced(story)


# -- from the unhealthy condition on ----------------------------------------------------------


def test_a_condition_that_asks_for_it_has_the_node_rebooted_and_healed() -> None:
    with Rebooted() as story:
        story.settle()
        make_unhealthy(story)
        story.until("Rebooting", "True")
        story.until("RebootIssued", "True")
        recover(story)
        story.until("Rebooting", "False")
        story.run(10 * MINUTE)
        ends_well(story)


def test_what_two_reboots_in_a_day_do_not_heal_is_replaced() -> None:
    with Rebooted() as story:
        story.settle()
        make_unhealthy(story)
        for boot in (2, 3):
            story.until("Rebooting", "True")
            story.until("Rebooting", "False")
            assert story.boot.endswith(f"-boot-{boot}")
            assert story.claim["metadata"]["uid"] == story.first_claim["metadata"]["uid"]
        history = story.claim["metadata"]["annotations"][REBOOT_HISTORY].split(",")
        assert len(history) == 2
        story.run(10 * MINUTE)
        assert story.claim["metadata"]["uid"] != story.first_claim["metadata"]["uid"]
        assert len(story.cloud_tap.of("reboot")) == 2
        assert story.cloud.launch_count == 2
        assert story.running() == 4


@pytest.mark.parametrize("fatal", range(1, 6))
def test_a_crash_between_the_writes_that_commit_to_it_heals_without_a_second_entry(
    fatal: int,
) -> None:
    with closing(Crashing(fatal, dies=True)) as story:

        def heals(event: CloudEvent, _: object) -> None:
            if event is CloudEvent.REBOOTING:
                recover(story)

        story.cloud.listen(heals)
        make_unhealthy(story)
        story.play(10 * MINUTE)
        ends_well(story)
        assert "," not in story.claim["metadata"]["annotations"][REBOOT_HISTORY]
