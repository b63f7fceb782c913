"""What we know that is not in the cluster, with the instant at which we learned it.

Launch answers, eviction answers, dry offerings and lists of instances are inputs of a
decision like any object, so they are values in the snapshot: deciders stay pure, and
``explain`` can say "asked again at 14:03:10". All of it may be lost at any moment: a
restart learns it again from the cluster and the cloud.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum

import msgspec

from tenure.model.api.meta import ApiObject
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance
from tenure.model.cloud.offering import InstanceType, OfferingKey
from tenure.model.cloud.repairs import RepairStatement
from tenure.model.snapshot.consolidation import ConsolidationPlan


class LaunchProblem(StrEnum):
    OUT_OF_CAPACITY = "OutOfCapacity"
    MISCONFIGURED = "Misconfigured"
    FAILED = "Failed"


class LaunchFailure(msgspec.Struct, frozen=True, kw_only=True):
    """The cloud's last refusal for a claim. ``retry_at`` is None where retrying is useless."""

    problem: LaunchProblem
    message: str
    at: datetime
    retry_at: datetime | None = None


class ClassRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """The cloud cannot use a node class as it is; it is asked again at ``until`` at the latest."""

    message: str
    at: datetime
    until: datetime


class WriteRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """The API server or the guard refused what a disruption begins with."""

    message: str
    at: datetime
    retry_at: datetime
    #: Of the object; empty: the object itself.
    subresource: str = ""


class ClaimRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """The API server refused to create a claim for a pod.

    Whether because of this pod or of another that it was planned with is found out by planning them
    apart. Without ``retry_at`` that has not been tried yet.
    """

    claim: str
    message: str
    at: datetime
    retry_at: datetime | None = None


class TerminationAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """When we last asked the cloud to end a claim's instance, and whether it is gone."""

    asked_at: datetime
    gone: bool = False
    #: It was gone when we first asked.
    lost: bool = False


class InspectionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """When we last asked the cloud whether a claim's instance is there, and whether it is gone."""

    asked_at: datetime
    gone: bool = False


class RebootAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the cloud said when it was asked to reboot a claim's instance."""

    operation_id: str
    #: When; while it has not answered for good, when the first of the calls in a row left.
    at: datetime
    #: Why it will not be rebooted; empty when the cloud has accepted it.
    refusal: str = ""
    #: Without an answer so far: when the last call failed, and how. None: it has answered for good.
    failed_at: datetime | None = None
    failure: str = ""


class DriftAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider last said about whether a claim's instance has drifted."""

    #: None: it has not drifted.
    drift: Drift | None = None
    #: Since when it has not answered, and why; None: its last answer is ``drift``.
    silent_since: datetime | None = None
    failure: str = ""

    @property
    def silence(self) -> tuple[datetime, str] | None:
        return None if self.silent_since is None else (self.silent_since, self.failure)

    @property
    def is_news(self) -> bool:
        return self.drift is not None or self.silent_since is not None


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """What the cloud announced about a claim's instance; instants in whole seconds."""

    #: The provider.
    by: str
    at: datetime
    #: When the instance is taken away; None where the cloud does not say, or does not take it.
    deadline: datetime | None = None


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """How a new node of a pool fared, and what it was made from."""

    claim: str
    #: Why it was given up, by a metric's word; empty: its Node has registered.
    failure: str = ""
    #: Of the pool, and of its node class as the pool last saw it.
    generations: tuple[int, int | None] = (0, None)


class EvictionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The API's last refusal to evict a pod."""

    at: datetime
    retry_at: datetime
    message: str


class OrphanSighting(msgspec.Struct, frozen=True, kw_only=True):
    """An instance of ours whose claim was missing from live lists, first and last."""

    instance: Instance
    first_at: datetime
    last_at: datetime


class DepartedClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that is gone and came to nothing, with the owners of the pods it was created for."""

    name: str
    pool: str
    created_at: datetime
    launched_for: str
    #: Tenure removed it as empty: its pods had left it at once. Otherwise others deleted it.
    left_at_once: bool = False


class Observations(msgspec.Struct, frozen=True, kw_only=True):
    """Keyed by claim UID unless a comment says otherwise."""

    #: What the provider states about unhealthy nodes.
    repair_statements: tuple[RepairStatement, ...] = ()
    instances: Mapping[str, Instance] = {}
    launch_failures: Mapping[str, LaunchFailure] = {}
    terminations: Mapping[str, TerminationAnswer] = {}
    inspections: Mapping[str, InspectionAnswer] = {}
    reboots: Mapping[str, RebootAnswer] = {}
    drifts: Mapping[str, DriftAnswer] = {}
    #: Instances that the cloud takes back, and those that it recommends to leave.
    interruptions: Mapping[str, Announcement] = {}
    recommendations: Mapping[str, Announcement] = {}
    #: By pod UID.
    evictions: Mapping[str, EvictionAnswer] = {}
    #: By pod UID: since when the API has failed to delete the pod for a deadline.
    failed_deletions: Mapping[str, datetime] = {}
    #: By pod UID: when we first saw that the scheduler has no node for it. Watches may be late.
    waiting_seen: Mapping[str, datetime] = {}
    #: By UID of a controller: when it last created a pod that was not bound yet.
    created_seen: Mapping[str, datetime] = {}
    #: By the name of a Node: when a pod last left it, or ended there.
    pods_left: Mapping[str, datetime] = {}
    #: When claims were last created for pods: the next batch of pods begins after that.
    pods_decided_at: datetime | None = None
    #: Until when an offering counts as sold out.
    dry_offerings: Mapping[OfferingKey, datetime] = {}
    #: By provider id.
    orphans: Mapping[str, OrphanSighting] = {}
    #: Claims whose instance was missing from the newest list, with that list's instant.
    vanished: Mapping[str, datetime] = {}
    #: By node class key ``Kind/name``.
    instance_types: Mapping[str, tuple[InstanceType, ...]] = {}
    #: By pool UID: its last few, the newest at the end.
    arrivals: Mapping[str, tuple[Arrival, ...]] = {}
    #: By claim UID, for as long as a launch counts.
    departed_claims: Mapping[str, DepartedClaim] = {}
    #: By claim UID: the owners of whose pods one has ended by itself on the claim's Node, until
    #: the claim itself says so.
    served_claims: Mapping[str, frozenset[str]] = {}
    #: By pod UID, until a claim was created for the pod.
    refused_claims: Mapping[str, ClaimRefusal] = {}
    #: By the UID of the claim, Node or pool that was to be written, until the write succeeds.
    refused_starts: Mapping[str, WriteRefusal] = {}
    #: By node class key; types of such a class are not listed above until it is asked again.
    refused_classes: Mapping[str, ClassRefusal] = {}
    #: Which nodes could go for less money; None: that has not been asked yet.
    consolidation: ConsolidationPlan | None = None

    def refusals_of(self, things: Iterable[ApiObject]) -> dict[str, WriteRefusal]:
        """By UID: of those whose last write for a disruption was refused."""
        if not self.refused_starts:
            return {}  # Nearly always.
        uids = {thing.uid for thing in things}
        return {uid: self.refused_starts[uid] for uid in sorted(uids & self.refused_starts.keys())}
