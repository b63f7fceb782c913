"""The node class of the KWOK provider: its kind, its fields, and what is valid in them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Final

from tenure.errors import Misconfigured, SpecError
from tenure.model.api import fields
from tenure.model.api.fields import described, duration
from tenure.model.api.meta import ApiObject, Condition, Wire, condition_status
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.resource import Resource
from tenure.model.cloud.drift import Drift
from tenure.model.values.duration import parse_duration
from tenure.providers.kwok.labels import GROUP
from tenure.schema.fieldmarks import ACTS
from tenure.schema.semantics.spans import span_problems
from tenure.schema.structure.crd import AGE, Column, CustomKind, condition_path
from tenure.schema.structure.rules import WHOLE_SECONDS

KWOK_NODE_CLASSES: Final = Resource(GROUP, "v1alpha1", "KWOKNodeClass", "kwoknodeclasses", False)


IMAGE_LENGTH: Final = 253


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
        described(
            "The version of the image that new instances start from, and that instances drift from; "
            "latest, or absent: the newest that the provider has.",
            minLength=1,
            maxLength=IMAGE_LENGTH,
        ),
    ] = None


class KWOKNodeClassStatus(Wire, frozen=True, kw_only=True):
    conditions: Annotated[
        tuple[Condition, ...],
        described("Whether instances can be made from the class.", **fields.CONDITIONS),
    ] = ()


#: No controller reconciles this kind, so it is ready from the start. The instant is the one that
#: Karpenter writes.
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

    spec: Annotated[KWOKNodeClassSpec, described("How nodes of this class are made.")] = (
        KWOKNodeClassSpec()
    )
    status: Annotated[
        KWOKNodeClassStatus, described("Whether the class can be used.", default=BORN_READY)
    ] = KWOKNodeClassStatus()

    @property
    def ready(self) -> bool:
        return condition_status(self.status.conditions, "Ready") == "True"


def registration_delay(node_class: KWOKNodeClass) -> timedelta:
    """How long after the launch, or after its boot, a node of this class appears.

    Raises ``Misconfigured`` for a value that cannot be read.
    """
    at = f"KWOKNodeClass/{node_class.name} spec.nodeRegistrationDelay"
    try:
        return parse_duration(node_class.spec.node_registration_delay or "0s", at).timedelta
    except SpecError as error:
        raise Misconfigured(str(error)) from error


def node_class_problems(node_class: NodeClass) -> Iterator[SpecError]:
    """What no schema can say; of a value of the wrong type the schema says so."""
    delay = node_class.spec.get("nodeRegistrationDelay")
    if isinstance(delay, str):
        yield from span_problems(delay, "spec.nodeRegistrationDelay")


#: As the image of a node class: the newest that there is. The same as none.
LATEST: Final = "latest"


def pinned_image(node_class: NodeClass | KWOKNodeClass) -> str:
    """The version that the class asks for; empty: the newest."""
    spec = node_class.spec
    image = spec.image if isinstance(spec, KWOKNodeClassSpec) else spec.get("image")
    return "" if image in (None, LATEST) else str(image)


def image_drift(running: str, wanted: str) -> Drift | None:
    """An instance whose image is not recorded has not drifted, nor has one where no image is known."""
    if not running or not wanted or running == wanted:
        return None
    return Drift(
        "ImageDrift", f"the instance runs image {running}, its node class asks for {wanted}"
    )


KWOK_KIND: Final = CustomKind(
    KWOK_NODE_CLASSES,
    KWOKNodeClass,
    (
        Column("Ready", condition_path("Ready")),
        AGE,
        Column("Image", ".spec.image", wide=True),
        Column("Delay", ".spec.nodeRegistrationDelay", wide=True),
    ),
    short_names=("kwoknc", "kwokncs"),
    rules={"spec.nodeRegistrationDelay": WHOLE_SECONDS},
    problems=node_class_problems,
    marks={KWOKNodeClassSpec: {"nodeRegistrationDelay": ACTS, "image": ACTS}},
)
