"""Nodes for very many pods are planned over several turns: nothing waits for that, and it ends however pods change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

from tenure.core.decider import InSteps
from tenure.core.decision import Concern, Create, Subject, Verdict
from tenure.core.policy.deciders import AWAIT_CREATIONS, PATIENCE
from tenure.core.provision.decider import ProvisionDecider
from tenure.core.provision.facts import PlannedAnew
from tenure.core.reasons import Reason
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import INSTANCE_TYPE, NOMINATED_PODS
from tenure.model.api.pod import Pod
from tenure.model.api.resource import PODS
from tenure.model.cloud.offering import InstanceType
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.evaluate.verdicts import verdict_id
from tests.builders import SECOND
from tests.core.build import NOW, SETTINGS, a_claim, a_class, a_pending_pod, a_pool, a_type, types
from tests.runtime.evaluate.test_evaluator import OneDecider
from tests.runtime.evaluate.test_suspended import drained, of_drain
from tests.snapshots import RESOURCE_OF, SERVED, governed_tables


class Turns:
    """Turns of which each has time for so many steps of a key that takes long."""

    def __init__(self, *items: ApiObject, steps: int = 3) -> None:
        self.tables, self.now = governed_tables(), NOW
        self._steps, self._asked = steps, 0
        self._changes: list[Change] = []
        self._types, self._observed = types(), list[Subject]()
        self.evaluator = self._fresh()
        for item in (a_class(), *items):
            self.put(item)

    def _fresh(self) -> Evaluator:
        drains = OneDecider(lambda pod, _: drained(pod))
        return Evaluator((ProvisionDecider(), drains), SETTINGS, PATIENCE)

    def put(self, item: ApiObject) -> None:
        self._changes.append(self.tables.put(RESOURCE_OF[type(item)], item))

    def remove(self, name: str) -> None:
        self._changes.append(self.tables.remove(PODS, f"default/{name}"))

    def sell(self, *kinds: InstanceType) -> None:
        """These are all that the cloud lists from now on."""
        self._types = dict.fromkeys(types(), kinds)
        self._observed.append(Subject("NodeClass", "default"))

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(self.tables, Observations(instance_types=self._types), ours=SERVED)

    def turn(self, leave_out: Iterable[Concern] = ()) -> list[Verdict]:
        self.now += SECOND / 10
        changes, self._changes = self._changes, []
        observed, self._observed = self._observed, []
        done = 0

        def enough() -> bool:
            nonlocal done
            done += 1
            return done >= self._steps

        self.evaluator.begin(self.snapshot, changes, observed, self.now, frozenset(leave_out))
        found = self.evaluator.resume(self.snapshot, self.now, enough)
        while self.evaluator.unfinished:
            done = 0
            found += self.evaluator.resume(self.snapshot, self.now, enough)
        return found

    def until_created(self) -> int:
        """How many turns it takes."""
        for number in range(300):
            if self.creating():
                return number
            self.turn()
        raise AssertionError("no claim is created")

    def creating(self) -> set[str]:
        """The names of the pods that claims are created for."""
        return {name for each in _named(self.evaluator.actionable()) for name in each}

    def from_nothing(self) -> list[Verdict]:
        fresh = self._fresh()
        fresh.evaluate(self.snapshot, (), (), self.now)
        return sorted(fresh.in_force(), key=verdict_id)


def _named(found: Iterable[Verdict]) -> Iterator[list[str]]:
    for one in found:
        if isinstance(one.action, Create):
            marks: dict[str, Any] = one.action.body["metadata"]["annotations"]
            yield [uid.removeprefix("uid-") for uid in marks[NOMINATED_PODS].split(",")]


def alone(number: int) -> Pod:
    return a_pending_pod(f"p{number}", requests={"cpu": "3"})


def some(count: int) -> list[Pod]:
    return [alone(number) for number in range(count)]


def test_it_can_be_suspended() -> None:
    assert isinstance(ProvisionDecider(), InSteps)


def test_other_keys_are_evaluated_between_the_steps_of_a_plan() -> None:
    turns = Turns(a_pool(), *some(8))
    turns.turn()
    assert turns.evaluator.goes_on
    turns.put(a_pending_pod("urgent"))
    assert of_drain(turns.turn()) == ["urgent"]
    assert turns.evaluator.goes_on


def test_in_slices_the_verdicts_are_those_of_one_go() -> None:
    turns = Turns(a_pool(), *some(8))
    turns.turn()
    began = turns.now
    while turns.evaluator.goes_on:
        turns.turn()
    turns.now = began
    assert sorted(turns.evaluator.in_force(), key=verdict_id) == turns.from_nothing()
    assert turns.creating() == {f"p{number}" for number in range(8)}


def test_however_often_pods_change_those_that_stay_get_their_nodes() -> None:
    """In each turn a pod goes and another comes: the view of the plan is never up to date."""
    turns = Turns(a_pool(), *some(12))
    created: set[str] = set()
    for number in range(200):
        turns.put(alone(100 + number))
        if number:
            turns.remove(f"p{99 + number}")
        turns.turn()
        created |= turns.creating()
        if turns.creating():
            break
    assert created >= {f"p{number}" for number in range(12)}
    assert not created & {f"p{100 + n}" for n in range(number - 20)}, "for pods that are gone"


def test_what_holds_is_created_over_several_turns_until_the_next_plan_begins() -> None:
    """Only so many calls are under way at a time; while something is created no plan is made."""
    turns = Turns(a_pool(), *some(6))
    turns.turn()
    turns.put(a_pool(annotations={"changed": "yes"}))
    while not turns.creating():
        turns.turn()
    for _ in range(3):
        turns.turn(leave_out=AWAIT_CREATIONS)
        assert turns.creating() == {f"p{number}" for number in range(6)}
    turns.turn()
    assert turns.creating() == set(), "the next plan has begun"


def test_at_rest_all_verdicts_are_of_one_view() -> None:
    turns = Turns(a_pool(), *some(6))
    turns.turn()
    turns.remove("p0")
    turns.put(a_pool(template_meta={"labels": {"team": "red"}}))
    for _ in range(100):
        turns.turn()
    assert not turns.evaluator.goes_on
    assert turns.creating() == {f"p{number}" for number in range(1, 6)}
    labels = {one.action.body["metadata"]["labels"]["team"] for one in _creations(turns)}
    assert labels == {"red"}


def _creations(turns: Turns) -> list[Any]:
    return [one for one in turns.evaluator.actionable() if isinstance(one.action, Create)]


def test_while_something_else_is_created_a_plan_waits_and_is_not_begun_anew() -> None:
    """Replacements may be created all the time: pods would never get their nodes."""
    turns = Turns(a_pool(), *some(8), steps=1)
    taken = 0
    while not turns.creating():
        turns.turn()
        turns.turn(leave_out=AWAIT_CREATIONS)
        taken += 1
    whole = Turns(a_pool(), *some(8), steps=1)
    needed = 0
    while not whole.creating():
        whole.turn()
        needed += 1
    assert taken <= needed + 3


def test_a_pod_whose_claim_does_not_hold_any_more_is_told_so() -> None:
    share = [a_pending_pod(name, requests={"cpu": "1500m"}) for name in ("a", "b")]
    turns = Turns(a_pool(), *share)
    turns.turn()
    turns.remove("b")
    turns.put(a_pool(annotations={"changed": "yes"}))
    reasons = []
    while turns.evaluator.goes_on:
        turns.turn()
        reasons += [v.reason for v in turns.evaluator.about("Pod", "a", "default")]
    assert Reason.BATCHING in reasons
    assert turns.creating() == {"a"}


def test_pods_whose_claim_does_not_hold_are_planned_again_in_the_next_turn() -> None:
    """Changes of pods wait for two seconds, but these pods have been told that they are planned at once."""
    share = [a_pending_pod(name, requests={"cpu": "1500m"}) for name in ("a", "b")]
    turns = Turns(a_pool(), *share, steps=2)
    turns.turn()
    turns.remove("b")
    while turns.evaluator.goes_on:
        turns.turn()
    (said,) = (one for one in turns.evaluator.about("Pod", "a", "default") if one.recheck_at)
    assert said.facts == (PlannedAnew(),)
    next_at = turns.evaluator.next_recheck()
    assert next_at is not None
    assert next_at <= turns.now
    turns.until_created()
    assert turns.creating() == {"a"}


def test_a_pod_that_goes_during_a_short_plan_gets_no_node() -> None:
    """Other changes of pods wait for two seconds; what is created does not wait for these."""
    turns = Turns(a_pool(), *some(8), steps=6)
    turns.turn()
    turns.remove("p0")
    turns.until_created()
    assert turns.now < NOW + 2 * SECOND
    assert turns.creating() == {f"p{number}" for number in range(1, 8)}


def test_in_whatever_step_a_pod_goes_it_gets_no_node() -> None:
    whole = Turns(a_pool(), *some(4), steps=1).until_created()
    for at in range(1, whole):
        turns = Turns(a_pool(), *some(4), steps=1)
        for _ in range(at):
            turns.turn()
        turns.remove("p0")
        turns.until_created()
        assert turns.creating() == {"p1", "p2", "p3"}, at
        assert not turns.evaluator.about("Pod", "p0", "default")


def test_in_whatever_step_another_claim_is_created_the_limits_hold() -> None:
    """A replacement, for which the plan waits until it can be seen."""
    pool = a_pool(limits={"cpu": "8"})
    whole = Turns(pool, *some(2), steps=1).until_created()
    for at in range(1, whole):
        turns = Turns(pool, *some(2), steps=1)
        for _ in range(at):
            turns.turn()
        turns.turn(leave_out=AWAIT_CREATIONS)
        turns.put(a_claim("general-other", status={"capacity": {"cpu": "4"}}))
        turns.until_created()
        assert len(turns.creating()) == 1, at
        (left,) = {"p0", "p1"} - turns.creating()
        said = turns.evaluator.about("Pod", left, "default")
        assert (PlannedAnew(),) in [one.facts for one in said], at


def test_in_whatever_step_the_catalogue_becomes_empty_nothing_is_launched_until_it_is_back() -> (
    None
):
    pool = a_pool()
    whole = Turns(pool, *some(2), steps=1).until_created()
    for at in range(whole):
        turns = Turns(pool, *some(2), steps=1)
        for _ in range(at):
            turns.turn()
        turns.sell()
        for _ in range(2 * whole):
            turns.turn()
            assert not turns.creating(), at
        for name in ("p0", "p1"):
            found = turns.evaluator.about("Pod", name, "default")
            (said,) = (one for one in found if one.concern is Concern.PROVISIONING)
            assert said.reason is Reason.FAILED_SCHEDULING, at
            assert said.message == "NodePool general: the NodePool has no instance types", at
        turns.sell(*some_types())
        turns.until_created()
        assert turns.creating() == {"p0", "p1"}, at


def test_in_whatever_step_a_type_is_sold_no_longer_only_what_is_there_is_launched() -> None:
    """The claims of the plan list it: they are not created, and the next plan is made with what is there."""
    pool, (small, large) = a_pool(), some_types()
    whole = Turns(pool, *some(2), steps=1).until_created()
    for at in range(whole):
        turns = Turns(pool, *some(2), steps=1)
        turns.sell(small, large)
        for _ in range(at):
            turns.turn()
        turns.sell(large)
        turns.until_created()
        assert turns.creating() == {"p0", "p1"}, at
        for one in turns.evaluator.actionable():
            if isinstance(one.action, Create):
                (listed,) = (
                    each["values"]
                    for each in one.action.body["spec"]["requirements"]
                    if each["key"] == INSTANCE_TYPE
                )
                assert listed == [large.name], at


def some_types() -> tuple[InstanceType, ...]:
    return a_type("small"), a_type("large", cpu="8", price=200_000)


def test_pods_that_share_nodes_with_some_that_change_get_their_nodes() -> None:
    """In each turn one of every four pods may go, and another comes: hardly a claim keeps all of its pods."""

    def small(number: int) -> Pod:
        return a_pending_pod(f"p{number}", requests={"cpu": "300m"})

    chance = Random(1)
    stay, change = [f"p{number}" for number in range(45)], list(range(100, 115))
    turns = Turns(a_pool(), *map(small, range(45)), *map(small, change), steps=1)
    created: set[str] = set()
    for number in range(1_000, 1_600):
        turns.remove(f"p{change.pop(chance.randrange(15))}")
        turns.put(small(number))
        change.append(number)
        turns.turn()
        created |= turns.creating()
    assert created >= set(stay)
