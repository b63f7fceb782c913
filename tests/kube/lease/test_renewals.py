"""For how long a Lease counts as renewed, by our own clock."""

from __future__ import annotations

from datetime import timedelta

from tenure.kube.lease.renewals import Sightings
from tenure.model.api.meta import ObjectMeta
from tenure.model.api.workload import Lease, LeaseSpec
from tenure.model.snapshot.unreadable import stand_in

FIFTEEN = timedelta(seconds=15)


def a_lease(seconds: int | None = 15, version: str = "1") -> Lease:
    meta = ObjectMeta(name="lease", namespace="lo", resource_version=version)
    return Lease(metadata=meta, spec=LeaseSpec(holder_identity="x", lease_duration_seconds=seconds))


def counts_until(sightings: Sightings) -> float:
    """The last whole second at which the Lease counts as renewed."""
    counting = [s for s in range(10_000) if list(sightings.renewed_outside("tenure", float(s)))]
    return max(counting, default=-1)


def test_a_lease_counts_for_as_long_as_it_says_and_five_minutes_at_most() -> None:
    for seconds, until in ((15, 15), (None, 15), (300, 300), (301, 300), (2**31 - 1, 300)):
        sightings = Sightings(FIFTEEN)
        sightings.note([a_lease(seconds)], 0.0)
        assert counts_until(sightings) == until


def test_replicas_that_were_told_a_longer_duration_are_believed() -> None:
    sightings = Sightings(timedelta(minutes=10))
    sightings.note([a_lease(600)], 0.0)
    assert counts_until(sightings) == 600


def test_a_deleted_lease_counts_five_minutes_at_most() -> None:
    sightings = Sightings(FIFTEEN)
    sightings.note([a_lease(2**31 - 1)], 0.0)
    sightings.note([], 100.0)
    sightings.note([], 200.0)
    assert counts_until(sightings) == 400


def test_a_lease_that_cannot_be_read_counts_until_it_has_not_changed_for_five_minutes() -> None:
    sightings = Sightings(FIFTEEN)
    sightings.note([stand_in(a_lease(), "Expected `datetime`")], 0.0)
    assert counts_until(sightings) == 300
    sightings.note([stand_in(a_lease(), "Expected `datetime`")], 100.0)
    assert counts_until(sightings) == 300
    sightings.note([stand_in(a_lease(version="2"), "Expected `datetime`")], 200.0)
    assert counts_until(sightings) == 500
