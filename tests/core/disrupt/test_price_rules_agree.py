"""The search and the pipeline have the same price rules: what one plans, the other does not reject."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import msgspec
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tenure.core.disrupt.consolidation.prices import Cheaper, Offered, cheaper
from tenure.core.facts import Fact
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE
from tenure.model.cloud.offering import InstanceType
from tenure.model.matching.requirements import Requirement
from tenure.packing.consolidate.drafted import AcceptedDrafts, DraftPrices
from tenure.packing.consolidate.pools import Pools
from tenure.packing.consolidate.question import Candidate, Question
from tenure.packing.consolidate.rules import PriceRules
from tenure.packing.finished import finished
from tenure.packing.index.whatif import WhatIf
from tenure.packing.opening.drafts import Draft
from tenure.packing.result import PlannedClaim
from tests.packing.build import FAMILY, a_pod, a_pool, a_type
from tests.packing.consolidate.build import ask, on
from tests.packing.test_reserved import reserved

SMALL = [a_type(f"s-{n:02d}", 4, price=0.2 + n / 100, spot=0.05 + n / 500) for n in range(18)]


def types_of(random: Random) -> tuple[InstanceType, ...]:
    """Some with reserved capacity, which may be used up; some without a price."""
    return tuple(_changed(kind, random) for kind in (*FAMILY, *SMALL))


def _changed(kind: InstanceType, random: Random) -> InstanceType:
    chance, offerings = random.random(), kind.offerings
    if chance < 0.15:
        return reserved(kind, random.choice([0, 1, 2]), price=random.choice([1, 30_000]))
    if chance < 0.25:
        offerings = tuple(msgspec.structs.replace(one, price=0) for one in offerings)
    elif chance < 0.5:
        dear = {one: msgspec.structs.replace(one, price=one.price * 13 // 10) for one in offerings}
        offerings = tuple(dear[one] if one.zone == "b" else one for one in offerings)
    return msgspec.structs.replace(kind, offerings=offerings)


def question_of(seed: int) -> Question:
    random = Random(seed)
    types = types_of(random)
    there = []
    for number in range(random.randint(1, 4)):
        kind = random.choice(types)
        free = kind.capacity["cpu"] // 10**9
        pods = [
            a_pod(f"{number}-{n}", "1", nodeName=f"n-{number}")
            for n in range(random.randint(1, min(free, 9)))
        ]
        term = random.choice(sorted({one.capacity_type for one in kind.offerings}))
        price = random.choice([None, 90_000, 250_000, 1_000_000])
        node = on(f"n-{number}", kind.name, *pods, term=term, types=types, price=price)
        there.append(node)
    terms = random.choice([["on-demand"], ["on-demand", "spot"]])
    wanted = [Requirement.of(CAPACITY_TYPE, "In", terms)]
    if random.random() < 0.3:
        names = Requirement.of(INSTANCE_TYPE, "In", [one.name for one in types])
        wanted.append(names.with_min_values(random.choice([2, 17])))
    pool = a_pool(types=types, requirements=random.choice([(), wanted]))
    keys = [(kind.name, one.zone, one.capacity_type) for kind in types for one in kind.offerings]
    dry = frozenset(key for key in keys if random.random() < random.choice([0.0, 0.2, 0.7]))
    spot_to_spot = random.random() < 0.5
    return ask(*there, pools=[pool], dry=dry, spot_to_spot=spot_to_spot)


def drafted(question: Question) -> Iterator[tuple[list[Draft], list[Candidate]]]:
    """Claims for the pods of each node, and of all nodes together."""
    index = WhatIf(question.nodes, (), None)
    pools = Pools(question, index, ())
    for _ in pools.reading:
        pass
    candidates = [one for one in question.candidates if one.price > 0]
    for going in (*([one] for one in candidates), candidates):
        trial = index.take_out(one.name for one in going) if going else None
        if trial is not None and trial.left:
            for opens in (pools.one, pools.some):
                opened = opens(trial)
                if opened is not None and opened.drafts:
                    yield opened.drafts, going
                    pools.undo(opened)
        if trial is not None:
            index.undo(trial)


@given(st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_the_search_and_the_pipeline_agree(seed: int) -> None:
    question = question_of(seed)
    rules = PriceRules(spot_to_spot=question.spot_to_spot, fee_cpus=question.node_fee_cpus)
    types = {
        each.pool: {one.name: one for one in each.instance_types} for each in question.templates
    }
    offered = Offered(types=types, rules=rules, dry=question.dry)
    for drafts, going in drafted(question):
        searched = DraftPrices(rules).accepted(drafts, going)
        asked = cheaper(finished(drafts), going, offered)
        event(type(searched).__name__)
        if isinstance(searched, Fact):
            assert asked == searched
            continue
        assert isinstance(searched, AcceptedDrafts)
        assert isinstance(asked, Cheaper)
        planned = finished(searched.drafts)
        assert asked.worst == searched.worst
        assert list(map(_said, asked.claims)) == list(map(_said, planned))
        again = cheaper(asked.claims, going, offered)
        assert again == asked, "what was accepted once is not rejected the next time"


def _said(claim: PlannedClaim) -> tuple[object, ...]:
    cheapest = claim.price, claim.instance_type, claim.zone, claim.capacity_type
    return (claim.instance_types, dict(claim.requirements.items()), *cheapest)
