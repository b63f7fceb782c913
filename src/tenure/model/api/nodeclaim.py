"""A claim: one node that we asked a cloud for, from the request to the last finalizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from tenure.model.api import fields
from tenure.model.api.fields import Quantity, described, duration, quantities
from tenure.model.api.meta import (
    AbsentList,
    ApiObject,
    Condition,
    Instant,
    Wire,
    condition_status,
    find_condition,
)
from tenure.model.api.names import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODEPOOL,
    TERMINATION_TIMESTAMP,
    ZONE,
)
from tenure.model.api.node import Taint

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")

LabelValue = Annotated[
    str,
    msgspec.Meta(
        extra_json_schema={
            "maxLength": fields.LABEL_VALUE_LENGTH,
            "pattern": fields.LABEL_VALUE,
        }
    ),
]


class NodeClassRef(Wire, frozen=True, kw_only=True, gc=False):
    """The provider's own object that says how instances are made."""

    group: Annotated[
        str,
        described(
            "API group of the node class, without a version.",
            required=True,
            pattern="^[^/]*$",
            maxLength=253,
        ),
    ] = ""
    kind: Annotated[
        str,
        described("Kind of the node class, for example EC2NodeClass.", required=True, maxLength=63),
    ] = ""
    name: Annotated[str, described("Name of the node class.", required=True, maxLength=253)] = ""


class Requirement(Wire, frozen=True, kw_only=True):
    """One constraint on the labels that a node may have."""

    key: Annotated[
        str,
        described(
            "The node label that is constrained.",
            required=True,
            maxLength=fields.QUALIFIED_NAME_LENGTH,
            pattern=fields.QUALIFIED_NAME,
        ),
    ] = ""
    operator: Annotated[
        str,
        described("How the label compares with the values.", required=True, enum=list(OPERATORS)),
    ] = ""
    values: Annotated[
        tuple[LabelValue, ...],
        described(
            "The values to compare with: at least one for In, exactly one whole number for "
            "Gt, Lt, Gte and Lte.",
            **fields.ATOMIC,
        ),
    ] = ()
    min_values: Annotated[
        int | None,
        described(
            "How many different values of this label the offered instance types must keep open.",
            minimum=1,
            maximum=50,
        ),
    ] = None


class NodeClaimTemplateSpec(Wire, frozen=True, kw_only=True):
    """What a pool writes into each claim it creates; a living claim never changes it."""

    taints: Annotated[
        tuple[Taint, ...],
        described("Taints that the node carries for its whole life.", **fields.ATOMIC),
    ] = msgspec.field(default_factory=AbsentList)
    startup_taints: Annotated[
        tuple[Taint, ...],
        described(
            "Taints that the node starts with and that another program removes; the node is "
            "not initialized before they are gone, and they do not influence scheduling.",
            **fields.ATOMIC,
        ),
    ] = msgspec.field(default_factory=AbsentList)
    requirements: Annotated[
        tuple[Requirement, ...],
        described(
            "Which labels the node may have: zones, instance types, architectures and so on.",
            required=True,
            maxItems=100,
            **fields.ATOMIC,
        ),
    ] = ()
    node_class_ref: Annotated[
        NodeClassRef,
        described("The node class that the provider makes the instance from.", required=True),
    ] = NodeClassRef()
    termination_grace_period: Annotated[
        str | None,
        duration(
            "How long a terminating node may take to drain before pods are deleted in spite of "
            "budgets and protection; without it the drain waits for ever.",
            fields.PLAIN_DURATION,
        ),
    ] = None
    expire_after: Annotated[
        str | None,
        duration(
            "How old a node may become before it is replaced; Never switches expiration off.",
            fields.PLAIN_DURATION_OR_NEVER,
            default="720h",
        ),
    ] = None
    readiness_ttl: Annotated[
        str | None,
        duration(
            "How long a new node may take to become Ready before its claim is deleted.",
            fields.GO_DURATION,
            default="15m",
        ),
    ] = msgspec.field(default=None, name="readinessTTL")
    initialization_ttl: Annotated[
        str | None,
        duration(
            "How long a node may stay Ready without being initialized before it is repaired; "
            "without it, or with Never, there is no limit.",
            fields.GO_DURATION_OR_NEVER,
        ),
    ] = msgspec.field(default=None, name="initializationTTL")


class ResourceRequests(Wire, frozen=True, kw_only=True):
    requests: Annotated[
        Mapping[str, Quantity], quantities("What the pods that the claim was made for ask for.")
    ] = {}


class NodeClaimSpec(NodeClaimTemplateSpec, frozen=True, kw_only=True):
    """What was asked for. Immutable."""

    resources: Annotated[
        ResourceRequests, described("The resources that the node must offer at least.")
    ] = ResourceRequests()


class NodeClaimStatus(Wire, frozen=True, kw_only=True):
    """What came of it."""

    node_name: Annotated[str, described("Name of the Node, once it has registered.")] = ""
    provider_id: Annotated[
        str, described("The provider's name of the instance, as the Node carries it.")
    ] = msgspec.field(default="", name="providerID")
    image_id: Annotated[str, described("The image that the instance was started from.")] = (
        msgspec.field(default="", name="imageID")
    )
    capacity: Annotated[Mapping[str, Quantity], quantities("All resources of the instance.")] = {}
    allocatable: Annotated[
        Mapping[str, Quantity], quantities("The resources that pods can use.")
    ] = {}
    conditions: Annotated[
        tuple[Condition, ...],
        described("The steps of the claim's lifecycle, and its other states.", **fields.CONDITIONS),
    ] = ()
    last_pod_event_time: Annotated[
        Instant | None,
        described("When a pod last came to the node or left it.", format="date-time"),
    ] = None


class NodeClaim(ApiObject, frozen=True, kw_only=True):
    """One node: requested, launched, registered, initialized, terminated."""

    spec: Annotated[
        NodeClaimSpec, described("The node that is requested; immutable.", required=True)
    ] = NodeClaimSpec()
    status: Annotated[NodeClaimStatus, described("The observed state of the claim.")] = (
        NodeClaimStatus()
    )

    def condition(self, type_: str) -> Condition | None:
        return find_condition(self.status.conditions, type_)

    def is_true(self, type_: str) -> bool:
        for condition in self.status.conditions:  # Asked more often than anything else.
            if condition.type == type_:
                return condition.status == "True"
        return False

    def is_settled(self, type_: str) -> bool:
        """Whether it has come to an end, good or bad."""
        return condition_status(self.status.conditions, type_) in ("True", "False")

    @property
    def launched(self) -> bool:
        return self.is_true("Launched")

    @property
    def registered(self) -> bool:
        return self.is_true("Registered")

    @property
    def initialized(self) -> bool:
        return self.is_true("Initialized")

    @property
    def ready_once(self) -> bool:
        """The node has been Ready at least once; this never goes back."""
        return self.is_true("ReadyOnce")

    @property
    def rebooting(self) -> bool:
        return self.is_true("Rebooting")

    @property
    def drifted(self) -> bool:
        return self.is_true("Drifted")

    @property
    def instance_terminating(self) -> bool:
        return self.is_true("InstanceTerminating")

    @property
    def pool_name(self) -> str:
        """The pool that created the claim; empty for a claim that a user wrote."""
        return self.labels.get(NODEPOOL, "")

    @property
    def node_class_ref(self) -> NodeClassRef:
        return self.spec.node_class_ref

    @property
    def provider_id(self) -> str:
        return self.status.provider_id

    @property
    def node_name(self) -> str:
        return self.status.node_name

    @property
    def instance_type(self) -> str:
        return self.labels.get(INSTANCE_TYPE, "")

    @property
    def zone(self) -> str:
        return self.labels.get(ZONE, "")

    @property
    def capacity_type(self) -> str:
        return self.labels.get(CAPACITY_TYPE, "")

    @property
    def termination_stamp(self) -> str | None:
        """The written deadline, unparsed: whether it can be read is the drain's business."""
        return self.annotations.get(TERMINATION_TIMESTAMP)
