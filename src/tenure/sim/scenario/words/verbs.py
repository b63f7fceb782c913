"""What may happen in a scenario, verb by verb."""

from __future__ import annotations

from typing import Final

from tenure.sim.scenario.words.word import Word

NODE: Final = Word("node", "the Node, a target; without it the oldest")
NODES: Final = Word(
    "node", "the Node, a target; without it the oldest. `pick: all` means every Node it selects"
)
_OBJECT: Final = Word(
    "node, claim, pod, pool, …",
    "the object, a target under the word for its kind; other kinds as `kind` beside the target's fields",
)
_INSTANCE: Final = Word("node, claim", "whose instance it is, a target")

VERBS: Final = (
    Word(
        "apply",
        "applies a manifest, or a list of them, as `kubectl apply` does",
        """\
apply:
  apiVersion: v1
  kind: Namespace
  metadata: {name: team-a}""",
    ),
    Word(
        "delete",
        "deletes an object, as `kubectl delete` does",
        "delete: {claim: {pool: general, pick: newest}}",
        (_OBJECT,),
    ),
    Word(
        "patch",
        "changes an object by a merge patch",
        "patch: {pool: general, merge: {spec: {weight: 5}}}",
        (_OBJECT, Word("merge", "the fields to change")),
    ),
    Word(
        "scale",
        "changes the number of replicas of a workload",
        "scale: {deployment: web, replicas: 5}",
        (
            Word("deployment", "the Deployment, a name or a target"),
            Word("statefulset", "the StatefulSet, a name or a target"),
            Word("namespace", "of the workload, where it is a name; else `default`"),
            Word("replicas", "a whole number"),
        ),
    ),
    Word(
        "cordon",
        "closes a Node for new pods, as `kubectl cordon` does",
        "cordon: {node: {app: web}}",
        (NODE,),
    ),
    Word("uncordon", "opens a Node for new pods again", "uncordon: {node: {app: web}}", (NODE,)),
    Word(
        "drain",
        "cordons a Node and evicts its pods, as `kubectl drain --ignore-daemonsets --delete-emptydir-data --force` does:"
        " what a PDB refuses is tried again every 5s, and DaemonSet pods and mirror pods stay",
        "drain: {node: {app: web}, timeout: 10m}",
        (NODE, Word("timeout", "after so long the rest is left alone; without it, never")),
    ),
    Word(
        "set-condition",
        "lets the kubelet of a Node report a condition from now on",
        'set-condition: {node: {app: web}, type: Ready, status: "False"}',
        (
            NODE,
            Word("type", "such as `Ready`"),
            Word("status", '`"True"`, `"False"` or `Unknown`'),
            Word("reason", "one word, or nothing"),
            Word("message", "a sentence, or nothing"),
        ),
    ),
    Word(
        "silence",
        "stops the kubelet of a Node: the Node is Unknown after 50s",
        "silence: {node: {app: web, pick: all}}",
        (NODES,),
    ),
    Word(
        "resume",
        "starts the kubelet of a Node that is silent",
        "resume: {node: {app: web, pick: all}}",
        (NODES,),
    ),
    Word(
        "reboot",
        "reboots a Node: its kubelet is silent, then back with another bootID",
        "reboot: {node: {app: web}, down-for: 2m}",
        (NODE, Word("down-for", "how long; else `1m`")),
    ),
    Word(
        "stick-volumes",
        "lets no volume be unmounted from a Node from now on",
        "stick-volumes: {node: {app: db}}",
        (NODE,),
    ),
    Word(
        "unstick-volumes",
        "lets volumes be unmounted from a Node again",
        "unstick-volumes: {node: {app: db}}",
        (NODE,),
    ),
    Word(
        "vanish",
        "loses an instance at once, without a request",
        "vanish: {node: {app: web}}",
        (_INSTANCE,),
    ),
    Word(
        "recommend-rebalance",
        "lets the cloud recommend to leave an instance",
        "recommend-rebalance: {claim: {pool: general}}",
        (_INSTANCE,),
    ),
    Word(
        "interrupt",
        "lets the cloud announce that it takes back an instance, and take it",
        "interrupt: {node: {app: web}, in: 2m}",
        (
            _INSTANCE,
            Word(
                "in", "how long after the notice; without it 2m, and the notice does not say when"
            ),
        ),
    ),
    Word(
        "zone-outage",
        "cuts a zone off: the kubelets there are silent, so that its Nodes are Unknown after 50s, and what"
        " is launched there does not become a node, until it ends",
        "zone-outage: {zone: zone-a, for: 5m}",
        (
            Word("zone", "of `cloud.zones`, or of a Node in `objects`"),
            Word("for", "how long; without it, until the end of the run"),
            Word(
                "launches",
                "`hang`: instances start and do not register until it ends (default); `refused`: the cloud has no capacity there",
            ),
        ),
    ),
    Word(
        "release-image",
        "lets the cloud have a newer image, of this version or (empty) the next one: nodes whose class"
        " does not pin its image drift",
        "release-image: embedded-linux-2",
    ),
    Word(
        "faults",
        "sets what goes wrong from now on; empty for nothing",
        "faults: {api-error-rate: 0.05}",
    ),
    Word(
        "crash",
        "ends Tenure, with all it remembers, and starts it again",
        "crash: {down-for: 1m}",
        (Word("down-for", "how long it is away; without it, not at all"),),
    ),
    Word("api-restart", "ends all watches, and makes old versions unavailable", "api-restart: {}"),
    Word("say", "writes a line into the history", "say: the second deployment begins"),
)
