"""What a claim says of the labels that its pods ask for, and whether the API server accepts it.

The latter is asked of the CRD's own rules, for every class of pods before it joins a claim: a pod
that no claim can be written for is told so, and no other pod waits with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any, Final

import msgspec

from tenure.model.api.names import HOSTNAME
from tenure.model.api.nodeclaim import Requirement as Written
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.packing.demand.problem import NEW_NODE_LABELS
from tenure.schema.semantics.labels import is_label_value
from tenure.schema.semantics.template import requirement_problems
from tenure.schema.structure.validate import schema_for

#: What every new node has and no claim says. Its hostname is known only when it is there, so it is
#: none that a pod can name.
NEW_NODE: Final = Requirements.from_labels({HOSTNAME: "the name of a new node", **NEW_NODE_LABELS})

#: The largest number that a requirement of a claim may compare with.
BOUND_MAX: Final = 10**18 - 1
#: So many entries are never too many, which saves counting them; and so many say one requirement.
FEW: Final = 50
_ENTRIES_MAX: Final = 3
#: Room for the instance types and capacity types that every claim lists.
_LISTED: Final = 2


def said_in_claim(
    planned: Requirements,
    ours: Requirements,
    known_keys: Collection[str],
    values_of: Callable[[str], frozenset[str] | None],
) -> Requirements:
    """Those of the planned ones that a claim has to say.

    Left out is what every node of the pool satisfies anyway: hostnames to keep off, and labels that
    neither the pool nor an instance type defines. Such a label can only be asked not to be there.

    ``ours``: those of the pool. ``known_keys``: of labels that instance types have; ``values_of``
    their values, None where they may have any.
    """
    kept: list[Requirement] = []
    for key, requirement in planned.items():
        written = ours.get(key)
        if written == requirement:
            kept.append(requirement)
        elif key not in NEW_NODE and (written is not None or key in known_keys):
            plain = _plain(requirement, written, values_of(key))
            anything = Requirement(key, complement=True, allows_absent=True)
            if written is not None or plain != anything:
                kept.append(plain)
    return Requirements.of(kept)


def _plain(
    requirement: Requirement, written: Requirement | None, possible: frozenset[str] | None
) -> Requirement:
    """Without the values that no node has, and without bounds that bound nothing."""
    if not requirement.complement:
        return _listing_fewer(requirement, possible)
    ours = written.listed if written is not None and written.complement else frozenset()
    if possible is None:
        listed = {value for value in requirement.listed if value in ours or is_label_value(value)}
    else:  # A pod may list thousands of values: only those that nodes have are looked at.
        kept = {value for value in requirement.listed & possible if is_label_value(value)}
        listed = kept | (requirement.listed & ours)
    at_least, at_most = requirement.at_least, requirement.at_most
    return msgspec.structs.replace(
        requirement,
        listed=frozenset(listed),
        at_least=at_least if at_least is None or at_least >= 0 else None,
        at_most=at_most if at_most is None or at_most <= BOUND_MAX else None,
    )


def _listing_fewer(requirement: Requirement, possible: frozenset[str] | None) -> Requirement:
    """Of thousands of values, those that nodes have; where these have none, a few of them, and no node fits."""
    if possible is None or len(requirement.listed) <= FEW:
        return requirement
    listed = requirement.listed & possible or frozenset(requirement.values[:FEW])
    return msgspec.structs.replace(requirement, listed=listed)


def refusal_of(requirements: Requirements, accepted: Requirements) -> str | None:
    """Why a claim with these is refused; None when it is not. ``accepted``: those of the pool."""
    for key, requirement in sorted(requirements.items()):
        if accepted.get(key) != requirement and (problem := _problem(requirement)) is not None:
            return problem
    if len(requirements) * _ENTRIES_MAX + _LISTED <= FEW:
        return None
    return _too_many(sum(len(one.to_wire()) for one in requirements.values()))


@lru_cache(4096)
def _problem(requirement: Requirement) -> str | None:
    if requirement.impossible:
        return None  # No instance type has it, and that is what has to be said.
    entries = requirement.to_wire()
    for entry in entries:
        for problem in requirement_problems(msgspec.convert(entry, Written), requirement.key):
            return str(problem)
    # Each value was looked at above. The CRD's rules are about how many there are, up to minValues.
    error = _first_error([_with_few_values(entry) for entry in entries])
    return f"{requirement.key}: {error}" if error is not None else None


def _with_few_values(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "values": entry["values"][:FEW]} if "values" in entry else entry


@lru_cache(256)
def _too_many(count: int) -> str | None:
    any_label = {"key": "example.com/any", "operator": "Exists"}
    return _first_error([any_label] * (count + _LISTED))


def _first_error(requirements: list[dict[str, Any]]) -> str | None:
    schema = schema_for(NODE_CLAIMS.group, NODE_CLAIMS.kind)
    assert schema is not None
    ref = {"group": "example.com", "kind": "NodeClass", "name": "default"}
    claim = {
        "apiVersion": NODE_CLAIMS.api_version,
        "kind": NODE_CLAIMS.kind,
        "metadata": {"name": "new"},
        "spec": {"requirements": requirements, "nodeClassRef": ref},
    }
    errors = schema.validate(claim)
    return errors[0].message if errors else None
