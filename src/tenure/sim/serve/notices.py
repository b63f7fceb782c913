"""Notices of the embedded cloud that a user gives by hand: a label on a Node.

It is the label that the kwok provider reads, with the same values, so that the same command tries an
interruption there. It is taken off as soon as the cloud has announced it.
"""

from __future__ import annotations

from collections.abc import Callable

from tenure.errors import NotFound, ProviderError, SpecError, shown
from tenure.model.api.resource import NODES
from tenure.model.cloud.notice import NoticeKind
from tenure.providers.kwok.labels import NOTICE
from tenure.providers.kwok.notices import parse_notice
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.world import World


class LabelledNodes:
    def __init__(self, world: World, *, report: Callable[[str], object]) -> None:
        self._world = world
        self._report = report
        world.store.subscribe(NODES, self._on_write)

    def _on_write(self, type_: str, node: Obj, old: Obj | None) -> None:
        value = _label(node)
        if type_ == "DELETED" or not value or (old is not None and value == _label(old)):
            return
        # Not while the store writes: taking the label off is a write, too.
        self._world.environment.soon(self._announce, node["metadata"]["name"], value)

    def _announce(self, name: str, value: str) -> None:
        world, where = self._world, f"label {NOTICE} of Node {name}"
        try:
            unlabelled = {"metadata": {"labels": {NOTICE: None}}}
            node = world.store.patch(NODES, "", name, unlabelled)
            kind, deadline = parse_notice(value, now := world.now)
            provider_id = str((node.get("spec") or {}).get("providerID", ""))
            if kind is NoticeKind.REBALANCE:
                world.cloud.recommend_rebalance(provider_id)
            elif deadline is None:
                world.cloud.interrupt(provider_id, dated=False)
            else:
                world.cloud.interrupt(provider_id, deadline - now)
        except NotFound:
            return  # It has gone meanwhile.
        except SpecError as error:
            self._report(f"{where}: got {shown(value)!r}, expected {error.expected}")
        except ProviderError as error:
            self._report(f"{where}: {error}")
        else:
            said = f"the cloud announces: {value} (instance {provider_id})"
            world.history.note("cloud", f"Node/{name}", "Notice", said)


def _label(node: Obj) -> str:
    return str((node["metadata"].get("labels") or {}).get(NOTICE, ""))
