"""The KWOK provider: its name, its node class, its options, and its cloud."""

from __future__ import annotations

from typing import Final

from tenure.errors import SpecError
from tenure.ports.provider import Surroundings
from tenure.providers.kwok.catalogue import built_in_types
from tenure.providers.kwok.cloud import KwokCloud
from tenure.providers.kwok.nodeclass import KWOK_KIND, KWOK_NODE_CLASSES
from tenure.providers.kwok.typesfile import load_types

TYPES_FILE: Final = "instance-types-file"


class KwokProvider:
    """Implements ``ports.provider.Provider``."""

    name: Final = KwokCloud.name
    node_classes: Final = (KWOK_NODE_CLASSES,)
    kinds: Final = (KWOK_KIND,)
    repair_statements: Final = KwokCloud.repair_statements
    options: Final = {
        TYPES_FILE: "JSON file with the instance types to offer instead of the built-in ones"
    }

    def open(self, surroundings: Surroundings) -> KwokCloud:
        for option, value in surroundings.options.items():
            if option not in self.options:
                raise SpecError(f"--{option}", value, f"one of --{', --'.join(self.options)}")
        path = surroundings.options.get(TYPES_FILE, "")
        return KwokCloud(surroundings, load_types(path) if path else built_in_types())


KWOK: Final = KwokProvider()
