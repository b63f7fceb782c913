"""Every metric, once: its name, kind, labels and meaning. ``docs/metrics.md`` is this table.

``karpenter_*`` where the meaning is Karpenter's, so that dashboards keep working; ``tenure_*``
for what is new.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Named(msgspec.Struct, frozen=True):
    name: str
    kind: Kind
    labels: tuple[str, ...]
    meaning: str
    #: Upper bounds of a histogram, in seconds.
    buckets: tuple[float, ...] = ()


def _powers(first: float, count: int) -> tuple[float, ...]:
    return tuple(first * 2**n for n in range(count))


#: From an API call to a slow placement.
SHORT: Final = _powers(0.001, 16)
#: From a pod's start to a drain of a day.
LONG: Final = _powers(1, 17)
#: Karpenter's: from ten seconds to twenty minutes.
REBOOT_TIMES: Final = _powers(10, 8)
MINUTE: Final = 60.0
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
#: A node lives for minutes or for weeks.
LIFETIMES: Final = (
    *(15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR),
    *(DAY, 2 * DAY, 4 * DAY, 7 * DAY, 14 * DAY, 21 * DAY, 30 * DAY),
)

_NODE: Final = (
    *("arch", "capacity_type", "instance_type", "node_name", "nodepool", "os"),
    *("region", "zone", "managed"),
)
_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM

# -- counted as it happens -------------------------------------------------------------

CLAIMS_CREATED: Final = Named(
    "karpenter_nodeclaims_created_total",
    _C,
    ("reason", "nodepool", "min_values_relaxed"),
    "Claims created, by why and for which pool.",
)
CLAIMS_TERMINATED: Final = Named(
    "karpenter_nodeclaims_terminated_total",
    _C,
    ("nodepool", "capacity_type", "zone"),
    "Claims that are gone for good.",
)
CLAIMS_DISRUPTED: Final = Named(
    "karpenter_nodeclaims_disrupted_total",
    _C,
    ("reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"),
    "Claims that we set out to end, or to reboot, by why: time-outs of new nodes, unhealthy, …; "
    "each once. The mode is forceful (at once), eventual (by a deadline) or graceful (no deadline).",
)
PODS_DISRUPTED: Final = Named(
    "karpenter_pods_disruption_initiated_total",
    _C,
    ("reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"),
    "Pods that would be created elsewhere, on the nodes that we set out to end by a repair, a reboot or "
    "voluntary disruption, when that was committed.",
)
CLAIMS_UNHEALTHY: Final = Named(
    "karpenter_nodeclaims_unhealthy_disrupted_total",
    _C,
    ("condition", "nodepool", "capacity_type", "image_id", "termination_mode"),
    "Of those, repairs of unhealthy nodes, by the condition that caused them.",
)
DECISIONS: Final = Named(
    "karpenter_voluntary_disruption_decisions_total",
    _C,
    ("decision", "reason", "consolidation_type"),
    "Commands that were started, by what they do: delete (no new node is needed), replace or reboot. "
    "Repair is counted, too, as Karpenter does; expirationPolicy Always is not.",
)
DECISIONS_BY_POOL: Final = Named(
    "karpenter_voluntary_disruption_decisions_by_nodepool_total",
    _C,
    ("nodepool", "decision", "reason", "consolidation_type"),
    "The same, by the pool of the node.",
)
QUEUE_FAILURES: Final = Named(
    "karpenter_voluntary_disruption_queue_failures_total",
    _C,
    ("decision", "reason", "consolidation_type"),
    "Replacements that did not come up, so that their command was rolled back.",
)
DECISION_EVALUATION: Final = Named(
    "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
    _H,
    ("reason", "consolidation_type"),
    "How long one pass over all candidates took. One pass decides on every reason: the reason is all.",
    SHORT,
)
CLAIM_TERMINATION: Final = Named(
    "karpenter_nodeclaims_termination_duration_seconds",
    _H,
    ("nodepool",),
    "From a claim's deletion being asked for to its end, drain included.",
    LONG,
)
INSTANCE_TERMINATION: Final = Named(
    "karpenter_nodeclaims_instance_termination_duration_seconds",
    _H,
    ("nodepool",),
    "From the cloud being asked to end an instance to the claim's end.",
    LONG,
)
NODES_CREATED: Final = Named(
    "karpenter_nodes_created_total", _C, ("nodepool", "zone"), "Nodes that registered."
)
NODES_TERMINATED: Final = Named(
    "karpenter_nodes_terminated_total", _C, ("nodepool", "zone"), "Nodes of ours that are gone."
)
NODES_DRAINED: Final = Named(
    "karpenter_nodes_drained_total", _C, ("nodepool",), "Nodes of ours whose drain came to its end."
)
NODE_TERMINATION: Final = Named(
    "karpenter_nodes_termination_duration_seconds",
    _H,
    ("nodepool",),
    "From a Node's deletion being asked for to its end. A histogram; Karpenter's is a summary.",
    LONG,
)
NODE_LIFETIME: Final = Named(
    "karpenter_nodes_lifetime_duration_seconds",
    _H,
    ("nodepool",),
    "From a Node's creation to its end.",
    LIFETIMES,
)
REBOOTS: Final = Named(
    "karpenter_nodes_reboots_total",
    _C,
    ("result",),
    "Reboots that have ended: succeeded, provider_error, recovery_timeout, invalid_request or "
    "cancelled.",
)
REBOOT: Final = Named(
    "karpenter_nodes_reboot_duration_seconds",
    _H,
    ("result",),
    "From a reboot being asked for to its end, drain included.",
    REBOOT_TIMES,
)
REBOOT_RECOVERY: Final = Named(
    "karpenter_nodes_reboot_recovery_duration_seconds",
    _H,
    (),
    "From the cloud accepting a reboot to the node being Ready again.",
    REBOOT_TIMES,
)
EVICTIONS: Final = Named(
    "karpenter_pods_eviction_requests_total",
    _C,
    ("code",),
    "Evictions asked for, by the answer's status; 429 is a budget's no.",
)
POD_STARTUP: Final = Named(
    "karpenter_pods_startup_duration_seconds",
    _H,
    (),
    "From a pod's creation to the first time that it is seen running.",
    LONG,
)
POD_BOUND: Final = Named(
    "karpenter_pods_bound_duration_seconds",
    _H,
    (),
    "From a pod's creation to the first time that it is seen on a node.",
    LONG,
)
SCHEDULING: Final = Named(
    "karpenter_scheduler_scheduling_duration_seconds",
    _H,
    ("controller",),
    "How long one placement of all pods that wait took to think about.",
    SHORT,
)
CLOUD_CALLS: Final = Named(
    "karpenter_cloudprovider_duration_seconds",
    _H,
    ("controller", "method", "provider"),
    "Calls to the cloud, and how long each took.",
    SHORT,
)
CLOUD_ERRORS: Final = Named(
    "karpenter_cloudprovider_errors_total",
    _C,
    ("controller", "method", "provider", "error", "nodepool"),
    "Calls to the cloud that failed, by the class of the error; the pool is that of a launch.",
)
NOTICES_RECEIVED: Final = Named(
    "karpenter_interruption_received_messages_total",
    _C,
    ("message_type",),
    "Notices of the cloud about instances, by kind: interruption, or rebalance (a recommendation). "
    "unreadable: it could not be read.",
)
NOTICES_DELETED: Final = Named(
    "karpenter_interruption_deleted_messages_total",
    _C,
    (),
    "Notices that were acknowledged: the cluster holds what they say, or they change nothing.",
)
NOTICES_DURATION: Final = Named(
    "karpenter_interruption_message_queue_duration_seconds",
    _H,
    (),
    "From the announcement of a notice to its acknowledgement.",
    LONG,
)
NOTICES_SETTLED: Final = Named(
    "tenure_notices_total",
    _C,
    ("message_type", "outcome"),
    "What became of notices: taken (the cluster holds what it says), repeated, unknown (no claim of "
    "ours has the instance), late (its instant had passed), unreadable.",
)
VERDICTS: Final = Named(
    "tenure_verdicts_total",
    _C,
    ("concern", "reason"),
    "Verdicts that were new or different, by concern and reason.",
)
ACTIONS: Final = Named(
    "tenure_actions_total", _C, ("verb", "outcome"), "Actions that came to an end, by outcome."
)
TURNS: Final = Named("tenure_turns_total", _C, (), "Turns of the loop.")
TURN: Final = Named(
    "tenure_turn_duration_seconds", _H, (), "How long a turn of the loop took.", SHORT
)
SLICE: Final = Named(
    "tenure_turn_slice_duration_seconds",
    _H,
    (),
    "How long a slice of a turn kept everything else waiting; a long turn has several.",
    SHORT,
)
MOVES: Final = Named(
    "karpenter_consolidation_moves_total",
    _C,
    ("decision", "nodepool", "policy"),
    "Moves of consolidation that were begun: delete or replace.",
)
SCORES: Final = Named(
    "karpenter_consolidation_score",
    _H,
    (),
    "Scores of planned moves in pools with consolidationPolicy Balanced: the share saved over the share "
    "disturbed.",
    (0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0),
)
PLAN: Final = Named(
    "tenure_consolidation_plan_duration_seconds",
    _H,
    (),
    "How long a plan of consolidation took, over all its slices beside the loop.",
    SHORT,
)
PLAN_SLICE: Final = Named(
    "tenure_consolidation_plan_slice_duration_seconds",
    _H,
    (),
    "How long a slice of a plan of consolidation kept everything else waiting; a plan has many.",
    SHORT,
)
PLAN_SAVINGS: Final = Named(
    "tenure_consolidation_plan_savings",
    _G,
    (),
    "What the last plan of consolidation saves, in dollars an hour, if all its moves are made.",
)
PLAN_MOVES: Final = Named(
    "tenure_consolidation_plan_moves",
    _G,
    (),
    "How many moves the last plan of consolidation has.",
)
INDEX_REBUILDS: Final = Named(
    "tenure_packing_index_rebuilds_total",
    _C,
    ("reason",),
    "How often the index of nodes that packing keeps was built anew.",
)
INDEX_DISAGREEMENTS: Final = Named(
    "tenure_packing_index_disagreements_total",
    _C,
    (),
    "Comparisons in which the index that packing keeps differed from one built anew. Never expected.",
)
EVALUATION: Final = Named(
    "tenure_evaluation_duration_seconds",
    _H,
    ("concern",),
    "How long the evaluation of one key took: an object, a pool, or the whole cluster.",
    SHORT,
)
OVER_BUDGET: Final = Named(
    "tenure_evaluations_over_budget_total",
    _C,
    ("concern",),
    "Evaluations of one key that took longer than 0.5 s; the log names the key. To alert on.",
)
CLOCK_STEPS: Final = Named(
    "tenure_clock_steps_total",
    _C,
    ("direction",),
    "Times that the wall clock of this replica was set by more than a few seconds, ahead or back, "
    "or that its machine was suspended; everything is evaluated anew each time.",
)
CLOCK_SKEW: Final = Named(
    "tenure_clock_skew_seconds",
    _G,
    (),
    "By how much the clock of this replica is ahead of the API server's, by the Date of its answers; "
    "beyond --clock-skew-max, either way, nothing is taken away.",
)
IN_FLIGHT: Final = Named("tenure_actions_in_flight", _G, (), "Actions under way.")
API_CALLS: Final = Named(
    "tenure_api_request_duration_seconds",
    _H,
    ("verb", "resource"),
    "Requests to the API server, and how long each took; a watch until it was open.",
    SHORT,
)
API_ANSWERS: Final = Named(
    "tenure_api_requests_total",
    _C,
    ("verb", "resource", "code"),
    "Requests to the API server by the answer's status; 0 is no answer at all.",
)
ERRORS: Final = Named(
    "tenure_errors_total",
    _C,
    ("kind",),
    "Errors beside actions: watches, events, comparisons with the cloud. By class.",
)
WITHHELD: Final = Named(
    "tenure_log_lines_withheld_total",
    _C,
    (),
    "Log lines that were left out or came later: repeated, or above the limit.",
)
REVIEWS: Final = Named(
    "tenure_webhook_reviews_total",
    _C,
    ("answer",),
    "Objects that an API server asked this replica about: allowed, warned or refused.",
)

# -- computed at each scrape -----------------------------------------------------------

POOL_LIMIT: Final = Named(
    "karpenter_nodepools_limit", _G, ("nodepool", "resource_type"), "A pool's limits."
)
POOL_USAGE: Final = Named(
    "karpenter_nodepools_usage",
    _G,
    ("nodepool", "resource_type"),
    "What a pool's claims and nodes provide, as the limits count it.",
)
ALLOWED_DISRUPTIONS: Final = Named(
    "karpenter_nodepools_allowed_disruptions",
    _G,
    ("nodepool", "reason"),
    "How many of a pool's nodes its budgets let leave at once for a reason, those that are leaving "
    "included; a budget with within counts by the starts that it allows in its span. 2147483647 is no "
    "limit.",
)
REMAINING_DISRUPTIONS: Final = Named(
    "tenure_nodepools_disruptions_remaining",
    _G,
    ("nodepool", "reason"),
    "How many more of a pool's nodes its budgets let be disrupted now for a reason, budgets with "
    "within included; 2147483647 is no limit.",
)
DISRUPTIONS_CHANGE: Final = Named(
    "tenure_nodepools_disruptions_next_change_timestamp_seconds",
    _G,
    ("nodepool", "reason"),
    "When that number may change although nothing happens in the cluster. No series is never.",
)
DISRUPTION_STARTS: Final = Named(
    "tenure_nodepools_disruption_starts",
    _G,
    ("nodepool",),
    "How many starts of disruptions a pool remembers for budgets with within.",
)
CONSUMING_BUDGETS: Final = Named(
    "karpenter_nodepools_nodes_consuming_budgets",
    _G,
    ("nodepool", "reason"),
    "How many of a pool's nodes use its budgets for a reason: leaving, rebooting, and for every "
    "reason but unhealthy not Ready.",
)
ELIGIBLE_NODES: Final = Named(
    "karpenter_voluntary_disruption_eligible_nodes",
    _G,
    ("reason",),
    "Nodes that are candidates for a reason, whether a gate blocks them or not; those that are being "
    "disrupted already do not count. A node counts for every reason that wants it.",
)
CANDIDATES_WAITING: Final = Named(
    "tenure_disruption_candidates_waiting",
    _G,
    ("nodepool", "gate"),
    "Candidates for voluntary disruption that may not go now, by the gate that blocks them: switched off, "
    "usable rules, maintenance windows, pause, budgets, PDBs and protected pods, capacity and limits, "
    "window that closes too soon; or their turn.",
)
WINDOW_ACTIVE: Final = Named(
    "tenure_maintenance_window_active",
    _G,
    ("window", "type"),
    "1 while a maintenance window is active. A Block window forbids its actions then, an Allow window "
    "permits them.",
)
WINDOW_VALID: Final = Named(
    "tenure_maintenance_window_valid",
    _G,
    ("window",),
    "0 for a maintenance window that cannot be understood: it blocks its actions, or never allows them. "
    "To alert on.",
)
WINDOW_BLOCKING: Final = Named(
    "tenure_maintenance_window_blocked_nodeclaims",
    _G,
    ("window",),
    "Claims whose disruption waits for a maintenance window: one that blocks, or one that would allow it.",
)
WINDOW_CHANGE: Final = Named(
    "tenure_maintenance_window_next_change_timestamp_seconds",
    _G,
    ("window",),
    "When a maintenance window next becomes active or stops to be. No series is never.",
)
DRIFTED: Final = Named(
    "tenure_nodeclaims_drifted",
    _G,
    ("nodepool", "reason"),
    "Claims with the condition Drifted, by its reason: NodePoolDrifted, RequirementsDrifted, "
    "InstanceTypeNotFound, or the provider's own.",
)
LEVERS: Final = Named(
    "tenure_levers",
    _G,
    ("lever", "cause"),
    "Beside Karpenter: Nodes on which Tenure has set a lever, do-not-disrupt or do-not-repair, by cause: "
    "window, protection, budget or replacement. A Node with several counts for each.",
)
LEVERS_PAST_END: Final = Named(
    "tenure_levers_past_end",
    _G,
    (),
    "Beside Karpenter: Nodes with a lever of Tenure's whose mark tenure.dev/…-until is over for more "
    "than 5m. Nodes that are being deleted are not counted.",
)
DRIFT_UNKNOWN: Final = Named(
    "tenure_nodeclaims_drift_unknown",
    _G,
    ("nodepool",),
    "Claims whose provider fails to say whether their instance has drifted.",
)
BREAKER_TRIPPED: Final = Named(
    "tenure_repair_breaker_tripped",
    _G,
    ("nodepool",),
    "1 while more of a pool's nodes are unhealthy than its maxUnhealthy, so that none is repaired.",
)
DOMAIN_HELD: Final = Named(
    "tenure_repair_domain_held",
    _G,
    ("domain", "value"),
    "1 for each zone, image and instance type where most nodes are unhealthy, or were just now, so "
    "that repairs there stop but for one at a time. No series is none.",
)
LAUNCH_BREAKER_OPEN: Final = Named(
    "tenure_launch_breaker_open",
    _G,
    ("nodepool",),
    "Owners of pods whose launch breaker is open: launches for them back off, because their pods "
    "were pending again after each of several launches. 0 is none.",
)
LAUNCH_BACK_OFF: Final = Named(
    "tenure_launch_back_off",
    _G,
    ("nodepool",),
    "New nodes of a pool in a row that were not Ready within its readinessTTL, while its launches "
    "back off because of that. 0 is none.",
)
NODE_COUNT: Final = Named(
    "karpenter_cluster_state_node_count", _G, (), "Nodes and claims without one, all that we know."
)
SYNCED: Final = Named(
    "karpenter_cluster_state_synced", _G, (), "1 when every kind has been listed."
)
UTILIZATION: Final = Named(
    "karpenter_cluster_utilization_percent",
    _G,
    ("resource_type",),
    "What pods ask for on all nodes, in percent of what those can give.",
)
QUEUE_DEPTH: Final = Named(
    "karpenter_scheduler_queue_depth",
    _G,
    ("controller",),
    "Pods that the scheduler found no node for and that a new node may help.",
)
OLDEST_WAIT: Final = Named(
    "tenure_pods_waiting_oldest_seconds",
    _G,
    (),
    "For how long the pod has waited that waits longest, of those that a new node may help. 0: none waits.",
)
IGNORED: Final = Named(
    "karpenter_scheduler_ignored_pods_count",
    _G,
    (),
    "Pods that the scheduler found no node for and that no new node would help.",
)
UNSCHEDULABLE: Final = Named(
    "karpenter_scheduler_unschedulable_pods_count",
    _G,
    ("controller",),
    "Pods that no node and no pool can take.",
)
INFORMER_SYNCED: Final = Named(
    "tenure_informer_synced", _G, ("resource",), "1 when the kind has been listed."
)
INFORMER_CONNECTED: Final = Named(
    "tenure_informer_connected", _G, ("resource",), "1 while the kind's watch is open."
)
INFORMER_SILENCE: Final = Named(
    "tenure_informer_silence_seconds",
    _G,
    ("resource",),
    "Since the kind was last heard of; bookmarks come every minute, even if nothing happens.",
)
INFORMER_LISTS: Final = Named(
    "tenure_informer_lists_total", _C, ("resource",), "Times that the kind was listed whole."
)
UNREADABLE: Final = Named(
    "tenure_unreadable_objects",
    _G,
    ("resource",),
    "Objects that could not be decoded or evaluated. Nothing is taken away from them.",
)
FAILING: Final = Named(
    "tenure_evaluations_failing",
    _G,
    ("concern",),
    "Evaluations that fail as a whole, by concern: what they decide stands still. Alert on it.",
)
LEADER: Final = Named("tenure_leader", _G, (), "1 while this replica may act.")
HELD_BACK: Final = Named(
    "tenure_held_back",
    _G,
    (),
    "1 while this replica does not act because something that is not Tenure holds the Lease, "
    "held it last, or renews one of its name in another namespace; beside Karpenter, because a Tenure "
    "is in charge.",
)
SECOND: Final = Named(
    "tenure_second_tenure",
    _G,
    (),
    "1 while a Tenure in charge and one beside Karpenter run on this cluster; the one in charge acts. Alert on it.",
)
IN_FORCE: Final = Named(
    "tenure_verdicts_in_force", _G, ("concern", "reason"), "Verdicts that hold now."
)
RECHECK_LAG: Final = Named(
    "tenure_recheck_lag_seconds",
    _G,
    (),
    "How overdue the next turn of the loop is, on the monotonic clock; 0 is on time.",
)
LOOP_LAG: Final = Named(
    "tenure_loop_lag_seconds", _G, (), "How late the last tick of the event loop was."
)
EVENTS_DROPPED: Final = Named(
    "tenure_events_dropped", _G, (), "Kubernetes events let go because too many waited."
)
BUILD: Final = Named("tenure_build_info", _G, ("version", "python"), "1, with the version.")

# -- for each node and pod, unless that is switched off --------------------------------

PROTECTED_PODS: Final = Named(
    "tenure_protected_pods",
    _G,
    ("nodepool", "kind"),
    "Pods that karpenter.sh/do-not-disrupt protects now: forever, until an instant, or unreadable "
    "because the value means nothing.",
)
NODE_ALLOCATABLE: Final = Named(
    "karpenter_nodes_allocatable", _G, (*_NODE, "resource_type"), "What a node can give to pods."
)
NODE_POD_REQUESTS: Final = Named(
    "karpenter_nodes_total_pod_requests",
    _G,
    (*_NODE, "resource_type"),
    "What the pods of a node ask for, without its daemons.",
)
NODE_POD_LIMITS: Final = Named(
    "karpenter_nodes_total_pod_limits",
    _G,
    (*_NODE, "resource_type"),
    "The limits of the pods of a node, without its daemons.",
)
NODE_DAEMON_REQUESTS: Final = Named(
    "karpenter_nodes_total_daemon_requests",
    _G,
    (*_NODE, "resource_type"),
    "What the daemon pods of a node ask for.",
)
NODE_DAEMON_LIMITS: Final = Named(
    "karpenter_nodes_total_daemon_limits",
    _G,
    (*_NODE, "resource_type"),
    "The limits of the daemon pods of a node.",
)
NODE_OVERHEAD: Final = Named(
    "karpenter_nodes_system_overhead",
    _G,
    (*_NODE, "resource_type"),
    "What a node keeps for itself: its capacity less what it can give.",
)
NODE_AGE: Final = Named(
    "karpenter_nodes_current_lifetime_seconds", _G, _NODE, "Since a node's creation."
)
POD_STATE: Final = Named(
    "karpenter_pods_state",
    _G,
    (
        *("name", "namespace", "owner", "node", "nodepool", "zone", "arch", "capacity_type"),
        *("instance_type", "phase", "scheduled", "ready", "managed"),
    ),
    "1 for each pod, with where it is and how it is.",
)
POD_UNBOUND: Final = Named(
    "karpenter_pods_unbound_time_seconds",
    _G,
    ("name", "namespace"),
    "Since the creation of a pod that is on no node yet.",
)
POD_UNSTARTED: Final = Named(
    "karpenter_pods_unstarted_time_seconds",
    _G,
    ("name", "namespace"),
    "Since the creation of a pod that does not run yet.",
)

ALL: Final = tuple(value for value in list(globals().values()) if isinstance(value, Named))
PER_OBJECT: Final = ALL[ALL.index(NODE_ALLOCATABLE) :]
