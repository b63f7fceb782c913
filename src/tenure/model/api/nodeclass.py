"""Node classes: what we read of any provider's, and all of the KWOK provider's own.

Fake nodes need little said about them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from tenure.model.api import fields
from tenure.model.api.fields import duration, said
from tenure.model.api.meta import ApiObject, Condition, Wire, condition_status


class NodeClassStatus(Wire, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()


class NodeClass(ApiObject, frozen=True, kw_only=True):
    """A node class of any provider. We read whether it is Ready; the spec is its provider's."""

    spec: Mapping[str, Any] = {}
    status: NodeClassStatus = NodeClassStatus()


class KWOKNodeClassSpec(Wire, frozen=True, kw_only=True, gc=False):
    node_registration_delay: Annotated[
        str | None,
        duration(
            "How long after the launch the node appears; at once when absent.",
            fields.PLAIN_DURATION,
        ),
    ] = None
    image: Annotated[
        str | None,
        said(
            "The image that new instances start from; another one here drifts the nodes that "
            "still run the old one.",
            minLength=1,
            maxLength=253,
        ),
    ] = None


class KWOKNodeClassStatus(Wire, frozen=True, kw_only=True):
    conditions: Annotated[
        tuple[Condition, ...],
        said("Whether instances can be made from the class.", **fields.CONDITIONS),
    ] = ()


#: Nobody reconciles this kind, so it is born ready; the instant is the peer's, and means nothing.
BORN_READY = {
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Ready",
            "message": "",
            "lastTransitionTime": "2024-01-01T01:01:01Z",
        }
    ]
}


class KWOKNodeClass(ApiObject, frozen=True, kw_only=True):
    """How the KWOK provider makes its nodes."""

    spec: Annotated[KWOKNodeClassSpec, said("How nodes of this class come to be.")] = (
        KWOKNodeClassSpec()
    )
    status: Annotated[
        KWOKNodeClassStatus, said("Whether the class can be used.", default=BORN_READY)
    ] = KWOKNodeClassStatus()

    @property
    def ready(self) -> bool:
        return condition_status(self.status.conditions, "Ready") == "True"
