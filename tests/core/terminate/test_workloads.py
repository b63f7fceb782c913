"""Which settings of workloads a drain will not respect: found from the manifests alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.terminate.workloads import Ground, Workload, all_findings, invalid_protection
from tenure.model.api.meta import ObjectMeta
from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.api.pod import PodSpec
from tenure.model.api.workload import PodDisruptionBudget, PodDisruptionBudgetSpec, PodTemplate

HOUR, FREE = Ground("NodePool general", "1h"), Ground("NodePool general")


def a_workload(
    *grounds: Ground,
    protected: str | None = None,
    grace: int | None = None,
    replicas: int | None = 2,
    name: str = "web",
) -> Workload:
    annotations = {} if protected is None else {DO_NOT_DISRUPT: protected}
    return Workload(
        name=f"Deployment/{name}",
        namespace="",
        template=PodTemplate(
            metadata=ObjectMeta(labels={"app": name}, annotations=annotations),
            spec=PodSpec(termination_grace_period_seconds=grace),
        ),
        at="spec.template",
        replicas=replicas,
        grounds=grounds,
    )


def a_budget(name: str = "web", **wish: Any) -> PodDisruptionBudget:
    selector = {"matchLabels": {"app": "web"}}
    spec = msgspec.convert({"selector": selector, **wish}, PodDisruptionBudgetSpec)
    return PodDisruptionBudget(metadata=ObjectMeta(name=name), spec=spec)


def codes(workload: Workload, *budgets: PodDisruptionBudget) -> list[str]:
    return [str(finding.code) for _, finding in all_findings([workload], budgets)]


@pytest.mark.parametrize(
    ("ground", "protected", "found"),
    [
        (HOUR, None, []),
        (HOUR, "false", []),
        (HOUR, "1h", []),
        (HOUR, "1h1s", ["ProtectionLongerThanPeriod"]),
        (HOUR, "true", ["ProtectionBounded"]),
        (FREE, "true", ["ProtectedForEver"]),
        (FREE, "9999h", []),
        (FREE, "4 hours", ["InvalidDoNotDisrupt"]),
        (Ground("NodePool capped", None, "2h"), "true", []),
        (Ground("NodePool capped", "1h", "30m"), "4h", []),
    ],
)
def test_protections(ground: Ground, protected: str | None, found: list[str]) -> None:
    assert codes(a_workload(ground, protected=protected)) == found


def test_each_pool_where_it_may_run_is_checked() -> None:
    assert codes(a_workload(HOUR, FREE, protected="true")) == [
        "ProtectionBounded",
        "ProtectedForEver",
    ]
    assert codes(a_workload(protected="true", grace=99999)) == []


def test_a_grace_names_the_field_and_what_is_left_of_it() -> None:
    ((_, finding),) = all_findings([a_workload(HOUR, grace=7200)], [])
    assert finding.at == "spec.template.spec.terminationGracePeriodSeconds"
    assert finding.message == (
        "2h is longer than terminationGracePeriod 1h of NodePool general: the pod is deleted as "
        "soon as its Node terminates, with a grace period of 1h"
    )
    ((_, finding),) = all_findings([a_workload(Ground("NodePool now", "0s"))], [])
    assert finding.message.endswith("a grace period of 1s"), (
        "never less: no pod is removed before it stops"
    )


@pytest.mark.parametrize(
    ("wish", "replicas", "numbers"),
    [
        ({"maxUnavailable": 0}, 2, "maxUnavailable 0 of 2 pods"),
        ({"maxUnavailable": "0%"}, None, "maxUnavailable 0%"),
        ({"maxUnavailable": "1%"}, 2, ""),
        ({"maxUnavailable": 1}, 1, ""),
        ({"minAvailable": 2}, 2, "minAvailable 2 of 2 pods"),
        ({"minAvailable": 3}, 2, "minAvailable 3 of 2 pods"),
        ({"minAvailable": 1}, 1, "minAvailable 1 of 1 pod"),
        ({"minAvailable": 1}, 2, ""),
        ({"minAvailable": 0}, 1, ""),
        ({"minAvailable": "100%"}, None, "minAvailable 100%"),
        ({"minAvailable": "51%"}, 2, "minAvailable 51% of 2 pods"),
        ({"minAvailable": "50%"}, 2, ""),
        ({"minAvailable": 5}, None, ""),
        ({"minAvailable": 5}, 0, ""),
        ({}, 1, "minAvailable 1 of 1 pod"),
    ],
)
def test_budgets(wish: dict[str, Any], replicas: int | None, numbers: str) -> None:
    found = list(all_findings([a_workload(replicas=replicas)], [a_budget(**wish)]))
    if not numbers:
        assert found == []
        return
    ((budget, finding),) = found
    assert isinstance(budget, PodDisruptionBudget)
    assert finding.message.startswith(f"{numbers} can never allow an eviction of Deployment/web: ")


def test_several_budgets_over_one_pod() -> None:
    two = [a_budget(name, maxUnavailable=1) for name in ("one", "two")]
    ((budget, finding),) = all_findings([a_workload()], two)
    assert budget is two[1]
    assert finding.code == "SeveralBudgets"
    assert "cover Deployment/web, and the API never evicts such a pod" in finding.message


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("4 hours", 'write "4h"'),
        ("1d", 'write "24h"'),
        ("-1h", 'write "1h"'),
        ("30", 'add a unit: "30s", "30m" or "30h"'),
        ("0", 'write "false", or remove the annotation, to leave the pod unprotected'),
        ("0s", 'write "false", or remove the annotation, to leave the pod unprotected'),
        ("", 'write "false", or remove the annotation, to leave the pod unprotected'),
        ("TRUE", 'write "true"'),
        ("Never", 'write "true" to protect the pod for ever'),
        ("tomorrow", 'write a duration such as "30m", "4h" or "1h30m"'),
    ],
)
def test_an_invalid_value_is_shown_with_what_was_probably_meant(value: str, hint: str) -> None:
    finding = invalid_protection(value, "metadata.annotations")
    assert finding.message == (
        f'"{value}" protects for ever, for it is neither "true", "false" nor a duration; {hint}'
    )
