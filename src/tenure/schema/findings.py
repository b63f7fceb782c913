"""What can be said about an object before anything happens: codes, how bad, what to do.

Codes are stable: write scripts against them. The webhook, ``tenure lint`` and the conditions of
living objects speak with them; ``docs/lint.md`` lists them, by ``make generate``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec


class Severity(StrEnum):
    #: It is refused, or does something else than it says.
    ERROR = "error"
    #: It is legal and probably not meant.
    WARNING = "warning"
    #: Worth knowing.
    INFO = "info"


class Code(StrEnum):
    INVALID = "Invalid"
    UNKNOWN_FIELD = "UnknownField"
    INVALID_DO_NOT_DISRUPT = "InvalidDoNotDisrupt"

    GRACE_LONGER = "GraceLongerThanPeriod"
    PROTECTION_LONGER = "ProtectionLongerThanPeriod"
    BUDGET_NEVER_ALLOWS = "BudgetNeverAllows"
    SEVERAL_BUDGETS = "SeveralBudgets"
    PROTECTED_FOR_EVER = "ProtectedForEver"
    ANNOTATION_MISPLACED = "AnnotationMisplaced"
    INVALID_COST = "InvalidDisruptionCost"
    NO_NODE_FITS = "NoNodeFits"
    VALUES_IGNORED = "ValuesIgnored"
    LIMIT_BELOW_ZERO = "LimitBelowZero"
    LIMIT_OF_NOTHING = "LimitOfNothing"
    NEVER_BEGINS = "NeverBegins"
    DATES_PAST = "DatesPast"
    STATUS_MISSING = "StatusMissing"
    CONDITION_MISSPELT = "ConditionMisspelt"
    TTL_SHORT = "TTLShort"
    NEVER_EXPIRES = "NeverExpires"
    NEVER_ACTIVE = "NeverActive"
    ALWAYS_ACTIVE = "AlwaysActive"
    SELECTS_NO_NODE = "SelectsNoNode"
    WINDOW_TOO_SHORT = "WindowTooShort"
    POLICIES_TIED = "PoliciesTied"
    SELECTS_NO_POOL = "SelectsNoPool"
    INLINE_WINS = "InlineWins"
    BLOCKS_MORE = "BlocksMore"
    NO_LEVER = "NoLever"
    DROPPED_FIELD = "DroppedField"
    NO_REBOOT = "NoReboot"
    REPLICAS_ARE_KEPT = "ReplicasAreKept"
    UNKNOWN_LABEL_VALUE = "UnknownLabelValue"
    OLD_ANNOTATION = "OldAnnotation"
    REPAIR_BY_FORCE = "RepairByForce"
    INVALID_IGNORE = "InvalidIgnore"

    PROTECTION_BOUNDED = "ProtectionBounded"
    PERIOD_DRIFTS_NODES = "PeriodDriftsNodes"
    BUDGETS_OF_BOTH = "BudgetsOfBoth"
    FOREIGN_NODE_CLASS = "ForeignNodeClass"
    NODE_CLASS_ELSEWHERE = "NodeClassElsewhere"
    OLD_LABEL = "OldLabel"
    NO_SCHEDULE = "NoSchedule"
    DOES_NOTHING_YET = "DoesNothingYet"
    DIFFERS_FROM_KARPENTER = "DiffersFromKarpenter"
    COST_SMALL = "DisruptionCostSmall"
    UNUSED_IGNORE = "UnusedIgnore"


class CodeInfo(msgspec.Struct, frozen=True):
    severity: Severity
    meaning: str
    advice: str


_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

CODES: Final[dict[Code, CodeInfo]] = {
    # The message says what is expected, and shows an example where there is one.
    Code.INVALID: CodeInfo(_ERROR, "A value is refused, or cannot be acted on.", ""),
    Code.UNKNOWN_FIELD: CodeInfo(
        _ERROR, "There is no such field; elsewhere it is dropped silently.", "Correct its name."
    ),
    Code.INVALID_DO_NOT_DISRUPT: CodeInfo(
        _ERROR,
        "The value of `karpenter.sh/do-not-disrupt`, or of `karpenter.sh/do-not-repair` on a Node or NodeClaim, is "
        'invalid, so it counts as "true": it protects for ever, or a pod for the pool\'s maxPodProtection.',
        'Write "true", "false" or a duration such as "4h".',
    ),
    Code.GRACE_LONGER: CodeInfo(
        _WARNING,
        "A pod may take longer to stop than a drain may take at all: it is deleted as soon as its "
        "node begins to leave, and its grace is cut.",
        "Raise the pool's terminationGracePeriod, or lower terminationGracePeriodSeconds.",
    ),
    Code.PROTECTION_LONGER: CodeInfo(
        _WARNING,
        "A pod asks to be left alone for longer than a drain may take: on a terminating node it is "
        "deleted before that time is over.",
        "Raise the pool's terminationGracePeriod, or shorten the protection.",
    ),
    Code.BUDGET_NEVER_ALLOWS: CodeInfo(
        _WARNING,
        "A PodDisruptionBudget cannot allow an eviction even when every pod is healthy.",
        "Run one pod more, or allow one to be missing: maxUnavailable 1.",
    ),
    Code.SEVERAL_BUDGETS: CodeInfo(
        _WARNING,
        "Several PodDisruptionBudgets cover one pod; the API evicts such a pod never.",
        "Leave one budget for each pod.",
    ),
    Code.PROTECTED_FOR_EVER: CodeInfo(
        _WARNING,
        "A pod is protected for ever, and nothing bounds that: its node can wait without end.",
        "Write a duration instead of true, or set the pool's terminationGracePeriod or "
        "maxPodProtection.",
    ),
    Code.ANNOTATION_MISPLACED: CodeInfo(
        _WARNING,
        "An annotation about pods (`karpenter.sh/do-not-disrupt`, `karpenter.sh/disruption-cost`, "
        "`controller.kubernetes.io/pod-deletion-cost`) stands on a workload instead of on its pods, and "
        "does nothing.",
        "Move it to the pod template's annotations.",
    ),
    Code.INVALID_COST: CodeInfo(
        _WARNING,
        "The value of `karpenter.sh/disruption-cost` or `controller.kubernetes.io/pod-deletion-cost` "
        "cannot be read, and is ignored.",
        "Write a whole number from -2147483648 to 2147483647.",
    ),
    Code.NO_NODE_FITS: CodeInfo(
        _WARNING, "Requirements contradict each other, so no node fits.", "Leave one of them out."
    ),
    Code.VALUES_IGNORED: CodeInfo(
        _WARNING, "The operator takes no values.", "Remove the values, or write In or NotIn."
    ),
    Code.LIMIT_BELOW_ZERO: CodeInfo(
        _WARNING, "A limit below zero: the pool launches nothing.", "Write 0 if that is meant."
    ),
    Code.LIMIT_OF_NOTHING: CodeInfo(
        _WARNING,
        "A limit on a resource that no node has, for example `cpus` or `mem`: it limits nothing.",
        "Write cpu, memory, ephemeral-storage, pods or nodes, or the full name of an extended resource.",
    ),
    Code.NEVER_BEGINS: CodeInfo(
        _WARNING, "A schedule of a day that does not exist.", "Choose a day that comes."
    ),
    Code.DATES_PAST: CodeInfo(_WARNING, "Dates that are over.", "Remove them, or write new ones."),
    Code.STATUS_MISSING: CodeInfo(
        _WARNING,
        "A repair policy for a condition that Kubernetes does not define has no `status`: the "
        "policy is ignored, unless the provider watches that condition.",
        'Write the status that means unhealthy, for example status: "True".',
    ),
    Code.CONDITION_MISSPELT: CodeInfo(
        _WARNING,
        "A repair policy for a condition that differs from one of Kubernetes or of the provider by capital letters "
        "alone: it never applies.",
        "Write the condition as kubectl describe node shows it.",
    ),
    Code.TTL_SHORT: CodeInfo(
        _WARNING,
        "`readinessTTL` is below 1m: few nodes are Ready that soon, and those that are not are "
        "deleted. After three in a row the pool's launches back off.",
        "Write a time that the slowest node needs, or leave it out: 15m.",
    ),
    Code.NEVER_EXPIRES: CodeInfo(
        _WARNING,
        "`expireAfter` is zero: its nodes never expire. Karpenter would delete each of them at once.",
        "Write Never if that is meant, else a time, for example 720h.",
    ),
    Code.NEVER_ACTIVE: CodeInfo(
        _WARNING,
        "A maintenance window that is never active again: as Block it does nothing; as Allow it "
        "blocks its actions for ever on Nodes that no other Allow window covers.",
        "Give it a schedule or dates that come, or delete it.",
    ),
    Code.ALWAYS_ACTIVE: CodeInfo(
        _WARNING,
        "The schedules of a maintenance window leave no gap: as Block it blocks its actions for "
        "ever, as Allow it allows them at any time.",
        "Shorten a duration, or leave out schedules and dates if that is meant.",
    ),
    Code.SELECTS_NO_NODE: CodeInfo(
        _WARNING,
        "The selector of a maintenance window selects no Node of the cluster, and no NodePool without "
        "Nodes could have one that it selects.",
        "Compare the selector with kubectl get nodes --show-labels.",
    ),
    Code.WINDOW_TOO_SHORT: CodeInfo(
        _WARNING,
        "Maintenance windows close before all Nodes of a pool can be replaced within its budgets, even "
        "if no drain takes any time. What is left waits for the next opening.",
        "Lengthen the opening, or raise the pool's budgets.",
    ),
    Code.POLICIES_TIED: CodeInfo(
        _ERROR,
        "Two NodePoolPolicies select a NodePool in the same way: none of them applies there. If one of "
        "them has budgets, no node of the pool is disrupted by choice; if one has a repair block, none is "
        "repaired.",
        "Name the NodePool in spec.nodePools.names of the policy that is meant, and only there.",
    ),
    Code.SELECTS_NO_POOL: CodeInfo(
        _WARNING,
        "A NodePoolPolicy, or a window that names NodePools, selects none of those that are there, and so does "
        "nothing.",
        "Compare spec.nodePools or spec.selector with kubectl get nodepools --show-labels.",
    ),
    Code.INLINE_WINS: CodeInfo(
        _WARNING,
        "A NodePoolPolicy sets a field that the NodePool sets itself: the NodePool wins. Its expireAfter "
        "acts only where the NodePool's is Never.",
        "Remove the field from one of the two; of expireAfter, write Never in the NodePool.",
    ),
    Code.BLOCKS_MORE: CodeInfo(
        _WARNING,
        "Beside Karpenter, a window names drift or a kind of consolidation, and not the others. Karpenter "
        "has one annotation for all of them, so the window stops all of them.",
        "Name Drift and Consolidation in the window, so that it says what it does.",
    ),
    Code.NO_LEVER: CodeInfo(
        _WARNING,
        "Beside Karpenter, a window names an action that Tenure has no lever for: Karpenter expires nodes of a "
        "NodePool whose expireAfter is not Never whatever karpenter.sh/do-not-disrupt says.",
        "For Expiration, set expireAfter: Never in the NodePool, and expireAfter in a NodePoolPolicy, which waits "
        "for windows; remove any other action from the window.",
    ),
    Code.DROPPED_FIELD: CodeInfo(
        _WARNING,
        "Beside Karpenter, a NodePool has a field that Karpenter's CRD does not know: the API server drops "
        "it, and Karpenter never acts on it.",
        "Write it in a NodePoolPolicy for that NodePool.",
    ),
    Code.NO_REBOOT: CodeInfo(
        _WARNING,
        "Beside Karpenter, a repair policy asks for a reboot. Tenure reboots no Node there, and Karpenter "
        "reads no NodePoolPolicy: nothing is done about the condition.",
        "Write action: Replace, or remove the policy and turn on Karpenter's feature gate NodeRepair, which "
        "repairs by the rules of the provider.",
    ),
    Code.REPLICAS_ARE_KEPT: CodeInfo(
        _WARNING,
        "Beside Karpenter, a NodePoolPolicy replaces nodes of a NodePool with spec.replicas. Karpenter keeps their number, "
        "so Tenure launches nothing first there: graceful repair deletes the NodeClaim, and no node expires.",
        "Name other NodePools in the policy, or accept one node less until Karpenter has launched the next; its feature "
        "gate StaticCapacity has to be on.",
    ),
    Code.UNKNOWN_LABEL_VALUE: CodeInfo(
        _WARNING,
        "A selector or requirement names a value that the label never has, for example `amd` for "
        "`kubernetes.io/arch`: with it a window selects no Node, and so blocks nothing; a pod stays pending.",
        "Write the value that Nodes have; kubectl get nodes --show-labels shows them.",
    ),
    Code.OLD_ANNOTATION: CodeInfo(
        _WARNING,
        "`karpenter.sh/do-not-evict` or `karpenter.sh/do-not-consolidate`: older releases of "
        "Karpenter read them. They protect nothing.",
        "Write karpenter.sh/do-not-disrupt instead.",
    ),
    Code.REPAIR_BY_FORCE: CodeInfo(
        _WARNING,
        "A pool with a `repair` block terminates unhealthy nodes forcefully; a pool without one "
        "launches the replacement first. Adding the block changes from Graceful to Forceful.",
        "Write terminationMode: Graceful to keep the graceful repair, or Forceful if that is meant.",
    ),
    Code.INVALID_IGNORE: CodeInfo(
        _WARNING,
        "A comment `# tenure: …` is incomplete or names no code that exists: it ignores nothing.",
        "Name the code and say why: `# tenure: ignore CODE because …`.",
    ),
    Code.PROTECTION_BOUNDED: CodeInfo(
        _INFO,
        'A pod is protected by "true", and the pool\'s terminationGracePeriod ends that on a '
        "terminating node.",
        "Nothing, if that is meant.",
    ),
    Code.PERIOD_DRIFTS_NODES: CodeInfo(
        _INFO,
        "`terminationGracePeriod` is part of the template: living nodes keep the value that they "
        "were made with, and setting or changing it makes every node of the pool count as drifted.",
        "Change it when the whole fleet may be replaced.",
    ),
    Code.BUDGETS_OF_BOTH: CodeInfo(
        _INFO,
        "A NodePoolPolicy and its NodePool both have budgets: all of them count, and the tightest wins. Of other fields "
        "that both set, the NodePool's wins.",
        "If one of them is meant to replace the other, remove the other.",
    ),
    Code.FOREIGN_NODE_CLASS: CodeInfo(
        _INFO,
        "The NodePool, or a NodeClaim without one, names a node class of another provider: Tenure launches nothing "
        "for it, and leaves its nodes alone.",
        "Nothing, if another controller manages the pool; otherwise correct its nodeClassRef.",
    ),
    Code.NODE_CLASS_ELSEWHERE: CodeInfo(
        _INFO,
        "Of the node class that is named there is none among the manifests, and there are others of its kind.",
        "Nothing, if the node class is in the cluster; otherwise correct its name.",
    ),
    Code.OLD_LABEL: CodeInfo(
        _INFO,
        "The selector of a maintenance window names `karpenter.sh/provisioner-name`, which is read as "
        "`karpenter.sh/nodepool`.",
        "Write karpenter.sh/nodepool.",
    ),
    Code.NO_SCHEDULE: CodeInfo(
        _INFO,
        "A maintenance window without schedules and dates is always active.",
        "Delete it when its actions may start again.",
    ),
    Code.DOES_NOTHING_YET: CodeInfo(
        _INFO,
        "The field is accepted, and nothing acts on it; the API reference marks it as ignored.",
        "Do not rely on it.",
    ),
    Code.DIFFERS_FROM_KARPENTER: CodeInfo(
        _INFO,
        "The field acts, and otherwise than in Karpenter; the API reference marks it with how. In a cluster it "
        "is told where the value is not the default.",
        "Nothing, if that is meant.",
    ),
    Code.COST_SMALL: CodeInfo(
        _INFO,
        "The value of `karpenter.sh/disruption-cost` is too small to matter: 134217728 counts as one more "
        "pod.",
        "Write a multiple of 134217728.",
    ),
    Code.UNUSED_IGNORE: CodeInfo(
        _INFO,
        "A comment `# tenure: ignore` has nothing to ignore: what it was written for is gone, or stands on "
        "another line.",
        "Remove the comment, or move it right above the line or the object.",
    ),
}

assert set(CODES) == set(Code), "every code is explained"


class Finding(msgspec.Struct, frozen=True):
    """Something about one object."""

    code: Code
    #: The field.
    at: str
    message: str

    @property
    def severity(self) -> Severity:
        return CODES[self.code].severity

    @property
    def advice(self) -> str:
        return CODES[self.code].advice

    def __str__(self) -> str:
        return f"{self.at}: {self.message}"
