"""Report for every claim whether it has drifted: what it was made from is not what is asked for now.

A claim has drifted if any of these holds. The condition ``Drifted`` has the reason of the first, and its
message names all of them:

1. template       a hashed field of the pool's template has changed (``template.py``);
2. requirements   the claim's labels do not satisfy the pool's requirements (``requirements.py``);
3. instance type  an hour after its creation, the provider no longer lists its type, zone and capacity type;
4. provider       the provider says so: another image, another network (an observation of the runtime).

What is not known drifts nothing: while the provider does not answer, or lists nothing, a condition that
was set because of it stays as it is, and a claim without one has not drifted. A claim whose hash has another
version gets the present one, and has not drifted. The template of a claim without a hash is not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple

import msgspec

from tenure.core.conditions import Wanted
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.drift.facts import (
    CountsFrom,
    DriftRecorded,
    HashVersionOld,
    InstanceTypeGone,
    ProviderSaysDrifted,
    ProviderSilent,
    RequirementsUnmet,
    TemplateChanged,
    Undrifted,
)
from tenure.core.drift.pooltemplate import TEMPLATE, PoolTemplate, same_template
from tenure.core.drift.requirements import drifted_requirements
from tenure.core.drift.template import changed_fields
from tenure.core.drift.types import Offered, offered
from tenure.core.facts import Fact
from tenure.core.marks.ownership import claim_status, is_ours
from tenure.core.marks.templatehash import HASH_VERSION, hash_annotations
from tenure.core.pool.lookup import node_class_key
from tenure.core.reasons import Reason
from tenure.core.verdicts import say
from tenure.core.writes import patch
from tenure.model.api.meta import later
from tenure.model.api.names import (
    DRIFTED_CONDITION,
    FINALIZER,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
)
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import DriftAnswer
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

#: Lists of types are wrong at times, and a new claim was made from one. As in Karpenter.
TYPE_GONE_AFTER: Final = timedelta(hours=1)

_say = partial(say, Concern.DRIFT)


class DriftReason(StrEnum):
    """Reasons of the condition, in Karpenter's words; a provider has its own beside them."""

    TEMPLATE = "NodePoolDrifted"
    REQUIREMENTS = "RequirementsDrifted"
    TYPE = "InstanceTypeNotFound"


class Difference(NamedTuple):
    reason: str
    fact: Fact


class DriftView(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim
    template: PoolTemplate
    offered: Offered
    #: None: the provider was not asked yet.
    answer: DriftAnswer | None

    @property
    def is_news(self) -> bool:
        """Whether there is something to report."""
        return (
            self.claim.drifted
            or _has_old_version(self.claim)
            or self.template_changed
            or self.type_gone
            or (self.answer is not None and self.answer.is_news)
            or any(drifted_requirements(self.template.requirements, self.claim))
        )

    @property
    def type_gone(self) -> bool:
        return self.offered in (Offered.TYPE_GONE, Offered.OFFERING_GONE)

    @property
    def template_changed(self) -> bool:
        made_from = self.claim.annotations.get(NODEPOOL_HASH)
        return made_from is not None and made_from != self.template.hash


class DriftDecider:
    concern = Concern.DRIFT

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODE_CLAIMS:
            yield change.key
        elif change.resource == NODE_POOLS and not same_template(change.old, change.new):
            yield from snapshot.claims_of_pool(change.key)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        if subject.kind == NODE_CLAIMS.kind:
            yield subject.name
        elif subject.kind == "NodeClass":
            yield from snapshot.claims_of_class(subject.name)

    def view(self, snapshot: Snapshot, key: str) -> DriftView | None:
        claim = snapshot.claims.get(key)
        if claim is None or claim.deleting or not claim.launched:
            return None
        if not is_ours(claim, snapshot) or FINALIZER not in claim.metadata.finalizers:
            return None
        pool = snapshot.pools.get(claim.pool_name)
        if pool is None or is_unreadable(pool) or is_unreadable(claim):
            return None
        template = snapshot.derived.of(TEMPLATE, pool)
        if template is None:
            return None  # Without a template that can be read there is nothing to compare with.
        types = snapshot.observations.instance_types.get(node_class_key(claim.spec.node_class_ref))
        view = DriftView(
            claim=claim,
            template=template,
            offered=offered(claim, types or ()),
            answer=snapshot.observations.drifts.get(claim.uid),
        )
        return view if view.is_news else None

    def decide(self, view: DriftView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        if _has_old_version(view.claim):
            return (_renew(view),)
        return (_compare(view, now),)


def _has_old_version(claim: NodeClaim) -> bool:
    written = claim.annotations
    return NODEPOOL_HASH in written and written.get(NODEPOOL_HASH_VERSION) != HASH_VERSION


def _renew(view: DriftView) -> Verdict:
    """Of a claim whose template had changed by the old version, the hash stays, so that it stays
    drifted; as in Karpenter."""
    claim = view.claim
    version = claim.annotations.get(NODEPOOL_HASH_VERSION, "")
    condition = claim.condition(DRIFTED_CONDITION)
    kept = claim.drifted and condition is not None and condition.reason == DriftReason.TEMPLATE
    old = HashVersionOld(version, HASH_VERSION, kept)
    renewed = {NODEPOOL_HASH_VERSION: HASH_VERSION}
    if not kept:
        renewed = hash_annotations(view.template.fields)
    return _say(claim, Reason.HASH_RENEWED, old, action=patch(claim, {"annotations": renewed}))


def _compare(view: DriftView, now: datetime) -> Verdict:
    claim, answer = view.claim, view.answer
    counts_from = later(claim.created_at, TYPE_GONE_AFTER)
    waits = view.type_gone and now < counts_from
    recheck_at = counts_from if waits else None
    silent = answer.silence if answer is not None else None
    extra = (ProviderSilent(*silent),) if silent is not None else ()
    if found := tuple(_differences(view, type_counts=not waits)):
        facts = tuple(one.fact for one in found)
        message = "; ".join(map(str, facts))
        said = claim_status(claim, Wanted(DRIFTED_CONDITION, "True", found[0].reason, message))
        return _say(claim, Reason.DRIFTED, *facts, *extra, action=said, recheck_at=recheck_at)
    if (recorded := _unconfirmed(view)) is not None:
        return _say(claim, Reason.DRIFTED, recorded, *extra, recheck_at=recheck_at)
    said = (
        claim_status(claim, Wanted(DRIFTED_CONDITION, "False", "NotDrifted"))
        if claim.drifted
        else None
    )
    if waits:
        facts = (_gone(view), CountsFrom(counts_from))
        return _say(claim, Reason.NOT_DRIFTED, *facts, *extra, action=said, recheck_at=recheck_at)
    if extra:
        return _say(claim, Reason.DRIFT_UNKNOWN, *extra, action=said)
    return _say(claim, Reason.NOT_DRIFTED, Undrifted(claim.pool_name), action=said)


def _differences(view: DriftView, *, type_counts: bool) -> Iterator[Difference]:
    claim, template = view.claim, view.template
    if view.template_changed:
        fields = changed_fields(claim, template.template, template.fields)
        changed = TemplateChanged(claim.pool_name, fields)
        yield Difference(DriftReason.TEMPLATE, changed)
    if clashes := tuple(drifted_requirements(template.requirements, claim)):
        yield Difference(DriftReason.REQUIREMENTS, RequirementsUnmet(claim.pool_name, clashes))
    if view.type_gone and type_counts:
        yield Difference(DriftReason.TYPE, _gone(view))
    if view.answer is not None and view.answer.drift is not None:
        drift = view.answer.drift
        yield Difference(drift.reason, ProviderSaysDrifted(drift.reason, drift.message))


def _unconfirmed(view: DriftView) -> DriftRecorded | None:
    """What the condition says, where that cannot be checked now."""
    condition = view.claim.condition(DRIFTED_CONDITION)
    if condition is None or condition.status != "True":
        return None
    if condition.reason in (DriftReason.TEMPLATE, DriftReason.REQUIREMENTS):
        return None
    if condition.reason == DriftReason.TYPE:
        unknown = view.offered is Offered.UNKNOWN
    else:
        unknown = view.answer is None or view.answer.silence is not None
    if not unknown:
        return None
    return DriftRecorded(condition.reason, condition.message, condition.last_transition_time)


def _gone(view: DriftView) -> InstanceTypeGone:
    claim = view.claim
    node_class = node_class_key(claim.spec.node_class_ref)
    if view.offered is Offered.TYPE_GONE:
        return InstanceTypeGone(node_class, claim.instance_type)
    return InstanceTypeGone(node_class, claim.instance_type, claim.zone, claim.capacity_type)
