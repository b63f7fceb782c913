"""Settings: one frozen value; each field says its unit, its default and why that default."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import msgspec

#: Of the one that is in charge of nodes: Karpenter, or a Tenure in its place.
IN_CHARGE_LEASE: Final = "karpenter-leader-election"
#: Of all replicas that run beside Karpenter.
BESIDE_LEASE: Final = "tenure-beside-karpenter"


def other_lease(settings: Settings) -> str:
    """Of a Tenure in the other mode."""
    return IN_CHARGE_LEASE if settings.beside_karpenter else BESIDE_LEASE


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    #: Tags our instances, so that two clusters in one account never touch each other's.
    cluster_name: str = "embedded"
    #: A batch of pending pods is placed after this long without a new one (Karpenter's 1s).
    batch_idle: timedelta = timedelta(seconds=1)
    #: … and at the latest this long after its first pod (Karpenter's 10s).
    batch_max: timedelta = timedelta(seconds=10)
    #: A node costs as much as so many cpus beyond its price: larger plans fewer, larger nodes.
    node_fee_cpus: int = 3
    #: Preferences of pods are kept while they can be (``Respect``, Karpenter's default), or ``Ignore``.
    preference_policy: str = "Respect"
    #: ``minValues`` of a pool must be met (``Strict``, Karpenter's default), or are a wish (``BestEffort``).
    min_values_policy: str = "Strict"
    #: Between tainting a node and terminating its instance, so that every component has seen the taint.
    drain_min: timedelta = timedelta(seconds=5)
    #: How often the cloud is asked whether a terminating instance is gone.
    termination_poll: timedelta = timedelta(seconds=5)
    #: How often instances and claims are compared.
    garbage_period: timedelta = timedelta(minutes=2)
    #: Instances younger than this are never garbage: their claim may not be visible yet.
    garbage_grace: timedelta = timedelta(minutes=5)
    #: How long an offering that was sold out is left out of planning.
    offering_dry: timedelta = timedelta(minutes=3)
    #: Whether unhealthy nodes are repaired; time-outs of new ones always run.
    node_repair: bool = True
    #: Whether nodes are taken away by choice: empty, expired, drifted, recommended to leave.
    voluntary_disruption: bool = True
    #: Whether a spot node may be replaced by a cheaper spot node: Karpenter's feature gate.
    spot_to_spot_consolidation: bool = False
    #: Whether pools without a ``repair`` block repair by force, as Karpenter did before 1.15.
    legacy_node_repair: bool = False
    #: Whether many unhealthy nodes of one zone, image or type are left alone but for one at a time.
    repair_domain_breaker: bool = True
    #: A pod's protection counts from its ``creation``, or as Karpenter's from its ``start``.
    protection_clock: str = "creation"
    #: A budget that seems to allow nothing is asked all the same, this often: it may be stale.
    eviction_probe: timedelta = timedelta(seconds=10)
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
    #: A turn is at least this long after the last one: a burst of changes is evaluated once.
    turn_gap: timedelta = timedelta(milliseconds=50)
    #: Whether a pod's status names the node that was launched for it, so that the scheduler keeps the room.
    nominate_pods: bool = True
    #: Placing pods anew is at least this long after the last time, unless the last answer
    #: no longer holds (a claim came or went): two thousand pods are bound one by one. Not longer than
    #: a batch is idle: then no launch is later for it.
    placement_gap: timedelta = timedelta(seconds=1)
    #: How many actions may be under way at once.
    actions_max: int = 64
    #: Writes that the watch has not shown after this long are looked up by a read.
    expectation_max: timedelta = timedelta(seconds=10)

    #: No disruption begins, nothing is taken away and no deadline is set while our wall clock is further than this
    #: from the API server's. Its ``Date`` has whole seconds, and calls take up to some.
    clock_skew_max: timedelta = timedelta(seconds=10)

    # -- Beside Karpenter --------------------------------------------------------------
    #: Karpenter launches, drains and terminates; Tenure sets levers that Karpenter honours, and no more.
    beside_karpenter: bool = False
    #: Of a Karpenter that runs outside the cluster, such as ``1.15``; empty: its Deployment says so.
    karpenter_version: str = ""
    #: As Karpenter's own setting; empty: its Deployment says so.
    karpenter_feature_gates: str = ""
    #: Whether every lever is taken back when the process is told to stop.
    release: bool = False

    # -- The Lease: which of several replicas acts -------------------------------------
    #: Karpenter's name, so that Tenure and Karpenter exclude each other.
    lease_name: str = IN_CHARGE_LEASE
    lease_namespace: str = "kube-system"
    #: How long the others wait after the last renewal before one of them takes over.
    lease_duration: timedelta = timedelta(seconds=15)
    #: A holder that could not renew for this long stops: a call that leaves at the very end
    #: and takes the longest that a call may take still ends within the duration.
    lease_renew_deadline: timedelta = timedelta(seconds=10)
    #: Between two tries to get or to renew it.
    lease_retry: timedelta = timedelta(seconds=2)
    #: Without it the only replica acts as soon as it runs.
    leader_election: bool = True
    #: Take a Lease that something else, such as Karpenter, held last.
    take_over: bool = False

    # -- The way to the API server -----------------------------------------------------
    #: Requests per second, and how many may come at once (Karpenter's figures).
    client_qps: float = 200.0
    client_burst: int = 300
    #: Empty: the environment's, the pod's own, or the one in the home folder.
    kubeconfig: str = ""
    #: Empty: the kubeconfig's current one.
    context: str = ""

    # -- The cloud ---------------------------------------------------------------------
    #: Empty: the one that ships with Tenure.
    provider: str = ""
    #: For objects that the provider keeps in the cluster; empty: where the Lease is.
    provider_namespace: str = ""
    #: What was set of the options that the provider declares; texts as they were written.
    provider_options: Mapping[str, str] = {}

    # -- What others see of us ---------------------------------------------------------
    metrics_port: int = 8080
    health_port: int = 8081
    #: 0 is no webhook at all.
    webhook_port: int = 9443
    webhook_name: str = "tenure-webhook"
    #: 0 is no web page at all.
    ui_port: int = 0
    #: On a loopback address no token is asked for.
    ui_address: str = "127.0.0.1"
    log_level: str = "info"
    #: ``auto`` is text on a terminal and JSON everywhere else.
    log_format: str = "auto"
    #: How many verdict changes and outcomes are kept in memory; 0 is none, and no port for them.
    journal_size: int = 5000
    #: On the loopback interface alone.
    journal_port: int = 8082
    #: Series for each node and pod: hundreds of thousands in a large cluster.
    cluster_metrics: bool = True
