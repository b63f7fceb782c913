"""A policy for NodePools: the settings that only Tenure knows, beside the NodePool and not in it.

The CRD of NodePool may be Karpenter's, and the API server drops fields that a CRD does not know. So these
settings are also a kind of their own, with the types of the inline fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from tenure.model.api import fields
from tenure.model.api.fields import described, duration
from tenure.model.api.meta import ApiObject, Condition, Wire
from tenure.model.api.nodeclaim import LabelValue
from tenure.model.api.nodepool import Budget, DisruptionStart, Repair
from tenure.model.api.window import LabelExpression

PoolName = Annotated[
    str,
    msgspec.Meta(extra_json_schema={"minLength": 1, "maxLength": 253}),
]


class NodePoolSelector(Wire, frozen=True, kw_only=True):
    """Which NodePools are meant; all that is given must hold, and nothing means every NodePool."""

    names: Annotated[
        tuple[PoolName, ...],
        described(
            "Names of NodePools; a NodePool is selected when it has one of them.",
            maxItems=100,
            **fields.SET,
        ),
    ] = ()
    match_labels: Annotated[
        Mapping[str, LabelValue],
        described(
            "Labels in the metadata of NodePools; a NodePool is selected when it has all of them.",
            maxProperties=100,
        ),
    ] = msgspec.field(default_factory=dict)
    match_expressions: Annotated[
        tuple[LabelExpression, ...],
        described(
            "Constraints on labels in the metadata of NodePools; a NodePool is selected when all of "
            "them hold.",
            maxItems=100,
            **fields.ATOMIC,
        ),
    ] = ()


class NodePoolPolicySpec(Wire, frozen=True, kw_only=True):
    node_pools: Annotated[
        NodePoolSelector,
        described(
            "Which NodePools the policy is for; every NodePool when absent. Of several policies that "
            "select a NodePool, one with names wins over one with labels, and that over one for every "
            "NodePool. Two that select it in the same way are refused."
        ),
    ] = NodePoolSelector()
    readiness_ttl: Annotated[
        str | None,
        duration(
            "How long a new node may take to become Ready before its claim is deleted; also of the "
            "claims that exist.",
            fields.GO_DURATION,
        ),
    ] = msgspec.field(default=None, name="readinessTTL")
    initialization_ttl: Annotated[
        str | None,
        duration(
            "How long a node may stay Ready without being initialized before it is repaired; also of "
            "the claims that exist.",
            fields.GO_DURATION_OR_NEVER,
        ),
    ] = msgspec.field(default=None, name="initializationTTL")
    expire_after: Annotated[
        str | None,
        duration(
            "How old a node may become before it is replaced, within windows and budgets. It acts "
            "only where spec.template.spec.expireAfter of the NodePool is Never.",
            fields.PLAIN_DURATION_OR_NEVER,
        ),
    ] = None
    repair: Annotated[
        Repair | None,
        described(
            "How unhealthy nodes are repaired; not used where the NodePool has such a block."
        ),
    ] = None
    max_pod_protection: Annotated[
        str | None,
        duration(
            "The longest time that a pod's do-not-disrupt annotation is honoured.",
            fields.GO_DURATION,
        ),
    ] = None
    budgets: Annotated[
        tuple[Budget, ...] | None,
        described(
            "How many nodes may be disrupted at once; in place of the NodePool's default budget, and "
            "beside any other budgets of the NodePool. The tightest budget that applies wins.",
            maxItems=50,
            **fields.ATOMIC,
        ),
    ] = None


#: How many departures the status of a policy holds, of all its pools.
POLICY_STARTS_MAX = 2000


class PoolStart(DisruptionStart, frozen=True, kw_only=True):
    """A departure of a node of one pool, seen beside Karpenter."""

    pool: Annotated[str, described("The name of the NodePool.", required=True, maxLength=253)] = ""


class NodePoolPolicyStatus(Wire, frozen=True, kw_only=True):
    conditions: Annotated[
        tuple[Condition, ...],
        described("Whether the policy is valid, and applies.", **fields.CONDITIONS),
    ] = ()
    node_pools: Annotated[
        int | None,
        described("How many NodePools the policy applies to.", format="int64", minimum=0),
    ] = None
    disruption_starts: Annotated[
        tuple[PoolStart, ...],
        described(
            "Beside Karpenter: departures of nodes that were seen lately, for budgets with within; kept "
            "for the longest of their spans.",
            maxItems=POLICY_STARTS_MAX,
            **fields.ATOMIC,
        ),
    ] = ()


class NodePoolPolicy(ApiObject, frozen=True, kw_only=True):
    """Settings for the NodePools that it selects, where these have none of their own."""

    spec: Annotated[
        NodePoolPolicySpec,
        described("Which NodePools the policy is for, and what holds for them.", required=True),
    ] = NodePoolPolicySpec()
    status: Annotated[NodePoolPolicyStatus, described("What the policy does now.")] = (
        NodePoolPolicyStatus()
    )
