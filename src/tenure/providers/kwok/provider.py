"""The KWOK provider: its name, its node class, its options, and its cloud."""

from __future__ import annotations

from typing import Final

from tenure.errors import SpecError
from tenure.ports.provider import Option, Surroundings
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
    options: Final = (
        Option(
            name=TYPES_FILE,
            reason="Instance types of your own, in the format of Karpenter's KWOK provider.",
            metavar="FILE",
            expected="the path of a JSON file",
            example="instance-types.json",
            default="the provider's own",
            karpenters=True,
        ),
    )
    #: For Nodes that wait for the registration delay of their class.
    namespace: Final = "tenure-kwok"

    def open(self, surroundings: Surroundings) -> KwokCloud:
        for name, value in surroundings.options.items():
            if name != TYPES_FILE:
                raise SpecError(f"--{name}", value, f"no option but --{TYPES_FILE}")
        path = surroundings.options.get(TYPES_FILE, "")
        return KwokCloud(surroundings, load_types(path) if path else built_in_types())


KWOK: Final = KwokProvider()
