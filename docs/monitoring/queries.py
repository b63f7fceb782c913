"""PromQL from entries of the table of metrics: a label that a metric does not have is an error here.

Every query keeps ``cluster``, ``namespace`` and ``job``: one Prometheus may see several clusters, and each has its own
Tenure. A label that series do not have is empty, and tells nothing apart.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tenure.runtime.telemetry.metricnames import Kind, Named

#: What a scrape adds. Series of different clusters differ in one of them.
REPLICAS: Final = ("cluster", "namespace", "job")


class Where(msgspec.Struct, frozen=True):
    label: str
    operator: str
    pattern: str

    def __str__(self) -> str:
        return f'{self.label}{self.operator}"{self.pattern}"'


def like(label: str, pattern: str) -> Where:
    return Where(label, "=~", pattern)


def unlike(label: str, pattern: str) -> Where:
    return Where(label, "!~", pattern)


class WrongQuery(Exception):
    """The query does not fit the metric."""


def _by(metric: Named, labels: tuple[str, ...]) -> str:
    if strangers := set(labels) - set(metric.labels):
        raise WrongQuery(f"{metric.name} has no label {', '.join(sorted(strangers))}")
    return f"by ({', '.join((*REPLICAS, *labels))})"


def _selected(metric: Named, where: Where | None, suffix: str = "") -> str:
    if where is not None and where.label not in metric.labels:
        raise WrongQuery(f"{metric.name} has no label {where.label}")
    return f"{metric.name}{suffix}" + (f"{{{where}}}" if where is not None else "")


def _only(metric: Named, kind: Kind) -> None:
    if metric.kind is not kind:
        raise WrongQuery(f"{metric.name} is a {metric.kind}, not a {kind}")


def highest(metric: Named, *labels: str, where: Where | None = None) -> str:
    """A gauge that every replica has: the one that leads knows most."""
    _only(metric, Kind.GAUGE)
    return f"max {_by(metric, labels)} ({_selected(metric, where)})"


def lowest(metric: Named, *labels: str, where: Where | None = None) -> str:
    _only(metric, Kind.GAUGE)
    return f"min {_by(metric, labels)} ({_selected(metric, where)})"


def total(metric: Named, *labels: str, where: Where | None = None) -> str:
    """A gauge over its other labels. Only for those that one replica has at a time."""
    _only(metric, Kind.GAUGE)
    return f"sum {_by(metric, labels)} ({_selected(metric, where)})"


def over_replicas(metric: Named, *labels: str) -> str:
    """The sum over those labels of a gauge that every replica has: each is counted once."""
    return f"sum {_by(metric, ())} ({highest(metric, *labels)})"


def rate(metric: Named, *labels: str, where: Where | None = None, over: str = "5m") -> str:
    """A second."""
    suffix = "_count" if metric.kind is Kind.HISTOGRAM else ""
    if metric.kind is Kind.GAUGE:
        raise WrongQuery(f"{metric.name} is a gauge: it has no rate")
    return f"sum {_by(metric, labels)} (rate({_selected(metric, where, suffix)}[{over}]))"


def increase(metric: Named, *labels: str, where: Where | None = None, over: str = "1h") -> str:
    """How many within that time. A series is born with its first event, which ``increase`` alone does not count."""
    _only(metric, Kind.COUNTER)
    one = _selected(metric, where)
    return (
        f"sum {_by(metric, labels)} (({one} unless {one} offset {over}) or increase({one}[{over}]))"
    )


def quantile(metric: Named, share: float, *labels: str, over: str = "10m") -> str:
    """In seconds, of a histogram."""
    _only(metric, Kind.HISTOGRAM)
    by = _by(metric, labels).replace("by (", "by (le, ", 1)
    return f"histogram_quantile({share:g}, sum {by} (rate({_selected(metric, None, '_bucket')}[{over}])))"
