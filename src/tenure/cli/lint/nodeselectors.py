"""Values that a workload asks of Nodes and no Node has: its pods would be pending for ever."""

from __future__ import annotations

from collections.abc import Iterator

from tenure.core.terminate.workloads import Workload
from tenure.model.api.pod import Affinity, NodeSelectorRequirement, NodeSelectorTerm
from tenure.schema.findings import Finding
from tenure.schema.labeladvice import unknown_values

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def node_selector_findings(workload: Workload) -> Iterator[Finding]:
    spec, at = workload.template.spec, f"{workload.at}.spec".lstrip(".")
    for key, value in spec.node_selector.items():
        one = NodeSelectorRequirement(key=key, operator="In", values=(value,))
        for finding in unknown_values([one], ""):
            yield Finding(finding.code, f"{at}.nodeSelector.{key}", finding.message)
    for term, place in _terms(spec.affinity):
        yield from unknown_values(
            term.match_expressions, f"{at}.affinity.nodeAffinity.{place}.matchExpressions"
        )


def _terms(affinity: Affinity | None) -> Iterator[tuple[NodeSelectorTerm, str]]:
    """With where each stands."""
    node = affinity.node_affinity if affinity is not None else None
    if node is None:
        return
    if (needed := node.required_during_scheduling_ignored_during_execution) is not None:
        for index, term in enumerate(needed.node_selector_terms):
            yield term, f"{_REQUIRED}.nodeSelectorTerms[{index}]"
    for index, wish in enumerate(node.preferred_during_scheduling_ignored_during_execution):
        yield wish.preference, f"{_PREFERRED}[{index}].preference"
