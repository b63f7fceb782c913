"""The launch of a claim's instance: ask the cloud, and record its answer.

The first of these that applies:

1. answered     an instance runs for the claim: its labels are written first, then
                ``Launched`` with its provider id, because once ``Launched`` is True the cloud
                is not asked for the labels again;
2. ask          there is no answer yet, or the next retry is due;
3. fail         no offering that the claim allows is available, or its node class cannot be
                used: the claim is deleted, and its pods are provisioned again;
4. wait         the launch failed: ``Launched`` says why, and the launch is retried later.
"""

from __future__ import annotations

from datetime import datetime

from tenure.core.claim.facts import (
    NODE_NOT_THERE,
    AskingCloud,
    InstanceLaunched,
    LaunchRefused,
)
from tenure.core.claim.view import ClaimView, say
from tenure.core.conditions import Wanted
from tenure.core.decision import Ground, Launch, Verdict
from tenure.core.facts import RetriedAt
from tenure.core.marks.ownership import claim_status
from tenure.core.reasons import Reason
from tenure.core.writes import delete_claim, patch
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.cloud.instance import Instance, LaunchRequest
from tenure.model.matching.requirements import Requirements
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import LaunchProblem
from tenure.model.values.quantity import parse_resources
from tenure.schema.problems import in_words, problems_of


def launch(view: ClaimView, settings: Settings, now: datetime) -> Verdict:
    claim, failure = view.claim, view.failure
    if view.instance is not None:
        return _record(claim, view.instance)
    if failure is None:
        return _ask(claim, settings)
    refused = LaunchRefused(failure.message)
    if failure.problem is LaunchProblem.OUT_OF_CAPACITY:
        reason = Reason.INSUFFICIENT_CAPACITY
        return say(claim, reason, refused, action=delete_claim(claim, Ground.LAUNCH_FAILED))
    if failure.problem is LaunchProblem.MISCONFIGURED:
        reason = Reason.NODE_CLASS_NOT_READY
        return say(claim, reason, refused, action=delete_claim(claim, Ground.LAUNCH_FAILED))
    if failure.retry_at is None or now >= failure.retry_at:
        return _ask(claim, settings)
    said = claim_status(claim, Wanted("Launched", "Unknown", Reason.LAUNCH_FAILED, failure.message))
    again = RetriedAt(failure.retry_at)
    return say(
        claim,
        Reason.LAUNCH_FAILED,
        refused,
        again,
        action=said,
        recheck_at=failure.retry_at,
    )


def _ask(claim: NodeClaim, settings: Settings) -> Verdict:
    if problem := in_words(problems_of(claim)):  # Admission did not reject it.
        said = claim_status(claim, Wanted("Launched", "Unknown", Reason.LAUNCH_FAILED, problem))
        return say(claim, Reason.LAUNCH_FAILED, LaunchRefused(problem), action=said)
    request = launch_request(claim, settings.cluster_name)
    return say(claim, Reason.LAUNCHING, AskingCloud(), action=Launch(request=request))


def launch_request(claim: NodeClaim, cluster: str) -> LaunchRequest:
    """The request to the cloud for a valid claim."""
    return LaunchRequest(
        cluster=cluster,
        claim_name=claim.name,
        claim_uid=claim.uid,
        pool=claim.pool_name,
        node_class=claim.spec.node_class_ref,
        requirements=Requirements.from_wire(claim.spec.requirements, "spec.requirements"),
        requests=parse_resources(claim.spec.resources.requests, "spec.resources.requests"),
        labels=dict(claim.labels),
        taints=(*claim.spec.taints, *claim.spec.startup_taints),
    )


def _record(claim: NodeClaim, instance: Instance) -> Verdict:
    launched = InstanceLaunched(instance.instance_type, instance.zone, instance.capacity_type)
    missing = {k: v for k, v in sorted(instance.labels.items()) if k not in claim.labels}
    if missing:
        return say(claim, Reason.LAUNCHED, launched, action=patch(claim, {"labels": missing}))
    status = {
        "providerID": instance.provider_id,
        "imageID": instance.image_id,
        "capacity": dict(instance.capacity),
        "allocatable": dict(instance.allocatable),
    }
    said = claim_status(
        claim,
        Wanted("Launched", "True", "Launched"),
        Wanted("Registered", "Unknown", Reason.NODE_NOT_FOUND, NODE_NOT_THERE),
        status=status,
    )
    return say(claim, Reason.LAUNCHED, launched, action=said)
