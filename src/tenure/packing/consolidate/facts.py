"""Why a node is neither deleted nor replaced by something cheaper."""

from __future__ import annotations

from typing import Final

from tenure.model.cloud.offering import format_price
from tenure.model.values.fact import Fact


class PriceUnknown(Fact, frozen=True):
    instance_type: str
    capacity_type: str

    def __str__(self) -> str:
        what = f"{self.instance_type} ({self.capacity_type})"
        return f"the provider has no price for {what}, so nothing is known to be cheaper"

    def remedy(self) -> str:
        return "Give the instance type a price where the provider lists its instance types."


class PodRequestsUnknown(Fact, frozen=True):
    #: ``namespace/name``.
    pod: str

    def __str__(self) -> str:
        return f"what Pod {self.pod} asks of a node cannot be read, so the pod is not moved"


class NodeTakesNoPods(Fact, frozen=True):
    def __str__(self) -> str:
        return "the node takes no pods, so where its own pods would go is not asked"


class PodFitsNowhereElse(Fact, frozen=True):
    pod: str

    def __str__(self) -> str:
        return f"Pod {self.pod} fits on no other node, and no NodePool can launch one for the pod"


class PreferenceKept(Fact, frozen=True):
    #: ``namespace/name``.
    pod: str
    #: What the pod would have to give up.
    preference: str

    def __str__(self) -> str:
        return (
            f"Pod {self.pod} fits on other nodes only without its {self.preference}; preferences "
            "are kept while a new node could keep them (--preference-policy)"
        )


class WellUsed(Fact, frozen=True):
    price: int

    def __str__(self) -> str:
        return f"the pods make good use of the node for {format_price(self.price)}"


class NoCheaperReplacement(Fact, frozen=True):
    price: int

    def __str__(self) -> str:
        return f"the pods need a node of their own, and none is cheaper than {format_price(self.price)}"


class SpotToSpotDisabled(Fact, frozen=True):
    def __str__(self) -> str:
        return (
            "a spot node is replaced by a cheaper spot node only with the feature gate "
            "SpotToSpotConsolidation"
        )

    def remedy(self) -> str:
        return "To allow it, set --feature-gates=SpotToSpotConsolidation=true."


class TooFewSpotTypes(Fact, frozen=True):
    found: int
    wanted: int

    def __str__(self) -> str:
        types = "1 instance type is" if self.found == 1 else f"{self.found} instance types are"
        return f"{types} cheaper as spot; {self.wanted} must be, so that the new node stays"


class MinValuesNotKept(Fact, frozen=True):
    def __str__(self) -> str:
        return "too few instance types are cheaper for the minValues of the NodePool"

    def remedy(self) -> str:
        return "Lower minValues in the requirements of the NodePool, or allow more instance types."


class SavesTooLittle(Fact, frozen=True):
    saves: int
    wanted: int

    def __str__(self) -> str:
        saves, wanted = format_price(self.saves), format_price(self.wanted)
        return f"a replacement saves {saves} for certain; less than {wanted} moves no pods"


class ScoreTooLow(Fact, frozen=True):
    pool: str
    score: float
    wanted: float

    def __str__(self) -> str:
        return (
            f"the saving is {self.score:.2f} of what is disturbed, by their shares in NodePool "
            f"{self.pool}; its consolidationPolicy Balanced asks for {self.wanted:.2f}"
        )

    def remedy(self) -> str:
        return f"consolidationPolicy WhenEmptyOrUnderutilized of NodePool {self.pool} asks for no such share."


EXAMPLES: Final[tuple[Fact, ...]] = (
    PriceUnknown("m7i.large", "spot"),
    PodRequestsUnknown("default/web-1"),
    NodeTakesNoPods(),
    PodFitsNowhereElse("default/web-1"),
    PreferenceKept("default/web-1", "preferred anti-affinity over kubernetes.io/hostname"),
    WellUsed(96_000),
    NoCheaperReplacement(96_000),
    SpotToSpotDisabled(),
    TooFewSpotTypes(1, 15),
    TooFewSpotTypes(9, 15),
    MinValuesNotKept(),
    SavesTooLittle(2_000, 4_800),
    ScoreTooLow("general", 0.31, 0.5),
)
