"""What slipped past admission: the judgement behind the validation conditions.

Objects may have been let in by an older schema, or hold what no schema can judge: a
cron that only looks like one, a time zone nobody has, two taints that are the same.
Each function gives one sentence per problem, none when all is well:

- ``template_errors``    → ``ValidationSucceeded``, part of the pool's Ready;
- ``disruption_errors``  → ``DisruptionValid``: a bad block disrupts nothing;
- ``repair_errors``      → ``RepairValid``: a bad block repairs nothing;
- ``window_errors``      → ``Valid`` of a window: a bad one blocks.
"""

from __future__ import annotations

from collections.abc import Collection

from tenure.model.nodepool import NodePool
from tenure.model.window import MaintenanceWindow
from tenure.schema.disruption import disruption_problems
from tenure.schema.repair import repair_problems
from tenure.schema.template import template_problems
from tenure.schema.window import window_problems


def template_errors(pool: NodePool) -> list[str]:
    return [str(problem) for problem in template_problems(pool)]


def disruption_errors(pool: NodePool) -> list[str]:
    return [str(problem) for problem in disruption_problems(pool)]


def repair_errors(pool: NodePool, watched: Collection[str] = ()) -> list[str]:
    """``watched``: the condition types that the pool's provider states."""
    return [str(problem) for problem in repair_problems(pool, watched)]


def window_errors(window: MaintenanceWindow) -> list[str]:
    return [str(problem) for problem in window_problems(window)]
