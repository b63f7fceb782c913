"""Every label, annotation, taint, finalizer and condition name, once.

The names are Karpenter's wherever it has one, so that its users find what they know.
"""

from __future__ import annotations

from typing import Final

GROUP: Final = "karpenter.sh"

FINALIZER: Final = "karpenter.sh/termination"

# Labels.
NODEPOOL: Final = "karpenter.sh/nodepool"
#: What Karpenter called it up to v0.31. Selectors of maintenance windows may still say so.
PROVISIONER_NAME: Final = "karpenter.sh/provisioner-name"
INITIALIZED: Final = "karpenter.sh/initialized"
REGISTERED: Final = "karpenter.sh/registered"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
DO_NOT_SYNC_TAINTS: Final = "karpenter.sh/do-not-sync-taints"
EXCLUDE_BALANCERS: Final = "node.kubernetes.io/exclude-from-external-load-balancers"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
ARCH: Final = "kubernetes.io/arch"
OS: Final = "kubernetes.io/os"
HOSTNAME: Final = "kubernetes.io/hostname"
WINDOWS_BUILD: Final = "node.kubernetes.io/windows-build"

CAPACITY_ON_DEMAND: Final = "on-demand"
CAPACITY_SPOT: Final = "spot"
CAPACITY_RESERVED: Final = "reserved"

#: Keys that every provider's instance types speak about.
WELL_KNOWN_LABELS: Final = frozenset(
    {NODEPOOL, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE, WINDOWS_BUILD}
)

#: Keys of older Kubernetes releases and what they are called now.
NORMALIZED_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
}

# Annotations.
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
DO_NOT_REPAIR: Final = "karpenter.sh/do-not-repair"
#: What older releases of Karpenter read: on pods, and on Nodes.
DO_NOT_EVICT: Final = "karpenter.sh/do-not-evict"
DO_NOT_CONSOLIDATE: Final = "karpenter.sh/do-not-consolidate"
#: On pods, by users: what an eviction costs, as a 32-bit integer. The second counts without the first.
POD_DISRUPTION_COST: Final = "karpenter.sh/disruption-cost"
POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
NODEPOOL_HASH: Final = "karpenter.sh/nodepool-hash"
NODEPOOL_HASH_VERSION: Final = "karpenter.sh/nodepool-hash-version"
#: On a claim: what the hash was folded from, so that a drift can name the fields that have changed.
NODEPOOL_HASH_FIELDS: Final = "karpenter.sh/nodepool-hash-fields"
TERMINATION_TIMESTAMP: Final = "karpenter.sh/nodeclaim-termination-timestamp"
MIN_VALUES_RELAXED: Final = "karpenter.sh/nodeclaim-min-values-relaxed"
#: On a claim: the UIDs of the pods that it was created for.
NOMINATED_PODS: Final = "karpenter.sh/nominated-pods"
#: On a replacement: the UIDs of the claims it stands in for.
REPLACES: Final = "karpenter.sh/replaces"
#: On a claim that is being replaced: the names of its replacements, all of which exist.
REPLACED_BY: Final = "karpenter.sh/replaced-by"
#: … and why it goes.
DISRUPTION_REASON: Final = "karpenter.sh/disruption-reason"
#: … and under which instant its start was recorded; it stays after a roll back.
STARTED_AT: Final = "karpenter.sh/disruption-started-at"
#: On a claim whose replacement failed: how often in a row, and when last.
REPLACEMENT_FAILED: Final = "karpenter.sh/replacement-failed"
# The reboot of a node, on its claim: how long its drain may take (none: as long as it takes) …
REBOOT_GRACE_PERIOD: Final = "karpenter.sh/reboot-termination-grace-period"
#: … which boot it had before …
REBOOT_PRE_BOOT_ID: Final = "karpenter.sh/reboot-pre-boot-id"
#: … and when it was rebooted in the last day, commas between.
REBOOT_HISTORY: Final = "karpenter.sh/reboot-history"
#: The node that is repaired to see whether its failure domain is healthy again: on its pool, and
#: for users to see on its claim.
REPAIR_PROBE: Final = "karpenter.sh/repair-probe"
#: On a claim that is terminated because its node is unhealthy: why.
REPAIR_REASON: Final = "karpenter.sh/repair-reason"
#: On a claim whose instance the cloud takes back: which provider announced that, and when.
INTERRUPTION: Final = "karpenter.sh/interruption"
#: On a claim: the owners of the pods that it was created for.
LAUNCHED_FOR: Final = "karpenter.sh/launched-for"
#: On a claim that was created while a node was being consolidated: how often in a row that was so.
CONSOLIDATION_UNDONE: Final = "karpenter.sh/consolidation-undone"
#: On a pool: launches of the last hours after which the same owner's pods were pending again.
LAUNCH_BREAKER: Final = "karpenter.sh/launch-breaker"
#: On a pool: claims that were not Ready in time or were repaired soon, since a node of it was of use.
LAUNCH_TIMEOUTS: Final = "karpenter.sh/launch-timeouts"
#: By all of these Tenure remembers what is under way for a claim: a template has none to give.
MARKS: Final = frozenset(
    {
        TERMINATION_TIMESTAMP,
        NOMINATED_PODS,
        REPLACES,
        REPLACED_BY,
        DISRUPTION_REASON,
        STARTED_AT,
        REPLACEMENT_FAILED,
        REBOOT_GRACE_PERIOD,
        REBOOT_PRE_BOOT_ID,
        REBOOT_HISTORY,
        REPAIR_PROBE,
        REPAIR_REASON,
        INTERRUPTION,
        LAUNCHED_FOR,
        CONSOLIDATION_UNDONE,
        LAUNCH_BREAKER,
        LAUNCH_TIMEOUTS,
    }
)
# Ours alone, so not under Karpenter's name: on the Lease, which replica of ours held it last …
LEASE_IDENTITY: Final = "tenure.dev/identity"
#: … and when, as the count of transitions: Karpenter keeps the annotation, and counts on.
LEASE_TRANSITIONS: Final = "tenure.dev/transitions"
#: On the Lease, while its holder takes nothing away because of that: by how much its clock is ahead
#: of the API server's.
LEASE_CLOCK_SKEW: Final = "tenure.dev/clock-skew"

# Beside Karpenter, on a Node that carries ``karpenter.sh/do-not-disrupt: "true"`` because of us: by
# which program it was set. Without this mark the annotation is a user's, and is never touched.
DO_NOT_DISRUPT_BY: Final = "tenure.dev/do-not-disrupt-by"
#: … why, for people …
DO_NOT_DISRUPT_BECAUSE: Final = "tenure.dev/do-not-disrupt-because"
#: … and until when.
DO_NOT_DISRUPT_UNTIL: Final = "tenure.dev/do-not-disrupt-until"
#: The same beside ``karpenter.sh/do-not-repair: "true"``.
DO_NOT_REPAIR_BY: Final = "tenure.dev/do-not-repair-by"
DO_NOT_REPAIR_BECAUSE: Final = "tenure.dev/do-not-repair-because"
DO_NOT_REPAIR_UNTIL: Final = "tenure.dev/do-not-repair-until"
#: What stands in the first of each, and in the other marks that say who wrote them.
SET_BY_TENURE: Final = "tenure"
# Beside Karpenter, on a NodeClaim: what Tenure remembers there of its Node, and when it noticed. Without
# Karpenter these are conditions of the claim. Its Node has been Ready …
READY_ONCE_AT: Final = "tenure.dev/ready-once"
#: … and is gone.
NODE_LOST_AT: Final = "tenure.dev/node-lost"
#: Beside Karpenter, on a NodeClaim whose termination timestamp is ours: by which program it was set. Without
#: this mark the timestamp is Karpenter's or a user's.
TERMINATION_BY: Final = "tenure.dev/termination-by"
#: … and why, as a reason code.
TERMINATION_BECAUSE: Final = "tenure.dev/termination-because"
#: … and the instant that we have written. Where the timestamp says another one, it is not ours any more.
TERMINATION_AT: Final = "tenure.dev/termination-at"
#: Beside Karpenter what ``REPAIR_PROBE`` is without: on the pool, and for users to see on the claim.
PROBE_BESIDE: Final = "tenure.dev/repair-probe"
# Beside Karpenter, on a claim that is being replaced: by which program …
DISRUPTED_BY: Final = "tenure.dev/disrupted-by"
#: … and since when. Its status, which says so elsewhere, is Karpenter's there.
DISRUPTED_SINCE: Final = "tenure.dev/disrupted-since"
#: On a replacement: which program has created the claim.
CREATED_BY: Final = "tenure.dev/created-by"
#: On a claim that is as old as the NodePoolPolicy of its pool allows: since when.
EXPIRED_AT: Final = "tenure.dev/expired-at"
#: Those of them that no template has to give.
BESIDE_MARKS: Final = frozenset(
    {
        DO_NOT_DISRUPT_BY,
        DO_NOT_DISRUPT_BECAUSE,
        DO_NOT_DISRUPT_UNTIL,
        DO_NOT_REPAIR_BY,
        DO_NOT_REPAIR_BECAUSE,
        DO_NOT_REPAIR_UNTIL,
        READY_ONCE_AT,
        NODE_LOST_AT,
        TERMINATION_BY,
        TERMINATION_BECAUSE,
        TERMINATION_AT,
        PROBE_BESIDE,
        DISRUPTED_BY,
        DISRUPTED_SINCE,
        CREATED_BY,
        EXPIRED_AT,
    }
)

# Conditions of a claim that make its node a candidate of voluntary disruption (types). Karpenter
# had the first two before its v1.
EMPTY_CONDITION: Final = "Empty"
CONSOLIDATABLE_CONDITION: Final = "Consolidatable"
EXPIRED_CONDITION: Final = "Expired"
DRIFTED_CONDITION: Final = "Drifted"
REBALANCE_CONDITION: Final = "RebalanceRecommended"

# Taints (keys).
DISRUPTED_TAINT: Final = "karpenter.sh/disrupted"
REBOOTING_TAINT: Final = "karpenter.sh/rebooting"
UNREGISTERED_TAINT: Final = "karpenter.sh/unregistered"
#: Ours: on a new node until the pods that it was launched for are named (``core.opening.decider``).
RESERVED_TAINT: Final = "tenure.dev/reserved"
NOT_READY_TAINT: Final = "node.kubernetes.io/not-ready"
UNREACHABLE_TAINT: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"
CLOUD_UNINITIALIZED_TAINT: Final = "node.cloudprovider.kubernetes.io/uninitialized"
READINESS_TAINT_PREFIX: Final = "readiness.k8s.io/"
