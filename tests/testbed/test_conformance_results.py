"""What is committed about Karpenter's suites agrees with itself, without running them."""

from __future__ import annotations

from testbed import karpentersource as source
from testbed.conformance import expectations, results
from testbed.conformance.expectations import surprise


def test_the_committed_results_are_of_the_pinned_version_and_as_expected() -> None:
    kept, rules = results.load(), expectations.load()
    assert kept.karpenter == source.pin().version
    assert not rules.unused(kept.specs), "rules that no spec follows"
    found = {
        spec.name: surprise(rules.of(spec), result.outcome)
        for spec, result in kept.specs.items()
        if result is not None
    }
    assert not {name: different for name, different in found.items() if different}
