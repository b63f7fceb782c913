"""What form of answer a client asks for, by its ``Accept`` header.

The first of the listed forms that we can give is given. We speak JSON and YAML; a client
that would rather have protobuf says JSON next, and gets that.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tenure.errors import ApiError
from tenure.ports.transport import JSON

YAML: Final = "application/yaml"
_ANY: Final = ("*/*", "application/*", "")
#: Transformations of an object or a list that a client may ask for.
TABLE: Final = "Table"
METADATA: Final = ("PartialObjectMetadata", "PartialObjectMetadataList")
AGGREGATED: Final = "APIGroupDiscoveryList"


class Form(NamedTuple):
    media: str = JSON
    #: What the object is turned into; nothing for itself.
    as_: str = ""
    version: str = ""


def wanted(accept: str, offered: tuple[str, ...] = (TABLE, *METADATA)) -> Form:
    """The form to answer in. Raises 406 when we have none of those asked for."""
    for part in accept.split(","):
        media, *parameters = (word.strip() for word in part.split(";"))
        given = dict(p.split("=", 1) for p in parameters if "=" in p)
        media = JSON if media in _ANY else media
        as_ = given.get("as", "")
        if media in (JSON, YAML) and (not as_ or as_ in offered):
            return Form(media, as_, given.get("v", ""))
    raise ApiError(
        f"only the following media types are accepted: {JSON}, {YAML}",
        status=406,
        reason="NotAcceptable",
    )
