"""The guard is never surer of the Karpenter in charge than the deciders are: whatever Deployments and CRDs say."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tenure.core.beside.karpenter import karpenter_of, repairs_nodes
from tenure.core.writes import patch
from tenure.model.api import names
from tenure.model.api.deployment import (
    CrdSpec,
    CrdVersion,
    CustomResourceDefinition,
    Deployment,
    DeploymentContainer,
    DeploymentPodSpec,
    DeploymentSpec,
    DeploymentStatus,
    DeploymentTemplate,
    EnvVar,
)
from tenure.model.api.meta import ApiObject
from tenure.model.api.resource import DEPLOYMENTS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import EVERY_CLASS
from tenure.model.snapshot.unreadable import stand_in
from tenure.runtime.executor.guard import veto
from tenure.safety.besideclaims import idle_karpenter, may_repair, unknown_karpenter
from tests.core.build import FOREIGN, NOW, a_claim, a_node, meta
from tests.properties.thoroughness import tried
from tests.snapshots import snapshot_with

VERSIONS = ("", "1.5.9", "1.6", "v1.6.3", "1.15.0", "1.15.0-rc.1", "1.16.0", "0.37.0", "2.6.0")
ODD = (
    "latest",
    "1.15.",
    "1.15.0 ",
    "1",
    "1.x",
    "v",
    "vv1.15.0",
    "１.15.0",
    "01.15",
    "1.15.é",
    "1..",
)
IMAGES = ("karpenter", "nginx:1.9.0", "registry:5000/karpenter", "registry:1.9/karpenter@sha256:01")
GATES = (
    "",
    "NodeRepair=true",
    "NodeRepair=false",
    "NodeRepair",
    "A=true",
    "nodeRepair=TRUE",
    "=true",
)

versions = st.sampled_from((*VERSIONS, *ODD))
images = st.one_of(
    st.sampled_from(IMAGES),
    versions.map(lambda tag: f"karpenter:{tag}"),
    versions.map(lambda tag: f"registry:5000/karpenter:{tag}@sha256:0123"),
)
gates = st.lists(st.sampled_from(GATES), max_size=2).map(",".join)
args = st.one_of(
    st.just(()),
    gates.map(lambda text: (f"--feature-gates={text}",)),
    gates.map(lambda text: ("-feature-gates", text)),
    st.just(("--feature-gates",)),
    st.tuples(gates, gates).map(lambda two: tuple(f"--feature-gates={text}" for text in two)),
)


def env(text: str, elsewhere: bool) -> EnvVar:
    value_from: dict[str, Any] | None = {"configMapKeyRef": {}} if elsewhere else None
    return EnvVar(name="FEATURE_GATES", value=text, value_from=value_from)


containers = st.builds(
    DeploymentContainer,
    name=st.sampled_from(("controller", "sidecar")),
    image=images,
    args=args,
    env=st.lists(st.builds(env, gates, st.booleans()), max_size=1).map(tuple),
)


#: Mostly settled.
states = st.builds(
    DeploymentStatus,
    observed_generation=st.sampled_from((1, 1, 1, 0)),
    replicas=st.just(1),
    updated_replicas=st.sampled_from((1, 1, 1, 0)),
    ready_replicas=st.sampled_from((1, 1, 1, 0)),
)


@st.composite
def deployments(draw: st.DrawFn) -> tuple[ApiObject, ...]:
    found = list[ApiObject]()
    for number in range(draw(st.integers(0, 3))):
        labels = {
            "app.kubernetes.io/name": draw(st.sampled_from(("karpenter", "karpenter", "other"))),
            "app.kubernetes.io/version": draw(versions),
        }
        pod = DeploymentPodSpec(containers=tuple(draw(st.lists(containers, max_size=2))))
        namespace = draw(st.sampled_from(("kube-system", "karpenter", "tenant")))
        one = Deployment(
            metadata=meta(f"d{number}", namespace=namespace, labels=labels),
            spec=DeploymentSpec(
                template=DeploymentTemplate(spec=pod), replicas=draw(st.integers(0, 2))
            ),
            status=draw(states),
        )
        odd = draw(st.integers(0, 9)) == 0
        found.append(stand_in(one, "spec is no object", field="spec") if odd else one)
    return tuple(found)


crds = st.lists(
    st.builds(
        lambda name, served: CustomResourceDefinition(
            metadata=meta(name), spec=CrdSpec(versions=(CrdVersion(name="v1", served=served),))
        ),
        st.sampled_from(("nodepools.karpenter.sh", "nodeclaims.karpenter.sh")),
        st.sampled_from((True, True, False)),
    ),
    max_size=1,
).map(tuple)

settings = st.builds(
    Settings,
    beside_karpenter=st.just(True),
    karpenter_version=st.sampled_from(("", "", "1.5", "1.6", "v1.15.0", "1.16", "2.6")),
    karpenter_feature_gates=st.sampled_from(("", "", "NodeRepair=true", "NodeRepair=false")),
)
refusals: Any = st.sampled_from(({}, {}, {DEPLOYMENTS: "403 Forbidden"}))


@tried(400)
@given(deployments(), crds, settings, refusals)
def test_what_deciders_do_not_know_the_guard_does_not_let_pass(
    found: tuple[ApiObject, ...],
    installed: tuple[ApiObject, ...],
    given_: Settings,
    unlisted: dict[Any, str],
) -> None:
    claim, node = a_claim(ref=FOREIGN), a_node()
    snapshot = snapshot_with(claim, node, *found, *installed, unlisted=unlisted, ours=EVERY_CLASS)
    known = karpenter_of(snapshot, given_)
    if known.problem is not None:
        assert unknown_karpenter(snapshot, given_) is not None, known.problem
        marks = (names.DO_NOT_DISRUPT_BY, names.DO_NOT_DISRUPT_BECAUSE, names.DO_NOT_DISRUPT_UNTIL)
        lever = {names.DO_NOT_DISRUPT: "true", **dict.fromkeys(marks, "tenure")}
        for thing, written in ((node, lever), (claim, {names.TERMINATION_TIMESTAMP: None})):
            action = patch(thing, {"annotations": written})
            assert "Tenure only looks while" in (veto(action, snapshot, NOW, given_) or "")
    elif known.unsettled is not None:
        assert idle_karpenter(snapshot, given_) is not None, known.unsettled
    elif repairs_nodes(known) is not None:
        assert may_repair(snapshot, given_)


@tried(200)
@given(deployments(), settings)
def test_nor_does_it_refuse_what_they_know(found: tuple[ApiObject, ...], given_: Settings) -> None:
    """A guard that refuses what deciders ask for again and again would be of no use."""
    snapshot = snapshot_with(*found)
    known = karpenter_of(snapshot, given_)
    if known.problem is None:
        assert unknown_karpenter(snapshot, given_) is None
    if known.problem is None and known.unsettled is None:
        assert idle_karpenter(snapshot, given_) is None
