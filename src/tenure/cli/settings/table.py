"""Every setting of ``tenure run``, once: how it is named, written, and why its default is what it is.

Flag, environment name and key of the file follow from one another; help, documentation and
the reader of all three are made from this table. Where Karpenter has a setting with the same
meaning, its names are used; all others have an environment name that begins with TENURE_.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

import msgspec

from tenure.cli.settings import forms as form
from tenure.cli.settings.forms import Form
from tenure.model.settings import Settings
from tenure.ports.provider import Option, Provider
from tenure.providers.registry import DEFAULT, usable

_TICK: Final = timedelta(milliseconds=1)
_SECOND: Final = timedelta(seconds=1)

CLUSTER: Final = "The cluster"
BESIDE: Final = "Beside Karpenter"
LEASE: Final = "Which replica acts"
PROVISIONING: Final = "Provisioning"
LEAVING: Final = "Taking nodes away"
CLOUD: Final = "The cloud"
SEEN: Final = "What others see"
RATES: Final = "Rates"
SECTIONS: Final = (CLUSTER, BESIDE, LEASE, PROVISIONING, LEAVING, CLOUD, SEEN, RATES)


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    section: str
    #: Of ``Settings``; empty for what only this program reads.
    field: str
    #: Without the dashes in front.
    flag: str
    form: Form
    #: What it is, its unit where it has one, and why the default.
    reason: str
    #: Karpenter has it too, with the same meaning.
    karpenters: bool = False
    #: Other flags that mean the same.
    also: tuple[str, ...] = ()
    #: The environment's name where it follows another custom.
    variable: str = ""
    #: Where the value is found out at the start if it is not given: in words.
    found_out: str = ""
    #: The default where it is none of ``Settings``.
    preset: str = ""
    #: The providers that declare it as an option of theirs.
    providers: tuple[str, ...] = ()

    @property
    def environment(self) -> str:
        name = self.flag.replace("-", "_").upper()
        return self.variable or (name if self.karpenters else f"TENURE_{name}")

    @property
    def key(self) -> str:
        first, *rest = self.flag.split("-")
        return first + "".join(word.capitalize() for word in rest)

    @property
    def default(self) -> Any:
        """What ``run`` takes when it is not given."""
        if self.found_out or self.preset:
            return self.preset
        return getattr(Settings(), self.field) if self.field else {}

    @property
    def default_words(self) -> str:
        return self.found_out or self.form.show(self.default) or "none"


def option_settings(providers: Iterable[Provider]) -> tuple[Setting, ...]:
    """The options of these providers as settings. Several may have an option of the same name;
    one that has the name of a setting of Tenure is left out, and ``clashing`` names it."""
    declared: dict[str, list[tuple[str, Option]]] = {}
    for provider in providers:
        for option in provider.options:
            declared.setdefault(option.name, []).append((provider.name, option))
    taken = _own_flags()
    return tuple(
        Setting(
            section=CLOUD,
            field="",
            flag=name,
            form=form.option(of[0][1]),
            reason=f"{of[0][1].reason} For provider {' and '.join(owner for owner, _ in of)}.",
            karpenters=of[0][1].karpenters,
            found_out=of[0][1].default,
            providers=tuple(owner for owner, _ in of),
        )
        for name, of in declared.items()
        if name not in taken
    )


def clashing(provider: Provider) -> tuple[str, ...]:
    """The options of a provider that have the name of a setting of Tenure."""
    return tuple(one.name for one in provider.options if one.name in _own_flags())


def _own_flags() -> frozenset[str]:
    return frozenset(flag for setting in OWN for flag in (setting.flag, *setting.also))


def _span(section: str, field: str, flag: str, example: str, reason: str, **more: Any) -> Setting:
    shortest = more.pop("at_least", _TICK)
    kind = form.duration(example, at_least=shortest, whole_seconds=more.pop("whole", False))
    return Setting(section=section, field=field, flag=flag, form=kind, reason=reason, **more)


#: What Tenure has with every provider.
OWN: Final = (
    Setting(
        section=CLUSTER,
        field="kubeconfig",
        flag="kubeconfig",
        form=form.text("FILE", "the path of a kubeconfig", "~/.kube/config"),
        reason="How to reach the API server, and as whom.",
        variable="KUBECONFIG",
        found_out="in a pod its own account, else ~/.kube/config",
    ),
    Setting(
        section=CLUSTER,
        field="context",
        flag="context",
        form=form.text("NAME", "the name of a context in the kubeconfig", "staging"),
        reason="Which cluster of the kubeconfig.",
        found_out="the kubeconfig's current context",
    ),
    Setting(
        section=CLUSTER,
        field="cluster_name",
        flag="cluster-name",
        form=form.text("NAME", "a name", "staging"),
        reason="Marks our instances in the cloud. The default is as unique as the cluster itself: "
        "two clusters in one account never touch each other's.",
        karpenters=True,
        found_out="the UID of namespace kube-system",
    ),
    Setting(
        section=CLUSTER,
        field="client_qps",
        flag="kube-client-qps",
        form=form.rate("200"),
        reason="Requests per second to the API server, on average. Karpenter's figure.",
        karpenters=True,
    ),
    Setting(
        section=CLUSTER,
        field="client_burst",
        flag="kube-client-burst",
        form=form.count("300"),
        reason="Requests that may leave at once before the average counts. Karpenter's figure.",
        karpenters=True,
    ),
    Setting(
        section=BESIDE,
        field="beside_karpenter",
        flag="beside-karpenter",
        form=form.switch(),
        reason="Run beside Karpenter, which stays in charge: set and remove levers that it honours, delete "
        "NodeClaims that a policy of yours repairs or times out, replace nodes through it, and launch and drain "
        "nothing. See docs/beside-karpenter.md.",
    ),
    Setting(
        section=BESIDE,
        field="karpenter_version",
        flag="karpenter-version",
        form=form.release("1.15"),
        reason="The release of a Karpenter that runs outside the cluster.",
        found_out="its Deployment says so",
    ),
    Setting(
        section=BESIDE,
        field="karpenter_feature_gates",
        flag="karpenter-feature-gates",
        form=form.gates_text(),
        reason="The feature gates of a Karpenter that runs outside the cluster.",
        found_out="its Deployment says so",
    ),
    Setting(
        section=BESIDE,
        field="release",
        flag="release",
        form=form.switch(),
        reason="Take every lever back when the process is told to stop. By default they stay, so that a "
        "restart opens no window; tenure release takes them back at any time.",
    ),
    Setting(
        section=LEASE,
        field="leader_election",
        flag="disable-leader-election",
        form=form.switch(inverted=True),
        reason="Act without a Lease. Only where it is certain that nothing else acts on the "
        "cluster: neither a second replica nor Karpenter.",
        karpenters=True,
    ),
    Setting(
        section=LEASE,
        field="lease_name",
        flag="leader-election-name",
        form=form.object_name("karpenter-leader-election"),
        reason="The Lease. Karpenter's, so that Tenure and Karpenter never both act; with "
        "--beside-karpenter tenure-beside-karpenter, as both do.",
        karpenters=True,
        also=("lease-name",),
    ),
    Setting(
        section=LEASE,
        field="lease_namespace",
        flag="leader-election-namespace",
        form=form.object_name("kube-system", label=True),
        reason="Where the Lease is; the same for all replicas.",
        karpenters=True,
        also=("lease-namespace",),
        found_out="in a pod its own namespace, else kube-system",
    ),
    Setting(
        section=LEASE,
        field="take_over",
        flag="take-over",
        form=form.switch(),
        reason="Take a Lease that something else held last, once that no longer renews it. By "
        "default Karpenter's Lease is left alone until you allow it.",
    ),
    _span(
        LEASE,
        "lease_duration",
        "lease-duration",
        "15s",
        "How long after the last renewal another replica may take over. Long enough for a restart "
        "of the API server, short enough for a dead node.",
        at_least=7 * _SECOND,
        whole=True,
    ),
    _span(
        LEASE,
        "lease_renew_deadline",
        "lease-renew-deadline",
        "10s",
        "A leader that could not renew for this long stops acting. At least 5s, the longest that a "
        "call takes, before the lease duration ends; and at most 10s for Karpenter's Lease, which "
        "Karpenter takes 15s after the last renewal.",
        at_least=_SECOND,
    ),
    _span(
        LEASE,
        "lease_retry",
        "lease-retry-period",
        "2s",
        "Between two tries to get or to renew the Lease.",
        at_least=100 * _TICK,
    ),
    _span(
        PROVISIONING,
        "batch_idle",
        "batch-idle-duration",
        "1s",
        "Pods are placed together after this long without a new one: pods that come together "
        "share nodes.",
        karpenters=True,
    ),
    _span(
        PROVISIONING,
        "batch_max",
        "batch-max-duration",
        "10s",
        "… and at the latest this long after the first of them. Claims are created at most this "
        "often while pods keep coming.",
        karpenters=True,
    ),
    Setting(
        section=PROVISIONING,
        field="node_fee_cpus",
        flag="node-fee-cpus",
        form=form.count("3", at_least=0),
        reason="A node counts as dear as so many cpus more than its price. More: fewer, larger "
        "nodes; 0: the cheapest plan, however many nodes that is.",
    ),
    Setting(
        section=PROVISIONING,
        field="preference_policy",
        flag="preference-policy",
        form=form.choice("Respect", "Ignore"),
        reason="Whether new nodes are planned as if preferences (preferred affinity, ScheduleAnyway) were "
        "required, as long as that is possible, or as if there were none.",
        karpenters=True,
    ),
    Setting(
        section=PROVISIONING,
        field="min_values_policy",
        flag="min-values-policy",
        form=form.choice("Strict", "BestEffort"),
        reason="Whether minValues of a NodePool must be met, or are lowered to what can be had where pods "
        "would be left without a node.",
        karpenters=True,
    ),
    Setting(
        section=PROVISIONING,
        field="nominate_pods",
        flag="nominate-pods",
        form=form.switch(),
        reason="Whether status.nominatedNodeName of a pod names the node that was launched for it, so that the scheduler "
        "gives the room there to no other pod. Written only while pods wait that cannot change places.",
    ),
    _span(
        PROVISIONING,
        "placement_gap",
        "placement-gap",
        "500ms",
        "Between two placements that follow from pods coming and going: thousands of pods are "
        "bound one by one, and need not be thought about one by one.",
    ),
    Setting(
        section=PROVISIONING,
        field="",
        flag="feature-gates",
        form=form.gates(),
        reason="Karpenter's gates. NodeRepair counts where --node-repair is not given; SpotToSpotConsolidation lets "
        "spot nodes be replaced by cheaper spot nodes; what the others gate is not there yet. One that is not known, or is on and does nothing, "
        "is named in the log, and by plan and explain.",
        karpenters=True,
    ),
    _span(
        LEAVING,
        "drain_min",
        "drain-min",
        "5s",
        "Between tainting a node and terminating its instance, so that other controllers, load balancers too, "
        "have seen the taint.",
    ),
    Setting(
        section=LEAVING,
        field="eviction_rate",
        flag="eviction-qps",
        form=form.rate("100"),
        reason="Evictions per second over all nodes. Each makes a controller create a pod.",
    ),
    Setting(
        section=LEAVING,
        field="eviction_burst",
        flag="eviction-burst",
        form=form.count("200"),
        reason="Evictions that may come at once: a full node's.",
    ),
    _span(
        LEAVING,
        "eviction_retry_min",
        "eviction-retry-min",
        "1s",
        "First pause after a budget refused an eviction; it doubles.",
    ),
    _span(
        LEAVING,
        "eviction_retry_max",
        "eviction-retry-max",
        "10s",
        "Longest pause: a budget that allows again is noticed this fast.",
    ),
    Setting(
        section=LEAVING,
        field="node_repair",
        flag="node-repair",
        form=form.switch(),
        reason="Whether unhealthy nodes are repaired. Time-outs of new nodes always run. Not given: "
        "as the feature gate NodeRepair says, else true. The log says at the start if it is off.",
    ),
    Setting(
        section=LEAVING,
        field="voluntary_disruption",
        flag="voluntary-disruption",
        form=form.switch(),
        reason="Whether nodes are taken away by choice: empty, underutilized, expired, drifted, or "
        "recommended to leave by the cloud. Repair, interruptions and deletions by users go on without it. The log says at "
        "the start if it is off.",
    ),
    Setting(
        section=LEAVING,
        field="legacy_node_repair",
        flag="legacy-node-repair",
        form=form.switch(),
        reason="Whether pools without a repair block, and claims without a pool, are repaired "
        "forcefully, as Karpenter did before 1.15; otherwise such pools are repaired gracefully.",
        karpenters=True,
    ),
    Setting(
        section=LEAVING,
        field="repair_domain_breaker",
        flag="repair-domain-breaker",
        form=form.switch(),
        reason="Whether repairs stop, but for one node at a time, where more than half of all nodes "
        "of a zone, image or instance type are unhealthy. It is independent of the breaker of each pool.",
    ),
    _span(
        LEAVING,
        "eviction_probe",
        "eviction-probe",
        "10s",
        "How often a pod is asked about although its budget seems to allow nothing: the budget's "
        "status may be stale.",
    ),
    Setting(
        section=LEAVING,
        field="protection_clock",
        flag="protection-clock",
        form=form.choice("creation", "start"),
        reason="What a duration in a pod's karpenter.sh/do-not-disrupt counts from: its creation, "
        "or as with Karpenter its start.",
    ),
    Setting(
        section=CLOUD,
        field="provider",
        flag="provider",
        form=form.text("NAME", "the name of a provider that is installed", DEFAULT),
        reason="The cloud. The default simulates Nodes in any cluster and costs nothing.",
        preset=DEFAULT,
    ),
    Setting(
        section=CLOUD,
        field="provider_namespace",
        flag="provider-namespace",
        form=form.object_name("tenure-provider", label=True),
        reason="For objects that the provider keeps in the cluster. Best one where nothing else is; "
        "never change it while the provider has objects there.",
        found_out="where the Lease is",
    ),
    _span(
        CLOUD,
        "offering_dry",
        "offering-dry-for",
        "3m",
        "How long an offering that was sold out is left out of planning.",
    ),
    _span(
        CLOUD,
        "termination_poll",
        "termination-poll",
        "5s",
        "How often the cloud is asked whether an instance that is ending is gone.",
        at_least=100 * _TICK,
    ),
    _span(
        CLOUD,
        "garbage_period",
        "garbage-period",
        "2m",
        "How often instances and claims are compared, to find the ones without the others.",
        at_least=_SECOND,
    ),
    _span(
        CLOUD,
        "garbage_grace",
        "garbage-grace",
        "5m",
        "Instances younger than this are never garbage: their claim may not be visible yet.",
        at_least=_SECOND,
    ),
    Setting(
        section=SEEN,
        field="metrics_port",
        flag="metrics-port",
        form=form.count("8080", at_least=0, at_most=65535),
        reason="/metrics for Prometheus. 0 takes any free port; the log names it.",
        karpenters=True,
    ),
    Setting(
        section=SEEN,
        field="health_port",
        flag="health-probe-port",
        form=form.count("8081", at_least=0, at_most=65535),
        reason="/healthz and /readyz for the kubelet. 0 takes any free port; the log names it.",
        karpenters=True,
    ),
    Setting(
        section=SEEN,
        field="webhook_port",
        flag="webhook-port",
        form=form.count("9443", at_least=0, at_most=65535),
        reason="Where API servers ask whether an object is valid, see docs/webhook.md. Outside a "
        "pod only if the configuration has a URL. 0 turns it off.",
    ),
    Setting(
        section=SEEN,
        field="webhook_name",
        flag="webhook-name",
        form=form.object_name("tenure-webhook"),
        reason="The ValidatingWebhookConfiguration that API servers follow, and the Secret that "
        "keeps the webhook's certificates: in a pod in its own namespace, else where the Lease is.",
    ),
    Setting(
        section=SEEN,
        field="ui_port",
        flag="ui-port",
        form=form.count("8090", at_least=0, at_most=65535),
        reason="The web page, see docs/page.md: reads only. 0 turns it off.",
    ),
    Setting(
        section=SEEN,
        field="ui_address",
        flag="ui-address",
        form=form.address("0.0.0.0"),  # noqa: S104 - an example
        reason="Where the web page listens. On 127.0.0.1 and ::1 every program on the machine, or "
        "kubectl port-forward, may read the page; on every other address a bearer token is required, "
        "whose user may list pods, nodes and NodePools. There is no TLS.",
    ),
    Setting(
        section=SEEN,
        field="cluster_metrics",
        flag="disable-cluster-state-observability",
        form=form.switch(inverted=True),
        reason="Leave out the series for each node and pod, which are hundreds of thousands in a "
        "large cluster.",
        karpenters=True,
    ),
    Setting(
        section=SEEN,
        field="log_level",
        flag="log-level",
        form=form.choice("debug", "info", "warning", "error", warn="warning"),
        reason="The least that is said. Every change of a verdict is info.",
        karpenters=True,
    ),
    Setting(
        section=SEEN,
        field="log_format",
        flag="log-format",
        form=form.choice("auto", "json", "text"),
        reason="JSON has one object on each line; auto is text on a terminal and JSON elsewhere.",
    ),
    Setting(
        section=SEEN,
        field="journal_size",
        flag="journal-size",
        form=form.count("5000", at_least=0),
        reason="Verdict changes and outcomes kept in memory, for /debug/journal. A few megabytes. 0 "
        "keeps none, and opens no port for them.",
    ),
    Setting(
        section=SEEN,
        field="journal_port",
        flag="journal-port",
        form=form.count("8082", at_least=0, at_most=65535),
        reason="/debug/journal, on the loopback interface alone, see docs/security.md. 0 takes any "
        "free port; the log names it.",
    ),
    Setting(
        section=SEEN,
        field="event_rate",
        flag="event-qps",
        form=form.rate("25"),
        reason="Kubernetes events per second; they are news, and must not load the API server.",
    ),
    Setting(
        section=SEEN,
        field="event_burst",
        flag="event-burst",
        form=form.count("50"),
        reason="Kubernetes events that may come at once.",
    ),
    Setting(
        section=RATES,
        field="actions_max",
        flag="actions-max",
        form=form.count("64"),
        reason="Writes and cloud calls under way at once.",
    ),
    _span(
        RATES,
        "turn_gap",
        "turn-gap",
        "50ms",
        "Between two turns of the loop: a burst of changes is evaluated once.",
    ),
    _span(
        RATES,
        "retry_min",
        "retry-min",
        "1s",
        "First pause after an action on an object failed; it doubles.",
    ),
    _span(
        RATES,
        "retry_max",
        "retry-max",
        "1m",
        "Longest pause: this long after the cause is mended, all goes on.",
    ),
    _span(
        RATES,
        "expectation_max",
        "expectation-max",
        "10s",
        "A write that the watch has not shown for this long is looked up by a read.",
    ),
    _span(
        RATES,
        "clock_skew_max",
        "clock-skew-max",
        "10s",
        "No disruption begins, nothing is taken away, and no deadline is set, while the clock of this replica is further "
        "than this from the API server's.",
        at_least=3000 * _TICK,
    ),
)

#: … and the options of the providers that are installed.
TABLE: Final = (*OWN, *option_settings(usable()))

#: The gate that stands for ``--node-repair`` where that is not given.
REPAIR_GATE: Final = "NodeRepair"

#: The gate of ``Settings.spot_to_spot_consolidation``.
SPOT_GATE: Final = "SpotToSpotConsolidation"
#: Gates that make a difference.
BUILT: Final = frozenset({REPAIR_GATE, SPOT_GATE})

#: Karpenter's gates, with those that it has on by default; those that are not ``BUILT`` do nothing yet.
GATES: Final = {
    REPAIR_GATE: False,
    SPOT_GATE: False,
    "ReservedCapacity": True,
    "NodeOverlay": False,
    "StaticCapacity": False,
    "CapacityBuffer": False,
    "TerminateFirstDrift": False,
    "TerminateFirstRepair": False,
    "PodDeletionCostManagement": False,
}

#: What else Karpenter reads from its environment, with the value that changes nothing here.
#: A deployment that was Karpenter's has them; a user who set one should see what it means here.
KARPENTER_ONLY: Final = {
    "IGNORE_DRA_REQUESTS": "true",
    "SCHEDULER_CONFIG": "",
    "ENABLE_PROFILING": "false",
    "LOG_OUTPUT_PATHS": "stdout",
    "LOG_ERROR_OUTPUT_PATHS": "stderr",
}

#: What manifests can ask for and nothing acts on yet; said at the start, so that no user waits
#: for it in vain. ``docs/limits.md`` says more.
NOT_YET: Final = ("static capacity (replicas of a NodePool)",)
