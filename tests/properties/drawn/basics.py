"""Instants, names and conditions of random clusters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from tenure.model.api.meta import Condition, ObjectMeta
from tenure.model.api.nodeclaim import NodeClassRef
from tenure.model.values.quantity import UNIT

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
GIB = 2**30 * UNIT
OURS = NodeClassRef(group="karpenter.kwok.sh", kind="KWOKNodeClass", name="default")
FOREIGN = NodeClassRef(group="example.com", kind="OtherClass", name="default")
CLASS_LABEL = {f"{OURS.group}/kwoknodeclass": "default"}
SIZE = {"cpu": "2", "memory": "4Gi", "pods": "10"}
instants = st.sampled_from([-20, -1, 0, 1, 4, 9, 20]).map(
    lambda seconds: NOW + timedelta(seconds=seconds)
)
past = st.sampled_from([0, 5, 590, 600, 3600]).map(lambda seconds: NOW - timedelta(seconds=seconds))


@st.composite
def metas(draw: st.DrawFn, /, name: str, **fields: Any) -> ObjectMeta:
    return ObjectMeta(
        name=name,
        uid=f"uid-{name}",
        resource_version=str(draw(st.integers(1, 99))),
        generation=1,
        creation_timestamp=draw(past),
        **fields,
    )


def condition(type_: str, status: str, at: datetime, reason: str = "") -> Condition:
    return Condition(type=type_, status=status, reason=reason or type_, last_transition_time=at)
