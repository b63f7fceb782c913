"""What an operator is woken for, and what is only worth a look in the morning.

Each alert says what is the case, why it matters and what to do: ``runbook.py`` writes the page that its link leads to.
``fires`` and ``quiet`` are series, in the notation of promtool, for which it does and does not fire.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from docs.monitoring.queries import (
    REPLICAS,
    highest,
    increase,
    like,
    lowest,
    quantile,
    rate,
    total,
    unlike,
)
from tenure.runtime.telemetry import metricnames as m


class Severity(StrEnum):
    #: Nodes are not managed, or something may be lost: wake an operator.
    CRITICAL = "critical"
    #: Something does not go on by itself: during working hours.
    WARNING = "warning"


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    severity: Severity
    expression: str
    lasts: str
    #: One line, with labels of the series.
    summary: str
    #: What it means.
    meaning: str
    #: What to do, in order. The first is a command or a look.
    steps: tuple[str, ...]
    #: Series and their values, one a minute.
    fires: tuple[tuple[str, str], ...]
    quiet: tuple[tuple[str, str], ...]


#: What scrapes of one Tenure share.
_AT: Final = 'namespace="tenure", job="tenure"'
_POOL: Final = f'{_AT}, nodepool="general"'


def _at(metric: m.Named, labels: str = "") -> str:
    return f"{metric.name}{{{', '.join(filter(None, (_AT, labels)))}}}"


_REPLICAS: Final = ", ".join(REPLICAS)
#: Those that were scraped within the last hours: where several clusters are scraped, ``absent`` sees none of them go.
_KNOWN: Final = f"max by ({_REPLICAS}) (last_over_time({m.BUILD.name}[6h]))"

_C, _W = Severity.CRITICAL, Severity.WARNING

# -- Tenure itself -----------------------------------------------------------------------

_ITSELF: Final = (
    Alert(
        name="TenureDown",
        severity=_C,
        expression=f"absent({m.BUILD.name}) or ({_KNOWN} unless {highest(m.BUILD)})",
        lasts="10m",
        summary="No replica of Tenure is scraped",
        meaning="No replica answers on /metrics. Nodes and pods stay as they are: no node is launched, repaired or removed.",
        steps=(
            "`kubectl get pods -n tenure -l app.kubernetes.io/name=tenure`: do the replicas run? Their last log line says why not.",
            "They run: does Prometheus reach them? Look at its page of targets, the ServiceMonitor and the NetworkPolicy (`networkPolicy.metricsFrom`).",
        ),
        fires=(("nothing", "0x120"),),
        quiet=((_at(m.BUILD, 'version="0.1", python="3.11"'), "1x120"),),
    ),
    Alert(
        name="TenureNoLeader",
        severity=_C,
        expression=f"{highest(m.LEADER)} == 0 unless {highest(m.HELD_BACK)} == 1",
        lasts="5m",
        summary="No replica of {{ $labels.namespace }}/{{ $labels.job }} acts",
        meaning="Replicas run, and none holds the Lease. Nothing is launched, repaired or removed.",
        steps=(
            "`curl localhost:8081/healthz` in a replica: the line says who holds the Lease, or why it cannot be read.",
            "The API server refuses: apply the chart's Role for leases again. It is slow: look at TenureApiErrors.",
        ),
        fires=((_at(m.LEADER), "0x120"), (_at(m.HELD_BACK), "0x120")),
        quiet=((_at(m.LEADER), "0x120"), (_at(m.HELD_BACK), "1x120")),
    ),
    Alert(
        name="TenureTwoLeaders",
        severity=_C,
        expression=f"{total(m.LEADER)} > 1",
        lasts="2m",
        summary="{{ $value }} replicas of {{ $labels.namespace }}/{{ $labels.job }} act at once",
        meaning="At most one replica may act. Two that do not see each other's Lease double each other's work.",
        steps=(
            "`kubectl get leases -A | grep -e karpenter -e tenure`: do the replicas use the same Lease (`--leader-election-namespace`)?",
            "Stop one of them: `kubectl scale deployment tenure --replicas=1`. Report it if both use the same Lease.",
        ),
        fires=(
            (_at(m.LEADER, 'pod="a"'), "1x120"),
            (_at(m.LEADER, 'pod="b"'), "1x120"),
        ),
        quiet=(
            (_at(m.LEADER, 'pod="a"'), "1x120"),
            (_at(m.LEADER, 'pod="b"'), "0x120"),
        ),
    ),
    Alert(
        name="TenureHeldBack",
        severity=_W,
        expression=f"{highest(m.HELD_BACK)} == 1",
        lasts="15m",
        summary="Tenure does not act: something else holds its Lease",
        meaning="Karpenter, or another Tenure, manages this cluster or did so last. This one looks on.",
        steps=(
            "`tenure plan --kubeconfig …`: its first lines name who acts.",
            "Karpenter is gone for good: start Tenure with `--take-over`. Else stop the one that shall not act ([leader election](leader-election.md)).",
        ),
        fires=((_at(m.HELD_BACK), "1x120"),),
        quiet=((_at(m.HELD_BACK), "0x120"),),
    ),
    Alert(
        name="TenureTwoModes",
        severity=_C,
        expression=f"{highest(m.SECOND)} == 1",
        lasts="10m",
        summary="A Tenure in charge and one beside Karpenter run on one cluster",
        meaning="The one in charge acts, the one beside Karpenter does not. One of them was forgotten.",
        steps=(
            "`kubectl get deployments -A -l app.kubernetes.io/name=tenure`: stop the one that shall not run ([migration](migration.md)).",
        ),
        fires=((_at(m.SECOND), "1x120"),),
        quiet=((_at(m.SECOND), "0x120"),),
    ),
    Alert(
        name="TenureLate",
        severity=_C,
        expression=f"{highest(m.RECHECK_LAG)} > 15",
        lasts="5m",
        summary="The loop of Tenure is {{ $value | humanizeDuration }} late",
        meaning="What is due is not done in time: deadlines, repairs, launches. A replica that is stuck for 30 s gives up the Lease.",
        steps=(
            "The log: `the loop was busy`, or a line that names the evaluation that takes so long.",
            "`kubectl top pod -n tenure`: raise `resources.requests.cpu` of the chart if it has less than it uses.",
        ),
        fires=((_at(m.RECHECK_LAG), "20x120"),),
        quiet=((_at(m.RECHECK_LAG), "1x120"),),
    ),
    Alert(
        name="TenureSlowTurns",
        severity=_W,
        expression=f"{quantile(m.TURN, 0.99)} > 2",
        lasts="30m",
        summary="1 of 100 turns takes {{ $value | humanizeDuration }}",
        meaning="Reactions are slow. Drains and repairs wait for a turn to end.",
        steps=(
            "Panel *Evaluations* of the dashboard: which concern takes long?",
            "Raise `resources.requests.cpu`. Report it with the log lines `evaluating … took`.",
        ),
        fires=(
            (f'{m.TURN.name}_bucket{{{_AT}, le="2.048"}}', "0x120"),
            (f'{m.TURN.name}_bucket{{{_AT}, le="4.096"}}', "0+10x120"),
            (f'{m.TURN.name}_bucket{{{_AT}, le="+Inf"}}', "0+10x120"),
        ),
        quiet=(
            (f'{m.TURN.name}_bucket{{{_AT}, le="0.128"}}', "0+10x120"),
            (f'{m.TURN.name}_bucket{{{_AT}, le="+Inf"}}', "0+10x120"),
        ),
    ),
    Alert(
        name="TenureEvaluationsFail",
        severity=_C,
        expression=f"{highest(m.FAILING, 'concern')} > 0",
        lasts="10m",
        summary="The evaluation of {{ $labels.concern }} fails",
        meaning="A fault of Tenure's that no single object is the cause of: what this concern decides stands still. The others go on.",
        steps=(
            "`curl localhost:8081/healthz`: the lines with `[!]` name it. Please report it, with the trace of the log.",
        ),
        fires=((_at(m.FAILING, 'concern="drain"'), "1x120"),),
        quiet=((_at(m.FAILING, 'concern="drain"'), "0x120"),),
    ),
    Alert(
        name="TenureUnreadableObjects",
        severity=_W,
        expression=f"{highest(m.UNREADABLE, 'resource')} > 0",
        lasts="15m",
        summary="{{ $value }} {{ $labels.resource }} cannot be read",
        meaning="What cannot be read protects what it might be: nothing is taken away from it, so its node may stay for ever.",
        steps=(
            "`kubectl get events -A | grep -i unreadable`: the event names the object and the field ([bad objects](bad-objects.md)).",
            "Correct or delete the object.",
        ),
        fires=((_at(m.UNREADABLE, 'resource="pods"'), "1x120"),),
        quiet=((_at(m.UNREADABLE, 'resource="pods"'), "0x120"),),
    ),
    Alert(
        name="TenureIndexDiffers",
        severity=_W,
        expression=f"{increase(m.INDEX_DISAGREEMENTS)} > 0",
        lasts="1m",
        summary="The index of nodes differed from one built anew",
        meaning="A fault of Tenure's. The index was built anew at once; until then a plan may have counted a node wrongly.",
        steps=("Please report it, with the log line that names the difference.",),
        fires=((_at(m.INDEX_DISAGREEMENTS), "0+1x120"),),
        quiet=((_at(m.INDEX_DISAGREEMENTS), "0x120"),),
    ),
)

# -- what it reads and asks --------------------------------------------------------------

_AROUND: Final = (
    Alert(
        name="TenureNotSynced",
        severity=_C,
        expression=f"{lowest(m.INFORMER_SYNCED, 'resource')} == 0",
        lasts="10m",
        summary="{{ $labels.resource }} are not listed",
        meaning="Nothing is decided before every kind has been listed once.",
        steps=(
            "`curl localhost:8081/readyz`: the line says why. `does not have this kind`: apply the CRDs. `403`: apply the chart's roles.",
        ),
        fires=((_at(m.INFORMER_SYNCED, 'resource="nodes"'), "0x120"),),
        quiet=((_at(m.INFORMER_SYNCED, 'resource="nodes"'), "1x120"),),
    ),
    Alert(
        name="TenureDeaf",
        severity=_W,
        expression=f"{highest(m.INFORMER_SILENCE, 'resource')} > 300",
        lasts="5m",
        summary="{{ $labels.resource }}: nothing heard for {{ $value | humanizeDuration }}",
        meaning="A watch is open and silent, although bookmarks come every minute. Nothing voluntary begins on an old view.",
        steps=(
            "Is a proxy between Tenure and the API server, and does it cut long connections? Restart the replica: another one takes over.",
        ),
        fires=((_at(m.INFORMER_SILENCE, 'resource="pods"'), "0+60x120"),),
        quiet=((_at(m.INFORMER_SILENCE, 'resource="pods"'), "30x120"),),
    ),
    Alert(
        name="TenureApiErrors",
        severity=_W,
        expression=(
            f"{rate(m.API_ANSWERS, where=like('code', '0|5..'))} / {rate(m.API_ANSWERS)} > 0.1"
        ),
        lasts="10m",
        summary="{{ $value | humanizePercentage }} of the requests to the API server fail",
        meaning="The API server is away or overloaded (code 0 is no answer at all). Writes are tried again, each with its own back-off.",
        steps=(
            "Look at the API server. Panel *Requests to the API server* shows which verb and kind.",
        ),
        fires=(
            (_at(m.API_ANSWERS, 'verb="GET", resource="nodes", code="500"'), "0+30x120"),
            (_at(m.API_ANSWERS, 'verb="GET", resource="nodes", code="200"'), "0+30x120"),
        ),
        quiet=(
            (_at(m.API_ANSWERS, 'verb="GET", resource="nodes", code="500"'), "0+1x120"),
            (_at(m.API_ANSWERS, 'verb="GET", resource="nodes", code="200"'), "0+60x120"),
        ),
    ),
    Alert(
        name="TenureRefused",
        severity=_W,
        expression=f"{rate(m.API_ANSWERS, where=like('code', '403|422'))} > 0",
        lasts="15m",
        summary="The API server refuses requests of {{ $labels.namespace }}/{{ $labels.job }}",
        meaning="A right is missing, or an admission policy or webhook refuses. What was to be written is tried again about once a "
        "minute: a lever that cannot be set blocks nothing, a node that cannot be deleted stays.",
        steps=(
            "The log of the replica that leads names object and answer: `acted`, with an outcome that begins with `failed`.",
            "A right is missing: apply the chart's ClusterRole of this release. A policy refuses: except Tenure's account from it.",
        ),
        fires=((_at(m.API_ANSWERS, 'verb="patch", resource="nodes", code="422"'), "0+1x120"),),
        quiet=(
            (_at(m.API_ANSWERS, 'verb="patch", resource="nodes", code="409"'), "0+1x120"),
            (_at(m.API_ANSWERS, 'verb="create", resource="events", code="403"'), "0+1x5 5x115"),
        ),
    ),
    Alert(
        name="TenureClockWrong",
        severity=_C,
        expression=f"max by ({_REPLICAS}) (abs({m.CLOCK_SKEW.name})) > 10",
        lasts="5m",
        summary="The clock of a replica is {{ $value | humanizeDuration }} off",
        meaning="Beyond `--clock-skew-max` nothing is taken away: no drain ends by force, no repair, no expiration.",
        steps=(
            "Correct the clock of the replica's node, or of the API server: [clocks](reliability.md#clocks).",
        ),
        fires=((_at(m.CLOCK_SKEW), "-3600x120"),),
        quiet=((_at(m.CLOCK_SKEW), "-1x120"),),
    ),
    Alert(
        name="TenureCloudErrors",
        severity=_W,
        expression=f"{rate(m.CLOUD_ERRORS, 'provider', 'method', 'error', 'nodepool', over='15m')} > 0",
        lasts="30m",
        summary="{{ $labels.provider }} {{ $labels.method }}: {{ $labels.error }} (NodePool {{ $labels.nodepool }})",
        meaning="The cloud has refused the same call for half an hour. Launches go to other offerings where the pool allows it.",
        steps=(
            "`kubectl describe nodepool NAME`: the condition and the events have the cloud's own words.",
            "`InsufficientCapacityError`: allow more instance types, zones or capacity types in `spec.template.spec.requirements`.",
        ),
        fires=(
            (
                _at(
                    m.CLOUD_ERRORS,
                    'provider="kwok", method="Create", error="InsufficientCapacityError", nodepool="general", controller="x"',
                ),
                "0+1x120",
            ),
        ),
        quiet=(
            (
                _at(
                    m.CLOUD_ERRORS,
                    'provider="kwok", method="Create", error="InsufficientCapacityError", nodepool="general", controller="x"',
                ),
                "3x120",
            ),
        ),
    ),
    Alert(
        name="TenureNoticesLate",
        severity=_W,
        expression=f"{increase(m.NOTICES_SETTLED, 'outcome', where=like('outcome', 'late|unknown|unreadable'))} > 0",
        lasts="1m",
        summary="{{ $value | humanize }} notices of the cloud were {{ $labels.outcome }} within the last hour",
        meaning="A notice of an interruption came after its instant, or is about an instance of another cluster: pods were not drained in time.",
        steps=(
            "[Interruption](interruption.md): who reads the queue, and how old are its messages?",
        ),
        fires=((_at(m.NOTICES_SETTLED, 'message_type="interruption", outcome="late"'), "0+1x120"),),
        quiet=(
            (_at(m.NOTICES_SETTLED, 'message_type="interruption", outcome="taken"'), "0+1x120"),
        ),
    ),
)

# -- nodes and pods ----------------------------------------------------------------------

_FLEET: Final = (
    Alert(
        name="TenurePodsFitNowhere",
        severity=_W,
        expression=f"{highest(m.UNSCHEDULABLE)} > 0",
        lasts="30m",
        summary="{{ $value }} pods fit no node and no pool",
        meaning="No NodePool can launch a node for these pods. They stay pending until the pods or the pools change.",
        steps=(
            "`tenure plan`: lists them with the reason for each pool and the smallest change that would place them ([pending pods](pending-pods.md)).",
        ),
        fires=((_at(m.UNSCHEDULABLE, 'controller="provisioner"'), "4x120"),),
        quiet=((_at(m.UNSCHEDULABLE, 'controller="provisioner"'), "0x120"),),
    ),
    Alert(
        name="TenurePodsWait",
        severity=_W,
        expression=f"{highest(m.OLDEST_WAIT)} > 1800",
        lasts="2m",
        summary="A pod has waited for a node for half an hour",
        meaning="New nodes would help, and do not come or do not take the pods.",
        steps=(
            "`kubectl get nodeclaims`: are there claims that are not Ready? `tenure explain claim/NAME` says what they wait for.",
            "Look for TenureLaunchesBackOff, TenureLaunchBreakerOpen, TenurePoolFull and TenureCloudErrors.",
        ),
        fires=((_at(m.OLDEST_WAIT), "0+60x120"),),
        # Pods keep coming, and each waits for a minute or two.
        quiet=((_at(m.OLDEST_WAIT), "60 90 120 60 90 120 60x120"),),
    ),
    Alert(
        name="TenureRepairBlocked",
        severity=_W,
        expression=f"{highest(m.BREAKER_TRIPPED, 'nodepool')} == 1",
        lasts="15m",
        summary="NodePool {{ $labels.nodepool }}: too many nodes are unhealthy, none is repaired",
        meaning="More nodes than `spec.repair.maxUnhealthy` are unhealthy. The cause is probably not in the nodes: network, image, DaemonSet, cloud.",
        steps=(
            "`tenure plan`: names the unhealthy nodes and their conditions. Look for what they share.",
            "The cause is in the nodes: raise `spec.repair.maxUnhealthy` for a while ([what blocks repair](repair.md#what-blocks-repair)).",
        ),
        fires=((f"{m.BREAKER_TRIPPED.name}{{{_POOL}}}", "1x120"),),
        quiet=((f"{m.BREAKER_TRIPPED.name}{{{_POOL}}}", "0x120"),),
    ),
    Alert(
        name="TenureDomainUnhealthy",
        severity=_C,
        expression=f"{highest(m.DOMAIN_HELD, 'domain', 'value')} == 1",
        lasts="10m",
        summary="{{ $labels.domain }} {{ $labels.value }}: most nodes are unhealthy",
        meaning="Most nodes of a zone, an image or an instance type are unhealthy. Repairs there stop but for one probe at a time; new nodes avoid a zone.",
        steps=(
            "Look at the state of that zone at the cloud, or at the last change of that image.",
            "An image: pin the one before in the node class. Repairs go on by themselves once a probe succeeds.",
        ),
        fires=((_at(m.DOMAIN_HELD, 'domain="zone", value="a"'), "1x120"),),
        quiet=((_at(m.DOMAIN_HELD, 'domain="zone", value="a"'), "0x120"),),
    ),
    Alert(
        name="TenureNodesTimeOut",
        severity=_W,
        expression=f"{increase(m.CLAIMS_DISRUPTED, 'nodepool', 'reason', where=like('reason', '.*_timeout'))} > 2",
        lasts="1m",
        summary="NodePool {{ $labels.nodepool }}: {{ $value | humanize }} new nodes ended by {{ $labels.reason }} within the last hour",
        meaning="New nodes are not launched, registered, Ready or initialized in time, and are replaced again and again.",
        steps=(
            "`kubectl describe nodeclaim NAME` of a new one: how far does it come? Look at its bootstrap, image, network and CNI.",
            "Nodes need longer than that: raise `readinessTTL` or `initializationTTL` of the pool.",
        ),
        fires=(
            (
                f'{m.CLAIMS_DISRUPTED.name}{{{_POOL}, reason="readiness_timeout"}}',
                "0+1x120",
            ),
        ),
        quiet=(
            (
                f'{m.CLAIMS_DISRUPTED.name}{{{_POOL}, reason="drifted"}}',
                "0+1x120",
            ),
        ),
    ),
    Alert(
        name="TenureLaunchesBackOff",
        severity=_W,
        expression=f"{highest(m.LAUNCH_BACK_OFF, 'nodepool')} > 0",
        lasts="15m",
        summary="NodePool {{ $labels.nodepool }}: launches back off, {{ $value }} new nodes in a row were of no use",
        meaning="New nodes of the pool do not become Ready in time, so launches are spaced out.",
        steps=(
            "As for TenureNodesTimeOut. A change of the pool's template ends the back-off ([how](launch-breaker.md#when-new-nodes-are-of-no-use)).",
        ),
        fires=((f"{m.LAUNCH_BACK_OFF.name}{{{_POOL}}}", "3x120"),),
        quiet=((f"{m.LAUNCH_BACK_OFF.name}{{{_POOL}}}", "0x120"),),
    ),
    Alert(
        name="TenureLaunchBreakerOpen",
        severity=_W,
        expression=f"{highest(m.LAUNCH_BREAKER_OPEN, 'nodepool')} > 0",
        lasts="15m",
        summary="NodePool {{ $labels.nodepool }}: launches for {{ $value }} owners of pods back off",
        meaning="Nodes were launched for the pods of an owner again and again, and the pods were pending each time.",
        steps=("What taints or deletes these nodes? [What to do](launch-breaker.md#what-to-do).",),
        fires=((f"{m.LAUNCH_BREAKER_OPEN.name}{{{_POOL}}}", "1x120"),),
        quiet=((f"{m.LAUNCH_BREAKER_OPEN.name}{{{_POOL}}}", "0x120"),),
    ),
    Alert(
        name="TenureReplacementsFail",
        severity=_W,
        expression=f"{increase(m.QUEUE_FAILURES, 'reason')} > 2",
        lasts="1m",
        summary="{{ $value | humanize }} replacements for reason {{ $labels.reason }} failed within the last hour",
        meaning="New nodes that were to replace others did not come up. The old nodes stay, and the pool backs off.",
        steps=(
            "`kubectl get events -A --field-selector reason=ReplacementFailed`: the message says what failed.",
        ),
        fires=(
            (
                _at(
                    m.QUEUE_FAILURES, 'decision="replace", reason="drifted", consolidation_type=""'
                ),
                "0+1x120",
            ),
        ),
        quiet=(
            (
                _at(
                    m.QUEUE_FAILURES, 'decision="replace", reason="drifted", consolidation_type=""'
                ),
                "2x120",
            ),
        ),
    ),
    Alert(
        name="TenureRebootsFail",
        severity=_W,
        expression=f"{increase(m.REBOOTS, 'result', where=unlike('result', 'succeeded|cancelled'))} > 0",
        lasts="1m",
        summary="{{ $value | humanize }} reboots ended as {{ $labels.result }} within the last hour",
        meaning="A node was to be rebooted in place, and did not come back. It is replaced.",
        steps=("`kubectl describe node NAME`: the events of the reboot have the cloud's words.",),
        fires=((_at(m.REBOOTS, 'result="recovery_timeout"'), "0+1x120"),),
        quiet=((_at(m.REBOOTS, 'result="succeeded"'), "0+1x120"),),
    ),
    Alert(
        name="TenureWindowUnreadable",
        severity=_W,
        expression=f"{lowest(m.WINDOW_VALID, 'window')} == 0",
        lasts="5m",
        summary="MaintenanceWindow {{ $labels.window }} cannot be understood",
        meaning="A window that cannot be understood fails safe: a Block window blocks its actions for ever, an Allow window never allows them.",
        steps=(
            "`kubectl get maintenancewindow NAME -o yaml`: the condition Valid names the field ([maintenance windows](maintenance-windows.md)).",
        ),
        fires=((_at(m.WINDOW_VALID, 'window="nightly"'), "0x120"),),
        quiet=((_at(m.WINDOW_VALID, 'window="nightly"'), "1x120"),),
    ),
    Alert(
        name="TenureDriftUnknown",
        severity=_W,
        expression=f"{highest(m.DRIFT_UNKNOWN, 'nodepool')} > 0",
        lasts="1h",
        summary="NodePool {{ $labels.nodepool }}: the cloud does not say of {{ $value }} nodes whether they drifted",
        meaning="Their drift is not noticed as long as the cloud fails to answer.",
        steps=("Look at TenureCloudErrors, and at the rights of the account that asks the cloud.",),
        fires=((f"{m.DRIFT_UNKNOWN.name}{{{_POOL}}}", "1x120"),),
        quiet=((f"{m.DRIFT_UNKNOWN.name}{{{_POOL}}}", "0x120"),),
    ),
    Alert(
        name="TenurePoolFull",
        severity=_W,
        expression=(
            f"{highest(m.POOL_USAGE, 'nodepool', 'resource_type')} "
            f"/ ({highest(m.POOL_LIMIT, 'nodepool', 'resource_type')} > 0) > 0.95"
        ),
        lasts="30m",
        summary="NodePool {{ $labels.nodepool }} uses {{ $value | humanizePercentage }} of its limit of {{ $labels.resource_type }}",
        meaning="The pool launches nothing beyond `spec.limits`; replacements need room as well, so it may not roll either.",
        steps=("Raise `spec.limits` of the NodePool, or give the pods another pool.",),
        fires=(
            (f'{m.POOL_USAGE.name}{{{_POOL}, resource_type="cpu"}}', "99x120"),
            (f'{m.POOL_LIMIT.name}{{{_POOL}, resource_type="cpu"}}', "100x120"),
        ),
        quiet=(
            (f'{m.POOL_USAGE.name}{{{_POOL}, resource_type="cpu"}}', "50x120"),
            (f'{m.POOL_LIMIT.name}{{{_POOL}, resource_type="cpu"}}', "100x120"),
        ),
    ),
    Alert(
        name="TenureLeversPastEnd",
        severity=_W,
        expression=f"{highest(m.LEVERS_PAST_END)} > 0",
        lasts="10m",
        summary="Beside Karpenter: {{ $value }} Nodes are kept longer than Tenure said",
        meaning="A lever of Tenure's is past its end: no replica takes it back. Karpenter does not disrupt these Nodes.",
        steps=(
            "Is Tenure gone on purpose? [The line that removes its levers](beside-karpenter.md#take-it-all-back).",
            "Else look at TenureNoLeader and TenureHeldBack.",
        ),
        fires=((_at(m.LEVERS_PAST_END), "2x120"),),
        quiet=((_at(m.LEVERS_PAST_END), "0x120"),),
    ),
)

ALERTS: Final = (*_ITSELF, *_AROUND, *_FLEET)

SECTIONS: Final = (
    ("Tenure itself", _ITSELF),
    ("What it reads and asks", _AROUND),
    ("Nodes and pods", _FLEET),
)
