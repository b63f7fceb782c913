"""Which object a command asks about, in the words of a user."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

import msgspec

from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.errors import SpecError
from tenure.model.api import resource as r
from tenure.model.api.meta import format_time
from tenure.model.api.resource import Resource
from tenure.sim.scenario.read.kindnames import resource_called

EXPLAINED: Final = (
    r.NODES,
    r.NODE_CLAIMS,
    r.PODS,
    r.NODE_POOLS,
    r.MAINTENANCE_WINDOWS,
    r.NODE_POOL_POLICIES,
    r.POD_DISRUPTION_BUDGETS,
)
_WORDS: Final = "node, claim, pod, pool, window, policy or pdb"
#: Workloads: what there is to say is said of their pods.
_OWNERS: Final = frozenset(
    f"{word}{plural}"
    for word in ("deployment", "replicaset", "statefulset", "daemonset", "job", "cronjob")
    for plural in ("", "s")
) | {"deploy", "rs", "sts", "ds", "cj"}
_EXAMPLES: Final = {
    r.NODES: "general-4nv74",
    r.NODE_CLAIMS: "general-4nv74",
    r.PODS: "web-1",
    r.POD_DISRUPTION_BUDGETS: "team-a/web",
}
_HINT: Final = "For example claim/general-x7k2p or pod team-a/web-1."


class Question(msgspec.Struct, frozen=True):
    resource: Resource
    name: str
    namespace: str = ""

    @classmethod
    def parse(cls, words: Sequence[str], namespace: str = "") -> Question:
        """``KIND/NAME``, ``KIND NAME``, and for pods also ``KIND/NAMESPACE/NAME``."""
        said = "/".join(words)
        kind, _, rest = said.partition("/")
        if len(words) > 2:
            raise SpecError("KIND NAME", " ".join(words), "one object, in at most two words", _HINT)
        resource = resource_called(kind)
        if resource not in EXPLAINED:
            owns_pods = kind.lower().partition(".")[0] in _OWNERS and rest
            hint = (
                f"Name one of its pods: explain pod/{rest} lists them."
                if owns_pods
                else _meant(kind, alone=not rest, known=resource is not None)
            )
            raise SpecError("KIND", kind, _WORDS, hint)
        assert resource is not None
        before, _, name = rest.rpartition("/")
        if not name or (before and not resource.namespaced):
            example = f"For example {kind}/{_EXAMPLES.get(resource, 'general')}."
            raise SpecError("NAME", rest, f"the name of a {resource.kind}", example)
        given = before or namespace
        return cls(resource, name, given if resource.namespaced else "")

    def in_namespace(self, usual: str = "") -> Question:
        """With the namespace that is meant where none is said."""
        if self.namespace or not self.resource.namespaced:
            return self
        return Question(self.resource, self.name, usual or "default")

    def __str__(self) -> str:
        return "/".join(part for part in (self.resource.kind, self.namespace, self.name) if part)

    def not_found(self, evaluated: EvaluatedCluster, last_word: str = "") -> str:
        """That it is not there, its last event, and which objects exist instead."""
        when = f"at {evaluated.also_at or format_time(evaluated.at)}"
        if last_word:
            return f"{self} is not there {when}; {last_word}"
        if elsewhere := self._elsewhere(evaluated):
            return f"there is no {self} {when}; {elsewhere}"
        names = evaluated.names(self.resource, self.namespace)
        if not names:
            where = f" in namespace {self.namespace}" if self.namespace else ""
            return f"there is no {self} {when}, and no other {self.resource.kind}{where}"
        # The name of a workload is how the names of its pods begin.
        begun = [name for name in names if name.startswith(self.name)]
        close = [_some(begun)] if begun else get_close_matches(self.name, names, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {_some(names)}"
        return f"there is no {self} {when}; {hint}"

    def _elsewhere(self, evaluated: EvaluatedCluster) -> str:
        """In which namespaces it is, or what it is the beginning of; empty: in none."""
        if not self.namespace:
            return ""
        others = evaluated.elsewhere(self.resource, self.namespace)
        if same := [where for where, name in others if name == self.name]:
            return f"there is one in namespace {_some(same)}: add -n {same[0]}"
        here = evaluated.names(self.resource, self.namespace)
        begun = [(where, name) for where, name in others if name.startswith(self.name)]
        if not begun or any(name.startswith(self.name) for name in here):
            return ""
        where, name = begun[0]
        return f"did you mean {name} in namespace {where}? Then add -n {where}"


def _meant(kind: str, *, alone: bool, known: bool) -> str:
    """``alone``: nothing stands behind it, so that it may be a name; ``known``: Kubernetes has such a kind."""
    if known:
        return _HINT
    if alone and "-" in kind:
        return f"For example node/{kind}, claim/{kind} or pod/{kind}."
    close = get_close_matches(kind.lower(), _WORDS.replace(" or", ",").split(", "), n=1)
    return f"Did you mean {close[0]}? {_HINT}" if close else _HINT


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
