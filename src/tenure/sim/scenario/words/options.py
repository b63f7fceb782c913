"""The fields of a scenario beside events and expectations, and the options below them.

Each example is a part of a scenario that runs.
"""

from __future__ import annotations

from typing import Final

from tenure.sim.scenario.words.word import Word

FIELDS: Final = (
    Word("name", "for readers; else the file's name", "name: web-on-spot"),
    Word("description", "for readers", "description: Three web servers on spot capacity."),
    Word(
        "until",
        "how long it runs; else ten minutes after its last line. A duration: `90s`, `5m`, `1h30m`, `2d`",
        "until: 30m",
    ),
    Word(
        "start",
        "when it begins, an RFC 3339 instant from 1970 to 2999; else Monday 2026-01-05 08:00 UTC",
        "start: 2026-11-27T17:00:00Z",
    ),
    Word(
        "seed",
        "a whole number: boot times, names and spot prices follow from it; `--seed` wins",
        "seed: 7",
    ),
    Word(
        "settings",
        "Tenure's own settings; [settings.md](settings.md) has the names",
        "settings: {batch-idle: 2s}",
    ),
    Word(
        "cloud",
        "what there is to buy, and how long the cloud takes: see below",
        "cloud: {zones: [zone-a, zone-b]}",
    ),
    Word("kubelet", "how long kubelets take: see below", "kubelet: {ready-for: 20s}"),
    Word(
        "pods", "how long the pods of an app take: see below", "pods: [{app: web, stop-takes: 20s}]"
    ),
    Word("volumes", "how long volumes take: see below", "volumes: {attach-for: 20s}"),
    Word(
        "startup-agents",
        "startup taint → how long its agent needs on a Ready node before it removes it",
        "startup-agents: {example.com/cni: 30s}",
    ),
    Word("faults", "what goes wrong from the start: see below", "faults: {api-latency: 200ms}"),
    Word("files", "files with manifests, relative to the scenario", "files: []"),
    Word(
        "objects",
        "plain manifests, as they are in your repository; further documents of the file are the same",
        """\
objects:
  - apiVersion: v1
    kind: Namespace
    metadata: {name: team-a}
events: []
expect: []""",
    ),
    Word(
        "events",
        "what happens when; each entry has `at` and one verb",
        """\
events:
  - at: 5m
    say: nothing else happens""",
    ),
    Word(
        "expect",
        "what must be the case, and when; without it nothing is checked",
        """\
expect:
  - at: end
    instances: {unclaimed: 0}""",
    ),
)

CLOUD: Final = (
    Word(
        "api-latency", "each call takes so long, there and back (200ms)", "cloud: {api-latency: 1s}"
    ),
    Word("boot-for", "launch → kubelet starts (30s)", "cloud: {boot-for: 1m}"),
    Word("boot-spread", "up to so much longer, drawn evenly (15s)", "cloud: {boot-spread: 0s}"),
    Word("shutdown-for", "termination asked for → gone (20s)", "cloud: {shutdown-for: 1m}"),
    Word("reboot-for", "reboot asked for → kubelet is back (60s)", "cloud: {reboot-for: 3m}"),
    Word(
        "catalogue",
        "`common` (default), `all`, or names of instance types",
        "cloud: {catalogue: [m7i.large, m7i.xlarge]}",
    ),
    Word("zones", "names of zones (zone-a, zone-b, zone-c)", "cloud: {zones: [zone-a, zone-b]}"),
)

KUBELET: Final = (
    Word("ready-for", "registered → Ready (10s)", "kubelet: {ready-for: 30s}"),
    Word("devices-for", "Ready → extended resources announced (15s)", "kubelet: {devices-for: 1m}"),
    Word(
        "pods",
        "`start-for`, `init-container-for`, `stop-for`: for pods that do not say it themselves",
        "kubelet: {pods: {start-for: 10s}}",
    ),
)
KUBELET_PODS: Final = (
    Word("start-for", "bound → running (3s)", "kubelet: {pods: {start-for: 10s}}"),
    Word(
        "init-container-for",
        "added for each init container (1s)",
        "kubelet: {pods: {init-container-for: 5s}}",
    ),
    Word("stop-for", "deleted → stopped (2s)", "kubelet: {pods: {stop-for: 20s}}"),
)

PODS: Final = (
    Word(
        "app",
        "the pods' label `app` or `app.kubernetes.io/name`; without it all pods",
        "pods: [{app: web, start-takes: 20s}]",
    ),
    Word(
        "namespace",
        "of the pods; without it all namespaces",
        "pods: [{namespace: default, start-takes: 20s}]",
    ),
    Word("start-takes", "bound, with its volumes → running", "pods: [{app: web, start-takes: 1m}]"),
    Word("ready-takes", "running → ready", "pods: [{app: web, ready-takes: 30s}]"),
    Word("run-takes", "running → finished", "pods: [{app: report, run-takes: 2m}]"),
    Word(
        "stop-takes",
        "deleted → stopped, if its grace period lets it",
        "pods: [{app: web, stop-takes: 30s}]",
    ),
)

VOLUMES: Final = (
    Word(
        "provision-for", "claim may have a volume → has one (1s)", "volumes: {provision-for: 10s}"
    ),
    Word("attach-for", "pod bound → volume attached (5s)", "volumes: {attach-for: 30s}"),
    Word("detach-for", "unmounted → detached (5s)", "volumes: {detach-for: 30s}"),
)

FAULTS: Final = (
    Word(
        "api-latency", "each API request takes up to so much longer", "faults: {api-latency: 500ms}"
    ),
    Word(
        "api-error-rate",
        "share of API requests answered 503 and not carried out",
        "faults: {api-error-rate: 0.05}",
    ),
    Word(
        "api-lost-answer-rate",
        "share of API requests that are carried out although the answer is lost",
        "faults: {api-lost-answer-rate: 0.05}",
    ),
    Word(
        "cloud-latency",
        "each call to the cloud takes up to so much longer",
        "faults: {cloud-latency: 5s}",
    ),
    Word(
        "cloud-throttle-rate",
        "share of calls that the cloud throttles",
        "faults: {cloud-throttle-rate: 0.2}",
    ),
    Word(
        "launch-failure-rate",
        "share of launches that fail for no stated reason",
        "faults: {launch-failure-rate: 0.2}",
    ),
    Word(
        "cloud-dry",
        "offerings that cannot be had: a list of `instance-type`, `zone`, `capacity-type`; what is not named means any",
        "faults: {cloud-dry: [{zone: zone-a}, {capacity-type: spot}]}\n"
        "expect:\n  - at: end\n    instances: {zone: zone-a, count: 0}\n"
        "  - at: end\n    instances: {capacity-type: spot, count: 0}",
    ),
    Word(
        "cloud-dry-rate",
        "share of launches and offerings that turn out to be dry by chance",
        "faults: {cloud-dry-rate: 0.3}",
    ),
    Word(
        "node-class-broken",
        "every launch fails as misconfigured, with this sentence",
        "faults: {node-class-broken: the subnet is gone}\nexpect:\n  - at: end\n    instances: {count: 0}",
    ),
    Word("boot-latency", "each boot takes up to so much longer", "faults: {boot-latency: 1m}"),
    Word(
        "never-registers-rate",
        "share of instances whose Node never appears",
        "faults: {never-registers-rate: 0.2}",
    ),
    Word(
        "never-ready-rate",
        "share of nodes that register and never become Ready",
        "faults: {never-ready-rate: 1}\nexpect:\n  - by: 5m\n    nodes: {not-ready: {min: 1}, ready: 0}",
    ),
    Word(
        "startup-taint-stuck-rate",
        "share of startup taints that are never removed",
        "faults: {startup-taint-stuck-rate: 0.2}",
    ),
    Word(
        "volume-stuck-rate",
        "share of volumes that are never unmounted",
        "faults: {volume-stuck-rate: 0.2}",
    ),
    Word(
        "kubelet-dies-after-mean",
        "a kubelet dies after so long on average",
        "faults: {kubelet-dies-after-mean: 2h}",
    ),
    Word(
        "kubelet-dies-after",
        "every kubelet dies so long after its node was to be Ready",
        "faults: {kubelet-dies-after: 10m}",
    ),
    Word(
        "kubelet-refuses-app",
        "every kubelet refuses the pods of this app: they fail with reason `OutOfcpu`",
        "faults: {kubelet-refuses-app: batch}",
    ),
    Word(
        "node-taint",
        "an agent puts this taint on every Node, and puts it back",
        'faults: {node-taint: "example.com/agent=on:PreferNoSchedule"}',
    ),
    Word(
        "pod-deleter-app",
        "a controller deletes the pods of this app",
        "faults: {pod-deleter-app: web, pod-deleter-after: 8m}",
    ),
    Word(
        "pod-deleter-after",
        "so long after they have started",
        "faults: {pod-deleter-app: web, pod-deleter-after: 8m}",
    ),
    Word(
        "daemon-growth-share",
        "a webhook makes daemon pods ask for this share of their node's CPU",
        "faults: {daemon-growth-share: 0.1}",
    ),
    Word(
        "pod-growth-app",
        "a webhook makes each new pod of this app ask for more CPU",
        "faults: {pod-growth-app: batch, pod-growth: 1.5}",
    ),
    Word(
        "pod-growth",
        "so many times as much as the one before (2)",
        "faults: {pod-growth-app: batch, pod-growth: 1.5}",
    ),
    Word(
        "clock-offset",
        "how far the wall clock of Tenure's host is ahead of the true time; behind it when negative",
        "faults: {clock-offset: -2s}",
    ),
)
