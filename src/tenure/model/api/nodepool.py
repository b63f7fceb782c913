"""A pool: which nodes may exist, how many, and how they are disrupted and repaired."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

import msgspec

from tenure.model.api import fields
from tenure.model.api.fields import Quantity, described, duration, quantities
from tenure.model.api.meta import (
    AbsentMap,
    ApiObject,
    Condition,
    Wire,
    condition_status,
    find_condition,
)
from tenure.model.api.nodeclaim import LabelValue, NodeClaimTemplateSpec, NodeClassRef
from tenure.model.api.window import NodeLabelSelector

BUDGET_REASONS = ("Underutilized", "Empty", "Drifted", "Unhealthy", "Expired")
CONSOLIDATION_POLICIES = ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")
EXPIRATION_POLICIES = ("WhenAllowed", "Always")
TERMINATION_MODES = ("Forceful", "Graceful")
REPAIR_ACTIONS = ("Replace", "Reboot", "None")
#: The longest ``within`` of a budget, so that a pool remembers no more than a day.
WITHIN_MAX = timedelta(hours=24)
#: How many starts the status of a pool holds.
STARTS_MAX = 1000

BudgetReason = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(BUDGET_REASONS)})]


class Budget(Wire, frozen=True, kw_only=True):
    """How many nodes of the pool may be disrupted at once."""

    nodes: Annotated[
        str,
        described(
            "How many nodes may be disrupted at once, or with within be started in such a span: a "
            "number, or a percentage, rounded up.",
            required=True,
            pattern=fields.PERCENT_OR_COUNT,
            default="10%",
        ),
    ] = "10%"
    reasons: Annotated[
        tuple[BudgetReason, ...],
        described(
            "Which disruptions the budget limits; all of them when absent.",
            maxItems=50,
            **fields.SET,
        ),
    ] = ()
    schedule: Annotated[
        str | None,
        described(
            "When the budget begins to apply: five cron fields or a name such as @daily; "
            "always when absent. It needs a duration.",
            pattern=fields.CRON,
            maxLength=256,
        ),
    ] = None
    duration: Annotated[
        str | None,
        duration(
            "How long the budget applies from each hit of the schedule, in hours and minutes.",
            fields.MINUTES_DURATION,
        ),
    ] = None
    time_zone: Annotated[
        str | None,
        described(
            "IANA name of the time zone that the schedule is read in; UTC when absent.",
            pattern=fields.TIME_ZONE,
            maxLength=64,
        ),
    ] = None
    per: Annotated[
        str | None,
        described(
            "A node label, for example topology.kubernetes.io/zone: the budget then holds for "
            "the nodes of each of its values apart.",
            pattern=fields.QUALIFIED_NAME,
            maxLength=fields.QUALIFIED_NAME_LENGTH,
        ),
    ] = None
    within: Annotated[
        str | None,
        duration(
            "Turns the budget into a velocity: at most so many disruptions are started in any such "
            "span, in hours and minutes, 24h at the longest. How many nodes are disrupted at once "
            "is then left to other budgets.",
            fields.DAY_DURATION,
        ),
    ] = None
    selector: Annotated[
        NodeLabelSelector | None,
        described("Which nodes of the pool the budget counts and limits; all when absent."),
    ] = None


DEFAULT_BUDGETS = (Budget(),)


class Disruption(Wire, frozen=True, kw_only=True):
    """When a healthy node may be taken away. Read live: a change acts at once."""

    consolidate_after: Annotated[
        str,
        duration(
            "How long no pod may have been added or removed before a node is a candidate of "
            "consolidation; Never switches consolidation off.",
            fields.PLAIN_DURATION_OR_NEVER,
            default="0s",
        ),
    ] = "0s"
    consolidation_policy: Annotated[
        str,
        described(
            "Which nodes consolidation looks at: only those without pods, all of them, or all "
            "of them with the saving weighed against the pods that move.",
            enum=list(CONSOLIDATION_POLICIES),
            default="WhenEmptyOrUnderutilized",
        ),
    ] = "WhenEmptyOrUnderutilized"
    budgets: Annotated[
        tuple[Budget, ...],
        described(
            "How many nodes may be disrupted at once; the tightest budget that applies wins, and "
            "an empty list sets no limit.",
            maxItems=50,
            default=[{"nodes": "10%"}],
            **fields.ATOMIC,
        ),
    ] = DEFAULT_BUDGETS
    expiration_policy: Annotated[
        str,
        described(
            "WhenAllowed lets expiration wait for windows, budgets and a replacement; Always "
            "deletes an expired node at once, whatever budgets say.",
            enum=list(EXPIRATION_POLICIES),
            default="WhenAllowed",
        ),
    ] = "WhenAllowed"
    max_pod_protection: Annotated[
        str | None,
        duration(
            "The longest time that a pod's do-not-disrupt annotation is honoured in this pool; "
            "no limit when absent.",
            fields.GO_DURATION,
        ),
    ] = None


class RepairPolicy(Wire, frozen=True, kw_only=True, gc=False):
    """What to do about one condition of unhealthy nodes."""

    condition_type: Annotated[
        str,
        described(
            "The node condition, for example Ready or NetworkUnavailable.",
            required=True,
            minLength=1,
            maxLength=fields.QUALIFIED_NAME_LENGTH,
            pattern=fields.QUALIFIED_NAME,
        ),
    ] = ""
    status: Annotated[
        str | None,
        described(
            "The status that means unhealthy; it may be left out for the conditions that Kubernetes "
            "itself knows.",
            enum=["True", "False", "Unknown"],
        ),
    ] = None
    reason: Annotated[
        str | None,
        described(
            "RE2 expression that the condition's reason must match somewhere; any reason when "
            "absent.",
            minLength=1,
            maxLength=256,
        ),
    ] = None
    toleration: Annotated[
        str,
        duration(
            "How long the condition is tolerated before the node is repaired; Never switches "
            "this repair off.",
            fields.GO_DURATION_OR_NEVER,
            required=True,
        ),
    ] = ""
    termination_mode: Annotated[
        str | None,
        described(
            "How the node goes because of this condition; the mode of the block when absent.",
            enum=list(TERMINATION_MODES),
        ),
    ] = None
    termination_grace_period: Annotated[
        str | None,
        duration(
            "How long the drain may take at the longest; only with the mode Graceful.",
            fields.GO_DURATION,
        ),
    ] = None
    action: Annotated[
        str | None,
        described(
            "Replace the node, Reboot it in place, or None to report only; the provider's "
            "choice when absent.",
            enum=list(REPAIR_ACTIONS),
        ),
    ] = None


class Repair(Wire, frozen=True, kw_only=True):
    """How unhealthy nodes are repaired. Read live: a change acts at once."""

    policies: Annotated[
        tuple[RepairPolicy, ...],
        described(
            "What to do about single conditions; the most specific entry wins, then the first.",
            maxItems=50,
            **fields.ATOMIC,
        ),
    ] = ()
    default_toleration_duration: Annotated[
        str | None,
        duration(
            "How long conditions without an entry of their own are tolerated; the provider's "
            "value when absent, and Never switches their repair off.",
            fields.GO_DURATION_OR_NEVER,
        ),
    ] = None
    max_unhealthy: Annotated[
        str | int,
        described(
            "No node is repaired while more than this many of the pool's nodes are unhealthy: a "
            "number, or a percentage, rounded up.",
            anyOf=[{"type": "integer"}, {"type": "string"}],
            pattern=fields.PERCENT_OR_COUNT,
            maxLength=20,
            minimum=0,
            default="20%",
            **{"x-kubernetes-int-or-string": True},
        ),
    ] = "20%"
    termination_mode: Annotated[
        str,
        described(
            "Forceful terminates an unhealthy node at once; Graceful launches its replacement first, within "
            "budgets, and drains it.",
            enum=list(TERMINATION_MODES),
            default="Forceful",
        ),
    ] = "Forceful"


class TemplateMetadata(Wire, frozen=True, kw_only=True):
    labels: Annotated[
        Mapping[str, LabelValue],
        described(
            "Labels that every node of the pool gets.",
            maxProperties=100,
            **{"x-kubernetes-map-type": "atomic"},
        ),
    ] = msgspec.field(default_factory=AbsentMap)
    annotations: Annotated[
        Mapping[str, str],
        described(
            "Annotations that every node of the pool gets.",
            **{"x-kubernetes-map-type": "granular"},
        ),
    ] = msgspec.field(default_factory=AbsentMap)


class NodeClaimTemplate(Wire, frozen=True, kw_only=True):
    metadata: Annotated[
        TemplateMetadata, described("Labels and annotations of the claims and nodes.")
    ] = TemplateMetadata()
    spec: Annotated[
        NodeClaimTemplateSpec,
        described(
            "What is copied into each claim; a change drifts the existing nodes.", required=True
        ),
    ] = NodeClaimTemplateSpec()


class NodePoolSpec(Wire, frozen=True, kw_only=True):
    template: Annotated[
        NodeClaimTemplate, described("What the nodes of this pool look like.", required=True)
    ] = NodeClaimTemplate()
    disruption: Annotated[
        Disruption,
        described("When healthy nodes may be taken away.", default={"consolidateAfter": "0s"}),
    ] = Disruption()
    repair: Annotated[
        Repair | None,
        described("How unhealthy nodes are repaired; the provider's rules apply when absent."),
    ] = None
    limits: Annotated[
        Mapping[str, Quantity],
        quantities("The most that all nodes of the pool may add up to, the number of nodes too."),
    ] = {}
    weight: Annotated[
        int | None,
        described(
            "Pools with a higher weight are tried first.", format="int32", minimum=1, maximum=100
        ),
    ] = None
    replicas: Annotated[
        int | None,
        described(
            "Keeps this many nodes whether pods need them or not; a pool cannot gain or lose "
            "this field later.",
            format="int64",
            minimum=0,
        ),
    ] = None


class DisruptionStart(Wire, frozen=True, kw_only=True):
    """A disruption of the pool that was started. What cannot be read decodes, and protects."""

    at: Annotated[
        str, described("When it was started.", required=True, format="date-time", maxLength=64)
    ] = ""
    claim: Annotated[str, described("The UID of the NodeClaim.", required=True, maxLength=128)] = ""
    reason: Annotated[
        str, described("Why: a reason of budgets, or Deleted.", required=True, maxLength=63)
    ] = ""
    labels: Annotated[
        Mapping[str, str],
        described(
            "The node's values of the labels that budgets of the pool count by; empty where the "
            "node had none.",
            maxProperties=100,
        ),
    ] = {}


class DisruptionsAllowed(Wire, frozen=True, kw_only=True):
    """How many more nodes of the pool may be disrupted for one reason."""

    reason: Annotated[str, described("The reason.", required=True, maxLength=63)] = ""
    nodes: Annotated[
        int | None,
        described(
            "How many more nodes budgets let be disrupted now; no limit when absent.",
            format="int64",
        ),
    ] = None
    next_change: Annotated[
        str | None,
        described(
            "When that may change although nothing happens in the cluster: a budget begins or ends "
            "to apply, or a start leaves the span of a budget.",
            format="date-time",
            maxLength=64,
        ),
    ] = None


class NodePoolStatus(Wire, frozen=True, kw_only=True):
    resources: Annotated[
        Mapping[str, Quantity],
        quantities("What the nodes of the pool add up to, their number included."),
    ] = {}
    nodes: Annotated[int, described("How many nodes the pool has.", format="int64", default=0)] = 0
    node_class_observed_generation: Annotated[
        int | None,
        described("The generation of the node class that was last looked at.", format="int64"),
    ] = None
    disruption_starts: Annotated[
        tuple[DisruptionStart, ...],
        described(
            "Disruptions that were started lately, for budgets with within; kept for the longest "
            "of their spans.",
            maxItems=STARTS_MAX,
            **fields.ATOMIC,
        ),
    ] = ()
    disruptions_allowed: Annotated[
        tuple[DisruptionsAllowed, ...],
        described(
            "How many more nodes budgets let be disrupted now, by reason.",
            maxItems=50,
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["reason"]},
        ),
    ] = ()
    conditions: Annotated[
        tuple[Condition, ...],
        described("Whether the pool can be used.", **fields.CONDITIONS),
    ] = ()


class NodePool(ApiObject, frozen=True, kw_only=True):
    """Which nodes may exist, how many, and how they are disrupted and repaired."""

    spec: Annotated[NodePoolSpec, described("What is wanted of the pool.", required=True)] = (
        NodePoolSpec()
    )
    status: Annotated[NodePoolStatus, described("What the pool is now.")] = NodePoolStatus()

    def condition(self, type_: str) -> Condition | None:
        return find_condition(self.status.conditions, type_)

    def is_true(self, type_: str) -> bool:
        return condition_status(self.status.conditions, type_) == "True"

    @property
    def ready(self) -> bool:
        return self.is_true("Ready")

    @property
    def static(self) -> bool:
        """It keeps a fixed number of nodes and takes no part in scheduling."""
        return self.spec.replicas is not None

    @property
    def weight(self) -> int:
        return self.spec.weight or 0

    @property
    def node_class_ref(self) -> NodeClassRef:
        return self.spec.template.spec.node_class_ref
