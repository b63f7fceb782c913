"""The panels of the dashboard, in rows. Every metric of the table is on one of them, or in ``LEFT_OUT`` with the reason."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from docs.monitoring.queries import highest, increase, lowest, over_replicas, quantile, rate
from tenure.runtime.telemetry import metricnames as m


class Look(StrEnum):
    """The panel types of Grafana that are used."""

    NUMBER = "stat"
    LINES = "timeseries"
    TABLE = "table"


class Unit(StrEnum):
    """Grafana's words."""

    COUNT = "short"
    SECONDS = "s"
    PERCENT = "percent"
    DOLLARS = "currencyUSD"
    PER_SECOND = "ops"
    #: Prometheus has seconds, Grafana wants milliseconds: the query multiplies.
    INSTANT = "dateTimeFromNow"


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    #: Query and legend, in Grafana's words: ``{{nodepool}}``.
    queries: tuple[tuple[str, str], ...]
    look: Look = Look.LINES
    unit: Unit = Unit.COUNT
    #: Of 24.
    width: int = 8
    description: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    panels: tuple[Panel, ...]
    #: Folded when the dashboard opens.
    folded: bool = False


def _line(title: str, *queries: tuple[str, str], unit: Unit = Unit.COUNT, width: int = 8) -> Panel:
    return Panel(title=title, queries=queries, unit=unit, width=width)


def _number(title: str, query: str, unit: Unit = Unit.COUNT) -> Panel:
    return Panel(title=title, queries=((query, ""),), look=Look.NUMBER, unit=unit, width=4)


def _slow(title: str, metric: m.Named, *labels: str, width: int = 8) -> Panel:
    """Half and 99 of 100 are faster than this."""
    legend = " ".join(f"{{{{{label}}}}}" for label in labels)
    queries = tuple(
        (quantile(metric, share, *labels), f"{name} {legend}".strip())
        for share, name in ((0.5, "half"), (0.99, "99 of 100"))
    )
    return Panel(title=title, queries=queries, unit=Unit.SECONDS, width=width)


_USED: Final = highest(m.POOL_USAGE, "nodepool", "resource_type")
_LIMIT: Final = highest(m.POOL_LIMIT, "nodepool", "resource_type")

_OVERVIEW: Final = Row(
    title="At a glance",
    panels=(
        _number("Acts", highest(m.LEADER)),
        _number("Nodes and claims", highest(m.NODE_COUNT)),
        _number("Pods that wait for nodes", highest(m.QUEUE_DEPTH)),
        _number("The longest wait of a pod", highest(m.OLDEST_WAIT), Unit.SECONDS),
        _number("Pods that fit nowhere", highest(m.UNSCHEDULABLE)),
        _number("Objects that cannot be read", over_replicas(m.UNREADABLE, "resource")),
        _number("Saved by the last plan, an hour", highest(m.PLAN_SAVINGS), Unit.DOLLARS),
        _line(
            "Utilization",
            (highest(m.UTILIZATION, "resource_type"), "{{resource_type}}"),
            unit=Unit.PERCENT,
        ),
        _line(
            "Share of its limits that a pool uses",
            (
                f"100 * {_USED} / ({_LIMIT} > 0)",
                "{{nodepool}} {{resource_type}}",
            ),
            unit=Unit.PERCENT,
        ),
        _line(
            "What a pool provides",
            (highest(m.POOL_USAGE, "nodepool", "resource_type"), "{{nodepool}} {{resource_type}}"),
        ),
    ),
)

_LEAVING: Final = Row(
    title="Nodes that go, and why",
    panels=(
        _line(
            "Disruptions begun in an hour, by reason",
            (
                increase(m.CLAIMS_DISRUPTED, "nodepool", "reason", "termination_mode"),
                "{{nodepool}} {{reason}} {{termination_mode}}",
            ),
        ),
        _line(
            "Pods moved in an hour, by reason",
            (increase(m.PODS_DISRUPTED, "nodepool", "reason"), "{{nodepool}} {{reason}}"),
        ),
        _line(
            "Candidates that wait, by gate",
            (highest(m.CANDIDATES_WAITING, "nodepool", "gate"), "{{nodepool}} {{gate}}"),
        ),
        _line("Candidates, by reason", (highest(m.ELIGIBLE_NODES, "reason"), "{{reason}}")),
        _line(
            "Nodes that budgets allow, and that use them",
            (
                highest(m.ALLOWED_DISRUPTIONS, "nodepool", "reason"),
                "allowed {{nodepool}} {{reason}}",
            ),
            (highest(m.CONSUMING_BUDGETS, "nodepool", "reason"), "used {{nodepool}} {{reason}}"),
        ),
        _line(
            "Disruptions that remain now",
            (
                f"{highest(m.REMAINING_DISRUPTIONS, 'nodepool', 'reason')} < 2147483647",
                "{{nodepool}} {{reason}}",
            ),
            (highest(m.DISRUPTION_STARTS, "nodepool"), "starts remembered {{nodepool}}"),
        ),
        _line(
            "Budgets change next",
            (
                f"1000 * {lowest(m.DISRUPTIONS_CHANGE, 'nodepool', 'reason')}",
                "{{nodepool}} {{reason}}",
            ),
            unit=Unit.INSTANT,
        ),
        _line(
            "Commands begun in an hour",
            (increase(m.DECISIONS, "decision", "reason"), "{{decision}} {{reason}}"),
            (
                increase(m.DECISIONS_BY_POOL, "nodepool", "decision", "reason"),
                "{{nodepool}} {{decision}} {{reason}}",
            ),
        ),
        _line(
            "Replacements that failed in an hour",
            (increase(m.QUEUE_FAILURES, "decision", "reason"), "{{decision}} {{reason}}"),
        ),
        _line(
            "Drifted",
            (highest(m.DRIFTED, "nodepool", "reason"), "{{nodepool}} {{reason}}"),
            (highest(m.DRIFT_UNKNOWN, "nodepool"), "unknown {{nodepool}}"),
        ),
        _line(
            "Protected pods",
            (highest(m.PROTECTED_PODS, "nodepool", "kind"), "{{nodepool}} {{kind}}"),
        ),
        _slow("A termination, drain included", m.NODE_TERMINATION, "nodepool"),
        _slow("From deletion to the claim's end", m.CLAIM_TERMINATION, "nodepool"),
        _slow("From asking the cloud to the end", m.INSTANCE_TERMINATION, "nodepool"),
        _slow("Age of a Node at its end", m.NODE_LIFETIME, "nodepool"),
        _line(
            "Evictions a second, by answer",
            (rate(m.EVICTIONS, "code"), "{{code}}"),
            unit=Unit.PER_SECOND,
        ),
        _line("Drains ended in an hour", (increase(m.NODES_DRAINED, "nodepool"), "{{nodepool}}")),
    ),
)

_WINDOWS: Final = Row(
    title="Maintenance windows",
    panels=(
        _line("Active", (highest(m.WINDOW_ACTIVE, "window", "type"), "{{window}} {{type}}")),
        _line("NodeClaims that wait", (highest(m.WINDOW_BLOCKING, "window"), "{{window}}")),
        _line(
            "Next change",
            (f"1000 * {lowest(m.WINDOW_CHANGE, 'window')}", "{{window}}"),
            unit=Unit.INSTANT,
        ),
        _line("Understood", (lowest(m.WINDOW_VALID, "window"), "{{window}}")),
    ),
)

_HEALTH: Final = Row(
    title="Health and repair",
    panels=(
        _line(
            "Repairs in an hour, by condition",
            (
                increase(m.CLAIMS_UNHEALTHY, "nodepool", "condition", "termination_mode"),
                "{{nodepool}} {{condition}} {{termination_mode}}",
            ),
        ),
        _line(
            "Breakers",
            (highest(m.BREAKER_TRIPPED, "nodepool"), "maxUnhealthy {{nodepool}}"),
            (highest(m.DOMAIN_HELD, "domain", "value"), "{{domain}} {{value}}"),
        ),
        _line("Reboots ended in an hour", (increase(m.REBOOTS, "result"), "{{result}}")),
        _slow("A reboot", m.REBOOT, "result"),
        _slow("From the reboot to Ready", m.REBOOT_RECOVERY),
        _line(
            "Notices of the cloud in an hour",
            (increase(m.NOTICES_RECEIVED, "message_type"), "received {{message_type}}"),
            (increase(m.NOTICES_DELETED), "acknowledged"),
            (
                increase(m.NOTICES_SETTLED, "message_type", "outcome"),
                "{{message_type}} {{outcome}}",
            ),
        ),
        _slow("From a notice to its acknowledgement", m.NOTICES_DURATION),
    ),
)

_COMING: Final = Row(
    title="Nodes that come",
    panels=(
        _line(
            "Claims created in an hour",
            (increase(m.CLAIMS_CREATED, "nodepool", "reason"), "{{nodepool}} {{reason}}"),
        ),
        _line(
            "Claims and Nodes gone in an hour",
            (increase(m.CLAIMS_TERMINATED, "nodepool", "zone"), "claim {{nodepool}} {{zone}}"),
            (increase(m.NODES_TERMINATED, "nodepool", "zone"), "Node {{nodepool}} {{zone}}"),
        ),
        _line(
            "Nodes registered in an hour",
            (increase(m.NODES_CREATED, "nodepool", "zone"), "{{nodepool}} {{zone}}"),
        ),
        _slow("From a pod's creation to a node", m.POD_BOUND),
        _slow("From a pod's creation to running", m.POD_STARTUP),
        _slow("A placement of all pods that wait", m.SCHEDULING),
        _line(
            "Launches that back off",
            (highest(m.LAUNCH_BACK_OFF, "nodepool"), "pool {{nodepool}}"),
            (highest(m.LAUNCH_BREAKER_OPEN, "nodepool"), "owners {{nodepool}}"),
        ),
        _line("Pods that no new node would help", (highest(m.IGNORED), "pods")),
        _slow("Calls to the cloud", m.CLOUD_CALLS, "method"),
        _line(
            "Errors of the cloud in an hour",
            (
                increase(m.CLOUD_ERRORS, "method", "error", "nodepool"),
                "{{method}} {{error}} {{nodepool}}",
            ),
        ),
    ),
)

_CONSOLIDATION: Final = Row(
    title="Consolidation",
    panels=(
        _line("Moves of the last plan", (highest(m.PLAN_MOVES), "moves")),
        _line(
            "Moves begun in an hour",
            (
                increase(m.MOVES, "nodepool", "decision", "policy"),
                "{{nodepool}} {{decision}} {{policy}}",
            ),
        ),
        Panel(
            title="Score of planned moves (Balanced)",
            queries=((quantile(m.SCORES, 0.5), "half"),),
        ),
        _slow("A plan", m.PLAN),
        _slow("A slice of a plan", m.PLAN_SLICE),
        _line(
            "The index of nodes, in an hour",
            (increase(m.INDEX_REBUILDS, "reason"), "rebuilt {{reason}}"),
            (increase(m.INDEX_DISAGREEMENTS), "differed"),
        ),
    ),
)

_BESIDE: Final = Row(
    title="Beside Karpenter",
    folded=True,
    panels=(
        _line("Levers", (highest(m.LEVERS, "lever", "cause"), "{{lever}} {{cause}}")),
        _line("Levers past their end", (highest(m.LEVERS_PAST_END), "Nodes")),
        _line("A Tenure in charge as well", (highest(m.SECOND), "1: yes")),
    ),
)

_ITSELF: Final = Row(
    title="Tenure itself",
    folded=True,
    panels=(
        _slow("A turn", m.TURN),
        _slow("A slice of a turn", m.SLICE),
        _slow("Evaluations", m.EVALUATION, "concern"),
        _slow("A pass over all candidates", m.DECISION_EVALUATION),
        _line(
            "Turns and actions a second",
            (rate(m.TURNS), "turns"),
            (rate(m.ACTIONS, "verb", "outcome"), "{{verb}} {{outcome}}"),
            unit=Unit.PER_SECOND,
        ),
        _line("Actions under way", (highest(m.IN_FLIGHT), "actions")),
        _line(
            "Late",
            (highest(m.RECHECK_LAG), "next turn"),
            (highest(m.LOOP_LAG), "event loop"),
            unit=Unit.SECONDS,
        ),
        _line(
            "Evaluations that fail, or take too long",
            (highest(m.FAILING, "concern"), "fails {{concern}}"),
            (increase(m.OVER_BUDGET, "concern"), "slow {{concern}}"),
        ),
        _line(
            "Requests to the API server a second",
            (rate(m.API_ANSWERS, "verb", "resource", "code"), "{{verb}} {{resource}} {{code}}"),
            unit=Unit.PER_SECOND,
        ),
        _slow("A request to the API server", m.API_CALLS, "verb"),
        _line(
            "Watches",
            (lowest(m.INFORMER_SYNCED, "resource"), "listed {{resource}}"),
            (lowest(m.INFORMER_CONNECTED, "resource"), "open {{resource}}"),
            (increase(m.INFORMER_LISTS, "resource"), "lists in an hour {{resource}}"),
            (lowest(m.SYNCED), "all listed"),
        ),
        _line(
            "Silence of a watch",
            (highest(m.INFORMER_SILENCE, "resource"), "{{resource}}"),
            unit=Unit.SECONDS,
        ),
        _line(
            "Verdicts",
            (highest(m.IN_FORCE, "concern", "reason"), "{{concern}} {{reason}}"),
            (rate(m.VERDICTS, "concern"), "new a second {{concern}}"),
        ),
        _line(
            "Clock",
            (highest(m.CLOCK_SKEW), "most ahead of the API server"),
            (lowest(m.CLOCK_SKEW), "least ahead, or behind"),
            (increase(m.CLOCK_STEPS, "direction"), "set {{direction}}"),
            unit=Unit.SECONDS,
        ),
        _line(
            "Errors, events and log lines left out, in an hour",
            (increase(m.ERRORS, "kind"), "{{kind}}"),
            (highest(m.EVENTS_DROPPED), "events dropped"),
            (increase(m.WITHHELD), "log lines"),
        ),
        _line("Reviews of the webhook in an hour", (increase(m.REVIEWS, "answer"), "{{answer}}")),
        _line(
            "Role of the replicas", (highest(m.LEADER), "acts"), (highest(m.HELD_BACK), "held back")
        ),
        Panel(
            title="Version",
            queries=((highest(m.BUILD, "version", "python"), "{{version}} {{python}}"),),
            look=Look.NUMBER,
        ),
    ),
)

ROWS: Final = (_OVERVIEW, _LEAVING, _WINDOWS, _HEALTH, _COMING, _CONSOLIDATION, _BESIDE, _ITSELF)

#: A series for each node or pod: too many for a graph over all; Karpenter's own dashboards have them.
LEFT_OUT: Final = frozenset(metric.name for metric in m.PER_OBJECT)
