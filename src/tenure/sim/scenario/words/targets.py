"""How a line of a scenario names an object whose name is not known yet."""

from __future__ import annotations

from typing import Final

from tenure.sim.scenario.words.word import Word

FILTERS: Final = (
    Word("name", "the object's name", "delete: {pool: {name: general}}"),
    Word("namespace", "of the object", "delete: {pod: {app: web, namespace: default}}"),
    Word("pool", "objects of this NodePool", "cordon: {node: {pool: general}}"),
    Word(
        "app",
        "pods of this app, and the Nodes and claims that run them",
        "cordon: {node: {app: web}}",
    ),
    Word(
        "labels",
        "a label selector, or labels: `{release: two}`",
        'cordon: {node: {labels: "karpenter.sh/nodepool=general,!gpu"}}',
    ),
)
PICKS: Final = (
    Word(
        "pick",
        "which of those that are left: `oldest` (default), `newest`, `fullest`, `emptiest`; `all` for `silence` and `resume`",
        "delete: {claim: {pool: general, pick: emptiest}}",
    ),
    Word(
        "index",
        "0, the default, is the first in that order, 1 the second",
        "delete: {pod: {app: web, index: 1}}",
    ),
)
