"""The plan of consolidation as a subject: what is observed when a new one is there."""

from __future__ import annotations

from typing import Final

from tenure.core.decision import Subject
from tenure.core.provision.placement import CLUSTER

PLAN: Final = Subject("ConsolidationPlan", CLUSTER)
#: The kind of a subject for each Node of which a new plan says something else.
PLANNED_NODE: Final = "PlannedNode"
