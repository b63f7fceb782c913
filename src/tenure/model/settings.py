"""Settings: one frozen value; each field says its unit, its default and why that default."""

from __future__ import annotations

from datetime import timedelta

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    #: Tags our instances, so that two clusters in one account never touch each other's.
    cluster_name: str = "embedded"
    #: A batch of pending pods is placed after this long without a new one (the peer's 1s).
    batch_idle: timedelta = timedelta(seconds=1)
    #: … and at the latest this long after its first pod (the peer's 10s).
    batch_max: timedelta = timedelta(seconds=10)
    #: Between tainting a node and ending its instance, so that everybody has seen the taint.
    drain_min: timedelta = timedelta(seconds=5)
    #: How often the cloud is asked whether a terminating instance is gone.
    termination_poll: timedelta = timedelta(seconds=5)
    #: How often instances and claims are compared.
    garbage_period: timedelta = timedelta(minutes=2)
    #: Instances younger than this are never garbage: their claim may not be visible yet.
    garbage_grace: timedelta = timedelta(minutes=5)
    #: How long an offering that was sold out is left out of planning.
    offering_dry: timedelta = timedelta(minutes=3)
    #: First and longest pause between two evictions of one pod.
    eviction_retry_min: timedelta = timedelta(seconds=1)
    eviction_retry_max: timedelta = timedelta(seconds=10)
    #: First and longest pause after a failed action on one object.
    retry_min: timedelta = timedelta(seconds=1)
    retry_max: timedelta = timedelta(minutes=1)
    #: Evictions per second over all nodes, and how many may come at once.
    eviction_rate: float = 100.0
    eviction_burst: int = 200
    #: Events per second, and how many may come at once.
    event_rate: float = 25.0
    event_burst: int = 50
    #: A turn is at least this long after the last one: a burst of changes is judged once.
    turn_gap: timedelta = timedelta(milliseconds=50)
    #: Placing pods anew is at least this long after the last time, unless the last answer
    #: no longer holds (a claim came or went): two thousand pods are bound one by one.
    placement_gap: timedelta = timedelta(milliseconds=500)
    #: How many actions may be under way at once.
    actions_max: int = 64
    #: Answers that nobody sees in the watch after this long are looked up by a read.
    expectation_max: timedelta = timedelta(seconds=10)
