"""Which settings of workloads a drain will not respect: found from the manifests alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.terminate.facts.workloads import (
    CoveredTwice,
    GracePeriodCut,
    NeverEvicted,
    ProtectionInvalid,
)
from tenure.core.terminate.workloads import (
    Ground,
    Workload,
    all_findings,
    invalid_protection,
    pdb_finding,
    several_pdbs,
    workload_findings,
)
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


def a_pdb(name: str = "web", **wish: Any) -> PodDisruptionBudget:
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
    (found,) = workload_findings(a_workload(HOUR, grace=7200))
    assert found.at == "spec.template.spec.terminationGracePeriodSeconds"
    hour = timedelta(hours=1)
    assert found.fact == GracePeriodCut(2 * hour, "1h", "NodePool general", left=hour)
    (found,) = workload_findings(a_workload(Ground("NodePool now", "0s")))
    assert isinstance(found.fact, GracePeriodCut)
    assert found.fact.left == timedelta(seconds=1), "never less: no pod is removed before it stops"


@pytest.mark.parametrize(
    ("wish", "replicas", "setting"),
    [
        ({"maxUnavailable": 0}, 2, "maxUnavailable 0"),
        ({"maxUnavailable": "0%"}, None, "maxUnavailable 0%"),
        ({"maxUnavailable": "1%"}, 2, ""),
        ({"maxUnavailable": 1}, 1, ""),
        ({"minAvailable": 2}, 2, "minAvailable 2"),
        ({"minAvailable": 3}, 2, "minAvailable 3"),
        ({"minAvailable": 1}, 1, "minAvailable 1"),
        ({"minAvailable": 1}, 2, ""),
        ({"minAvailable": 0}, 1, ""),
        ({"minAvailable": "100%"}, None, "minAvailable 100%"),
        ({"minAvailable": "51%"}, 2, "minAvailable 51%"),
        ({"minAvailable": "50%"}, 2, ""),
        ({"minAvailable": 5}, None, ""),
        ({"minAvailable": 5}, 0, ""),
        ({}, 1, "minAvailable 1"),
    ],
)
def test_budgets(wish: dict[str, Any], replicas: int | None, setting: str) -> None:
    workload, budget = a_workload(replicas=replicas), a_pdb(**wish)
    found = pdb_finding(budget, [workload])
    never = NeverEvicted(setting, replicas, ("Deployment/web",), bounded=False)
    assert (found.fact if found else None) == (never if setting else None)
    told = [(budget, found.told())] if found else []
    assert list(all_findings([workload], [budget])) == told


def test_several_budgets_over_one_pod() -> None:
    two = [a_pdb(name, maxUnavailable=1) for name in ("one", "two")]
    found = several_pdbs(two, a_workload())
    keys = tuple(budget.key for budget in two)
    assert found.fact == CoveredTwice(keys, "Deployment/web", bounded=False)
    assert list(all_findings([a_workload()], two)) == [(two[1], found.told())]


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
    assert finding.message == str(ProtectionInvalid(value, hint))
