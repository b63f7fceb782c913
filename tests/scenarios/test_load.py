"""Mistakes in a scenario: one line each, with line, field, value, expectation and a way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenure.sim.apiserver.objects.tree import put
from tenure.sim.scenario.expectations import CHECKS
from tenure.sim.scenario.load import load_scenario
from tenure.sim.scenario.read.fields import BadInput
from tenure.sim.scenario.steps import VERBS
from tests.builders import (
    a_deployment,
    a_job,
    a_node_class,
    a_pod,
    a_pool,
    a_requirement,
    a_stateful_set,
)
from tests.scenarios.files import a_story, written


def complaints(path: Path) -> list[str]:
    with pytest.raises(BadInput) as caught:
        load_scenario(path)
    return [str(problem) for problem in caught.value.problems]


def objects(*more: Any) -> dict[str, Any]:
    return a_story(objects=[a_node_class(), *more])


def a_window(cron: str) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "MaintenanceWindow",
        "metadata": {"name": "office"},
        "spec": {"actions": ["Drift"], "schedules": [{"cron": cron, "duration": "8h"}]},
    }


budget = {"nodes": "10%", "schedule": "61 * * * *", "duration": "8h"}
bad_template = a_deployment()
bad_template["spec"]["replica"] = 3
bad_amount = a_deployment(cpu="lots")

MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown field at the top": (
        a_story(evnets=[]),
        'unknown field "evnets". Did you mean "events"?',
    ),
    "a week, which no duration has": (
        a_story(events=[{"at": "1w", "say": "x"}]),
        "events[0].at: got '1w', expected a duration such as 1h30m or 2d. Use 168h.",
    ),
    "a duration without a unit": (
        a_story(until=30),
        "until: got '30', expected a duration such as 1h30m or 2d. Add a unit: 30s, 30m or 30h.",
    ),
    "a list where fields belong": (
        a_story(cloud=[1]),
        "cloud: got [1], expected fields and values. For example api-latency: ….",
    ),
    "a wrong seed": (a_story(seed="x"), "seed: got 'x', expected a whole number of at least 0"),
    "a start without a zone": (
        a_story(start="2026-01-05T08:00:00"),
        "start: got '2026-01-05T08:00:00', expected an RFC 3339 instant",
    ),
    "an unknown setting": (
        a_story(settings={"garbage-perid": "1m"}),
        'unknown field "settings.garbage-perid". Did you mean "garbage-period"?',
    ),
    "a share above one": (
        a_story(faults={"api-error-rate": 2}),
        "faults.api-error-rate: got 2.0, expected a share between 0 and 1",
    ),
    "an unknown instance type": (
        a_story(cloud={"catalogue": ["m99.large"]}),
        "cloud.catalogue: got 'm99.large', expected 'common', 'all' or names of instance types",
    ),
    "a misspelt field of a pool": (
        objects(a_pool(limit={})),
        'unknown field "objects[1].spec.limit". Did you mean "limits"?',
    ),
    "an unknown operator": (
        objects(a_pool(requirements=[a_requirement("a", "b", operator="Is")])),
        "objects[1].spec.template.spec.requirements[1].operator: got 'Is', expected one of In,",
    ),
    "a bound where its name belongs": (
        a_story(expect=[{"at": "end", "cost": {"max": 1}}]),
        'unknown field "expect[0].cost.max". Known here: total, hourly.',
    ),
    "a cost without a bound": (
        a_story(expect=[{"at": "end", "cost": {}}]),
        "expect[0].cost: got {}, expected total or hourly. For example total: {max: 1.5}.",
    ),
    "a malformed cron in a window": (
        objects(a_window("every day")),
        "objects[1].spec.schedules[0].cron: got 'every day', expected a cron",
    ),
    "a malformed cron in a budget": (
        objects(a_pool(disruption={"budgets": [budget]})),
        "objects[1].spec.disruption.budgets[0].schedule: got '61 * * * *', expected",
    ),
    "a day in a pool": (
        objects(a_pool(template={"expireAfter": "1d"})),
        "objects[1].spec.template.spec.expireAfter: got '1d', expected a Go duration",
    ),
    "a misspelt field of a Deployment": (
        objects(bad_template),
        'unknown field "objects[1].spec.replica". Did you mean "replicas"?',
    ),
    "an amount that is none": (
        objects(bad_amount),
        "containers[0].resources.requests.cpu: got 'lots', expected a quantity",
    ),
    "an affinity that cannot be read": (
        objects(a_pod(affinity={"nodeAffinity": 3})),
        "objects[1].spec.affinity.nodeAffinity: got 3, expected `object | null`",
    ),
    "a spread that cannot be read, in a template": (
        objects(a_deployment(topologySpreadConstraints=[{"maxSkew": "two"}])),
        "objects[1].spec.template.spec.topologySpreadConstraints[0].maxSkew: got 'two', expected `int`",
    ),
    "an unknown kind": (
        objects({"apiVersion": "apps/v1", "kind": "Deploymnet", "metadata": {"name": "a"}}),
        (
            "objects[1].kind: got 'Deploymnet', expected a kind the embedded cluster knows. "
            'Did you mean "Deployment"?'
        ),
    ),
    "a job whose pods would never end": (
        objects(a_job(restartPolicy="Always")),
        "objects[1].spec.template.spec.restartPolicy: got 'Always'",
    ),
    "a job of a kind that is not played": (
        objects(put(a_job(), ("spec", "completionMode"), "Indexed")),
        "objects[1].spec.completionMode: got 'Indexed', expected",
    ),
    "a field that a stateful set does not have": (
        objects(put(a_stateful_set(), ("spec", "replica"), 3)),
        'unknown field "objects[1].spec.replica". Did you mean "replicas"?',
    ),
    "a claim of a size that cannot be read": (
        objects(a_stateful_set(storage="lots")),
        "objects[1].spec.volumeClaimTemplates[0].spec.resources.requests.storage: got 'lots'",
    ),
    "a pace that is not one": (
        a_story(pods=[{"app": "web", "stops": "5m"}]),
        'unknown field "pods[0].stops"',
    ),
    "a scale of two things": (
        a_story(events=[{"at": "1m", "scale": {"replicas": 1}}]),
        "events[0].scale: got nothing, expected one workload. One of: deployment, statefulset.",
    ),
    "an old version of a kind": (
        objects({"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget"}),
        "objects[1].apiVersion: got 'policy/v1beta1', expected policy/v1",
    ),
    "an object without a name": (
        objects({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": a_pod()["spec"]}),
        "objects[1].metadata.name: got nothing, expected a name",
    ),
    "an object in a namespace that is not there": (
        objects(a_deployment() | {"metadata": {"name": "web", "namespace": "team-a"}}),
        (
            "objects[1]: got Deployment web, expected an object the API server takes. "
            'namespaces "team-a" not found'
        ),
    ),
    "an event that does nothing": (
        a_story(events=[{"at": "1m"}]),
        "events[0]: got nothing, expected one thing to happen. One of: apply, delete,",
    ),
    "an event that does two things": (
        a_story(events=[{"at": "1m", "say": "a", "crash": {}}]),
        "events[0]: got crash, say, expected one thing to happen",
    ),
    "an event without a time": (
        a_story(events=[{"say": "hello"}]),
        "events[0].at: got nothing, expected a duration such as 5m",
    ),
    "an unknown verb": (
        a_story(events=[{"at": "1m", "delet": {"claim": {}}}]),
        'unknown field "events[0].delet". Did you mean "delete"?',
    ),
    "a target of two kinds": (
        a_story(events=[{"at": "1m", "delete": {"claim": {}, "node": {}}}]),
        "events[0].delete: got node, claim, expected one object",
    ),
    "all of what only one can be meant": (
        a_story(events=[{"at": "1m", "cordon": {"pick": "all"}}]),
        "events[0].cordon.pick: got 'all', expected one of oldest, newest,",
    ),
    "an unknown pick": (
        a_story(events=[{"at": "1m", "delete": {"claim": {"pick": "eldest"}}}]),
        "events[0].delete.claim.pick: got 'eldest', expected one of oldest, newest,",
    ),
    "a wrong manifest in an event": (
        a_story(events=[{"at": "1m", "apply": a_pool(weight="much")}]),
        "events[0].apply.spec.weight: got 'much', expected a whole number",
    ),
    "an event after the end": (
        a_story(events=[{"at": "6m", "say": "too late"}]),
        "events[0]: got '6m', expected an instant within until: 5m",
    ),
    "an expectation without a time": (
        a_story(expect=[{"pods": {"running": 3}}]),
        "expect[0]: got nothing, expected one time. One of: at, by, within, always, never.",
    ),
    "an expectation without a check": (
        a_story(expect=[{"at": "1m"}]),
        "expect[0]: got nothing, expected one thing to check. One of: pods, nodes,",
    ),
    "an unknown state": (
        a_story(expect=[{"at": "1m", "pods": {"runing": 3}}]),
        'unknown field "expect[0].pods.runing". Did you mean "running"?',
    ),
    "a count that is none": (
        a_story(expect=[{"at": "1m", "pods": {"running": "all"}}]),
        "expect[0].pods.running: got 'all', expected a number",
    ),
    "a kind by a name that is nearly one": (
        a_story(expect=[{"at": "1m", "objects": {"kind": "NodPool", "count": 1}}]),
        (
            "expect[0].objects.kind: got 'NodPool', expected a kind the embedded cluster knows. "
            'Did you mean "NodePool"?'
        ),
    ),
    "a capacity type that is never sold": (
        a_story(faults={"cloud-dry": [{"capacity-type": "spott"}]}),
        (
            "faults.cloud-dry[0].capacity-type: got 'spott', expected one of on-demand, spot, reserved. "
            'Did you mean "spot"?'
        ),
    ),
    "a shortage in a zone that is not there": (
        a_story(events=[{"at": "1m", "faults": {"cloud-dry": [{"zone": "zone-q"}]}}]),
        (
            "events[0].faults.cloud-dry[0].zone: got 'zone-q', expected a zone of the scenario. "
            'Did you mean "zone-'
        ),
    ),
    "instances of a capacity type that is never sold": (
        a_story(expect=[{"at": "1m", "instances": {"capacity-type": "ondemand", "count": 0}}]),
        "expect[0].instances.capacity-type: got 'ondemand', expected one of on-demand,",
    ),
    "zones that are no list": (
        a_story(cloud={"zones": "zone-a"}),
        "cloud.zones: got 'zone-a', expected a list. Begin each element with a dash.",
    ),
    "no zone at all": (
        a_story(cloud={"zones": []}),
        "cloud.zones: got [], expected at least one zone. For example [zone-a, zone-b].",
    ),
    "a manifest instead of a scenario": (
        a_pool(),
        "story.yaml: got 'a manifest: NodePool', expected a scenario. Write it under objects:",
    ),
    "an unknown reason": (
        a_story(expect=[{"at": "1m", "reason": "Drainig"}]),
        'Did you mean "Draining"?',
    ),
    "within without after": (
        a_story(expect=[{"within": "1m", "pods": {"running": 3}}]),
        "expect[0].after: got nothing, expected when the time begins",
    ),
    "a label selector that cannot be read": (
        a_story(expect=[{"at": "1m", "pods": {"labels": "app in (", "running": 3}}]),
        "expect[0].pods.labels: got 'app in ('",
    ),
    "labels that are no selector": (
        a_story(expect=[{"at": "1m", "pods": {"labels": ["app"], "running": 3}}]),
        'expect[0].pods.labels: got ["app"], expected a label selector. For example release=two.',
    ),
    "a label that is no text": (
        a_story(expect=[{"at": "1m", "pods": {"labels": {"app": 1}, "running": 3}}]),
        "expect[0].pods.labels.app: got 1, expected text. Put it in quotes.",
    ),
    "fields where a text belongs": (
        a_story(expect=[{"at": "1m", "pods": {"app": {"name": "web"}, "running": 3}}]),
        'expect[0].pods.app: got {"name": "web"}, expected text. Write it on one line.',
    ),
    "a misspelt verb": (
        a_story(events=[{"at": "1m", "drian": {"node": {"app": "web"}}}]),
        'unknown field "events[0].drian". Did you mean "drain"?',
    ),
    "a verb like no other": (
        a_story(events=[{"at": "1m", "explode": {}}]),
        'unknown field "events[0].explode". Known here: at, apply, delete,',
    ),
    "a misspelt field that has to be there": (
        a_story(
            events=[{"at": "1m", "set-condition": {"node": {}, "typ": "Ready", "status": True}}]
        ),
        'unknown field "events[0].set-condition.typ". Did you mean "type"?',
    ),
    "a misspelt time": (
        a_story(events=[{"att": "1m", "say": "x"}]),
        'unknown field "events[0].att". Did you mean "at"?',
    ),
    "a misspelt check": (
        a_story(expect=[{"at": "1m", "pod": {"running": 3}}]),
        'unknown field "expect[0].pod". Did you mean "pods"?',
    ),
    "a misspelt field of a target": (
        a_story(events=[{"at": "1m", "cordon": {"node": {"ap": "web"}}}]),
        'unknown field "events[0].cordon.node.ap". Did you mean "app"?',
    ),
    "a misspelt target": (
        a_story(events=[{"at": "1m", "cordon": {"nod": {"app": "web"}}}]),
        'unknown field "events[0].cordon.nod". Did you mean "node"?',
    ),
    "a misspelt kind": (
        a_story(events=[{"at": "1m", "delete": {"clam": {"pool": "general"}}}]),
        'unknown field "events[0].delete.clam". Did you mean "claim"?',
    ),
    "a part of the target beside it": (
        a_story(events=[{"at": "1m", "silence": {"node": {"app": "web"}, "pick": "all"}}]),
        (
            "events[0].silence.pick: got 'all', expected a field of the verb. "
            "Write it inside of node: silence: {node: {app: web, pick: all}}."
        ),
    ),
    "a number where a target belongs": (
        a_story(events=[{"at": "1m", "drain": {"node": 3}}]),
        (
            "events[0].drain.node: got 3, expected fields and values. "
            "For example drain: {node: {app: web}, timeout: 10m}."
        ),
    ),
    "a zone that is not there": (
        a_story(events=[{"at": "1m", "zone-outage": {"zone": "zone-aa", "for": "1m"}}]),
        (
            "events[0].zone-outage.zone: got 'zone-aa', expected a zone of the scenario. "
            'Did you mean "zone-a"?'
        ),
    ),
    "an outage of no zone": (
        a_story(events=[{"at": "1m", "zone-outage": {"for": "1m"}}]),
        (
            "events[0].zone-outage.zone: got nothing, expected text. "
            "For example zone-outage: {zone: zone-a, for: 5m}."
        ),
    ),
    "something else for launches": (
        a_story(events=[{"at": "1m", "zone-outage": {"zone": "zone-a", "launches": "refuse"}}]),
        "launches: got 'refuse', expected one of hang, refused. Did you mean \"refused\"?",
    ),
    "dry offerings that are no list": (
        a_story(faults={"cloud-dry": "zone-a"}),
        "faults.cloud-dry: got 'zone-a', expected a list",
    ),
    "a number that is a text, in an option": (
        a_story(cloud={"zones": [1]}),
        "cloud.zones[0]: got 1, expected text. Put it in quotes.",
    ),
    "a file that is not there": (
        a_story(files=["more.yaml"]),
        "files[0]: got 'more.yaml', expected a file that exists",
    ),
}


@pytest.mark.parametrize(("story", "sentence"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_one_line_that_helps(
    tmp_path: Path, story: dict[str, Any], sentence: str
) -> None:
    found = complaints(written(tmp_path, story))
    assert len(found) == 1, found
    assert sentence in found[0]
    assert "\n" not in found[0]
    assert found[0].startswith(f"{tmp_path / 'story.yaml'}:")


BROKEN = {
    "a colon too many": ("name: a\nuntil: 5m: 3\n", ":2:10: got 'until: 5m: 3', expected YAML. "),
    "a quote that is not closed": ('name: "a\n', "expected YAML. "),
    "a tab": ("name: a\nobjects:\n\t- a\n", ":3:1: got '- a', expected YAML. "),
    "a key that is there twice": (
        "name: a\nname: b\n",
        ":2: name: got 'name', expected each key once",
    ),
    "an alias without an anchor": (
        "name: *missing\n",
        ":1:7: got 'name: *missing', expected YAML. ",
    ),
    "an alias of itself": ("objects: &a [*a]\n", "expected an alias after the end of its anchor"),
    "a tag of Python's": ("name: !!python/name:os.system x\n", "expected a plain value"),
    "a comment of another language": (
        "objects: // all of them\n- a: b\n",
        "expected YAML. In YAML # begins a comment; // does not.",
    ),
    "a list": ("- a\n", ':1: got ["a"], expected fields and values'),
    "nothing": ("", "expected a scenario. Begin with name:"),
    "only a comment": ("# later\n", "expected a scenario"),
}


@pytest.mark.parametrize(("text", "sentence"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_yaml_is_one_line_with_its_place(tmp_path: Path, text: str, sentence: str) -> None:
    found = complaints(written(tmp_path, text))
    assert len(found) == 1
    assert sentence in found[0]
    assert "\n" not in found[0]


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    assert "expected a file that exists" in complaints(tmp_path / "nowhere.yaml")[0]
    assert "expected a file that can be read" in complaints(tmp_path)[0]
    (tmp_path / "bytes.yaml").write_bytes(b"name: \xff\xfe")
    assert "expected text in UTF-8" in complaints(tmp_path / "bytes.yaml")[0]


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    story = a_story(until="1w", seed="x", events=[{"at": "1m"}])
    assert len(complaints(written(tmp_path, story))) == 3


def test_manifests_may_be_pasted_referred_to_or_listed(tmp_path: Path) -> None:
    written(tmp_path, {"apiVersion": "v1", "kind": "List", "items": [a_pod("listed")]}, "pods.yaml")
    story = "files: [pods.yaml]\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: team-a}\n"
    scenario = load_scenario(written(tmp_path, story))
    assert [obj["kind"] for obj in scenario.objects] == ["Pod", "Namespace"]
    assert scenario.name == "story"


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_verb_with_a_number_where_something_else_belongs_is_one_mistake(
    tmp_path: Path, verb: str
) -> None:
    assert len(complaints(written(tmp_path, a_story(events=[{"at": "1m", verb: 3}])))) == 1


@pytest.mark.parametrize("check", sorted(CHECKS))
def test_a_check_with_a_word_where_fields_belong_is_one_mistake(tmp_path: Path, check: str) -> None:
    expect = [{"at": "1m", check: "Nonsense"}]
    assert len(complaints(written(tmp_path, a_story(expect=expect)))) == 1


def test_a_mistake_in_a_file_referred_to_names_that_file(tmp_path: Path) -> None:
    written(tmp_path, a_pool(weight="much"), "pool.yaml")
    found = complaints(written(tmp_path, a_story(files=["pool.yaml"])))
    assert found[0].startswith(f"{tmp_path / 'pool.yaml'}:")
    assert "spec.weight: got 'much'" in found[0]


def test_options_are_read_into_their_types(tmp_path: Path) -> None:
    story = a_story(
        start="2026-03-01T00:00:00+01:00",
        settings={"garbage-period": "1m"},
        cloud={"boot-for": "5s", "zones": ["north"]},
        kubelet={"pods": {"start-for": "1s"}},
        faults={"cloud-dry": [{"zone": "north"}], "kubelet-dies-after-mean": "1h"},
    )
    options = load_scenario(written(tmp_path, story)).options
    assert options.epoch.isoformat() == "2026-02-28T23:00:00+00:00"
    assert options.settings.garbage_period.total_seconds() == 60
    assert options.infrastructure.cloud.boot_for.total_seconds() == 5
    assert options.infrastructure.kubelet.pods.start_for.total_seconds() == 1
    assert options.infrastructure.faults.cloud_dry == (("*", "north", "*"),)
