"""A maintenance window: when voluntary disruptions are blocked, which ones, and on which nodes.

Also home of the node selector that windows and budgets share, and of its expressions, which select
NodePools, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from tenure.model.api import fields
from tenure.model.api.fields import described, duration
from tenure.model.api.meta import ApiObject, Condition, Wire, condition_status
from tenure.model.api.nodeclaim import LabelValue

ACTIONS = (
    "Expiration",
    "Consolidation",
    "EmptyConsolidation",
    "NonEmptyConsolidation",
    "Drift",
    "Rebalance",
    "Repair",
)
WINDOW_TYPES = ("Block", "Allow")
SELECTOR_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")

WindowAction = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(ACTIONS)})]


class LabelExpression(Wire, frozen=True, kw_only=True):
    """One constraint on the labels of an existing object, as in a pod's node affinity."""

    key: Annotated[
        str,
        described(
            "The label that is looked at.",
            required=True,
            maxLength=fields.QUALIFIED_NAME_LENGTH,
            pattern=fields.QUALIFIED_NAME,
        ),
    ] = ""
    operator: Annotated[
        str,
        described(
            "How the label compares with the values.", required=True, enum=list(SELECTOR_OPERATORS)
        ),
    ] = ""
    values: Annotated[
        tuple[LabelValue, ...],
        described(
            "The values to compare with: at least one for In and NotIn, none for Exists and "
            "DoesNotExist, exactly one whole number for Gt and Lt.",
            maxItems=100,
            **fields.ATOMIC,
        ),
    ] = ()


class NodeLabelSelector(Wire, frozen=True, kw_only=True):
    """Which nodes are meant; all expressions must hold, and none means every node."""

    match_expressions: Annotated[
        tuple[LabelExpression, ...],
        described(
            "Constraints on node labels; a node is selected when all of them hold.",
            maxItems=100,
            **fields.ATOMIC,
        ),
    ] = ()
    #: Known, so that the API server refuses it: it would drop an unknown field without a word, and
    #: the selector would select every node.
    match_labels: Annotated[
        Mapping[str, str],
        described(
            "Not supported: use matchExpressions, for example {key: team, operator: In, values: [db]}.",
            maxProperties=100,
        ),
    ] = msgspec.field(default_factory=dict)


class Schedule(Wire, frozen=True, kw_only=True, gc=False):
    """A recurring period: it begins at each hit of the cron and lasts for the duration."""

    cron: Annotated[
        str,
        described(
            "When the window begins: five cron fields or a name such as @daily; the day of the "
            "week is 0 to 7, Sunday being both.",
            required=True,
            pattern=fields.CRON,
            maxLength=256,
        ),
    ] = ""
    duration: Annotated[
        str,
        duration(
            "How long it lasts from each beginning; it may cross midnight.",
            fields.GO_DURATION,
            required=True,
        ),
    ] = ""
    time_zone: Annotated[
        str | None,
        described(
            "IANA name of the time zone that the cron is read in; UTC when absent.",
            pattern=fields.TIME_ZONE,
            maxLength=64,
        ),
    ] = None


class DateRange(Wire, frozen=True, kw_only=True, gc=False):
    """A single period: a freeze, a holiday."""

    from_: Annotated[
        str, described("When it begins.", required=True, format="date-time", maxLength=64)
    ] = msgspec.field(default="", name="from")
    until: Annotated[
        str, described("When it is over.", required=True, format="date-time", maxLength=64)
    ] = ""


class MaintenanceWindowSpec(Wire, frozen=True, kw_only=True):
    schedules: Annotated[
        tuple[Schedule, ...],
        described(
            "Recurring periods; with neither schedules nor dates the window is always active.",
            maxItems=50,
            **fields.ATOMIC,
        ),
    ] = ()
    dates: Annotated[
        tuple[DateRange, ...],
        described("Single periods, such as freezes and holidays.", maxItems=100, **fields.ATOMIC),
    ] = ()
    actions: Annotated[
        tuple[WindowAction, ...],
        described(
            "Which disruptions the window applies to. Consolidation covers both of its kinds; "
            "Repair holds the repair of unhealthy nodes, time-outs of new nodes excepted.",
            required=True,
            minItems=1,
            maxItems=20,
            **fields.SET,
        ),
    ] = ()
    selector: Annotated[
        NodeLabelSelector, described("Which nodes the window covers; every node when absent.")
    ] = NodeLabelSelector()
    type: Annotated[
        str,
        described(
            "Block forbids the actions while the window is active; Allow permits them only while "
            "at least one Allow window that covers the node is active.",
            enum=list(WINDOW_TYPES),
            default="Block",
        ),
    ] = "Block"


class MaintenanceWindowStatus(Wire, frozen=True, kw_only=True):
    conditions: Annotated[
        tuple[Condition, ...],
        described("Whether the window is valid, and whether it is active.", **fields.CONDITIONS),
    ] = ()
    nodes_matched: Annotated[
        int | None, described("How many nodes the window covers now.", format="int64", minimum=0)
    ] = None
    next_change: Annotated[
        str | None,
        described("When the window next opens or closes.", format="date-time", maxLength=64),
    ] = None


class MaintenanceWindow(ApiObject, frozen=True, kw_only=True):
    """When voluntary disruptions are blocked, which ones, and on which nodes."""

    spec: Annotated[
        MaintenanceWindowSpec,
        described("When the window is active and what it holds.", required=True),
    ] = MaintenanceWindowSpec()
    status: Annotated[MaintenanceWindowStatus, described("What the window does now.")] = (
        MaintenanceWindowStatus()
    )

    @property
    def valid(self) -> bool:
        return condition_status(self.status.conditions, "Valid") == "True"

    @property
    def blocks(self) -> bool:
        """Anything that is not plainly ``Allow`` blocks: the safe reading."""
        return self.spec.type != "Allow"
