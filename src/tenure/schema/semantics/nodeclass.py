"""What is wrong with the KWOK provider's node class, as far as no API server can say."""

from __future__ import annotations

from collections.abc import Iterator

from tenure.errors import SpecError
from tenure.model.api.nodeclass import KWOKNodeClass
from tenure.schema.semantics.spans import span_problems


def node_class_problems(node_class: KWOKNodeClass) -> Iterator[SpecError]:
    yield from span_problems(node_class.spec.node_registration_delay, "spec.nodeRegistrationDelay")
