"""Why a node is neither deleted nor replaced by something cheaper."""

from __future__ import annotations

from typing import Final

from tenure.model.cloud.offering import format_price
from tenure.model.values.fact import Fact, sentence
from tenure.packing.facts import NoPool

#: One in so many of the candidates' price must be saved. List prices hardly ever move.
LIST_PART: Final = 20
#: Where on-demand nodes become spot: prices alone never bring them back.
TO_SPOT_PART: Final = 10
#: Where a spot node goes: tomorrow its price may be as it was.
OF_SPOT_PART: Final = 4


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
    #: Pool by pool.
    why: tuple[Fact, ...] = ()

    def gist(self) -> object:
        return type(self), self.pod, tuple(one.gist() for one in self.why)

    def __str__(self) -> str:
        why = f": {sentence(self.why)}" if self.why else ""
        return (
            f"Pod {self.pod} fits on no other node, and no NodePool can launch one for the pod{why}"
        )


class PodsFitNoOneNode(Fact, frozen=True):
    """Each of them could get a new node."""

    pods: int

    def __str__(self) -> str:
        return (
            f"no node that may be launched has room for all {self.pods} pods that fit on no other node, and "
            f"several new nodes are not cheaper"
        )


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
    #: What capacity for its pods costs at the least, on whichever nodes.
    least: int

    def gist(self) -> object:
        return type(self), self.price

    def __str__(self) -> str:
        price, least = format_price(self.price), format_price(self.least)
        return (
            f"the pods make good use of the node for {price}: capacity for them costs {least} at the least, on "
            f"whichever nodes"
        )


class NoCheaperReplacement(Fact, frozen=True):
    #: What the nodes cost that would go.
    price: int
    #: What new nodes cost at the least, and of which types; None: no type for the pods has a price.
    costs: int | None = None
    types: tuple[str, ...] = ()

    def __str__(self) -> str:
        price = format_price(self.price)
        if self.costs is None:
            return f"no instance type that may be launched for the pods is known to cost less than {price}"
        costs = format_price(self.costs)
        if not self.types:
            return f"what was launched instead costs {costs}, which is not less than {price}"
        nodes = "one new node" if len(self.types) == 1 else f"{len(self.types)} new nodes"
        types = ", ".join(self.types)
        return f"{nodes} for the pods would cost {costs} ({types}), which is not less than {price}"


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
    #: What the nodes cost that would go, and one in how many of it must be saved.
    price: int
    part: int

    def __str__(self) -> str:
        saves, price = format_price(self.saves), format_price(self.price)
        wanted = f"{100 // self.part} % ({format_price(self.price // self.part)})"
        return (
            f"a replacement saves {saves} of {price} for certain; {_FOR_PART[self.part]} {wanted}"
        )


_FOR_PART: Final = {
    LIST_PART: "pods are moved for at least",
    TO_SPOT_PART: "to become spot, whose prices go up and down, a node has to save at least",
    OF_SPOT_PART: "a spot node, whose price goes up and down, is replaced for at least",
}


class MoreNodesSaveTooLittle(Fact, frozen=True):
    #: How many nodes more there would be.
    more: int
    saves: int
    #: The fees of these.
    wanted: int
    #: The setting.
    fee_cpus: int

    def __str__(self) -> str:
        nodes = "1 node" if self.more == 1 else f"{self.more} nodes"
        saves, wanted = format_price(self.saves), format_price(self.wanted)
        return (
            f"cheaper nodes would be {nodes} more than now and save {saves}; that must be more than {wanted} "
            f"(--node-fee-cpus={self.fee_cpus}, for each)"
        )


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
    PodFitsNowhereElse("default/web-1", (NoPool(),)),
    PodsFitNoOneNode(7),
    PreferenceKept("default/web-1", "preferred anti-affinity over kubernetes.io/hostname"),
    WellUsed(96_000, 93_000),
    NoCheaperReplacement(96_000),
    NoCheaperReplacement(96_000, 98_000),
    NoCheaperReplacement(96_000, 96_000, ("m7i.large",)),
    NoCheaperReplacement(96_000, 100_800, ("m7i.large", "c7i.large")),
    SpotToSpotDisabled(),
    TooFewSpotTypes(1, 15),
    TooFewSpotTypes(9, 15),
    MinValuesNotKept(),
    SavesTooLittle(2_000, 96_000, LIST_PART),
    SavesTooLittle(2_000, 96_000, TO_SPOT_PART),
    SavesTooLittle(2_000, 38_400, OF_SPOT_PART),
    MoreNodesSaveTooLittle(1, 20_000, 36_000, 3),
    ScoreTooLow("general", 0.31, 0.5),
)
