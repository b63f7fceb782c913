"""What is wrong with a claim, as far as no API server can say.

Taints, then requirements, then durations, then what it asks for. A claim with any problem is
not launched. Which labels a pool may constrain is the pool's business: the claims that we
make ourselves name their pool.
"""

from __future__ import annotations

from collections.abc import Iterator

from tenure.errors import SpecError
from tenure.model.api.nodeclaim import NodeClaim
from tenure.schema.semantics.amounts import amount_problems
from tenure.schema.semantics.template import requirement_problems, span_problems_of, taint_problems


def claim_problems(claim: NodeClaim) -> Iterator[SpecError]:
    spec = claim.spec
    yield from taint_problems(spec, "spec")
    for index, requirement in enumerate(spec.requirements):
        yield from requirement_problems(requirement, f"spec.requirements[{index}]")
    yield from span_problems_of(spec, "spec")
    yield from amount_problems(spec.resources.requests, "spec.resources.requests")
