"""The node class of the KWOK provider: fake nodes, so there is little to say."""

from __future__ import annotations

from typing import Annotated

from tenure.model import fields
from tenure.model.fields import duration, said
from tenure.model.meta import ApiObject, Condition, Wire, condition_status


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
