"""Asks the cloud once, for a cluster that is read: its types, its instances, and what has drifted.

It is bounded, and nothing is launched or terminated. What the cloud does not say is a note.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from tenure.cli.cluster.question import Question
from tenure.cli.cluster.seen import Seen, or_note
from tenure.kube.client.client import Client
from tenure.model.api.resource import NODES
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.ports.clock import Clock
from tenure.ports.cloud import Cloud
from tenure.ports.provider import Surroundings
from tenure.providers.boundary import BoundedCloud
from tenure.runtime.cloud.drifts import AskedOnce, ask_once
from tenure.runtime.cloud.inventory import Inventory
from tenure.runtime.readonly import LookOnlyCloud


class CloudReader:
    def __init__(self, client: Client, clock: Clock, settings: Settings, seen: Seen) -> None:
        self._client, self._clock, self._settings, self._seen = client, clock, settings, seen

    def surroundings(self, namespace: str) -> Surroundings:
        """What a provider is opened with."""
        return Surroundings(
            api=self._client,
            clock=self._clock,
            cluster=self._settings.cluster_name,
            report=lambda error: self._seen.notes.append(f"the provider says: {error}"),
            namespace=namespace,
            read_only=True,
            options=self._settings.provider_options,
        )

    async def ask(self, cloud: Cloud, about: Question | None, *, drift: bool) -> None:
        """``about``: whose instance is asked about first."""
        self._seen.observations.repair_statements = cloud.repair_statements
        looked_at = LookOnlyCloud(BoundedCloud(cloud))
        questions = [self._instances(looked_at)]
        if drift:
            questions.append(self._drifts(looked_at, about))
        await asyncio.gather(*questions)

    async def _instances(self, cloud: Cloud) -> None:
        notes = self._seen.notes
        inventory = Inventory(
            client=self._client,
            cloud=cloud,
            observations=self._seen.observations,
            clock=self._clock,
            settings=self._settings,
            snapshot=self._seen.snapshot,
            report=lambda error: notes.append(f"instance types are not known: {error}"),
        )
        await inventory.refresh_types()
        if self._settings.cluster_name:  # Else the cluster's instances cannot be told from others.
            await or_note(inventory.compare, None, "the cloud's instances", notes)

    async def _drifts(self, cloud: Cloud, about: Question | None) -> None:
        snapshot = self._seen.snapshot()
        first = _claim_asked_about(about, snapshot)
        asked = await ask_once(cloud, self._seen.observations, snapshot, first=first)
        self._seen.notes.extend(_drift_notes(asked))


def _claim_asked_about(about: Question | None, snapshot: Snapshot) -> str:
    if about is None:
        return ""
    node = snapshot.nodes.get(about.name) if about.resource == NODES else None
    claim = snapshot.claim_of(node) if node is not None else None
    return claim.name if claim is not None else about.name


def _drift_notes(asked: AskedOnce) -> Iterator[str]:
    """What the provider was not asked, or did not say."""
    if asked.answers == asked.instances:
        return
    why = f" ({asked.error})" if asked.error else ""
    yield (
        f"the provider said of {asked.answers} of {asked.instances} instances whether they have "
        f"drifted{why}; of the others the condition Drifted of their NodeClaims counts"
    )
