"""What becomes of a body that cannot be read, or not wholly.

A value of the wrong type is always refused. About fields that do not exist the client has
its wish (``fieldValidation``): refused, dropped with a warning (the server's default), or
dropped in silence. In a patch it is the patch that is found invalid; otherwise the body
as a whole cannot be handled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from tenure.errors import ApiError, Invalid
from tenure.model.api.resource import Resource
from tenure.sim.apiserver.objects.refusals import bad_request, malformed, unsupported

WISHES: Final = ("Ignore", "Strict", "Warn")


@dataclass(slots=True)
class Strictness:
    refuse: bool = False
    warn: bool = True
    patch: bool = False
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def wished(cls, query: Mapping[str, str], *, patch: bool = False) -> Self:
        wish = query.get("fieldValidation") or "Warn"
        if wish not in WISHES:
            cause = unsupported("fieldValidation", wish, WISHES)
            raise Invalid(f"fieldValidation: {cause.message}", causes=[cause])
        return cls(refuse=wish == "Strict", warn=wish == "Warn", patch=patch)

    def meet_unknown(self, resource: Resource, fields: Iterable[str]) -> None:
        """Refuse these fields, or note them."""
        sentences = [f'unknown field "{path}"' for path in fields]
        if self.refuse and sentences:
            raise self.unreadable(resource, f"strict decoding error: {', '.join(sentences)}")
        if self.warn:
            self.warnings += sentences

    def unreadable(self, resource: Resource, why: str) -> ApiError:
        if self.patch:
            return Invalid(f"patch: {why}", causes=[malformed("patch", why)])
        kind = resource.kind
        return bad_request(
            f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {why}'
        )
