"""``tenure convert``: Provisioners become NodePools, and nothing is dropped in silence."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tenure.cli.convert.files import Converted, convert_all
from tenure.cli.convert.report import Code
from tenure.cli.convert.written import as_json, as_yaml
from tenure.cli.lint.source import Source, Sources
from tenure.cli.main import run
from tenure.parse.yamltext import Document, documents_in, read_documents
from tenure.schema.manifest import check_manifest
from tenure.schema.structure.crd import CUSTOM_KINDS
from tests.folders import ROOT

Obj = dict[str, Any]

DATA = ROOT / "tests" / "data" / "convert"
REF = {"apiVersion": "example.com/v1", "kind": "Class", "name": "default"}


def a_provisioner(version: str = "v1alpha5", **spec: Any) -> Obj:
    usual = {"providerRef": REF} if version == "v1alpha5" else {"template": {"providerRef": REF}}
    return {
        "apiVersion": f"karpenter.sh/{version}",
        "kind": "Provisioner",
        "metadata": {"name": "default"},
        "spec": usual | spec,
    }


def converted(*objects: Obj) -> Converted:
    return convert_all(Sources([Source(Document("f", one), "", one) for one in objects]))


def pool_of(provisioner: Obj) -> Any:
    done = converted(provisioner)
    assert not done.invalid, done.report
    return done.pools[0]["spec"]


def codes(done: Converted) -> list[tuple[str, str]]:
    return [(line.note.code, ", ".join(line.note.fields)) for line in done.report]


def refusals(provisioner: Obj) -> list[str]:
    done = converted(provisioner)
    assert done.pools == ()
    return [str(line) for line in done.report if line.note.code is Code.INVALID]


# -- whole files ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["general", "proposed"])
def test_the_output_and_the_report_are_these(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(DATA)
    assert run(["convert", f"{name}.yaml"]) == 1
    printed = capsys.readouterr()
    assert printed.out == (DATA / f"{name}.nodepools.yaml").read_text()
    assert printed.err == (DATA / f"{name}.report.txt").read_text()


@pytest.mark.parametrize("name", ["general", "proposed"])
def test_lint_has_nothing_against_the_output(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lint", str(DATA / f"{name}.nodepools.yaml")]) == 0, capsys.readouterr().out
    for document in read_documents(DATA / f"{name}.nodepools.yaml"):
        assert check_manifest(document.value, CUSTOM_KINDS) == []


def test_the_json_has_the_same_pools(capsys: pytest.CaptureFixture[str]) -> None:
    run(["convert", "-o", "json", str(DATA / "general.yaml")])
    written = json.loads(capsys.readouterr().out)
    assert written["kind"] == "List"
    pools = read_documents(DATA / "general.nodepools.yaml")
    assert written["items"] == [document.value for document in pools]


def test_a_list_from_kubectl_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = [a_provisioner(), a_provisioner("v1beta1")]
    (tmp_path / "all.json").write_text(json.dumps({"kind": "List", "items": items}))
    assert run(["convert", str(tmp_path / "all.json")]) == 0
    printed = capsys.readouterr()
    assert [one["kind"] for one in yaml.safe_load_all(printed.out)] == ["NodePool", "NodePool"]
    assert "2 Provisioners, 2 NodePools: 0 errors, 0 warnings" in printed.err


# -- fields --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "spec", "expected"),
    [
        pytest.param("v1alpha5", {}, "Never", id="absent: no node expired"),
        pytest.param("v1alpha5", {"ttlSecondsUntilExpired": 2592000}, "720h", id="seconds"),
        pytest.param("v1alpha5", {"ttlSecondsUntilExpired": 90}, "1m30s", id="minutes"),
        pytest.param("v1alpha5", {"ttlSecondsUntilExpired": 0}, "0s", id="at once"),
        pytest.param("v1beta1", {}, "720h", id="absent: the default"),
        pytest.param("v1beta1", {"ttlAfterCreated": "1d"}, "24h", id="a day"),
        pytest.param("v1beta1", {"ttlAfterCreated": "1d12h"}, "36h", id="a day and hours"),
        pytest.param("v1beta1", {"ttlAfterCreated": "1.5h"}, "1h30m", id="a fraction"),
        pytest.param("v1beta1", {"ttlAfterCreated": "Never"}, "Never", id="never"),
    ],
)
def test_expiration(version: str, spec: Obj, expected: str) -> None:
    pool = pool_of(a_provisioner(version, **spec))
    assert pool["template"]["spec"]["expireAfter"] == expected


ON: Obj = {"consolidation": {"enabled": True}}
OFF: Obj = {"consolidation": {"enabled": False}}
KEPT: Obj = {"annotations": {"karpenter.sh/do-not-consolidate": "true"}}


@pytest.mark.parametrize(
    ("version", "spec", "policy", "after"),
    [
        pytest.param("v1alpha5", {}, "WhenEmpty", "Never", id="absent"),
        pytest.param("v1alpha5", OFF, "WhenEmpty", "Never", id="off"),
        pytest.param("v1alpha5", ON, "WhenEmptyOrUnderutilized", "0s", id="on"),
        pytest.param("v1alpha5", {"ttlSecondsAfterEmpty": 30}, "WhenEmpty", "30s", id="empty"),
        pytest.param(
            "v1alpha5", {"ttlSecondsAfterEmpty": 0, **OFF}, "WhenEmpty", "0s", id="empty at once"
        ),
        pytest.param("v1alpha5", ON | KEPT, "WhenEmptyOrUnderutilized", "Never", id="kept"),
        pytest.param(
            "v1alpha5",
            {"ttlSecondsAfterEmpty": 30, **KEPT},
            "WhenEmpty",
            "30s",
            id="empty nodes were not kept",
        ),
        pytest.param("v1beta1", {}, "WhenEmptyOrUnderutilized", "0s", id="the default"),
        pytest.param("v1beta1", OFF, "WhenEmpty", "Never", id="off in the proposal"),
    ],
)
def test_consolidation(version: str, spec: Obj, policy: str, after: str) -> None:
    disruption = pool_of(a_provisioner(version, **spec))["disruption"]
    assert (disruption["consolidationPolicy"], disruption["consolidateAfter"]) == (policy, after)


def test_repair() -> None:
    assert pool_of(a_provisioner())["repair"] == {
        "defaultTolerationDuration": "Never",
        "terminationMode": "Graceful",
    }
    assert "repair" not in pool_of(a_provisioner("v1beta1"))
    assert pool_of(a_provisioner("v1beta1", ttlAfterNotReady="1d"))["repair"] == {
        "policies": [{"conditionType": "Ready", "toleration": "24h"}],
        "terminationMode": "Graceful",
    }


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ({"name": "x"}, ("karpenter.k8s.aws", "EC2NodeClass", "x")),
        ({"kind": "AWSNodeTemplate", "name": "x"}, ("karpenter.k8s.aws", "EC2NodeClass", "x")),
        (REF, ("example.com", "Class", "default")),
        ({"group": "g.io", "kind": "Class", "name": "x"}, ("g.io", "Class", "x")),
    ],
)
def test_the_node_class(ref: Obj, expected: tuple[str, str, str]) -> None:
    written = pool_of(a_provisioner(providerRef=ref))["template"]["spec"]["nodeClassRef"]
    assert (written["group"], written["kind"], written["name"]) == expected


def test_a_node_class_that_is_given_is_written_and_the_old_one_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(a_provisioner()))
    words = ["convert", str(tmp_path / "p.yaml"), "--node-class"]
    assert run([*words, "g.io/Class/mine"]) == 0
    printed = capsys.readouterr()
    pool = yaml.safe_load(printed.out)
    ref = {"group": "g.io", "kind": "Class", "name": "mine"}
    assert pool["spec"]["template"]["spec"]["nodeClassRef"] == ref
    assert "info Changed: Provisioner/default: spec.providerRef: " in printed.err
    assert run([*words, "mine"]) == 2
    assert "--node-class: got 'mine', expected GROUP/KIND/NAME" in capsys.readouterr().err


def test_what_is_said_about_a_label_is_not_said_again() -> None:
    written = {"key": "beta.kubernetes.io/os", "operator": "In", "values": ["windows"]}
    spec: Obj = {"requirements": [written], "labels": {"kubernetes.io/arch": "arm64"}}
    added = pool_of(a_provisioner(**spec))["template"]["spec"]["requirements"]
    assert [one["key"] for one in added] == ["beta.kubernetes.io/os", "karpenter.sh/capacity-type"]


def test_old_annotations_are_reported_with_their_successor() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": {"karpenter.sh/do-not-evict": "true"}},
    }
    done = converted(a_provisioner(**KEPT), pod)
    told = [str(line) for line in done.report if line.note.code is Code.ELSEWHERE]
    assert len(told) == 2
    assert all("karpenter.sh/do-not-disrupt" in line for line in told)
    assert "metadata" not in done.pools[0]["spec"]["template"]


def test_what_is_false_or_zero_is_reported_too() -> None:
    done = converted(a_provisioner(provider=False, other=0))
    assert [one for one in codes(done) if one[0] != "WrittenOut"] == [
        ("Elsewhere", "spec.provider"),
        ("NoSuccessor", "spec.other"),
    ]


def test_nodes_that_expired_at_once_are_reported() -> None:
    """``expireAfter: 0s`` is accepted, and means never."""
    done = converted(a_provisioner(ttlSecondsUntilExpired=0))
    assert ("NoSuccessor", "spec.ttlSecondsUntilExpired") in codes(done)
    done = converted(a_provisioner(ttlSecondsUntilExpired=1))
    assert not any(code == "NoSuccessor" for code, _ in codes(done))


# -- what cannot be converted --------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param(
            {"providerRef": None},
            "spec.providerRef: missing, expected the node class of the NodePool. Write providerRef: "
            "{name: default}",
            id="no node class",
        ),
        pytest.param(
            {"ttlSecondsUntilExpired": "1d"},
            "spec.ttlSecondsUntilExpired: got '1d', expected a whole number of seconds",
            id="no number",
        ),
        pytest.param(
            {"ttlSecondsAfterEmpty": -1}, "spec.ttlSecondsAfterEmpty: got -1", id="below 0"
        ),
        pytest.param({"ttlSecondsAfterEmpty": True}, "got True, expected a whole", id="a flag"),
        pytest.param(
            {"ttlSecondsAfterEmpty": 30, **ON}, "Remove one of them", id="both consolidations"
        ),
        pytest.param(
            {"ttlAfterCreated": "soon"},
            "spec.ttlAfterCreated: got 'soon', expected a duration such as 720h or 30d, or Never",
            id="no duration",
        ),
        pytest.param({"ttlAfterCreated": 30}, "Add a unit, for example 30s", id="no unit"),
        pytest.param({"ttlAfterCreated": "-1h"}, "not negative", id="before its creation"),
        pytest.param(
            {"ttlAfterCreated": "1h", "ttlSecondsUntilExpired": 3600}, "one of ttlAfter", id="both"
        ),
        pytest.param({"consolidation": {"enabled": "yes"}}, "expected true or false", id="text"),
        pytest.param({"limits": 3}, "spec.limits: got 3, expected a map", id="no map"),
        pytest.param(
            {"limits": {"cpu": 1, "resources": {"cpu": 2}}}, "one limit of cpu", id="two limits"
        ),
        pytest.param({"weight": 200}, "spec.weight: the NodePool would be refused", id="schema"),
        pytest.param(
            {"requirements": [{"key": "a", "operator": "Is"}]},
            "spec.requirements[0].operator: the NodePool would be refused",
            id="an operator",
        ),
        pytest.param(
            {"requirements": [{"key": ["a"], "operator": "Exists"}]},
            "spec.requirements[0].key: the NodePool would be refused",
            id="a key that is a list",
        ),
        pytest.param(
            {"providerRef": {"kind": "Class", "name": "x"}},
            "spec.providerRef.apiVersion: missing, expected the API group of Class",
            id="no group",
        ),
    ],
)
def test_it_is_refused_with_field_value_and_example(spec: Obj, said: str) -> None:
    (refusal,) = refusals(a_provisioner(**spec))
    assert said in refusal


def test_a_field_that_stands_twice_is_refused() -> None:
    template = {"providerRef": REF, "labels": {"a": "b"}, "metadata": {"labels": {"a": "c"}}}
    (refusal,) = refusals(a_provisioner("v1beta1", template=template))
    assert "spec.template.metadata.labels: got 'a second one'" in refusal


def test_a_label_of_the_object_that_is_no_text_is_refused() -> None:
    provisioner = a_provisioner()
    provisioner["metadata"]["labels"] = {"a": 1}
    (refusal,) = refusals(provisioner)
    assert "metadata.labels.a: got 1, expected text. Write it in quotes" in refusal


def test_another_version_is_refused() -> None:
    (refusal,) = refusals(a_provisioner("v1alpha4"))
    assert "expected karpenter.sh/v1alpha5 or karpenter.sh/v1beta1" in refusal


def test_one_that_cannot_be_converted_hides_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = [a_provisioner(weight=200), a_provisioner()]
    (tmp_path / "p.yaml").write_text(yaml.safe_dump_all(both))
    assert run(["convert", str(tmp_path / "p.yaml")]) == 2
    assert len(list(yaml.safe_load_all(capsys.readouterr().out))) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected Kubernetes objects"),
        ("a: b\n", "no Kubernetes object, left out"),
        ("apiVersion: v1\nkind: Pod\n", "expected a Provisioner of karpenter.sh/v1alpha5"),
        ("a: [\n", "p.yaml:2:1"),
    ],
)
def test_files_without_a_provisioner_end_with_code_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (tmp_path / "p.yaml").write_text(text)
    assert run(["convert", str(tmp_path / "p.yaml")]) == 2
    assert said in capsys.readouterr().err


# -- nothing is dropped in silence -----------------------------------------------------------

#: Found again wherever it is copied to.
MARKS = st.integers(0, 10**9).map(lambda number: f"mark-{number}-end")
VALUES = st.recursive(MARKS, lambda inner: st.dictionaries(MARKS, inner, min_size=1, max_size=2))
FIELDS = {
    "labels": st.dictionaries(MARKS, MARKS, max_size=2),
    "annotations": st.dictionaries(
        st.one_of(MARKS, st.just("karpenter.sh/do-not-evict")), MARKS, max_size=2
    ),
    "taints": st.lists(
        st.fixed_dictionaries({"key": MARKS, "effect": st.just("NoSchedule")}),
        max_size=2,
        unique_by=lambda taint: taint["key"],
    ),
    "kubeletConfiguration": st.dictionaries(MARKS, VALUES, max_size=2),
    "provider": VALUES,
    "consolidation": st.fixed_dictionaries({"enabled": st.just(True)}, optional={"x": MARKS}),
    "limits": st.fixed_dictionaries(
        {"resources": st.just({"cpu": "777"})}, optional={"memory": st.just("888Gi")}
    ),
    "template": VALUES,
}
REFS = st.fixed_dictionaries(
    {"apiVersion": st.just("g.io/v1"), "kind": st.just("Class"), "name": MARKS},
    optional={"uid": MARKS},
)
METADATA = {
    "labels": st.dictionaries(MARKS, MARKS, max_size=2),
    "uid": MARKS,
    "namespace": MARKS,
    "managedFields": st.lists(VALUES, max_size=2),
}


def leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, f"{at}.{key}" if at else key)
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from leaves(one, f"{at}[{index}]")
    else:
        yield at, value


@given(
    spec=st.fixed_dictionaries({"providerRef": REFS}, optional=FIELDS),
    metadata=st.fixed_dictionaries({}, optional=METADATA),
    others=st.dictionaries(MARKS, VALUES, max_size=2),
)
def test_every_field_is_in_the_pool_or_in_the_report(spec: Obj, metadata: Obj, others: Obj) -> None:
    given_ = a_provisioner(**spec, **others)
    given_["metadata"] |= metadata
    done = converted(given_)
    assert not done.invalid
    kept = {str(value) for _, value in leaves(done.pools[0])}
    told = [field for line in done.report for field in line.note.fields]
    for path, value in leaves(given_["spec"], "spec"):
        reported = any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in told)
        assert reported or str(value) in kept or path.endswith((".enabled", ".apiVersion")), path
    for path, value in leaves(given_["metadata"], "metadata"):
        reported = any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in told)
        assert reported or str(value) in kept, path


ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(), inner)),
    max_leaves=5,
)
NAMES = st.sampled_from(
    [
        *(
            "labels",
            "annotations",
            "taints",
            "startupTaints",
            "requirements",
            "providerRef",
            "name",
        ),
        *("ttlSecondsUntilExpired", "ttlAfterCreated", "ttlAfterNotReady", "ttlSecondsAfterEmpty"),
        *("consolidation", "enabled", "limits", "resources", "weight", "template", "metadata"),
        *("spec", "kubeletConfiguration", "kubelet", "provider", "nodeClassRef", "kind", "key"),
    ]
)
FORM = st.recursive(ANYTHING, lambda inner: st.dictionaries(NAMES, inner), max_leaves=20)


@given(
    version=st.sampled_from(["v1alpha5", "v1beta1"]),
    spec=st.one_of(st.dictionaries(NAMES, FORM), ANYTHING),
    metadata=st.one_of(st.dictionaries(NAMES, ANYTHING), ANYTHING),
)
def test_whatever_is_given_a_pool_is_valid_or_the_report_says_what_is_wrong(
    version: str, spec: Any, metadata: Any
) -> None:
    given_ = a_provisioner(version)
    given_["spec"] = {**given_["spec"], **spec} if isinstance(spec, dict) else spec
    given_["metadata"] = {"name": "x", **metadata} if isinstance(metadata, dict) else metadata
    done = converted(given_)
    assert done.invalid == (not done.pools)
    for pool in done.pools:
        assert check_manifest(pool, CUSTOM_KINDS) == []
        assert [one.value for one in documents_in(as_yaml([pool]), "f")] == [pool]


def test_the_standard_input_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(a_provisioner())))
    assert run(["convert", "-", "-o", "yaml"]) == 0
    printed = capsys.readouterr()
    assert yaml.safe_load(printed.out)["metadata"] == {"name": "default"}
    assert printed.err.splitlines()[1].startswith("stdin:1: info WrittenOut: Provisioner/default: ")


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=4))
def test_what_is_written_is_read_back_as_it_was(values: dict[str, str]) -> None:
    pool = {"spec": {"labels": values}}
    assert [one.value for one in documents_in(as_yaml([pool, pool]), "f")] == [pool, pool]
    assert json.loads(as_json([pool]))["items"] == [pool]


@pytest.mark.parametrize("text", ["1e3", "0o17", "12", "1_000", ".5", "-3", "true", "null", "0x1F"])
def test_text_that_looks_like_a_number_is_quoted(text: str) -> None:
    assert f"'{text}'" in as_yaml([{"a": text}])


def test_a_slip_of_the_pen_is_an_error_and_not_left_out() -> None:
    """Left out, it would turn expiry off."""
    typo = a_provisioner(ttlSecondsUntilExpird=2_592_000)
    (said,) = refusals(typo)
    assert "spec.ttlSecondsUntilExpird: unknown field; did you mean ttlSecondsUntilExpired?" in said
    assert {code for code, _ in codes(converted(typo))} == {Code.INVALID}, "nothing is written out"
    other = converted(a_provisioner(somethingElse=1))
    assert (Code.NO_SUCCESSOR, "spec.somethingElse") in codes(other)


def test_a_value_is_shown_as_it_is_written() -> None:
    (said,) = refusals(a_provisioner(ttlSecondsAfterEmpty=30, consolidation={"enabled": True}))
    assert "got 30, expected no consolidation.enabled" in said
