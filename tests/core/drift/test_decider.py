"""Whether a claim still is what its pool, its node class and the provider ask for."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.decision import Subject
from tenure.core.drift.decider import TYPE_GONE_AFTER, DriftDecider
from tenure.core.drift.facts import (
    DriftRecorded,
    FieldChanged,
    HashVersionOld,
    InstanceTypeGone,
    ProviderSaysDrifted,
    ProviderSilent,
    RequirementsUnmet,
    TemplateChanged,
    UnmetRequirement,
)
from tenure.core.marks.templatehash import HASH_VERSION, field_hashes, hash_annotations
from tenure.core.reasons import Reason
from tenure.model.api.names import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODEPOOL_HASH,
    NODEPOOL_HASH_FIELDS,
    NODEPOOL_HASH_VERSION,
    ZONE,
)
from tenure.model.api.nodeclaim import NodeClaim, Requirement
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import NODE_POOLS
from tenure.model.cloud.drift import Drift
from tenure.model.snapshot.observations import DriftAnswer
from tenure.model.snapshot.snapshot import Change
from tenure.model.snapshot.unreadable import stand_in
from tests.core.build import (
    FOREIGN,
    MINUTE_AGO,
    a_claim,
    a_leaving_claim,
    a_pool,
    a_type,
    body_of,
    condition,
    evaluated,
    fact_of,
    said,
)
from tests.snapshots import snapshot_with

DECIDER = DriftDecider()
IMAGE = Drift("ImageDrift", "the instance runs image v1, its node class asks for v2")


def made_from(pool: NodePool, **fields: Any) -> NodeClaim:
    """A claim as the pool creates it: its template is in the claim, and recorded on it."""
    template = pool.spec.template
    spec = {
        "taints": template.spec.taints,
        "startup_taints": template.spec.startup_taints,
        "termination_grace_period": template.spec.termination_grace_period,
        "expire_after": template.spec.expire_after,
    }
    annotations = {**template.metadata.annotations, **hash_annotations(field_hashes(template))}
    labels = {**template.metadata.labels, **fields.pop("labels", {})}
    return a_claim(
        **{"labels": labels, "annotations": annotations, "spec": spec} | fields,
        ref=template.spec.node_class_ref,
    )


def without_record(claim: NodeClaim) -> NodeClaim:
    """As Karpenter creates it."""
    claim.annotations.pop(NODEPOOL_HASH_FIELDS)  # type: ignore[attr-defined]  # a dict of our own
    return claim


def drifted(reason: str = "NodePoolDrifted", message: str = "") -> dict[str, Any]:
    return {"conditions": [condition("Drifted", reason=reason, message=message)]}


# -- the template ----------------------------------------------------------------------------

TAINT = {"key": "gpu", "effect": "NoSchedule"}
OTHER = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "other"}

CHANGES: dict[str, tuple[dict[str, Any], tuple[FieldChanged, ...]]] = {
    "nothing": ({}, ()),
    "a TTL of ours": ({"template": {"readinessTTL": "45m"}}, ()),
    "a label": (
        {"template_meta": {"labels": {"team": "b"}, "annotations": {"owner": "me"}}},
        (FieldChanged("metadata.labels", "team: a → b"),),
    ),
    "an annotation": (
        {"template_meta": {"labels": {"team": "a"}, "annotations": {"owner": "me", "n": "1"}}},
        (FieldChanged("metadata.annotations", "n=1 added"),),
    ),
    "a taint": (
        {"template": {"taints": [TAINT]}},
        (FieldChanged("spec.taints", "gpu:NoSchedule added"),),
    ),
    "a startup taint": (
        {"template": {"startupTaints": [{**TAINT, "value": "x"}]}},
        (FieldChanged("spec.startupTaints", "gpu=x:NoSchedule added"),),
    ),
    "the node class": (
        {"template": {"nodeClassRef": OTHER}},
        (FieldChanged("spec.nodeClassRef", "KWOKNodeClass default → KWOKNodeClass other"),),
    ),
    "a grace period of nothing": (
        {"template": {"terminationGracePeriod": "0s"}},
        (FieldChanged("spec.terminationGracePeriod", "none → 0s"),),
    ),
    "the expiry": (
        {"template": {"expireAfter": "24h"}},
        (FieldChanged("spec.expireAfter", "720h → 24h"),),
    ),
    "the expiry, written otherwise": ({"template": {"expireAfter": "43200m"}}, ()),
    "two fields": (
        {"template": {"taints": [TAINT], "expireAfter": "Never"}},
        (
            FieldChanged("spec.taints", "gpu:NoSchedule added"),
            FieldChanged("spec.expireAfter", "720h → Never"),
        ),
    ),
}
BEFORE: dict[str, Any] = {
    "template_meta": {"labels": {"team": "a"}, "annotations": {"owner": "me"}}
}


@pytest.mark.parametrize("recorded", [True, False], ids=["of Tenure", "of Karpenter"])
@pytest.mark.parametrize(("change", "fields"), CHANGES.values(), ids=CHANGES)
def test_a_changed_template_drifts_its_nodes_and_names_the_fields(
    change: dict[str, Any], fields: tuple[FieldChanged, ...], recorded: bool
) -> None:
    claim = made_from(a_pool(**BEFORE))
    told = evaluated(
        DECIDER, a_pool(**BEFORE | change), claim if recorded else without_record(claim)
    )
    assert [verdict.reason for verdict in told] == ([Reason.DRIFTED] if fields else [])
    if fields:
        assert said(told[0])["Drifted"] == ("True", "NodePoolDrifted")
        assert fact_of(told[0], TemplateChanged).fields == fields
        assert all(
            field.path in body_of(told[0])["status"]["conditions"][-1]["message"]
            for field in fields
        )


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_a_label_that_was_removed_is_found_by_the_record_alone(field: str) -> None:
    claim = made_from(a_pool(**BEFORE))
    left = {"labels": {"team": "a"}, "annotations": {"owner": "me"}, field: {}}
    pool = a_pool(template_meta=left)
    (verdict,) = evaluated(DECIDER, pool, claim)
    entry = {"labels": "team=a", "annotations": "owner=me"}[field]
    removed = FieldChanged(f"metadata.{field}", f"{entry} removed")
    assert fact_of(verdict, TemplateChanged).fields == (removed,)
    (verdict,) = evaluated(DECIDER, pool, without_record(claim))
    assert fact_of(verdict, TemplateChanged).fields == ()
    assert "does not record which field" in verdict.message
    assert not re.search(r"[0-9]{6}", verdict.message), "a hash says nothing to people"


def test_what_was_added_changed_and_removed_is_told_together() -> None:
    before = {"labels": {"team": "a", "tier": "x", "shelf": "top", "same": "1"}}
    claim = made_from(a_pool(template_meta=before))
    after = {"labels": {"team": "b", "new": "y", "same": "1"}}
    (verdict,) = evaluated(DECIDER, a_pool(template_meta=after), claim)
    (told,) = fact_of(verdict, TemplateChanged).fields
    assert told.how == "new=y added; team: a → b; shelf=top removed and 1 more"


def test_a_long_annotation_that_was_removed_is_not_looked_for() -> None:
    """It would be hashed again for every claim."""
    claim = made_from(a_pool(template_meta={"annotations": {"notes": "x" * 513}}))
    (verdict,) = evaluated(DECIDER, a_pool(), claim)
    (told,) = fact_of(verdict, TemplateChanged).fields
    assert told.how == "an entry was removed"


def test_an_entry_that_is_not_on_the_claim_any_more_was_removed_without_a_name() -> None:
    claim = made_from(a_pool(**BEFORE))
    del claim.labels["team"]  # type: ignore[attr-defined]  # a dict of our own
    (verdict,) = evaluated(DECIDER, a_pool(template_meta={"annotations": {"owner": "me"}}), claim)
    (told,) = fact_of(verdict, TemplateChanged).fields
    assert told == FieldChanged("metadata.labels", "an entry was removed")


@pytest.mark.parametrize(
    "record", ["", "nonsense", "spec.taints=1", "spec.taints=x", "x" * 5000, "=" * 9]
)
def test_a_record_that_does_not_belong_to_the_hash_is_ignored(record: str) -> None:
    claim = made_from(a_pool(**BEFORE))
    claim.annotations[NODEPOOL_HASH_FIELDS] = record  # type: ignore[index]  # a dict of our own
    (verdict,) = evaluated(DECIDER, a_pool(**BEFORE, template={"taints": [TAINT]}), claim)
    (field,) = fact_of(verdict, TemplateChanged).fields
    assert field.path == "spec.taints"


def test_an_empty_list_is_not_an_absent_one() -> None:
    """In Karpenter's hash. The claim has neither, so only the record knows."""
    (verdict,) = evaluated(DECIDER, a_pool(template={"taints": []}), made_from(a_pool()))
    assert fact_of(verdict, TemplateChanged).fields == (FieldChanged("spec.taints"),)


def test_a_change_that_is_taken_back_undrifts_them() -> None:
    (verdict,) = evaluated(DECIDER, a_pool(), made_from(a_pool(), **drifted()))
    assert verdict.reason is Reason.NOT_DRIFTED
    assert said(verdict)["Drifted"] == ("False", "NotDrifted")


def test_what_the_condition_says_already_is_not_written_again() -> None:
    pool, claim = a_pool(template={"taints": [TAINT]}), made_from(a_pool())
    (first,) = evaluated(DECIDER, pool, claim)
    written = body_of(first)["status"]["conditions"][-1]
    known = condition("Drifted", reason=written["reason"], message=written["message"])
    (second,) = evaluated(DECIDER, pool, made_from(a_pool(), conditions=[known]))
    assert second.action is None
    assert second.facts == first.facts


@pytest.mark.parametrize("version", ["v2", ""])
def test_a_hash_of_another_version_is_renewed_and_drifts_nothing(version: str) -> None:
    claim = a_claim(annotations={NODEPOOL_HASH: "1234", NODEPOOL_HASH_VERSION: version})
    (verdict,) = evaluated(DECIDER, a_pool(), claim)
    assert verdict.reason is Reason.HASH_RENEWED
    assert body_of(verdict)["metadata"]["annotations"] == hash_annotations(
        field_hashes(a_pool().spec.template)
    )


@pytest.mark.parametrize(
    ("reason", "kept"),
    [("NodePoolDrifted", True), ("RequirementsDrifted", False), ("ImageDrift", False)],
)
def test_with_a_new_version_a_drifted_template_stays_drifted(reason: str, kept: bool) -> None:
    annotations = {NODEPOOL_HASH: "1234", NODEPOOL_HASH_VERSION: "v2"}
    (verdict,) = evaluated(DECIDER, a_pool(), a_claim(annotations=annotations, **drifted(reason)))
    assert fact_of(verdict, HashVersionOld).kept is kept
    written = body_of(verdict)["metadata"]["annotations"]
    assert written[NODEPOOL_HASH_VERSION] == HASH_VERSION
    assert (NODEPOOL_HASH in written) is not kept


# -- requirements ----------------------------------------------------------------------------


def requirement(operator: str, *values: str, key: str = "size") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("written", "labels", "drifts"),
    [
        pytest.param([requirement("In", "4", "8")], {"size": "4"}, False, id="widened"),
        pytest.param([requirement("In", "8")], {"size": "4"}, True, id="another value"),
        pytest.param([requirement("In", "8")], {}, True, id="In, no label"),
        pytest.param([requirement("NotIn", "4")], {"size": "4"}, True, id="NotIn"),
        pytest.param([requirement("NotIn", "4")], {}, False, id="NotIn, no label"),
        pytest.param([requirement("Exists")], {"size": "4"}, False, id="Exists"),
        pytest.param([requirement("Exists")], {}, True, id="Exists, no label"),
        pytest.param([requirement("DoesNotExist")], {"size": "4"}, True, id="DoesNotExist"),
        pytest.param([requirement("DoesNotExist")], {}, False, id="DoesNotExist, no label"),
        pytest.param([requirement("Gt", "3")], {"size": "4"}, False, id="Gt"),
        pytest.param([requirement("Gt", "4")], {"size": "4"}, True, id="Gt, its own value"),
        pytest.param([requirement("Lt", "5")], {"size": "4"}, False, id="Lt"),
        pytest.param([requirement("Lt", "4")], {"size": "4"}, True, id="Lt, its own value"),
        pytest.param([requirement("Gte", "4")], {"size": "4"}, False, id="Gte"),
        pytest.param([requirement("Lte", "3")], {"size": "4"}, True, id="Lte"),
        pytest.param([requirement("Gt", "1")], {"size": "large"}, True, id="Gt, no number"),
        pytest.param([requirement("Gt", "1")], {}, True, id="Gt, no label"),
        pytest.param(
            [requirement("Gt", "1"), requirement("Lt", "4")], {"size": "4"}, True, id="a range"
        ),
        pytest.param(
            [requirement("In", "a", key="failure-domain.beta.kubernetes.io/zone")],
            {ZONE: "a"},
            False,
            id="an old name in the pool",
        ),
        pytest.param(
            [requirement("In", "a", key=ZONE)],
            {"failure-domain.beta.kubernetes.io/zone": "b"},
            True,
            id="an old name on the claim",
        ),
        pytest.param(
            [{**requirement("In", "4", "8"), "minValues": 2}], {"size": "4"}, False, id="minValues"
        ),
        pytest.param(
            [requirement("Exists"), requirement("NotIn", "4")], {}, False, id="Exists and NotIn"
        ),
    ],
)
def test_labels_that_do_not_satisfy_the_requirements_drift(
    written: list[dict[str, Any]], labels: dict[str, str], drifts: bool
) -> None:
    claim = made_from(a_pool(), labels=labels)
    told = evaluated(DECIDER, a_pool(requirements=written), claim)
    assert [verdict.reason for verdict in told] == ([Reason.DRIFTED] if drifts else [])
    if drifts:
        assert said(told[0])["Drifted"] == ("True", "RequirementsDrifted")


def test_the_requirement_and_the_label_are_named() -> None:
    pool = a_pool(requirements=[requirement("In", "8"), requirement("Exists", key="team")])
    (verdict,) = evaluated(DECIDER, pool, made_from(a_pool(), labels={"size": "4"}))
    assert fact_of(verdict, RequirementsUnmet).unmet == (
        UnmetRequirement("size", "size In [8]", "4"),
        UnmetRequirement("team", "team Exists", None),
    )


@pytest.mark.parametrize(
    ("now", "drifts"),
    [
        pytest.param(requirement("In", "4", "8"), False, id="the same"),
        pytest.param(requirement("In", "4", "8", "9"), False, id="wider"),
        pytest.param(requirement("Exists"), False, id="much wider"),
        pytest.param(requirement("In", "8"), True, id="narrower"),
        pytest.param(requirement("In", "9"), True, id="another"),
    ],
)
def test_a_label_that_the_provider_never_set_drifts_nothing(
    now: dict[str, Any], drifts: bool
) -> None:
    """A replacement would lack it, too."""
    own = msgspec.convert([requirement("In", "4", "8")], tuple[Requirement, ...])
    told = evaluated(DECIDER, a_pool(requirements=[now]), a_claim(spec={"requirements": own}))
    assert [verdict.reason for verdict in told] == ([Reason.DRIFTED] if drifts else [])


def test_a_claim_without_a_hash_is_compared_by_its_requirements() -> None:
    (verdict,) = evaluated(DECIDER, a_pool(requirements=[requirement("Exists")]), a_claim())
    assert said(verdict)["Drifted"] == ("True", "RequirementsDrifted")


# -- the instance type -----------------------------------------------------------------------

BOUGHT = {INSTANCE_TYPE: "small", ZONE: "zone-a", CAPACITY_TYPE: "spot"}
CLASS = "KWOKNodeClass/default"


@pytest.mark.parametrize(
    ("types", "labels", "drifts"),
    [
        pytest.param([a_type("small")], BOUGHT, False, id="listed"),
        pytest.param([a_type("large")], BOUGHT, True, id="not listed"),
        pytest.param([], BOUGHT, False, id="nothing is listed"),
        pytest.param([a_type("small")], {**BOUGHT, ZONE: "zone-z"}, True, id="not in its zone"),
        pytest.param(
            [a_type("small")], {**BOUGHT, CAPACITY_TYPE: "reserved"}, False, id="reserved"
        ),
        pytest.param([a_type("small")], {}, True, id="no label"),
    ],
)
def test_an_instance_type_that_is_gone_drifts(
    types: list[Any], labels: dict[str, str], drifts: bool
) -> None:
    claim = made_from(a_pool(), labels=labels)
    told = evaluated(DECIDER, a_pool(), claim, instance_types={CLASS: tuple(types)})
    assert [verdict.reason for verdict in told] == ([Reason.DRIFTED] if drifts else [])
    if drifts:
        assert said(told[0])["Drifted"] == ("True", "InstanceTypeNotFound")


def test_in_the_first_hour_it_does_not() -> None:
    claim = made_from(a_pool(), labels=BOUGHT, creation_timestamp=MINUTE_AGO)
    known = {CLASS: (a_type("large"),)}
    (verdict,) = evaluated(DECIDER, a_pool(), claim, instance_types=known)
    assert verdict.reason is Reason.NOT_DRIFTED
    assert verdict.action is None
    assert verdict.recheck_at == MINUTE_AGO + TYPE_GONE_AFTER
    due = verdict.recheck_at
    assert due is not None
    (before,) = evaluated(
        DECIDER, a_pool(), claim, now=due - timedelta(microseconds=1), instance_types=known
    )
    (after,) = evaluated(DECIDER, a_pool(), claim, now=due, instance_types=known)
    assert (before.reason, after.reason) == (Reason.NOT_DRIFTED, Reason.DRIFTED)
    assert fact_of(after, InstanceTypeGone).instance_type == "small"


# -- the provider ----------------------------------------------------------------------------


def answered(**answer: Any) -> dict[str, Any]:
    return {"drifts": {"uid-a": DriftAnswer(**answer)}}


def test_what_the_provider_says_drifts() -> None:
    (verdict,) = evaluated(DECIDER, a_pool(), made_from(a_pool()), **answered(drift=IMAGE))
    assert said(verdict)["Drifted"] == ("True", "ImageDrift")
    assert fact_of(verdict, ProviderSaysDrifted).message == IMAGE.message


def test_an_answer_that_fails_drifts_nothing_and_says_so() -> None:
    known = answered(silent_since=MINUTE_AGO, failure="RequestLimitExceeded")
    (verdict,) = evaluated(DECIDER, a_pool(), made_from(a_pool()), **known)
    assert verdict.reason is Reason.DRIFT_UNKNOWN
    assert verdict.action is None
    assert fact_of(verdict, ProviderSilent) == ProviderSilent(MINUTE_AGO, "RequestLimitExceeded")


@pytest.mark.parametrize(
    "known",
    [
        pytest.param({}, id="not asked yet, as after a restart"),
        pytest.param(answered(silent_since=MINUTE_AGO, failure="down"), id="no answer"),
    ],
)
def test_a_condition_of_the_provider_stays_until_it_answers(known: dict[str, Any]) -> None:
    claim = made_from(a_pool(), **drifted("ImageDrift", "runs v1"))
    (verdict,) = evaluated(DECIDER, a_pool(), claim, **known)
    assert verdict.reason is Reason.DRIFTED
    assert verdict.action is None
    assert fact_of(verdict, DriftRecorded).message == "runs v1"


def test_its_answer_undrifts() -> None:
    claim = made_from(a_pool(), **drifted("ImageDrift"))
    (verdict,) = evaluated(DECIDER, a_pool(), claim, **answered())
    assert said(verdict)["Drifted"] == ("False", "NotDrifted")


@pytest.mark.parametrize("reason", ["NodePoolDrifted", "RequirementsDrifted"])
def test_what_can_be_checked_without_the_provider_does_not_wait_for_it(reason: str) -> None:
    claim = made_from(a_pool(), **drifted(reason))
    known = answered(silent_since=MINUTE_AGO, failure="down")
    (verdict,) = evaluated(DECIDER, a_pool(), claim, **known)
    assert verdict.reason is Reason.DRIFT_UNKNOWN
    assert said(verdict)["Drifted"] == ("False", "NotDrifted")


def test_a_type_that_was_gone_stays_gone_until_types_are_listed() -> None:
    claim = made_from(a_pool(), labels=BOUGHT, **drifted("InstanceTypeNotFound"))
    (verdict,) = evaluated(DECIDER, a_pool(), claim, instance_types={CLASS: ()})
    assert (verdict.reason, verdict.action) == (Reason.DRIFTED, None)
    (verdict,) = evaluated(DECIDER, a_pool(), claim, instance_types={CLASS: (a_type("small"),)})
    assert said(verdict)["Drifted"] == ("False", "NotDrifted")


def test_all_that_differs_is_named_and_the_first_gives_the_reason() -> None:
    pool = a_pool(template={"taints": [TAINT]}, requirements=[requirement("Exists")])
    known = {**answered(drift=IMAGE), "instance_types": {CLASS: (a_type("large"),)}}
    (verdict,) = evaluated(DECIDER, pool, made_from(a_pool(), labels=BOUGHT), **known)
    assert said(verdict)["Drifted"] == ("True", "NodePoolDrifted")
    assert [type(fact) for fact in verdict.facts] == [
        TemplateChanged,
        RequirementsUnmet,
        InstanceTypeGone,
        ProviderSaysDrifted,
    ]


# -- what is evaluated again --------------------------------------------------------------------


def test_an_answer_and_a_list_of_types_touch_their_claims() -> None:
    mine, other = made_from(a_pool()), made_from(a_pool(template={"nodeClassRef": OTHER}), name="b")
    snapshot = snapshot_with(a_pool(), mine, other)
    assert list(DECIDER.observed(Subject.of("NodeClaim", mine), snapshot)) == ["a"]
    assert list(DECIDER.observed(Subject("NodeClass", CLASS), snapshot)) == ["a"]
    assert list(DECIDER.observed(Subject("Pod", "a", "default"), snapshot)) == []


@pytest.mark.parametrize(
    ("new", "touches"),
    [
        pytest.param(a_pool(status={"nodes": 3}), False, id="its status"),
        pytest.param(a_pool(weight=3), False, id="its weight"),
        pytest.param(a_pool(template={"taints": []}), True, id="an empty list"),
        pytest.param(a_pool(requirements=[requirement("Exists")]), True, id="a requirement"),
        pytest.param(stand_in(a_pool(), "broken"), True, id="it cannot be read"),
    ],
)
def test_only_another_template_touches_the_claims_of_a_pool(new: NodePool, touches: bool) -> None:
    snapshot = snapshot_with(new, made_from(a_pool()))
    change = Change(NODE_POOLS, "general", a_pool(), new)
    assert list(DECIDER.touched(change, snapshot)) == (["a"] if touches else [])


# -- nothing to say --------------------------------------------------------------------------

STALE: dict[str, Any] = {"annotations": {NODEPOOL_HASH: "1", NODEPOOL_HASH_VERSION: HASH_VERSION}}


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(a_claim(), id="made by hand, without a hash"),
        pytest.param(a_claim(stage=0, **STALE), id="not launched"),
        pytest.param(a_leaving_claim(**STALE), id="leaving"),
        pytest.param(a_claim(ref=FOREIGN, **STALE), id="another provider's"),
        pytest.param(a_claim(labels={"karpenter.sh/nodepool": "gone"}, **STALE), id="of no pool"),
    ],
)
def test_nothing_is_reported_about(claim: NodeClaim) -> None:
    assert evaluated(DECIDER, a_pool(), claim) == []


@pytest.mark.parametrize(
    "template",
    [
        pytest.param({"expireAfter": "soon"}, id="an expiry"),
        pytest.param({"requirements": [requirement("Near", "1")]}, id="an operator"),
    ],
)
def test_a_template_that_cannot_be_read_drifts_nothing(template: dict[str, Any]) -> None:
    assert evaluated(DECIDER, a_pool(template=template), a_claim(**STALE)) == []
