"""The images that there are: a list that users keep in a ConfigMap, the newest last.

There is nothing behind a Node of kwok, so there are no released images of it. To show how a fleet follows a
release, the list is a ConfigMap in the provider's namespace, one version on each line. Without it no
image is recorded on an instance, and nothing drifts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from tenure.errors import NotFound, ProviderError
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.resource import CONFIG_MAPS
from tenure.parse.jsontext import DECODE_ERRORS
from tenure.ports.provider import Api
from tenure.providers.kwok.nodeclass import IMAGE_LENGTH, KWOKNodeClass, pinned_image

NAME: Final = "kwok-images"
#: The key in the ConfigMap.
LIST: Final = "images"


class _Written(ApiObject, frozen=True, kw_only=True):
    data: Mapping[str, str] = {}


_WRITTEN: Final = msgspec.json.Decoder(_Written)


class Images:
    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace

    async def of(self, node_class: NodeClass | KWOKNodeClass) -> str:
        """What a new instance of the class starts from; empty: there is no image."""
        return pinned_image(node_class) or await self._newest()

    async def _newest(self) -> str:
        try:
            data = await self._api.get(CONFIG_MAPS, NAME, self._namespace)
        except NotFound:
            return ""
        try:
            written = _WRITTEN.decode(data).data.get(LIST, "")
        except DECODE_ERRORS as error:
            raise ProviderError(f"ConfigMap {self._namespace}/{NAME}: {error}") from error
        newest = written.strip().rpartition("\n")[2].strip()
        if len(newest) > IMAGE_LENGTH:
            where = f"ConfigMap {self._namespace}/{NAME}: the last line of {LIST}"
            raise ProviderError(f"{where} has {len(newest)} characters, at most {IMAGE_LENGTH} do")
        return newest
