"""The facts about pools and maintenance windows."""

from __future__ import annotations

from typing import Final

from tenure.core.facts import Fact


class TemplateHashMissing(Fact, frozen=True):
    def __str__(self) -> str:
        return "writing the hash of spec.template"


class LaunchesNothing(Fact, frozen=True):
    why: str

    def __str__(self) -> str:
        return f"no node is launched: {self.why}"


class DisruptionUnusable(Fact, frozen=True):
    """``closed``: a budget of the NodePool cannot be read, so no budget allows a disruption."""

    problems: str
    closed: bool

    def __str__(self) -> str:
        stops = "no node is disrupted voluntarily" if self.closed else "these fields are not used"
        return f"{stops}: {self.problems}"


class RepairUnusable(Fact, frozen=True):
    """``closed``: nothing of the block can be used."""

    problems: str
    closed: bool

    def __str__(self) -> str:
        stops = "no node is repaired" if self.closed else "these fields are not used for repair"
        return f"{stops}: {self.problems}"


class PoolSize(Fact, frozen=True):
    nodes: int
    #: Of each limited resource: its name, how much there is, how much there may be.
    limits: tuple[tuple[str, str, str], ...] = ()

    def __str__(self) -> str:
        nodes = f"{self.nodes} {'node' if self.nodes == 1 else 'nodes'}"
        return "; ".join([nodes, *(f"{name} {used} of {most}" for name, used, most in self.limits)])


class LimitsUsedUp(Fact, frozen=True):
    fields: tuple[str, ...]

    def __str__(self) -> str:
        return f"no more nodes are launched: {' and '.join(self.fields)} used up"


class WindowUnreadable(Fact, frozen=True):
    problems: str

    def __str__(self) -> str:
        return self.problems


class WindowNotEnforced(Fact, frozen=True):
    def __str__(self) -> str:
        return (
            "disruptions are not planned by maintenance windows yet; "
            "the guard refuses repairs that this window forbids"
        )


EXAMPLES: Final[tuple[Fact, ...]] = (
    TemplateHashMissing(),
    LaunchesNothing("NodeClassReady: EC2NodeClass default does not exist"),
    DisruptionUnusable('spec.disruption.budgets[0].nodes: "ten" is not a number', closed=True),
    DisruptionUnusable('spec.disruption.maxPodProtection: "1d" is not a duration', closed=False),
    RepairUnusable('spec.repair.maxUnhealthy: "many" is not a number', closed=True),
    RepairUnusable("spec.repair.policies[0].reason: condition Odd is not watched", closed=False),
    PoolSize(1),
    PoolSize(3, (("cpu", "12", "100"),)),
    LimitsUsedUp(("spec.limits.cpu", "spec.limits.memory")),
    WindowUnreadable('spec.schedules[0].cron: "* *" has 2 fields, and needs 5'),
    WindowNotEnforced(),
)
