"""Objects with odd, extreme and hostile values in the fields that Tenure reads.

Each begins as an ordinary object of its kind; then a few of its fields get values that no user
means. Whether an API server accepts them is for the server to say: only accepted objects count.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final

from tenure.model.api import names
from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tests.builders import a_node_class, a_pool, pod_spec

Manifest = dict[str, Any]

INSTANTS: Final = (
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "1969-12-31T23:59:59Z",
    "2262-04-12T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-23:59",
    "2024-02-29T12:00:00+05:30",
)
NUMBERS: Final = (0, 1, -1, 2**31 - 1, -(2**31), 2**31, 10**9, 10**14, 2**63 - 1, -(2**63))
AMOUNTS: Final = (
    "0",
    "-1",
    "1e200",
    "1e-9",
    "1e18",
    "10E",
    "8Ei",
    "0.1n",
    "9223372036854775807",
    "9" * 40,
    "1e2000",  # A larger exponent keeps the API server itself busy for longer than any client waits.
    "-9e99",
    1.5,
    0,
)
TEXTS: Final = (
    "",
    " ",
    "Never",
    "true",
    "null",
    "\u202eeman\u4e2d\u6587\U0001f642",
    "a" * 253,
    "a" * 20_000,
    "%s{}[](.*)+?\\",
    "line\nline\x7f",
    "9" * 5000,
)
LABELS: Final = ("", "0", "007", "9" * 19, "9" * 63, "a" * 63, "A.b_c-d", "true")
SPANS: Final = (
    "0s",
    "1ns",
    "0.000000001s",
    "2562047h47m16s",
    "9999999h",
    "1h1h1h1h",
    "-5m",
    "Never",
    "1d",
    "1.5h",
)
SHARES: Final = ("0%", "1%", "100%", "99999999999999999%", "9" * 400 + "%", 0, -1, 2**31 - 1)
CRONS: Final = (
    "* * * * *",
    "0 0 29 2 *",
    "0 0 31 2 *",
    "@daily",
    "@yearly",
    "*/59 */23 */31 */12 */6",
    "60 24 32 13 8",
    "0 0 * * 7",
)
STAMPS: Final = (*INSTANTS, "tomorrow", "", "10000-01-01T00:00:00Z", "2026-03-02T12:00:00")
ANNOTATIONS: Final = (
    names.DO_NOT_DISRUPT,
    names.DO_NOT_REPAIR,
    f"{names.DO_NOT_DISRUPT}-since",
    names.TERMINATION_TIMESTAMP,
    names.REPLACES,
    names.REPLACED_BY,
    names.REBOOT_HISTORY,
    names.REBOOT_GRACE_PERIOD,
    names.REPLACEMENT_FAILED,
    names.REPAIR_PROBE,
    names.NODEPOOL_HASH,
    names.NOMINATED_PODS,
    names.LAUNCHED_FOR,
    names.LAUNCH_BREAKER,
)
#: What claims and pools say of launches: nothing like it, of other types, too long, too far away.
_LEDGERS: Final = (
    "{}",
    "[]",
    "null",
    '{"": {}}',
    '{"Deployment/default/odd": {"launches": [{"claim": "", "at": "9999-12-31T23:59:59Z"}]}}',
    '{"Deployment/default/odd": {"opened": "0001-01-01T00:00:00Z"}}',
    '{"Deployment/default/odd": {"launches": 7, "closed": "2026-03-02T12:00:00"}}',
    "[" * 20_000,
)
_LAUNCHED_FOR: Final = (
    "[]",
    "{}",
    '[{"owner": ""}]',
    '[{"owner": "Deployment/default/odd", "pods": -1, "names": ["", "/"]}]',
    f'[{{"owner": "{"o" * 4000}", "pods": {10**30}}}]',
    "[" * 20_000,
)
LAUNCHES: Final = {
    names.NOMINATED_PODS: ("", ",", ",,,", "a," * 20_000, "odd-uid", "null"),
    names.LAUNCHED_FOR: _LAUNCHED_FOR,
    names.LAUNCH_BREAKER: _LEDGERS,
}
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
RESOURCES: Final = (
    "cpu",
    "memory",
    "pods",
    "ephemeral-storage",
    "example.com/gpu",
    "hugepages-2Mi",
)
ZONES: Final = ("UTC", "Europe/Berlin", "Pacific/Apia", "Mars/Base", "")
CONDITIONS: Final = (
    "Ready",
    "DiskPressure",
    "PodScheduled",
    "Launched",
    "Registered",
    "Initialized",
    "ReadyOnce",
    "Rebooting",
    "Drained",
    "NodeLost",
    "DisruptionReason",
    "KWOKUnhealthy",
    "example.com/x",
)

#: Fields of the spec, and what they may get; ``[]`` is the first element of a list.
Fields = Sequence[tuple[str, Sequence[Any]]]

_POD: Final[Fields] = (
    ("terminationGracePeriodSeconds", NUMBERS),
    ("priority", NUMBERS),
    ("priorityClassName", ("system-node-critical", "")),
    ("schedulerName", TEXTS),
    ("containers[].resources.requests.memory", AMOUNTS),
    ("containers[].resources.limits.memory", AMOUNTS),
    ("containers[].resources.limits.cpu", AMOUNTS),
    ("containers[].resources.requests.example~com/gpu", AMOUNTS),
    ("resources", ({"limits": {"memory": "1e200", "cpu": "1"}, "requests": {"memory": "8Mi"}},)),
    ("overhead", ({"cpu": "1e30"}, {"memory": "-1"})),
    ("containers[].ports", ([{"containerPort": 65535, "hostPort": 65535}], [{"containerPort": 1}])),
    ("nodeSelector", ({"a": ""}, {names.ZONE: "nowhere"}, {})),
    ("tolerations", ([{"operator": "Exists", "tolerationSeconds": 2**63 - 1, "effect": "NoExecute"}],
                     [{"key": "a", "operator": "Equal", "value": "", "tolerationSeconds": -(2**63),
                       "effect": "NoExecute"}])),
    ("topologySpreadConstraints", (
        [{"maxSkew": 2**31 - 1, "topologyKey": names.ZONE, "whenUnsatisfiable": "DoNotSchedule",
          "labelSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}],
        [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "minDomains": 2**31 - 1,
          "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}],
        [{"maxSkew": 1, "topologyKey": names.ZONE, "whenUnsatisfiable": "DoNotSchedule"}],
    )),
    ("affinity", (
        {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["9" * 18]}]}]}}},
        {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "n", "operator": "Lt", "values": ["-1"]}]}]}}},
        {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]}]}}},
        {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "unheard/of", "labelSelector": {}}]}},
        {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "namespaceSelector": {},
             "labelSelector": {"matchLabels": {"app": "no-such-app"}}}]}},
    )),
    ("volumes", ([{"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}],
                 [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {
                     "accessModes": ["ReadWriteOnce"],
                     "resources": {"requests": {"storage": "1Gi"}}}}}}])),
    ("hostNetwork", (True,)),
    ("schedulingGates", ([{"name": "example.com/g"}],)),
)  # fmt: skip

_TEMPLATE: Final = "template.spec."
_CLAIM: Final[Fields] = (
    ("terminationGracePeriod", SPANS),
    ("expireAfter", SPANS),
    ("readinessTTL", SPANS),
    ("initializationTTL", SPANS),
    ("requirements[].operator", OPERATORS),
    ("requirements[].values", ([], ["9" * 19], ["-1"], [""], ["a" * 63] * 3)),
    ("requirements[].minValues", NUMBERS),
    ("requirements[].key", (names.ZONE, "example.com/n", "a" * 63)),
    ("taints", ([{"key": "a", "effect": "NoExecute", "timeAdded": INSTANTS[4]}],
                [{"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"}])),
    ("startupTaints", ([{"key": "b", "value": "a" * 63, "effect": "NoSchedule"}],)),
    ("nodeClassRef.name", ("gone", "a" * 63)),
)  # fmt: skip

#: By kind: fields of the spec.
SPECS: Final[dict[Resource, Fields]] = {
    r.PODS: _POD,
    r.NODES: (
        ("providerID", ("", "x" * 5000, "cloud://\U0001f642")),
        ("unschedulable", (True,)),
        ("taints", ([{"key": "a", "effect": "NoExecute", "timeAdded": INSTANTS[5]}],
                    [{"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"}])),
    ),
    r.DAEMON_SETS: tuple((f"template.spec.{path}", values) for path, values in _POD),
    r.POD_DISRUPTION_BUDGETS: (
        ("maxUnavailable", SHARES),
        ("minAvailable", SHARES),
        ("selector", ({}, {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                      {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": [""]}]})),
        ("unhealthyPodEvictionPolicy", ("AlwaysAllow", "IfHealthyBudget")),
    ),
    r.NODE_POOLS: (
        *((_TEMPLATE + path, values) for path, values in _CLAIM),
        ("weight", NUMBERS),
        ("replicas", NUMBERS),
        ("limits.cpu", AMOUNTS),
        ("limits.nodes", AMOUNTS),
        ("disruption.budgets[].nodes", SHARES),
        ("disruption.budgets[].schedule", CRONS),
        ("disruption.budgets[].duration", SPANS),
        ("disruption.budgets[].timeZone", ZONES),
        ("disruption.budgets[].within", SPANS),
        ("disruption.consolidateAfter", SPANS),
        ("disruption.maxPodProtection", SPANS),
        ("repair.defaultTolerationDuration", SPANS),
        ("repair.maxUnhealthy", SHARES),
        ("repair.policies[].toleration", SPANS),
        ("repair.policies[].conditionType", CONDITIONS),
        ("repair.policies[].reason", ("^ReadOnly", "(", "(a+)+$", ".*", "[[:alpha:]]")),
        ("repair.policies[].terminationGracePeriod", SPANS),
    ),
    r.NODE_CLAIMS: (*_CLAIM, ("resources.requests.memory", AMOUNTS),
                    ("resources.requests.cpu", AMOUNTS)),
    r.MAINTENANCE_WINDOWS: (
        ("schedules[].cron", CRONS),
        ("schedules[].duration", SPANS),
        ("schedules[].timeZone", ZONES),
        ("dates", ([{"from": INSTANTS[0], "until": INSTANTS[4]}],
                   [{"from": INSTANTS[5], "until": INSTANTS[1]}])),
        ("type", ("Allow", "Block")),
        ("selector", ({"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["9" * 18]}]},)),
    ),
    r.PERSISTENT_VOLUMES: (
        ("claimRef", ({"name": "gone", "namespace": "default"},)),
        ("nodeAffinity", ({"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["9" * 18]}]}]}},)),
        ("capacity.storage", AMOUNTS),
    ),
    r.VOLUME_ATTACHMENTS: (
        ("nodeName", ("a" * 63, "gone")),
        ("source.persistentVolumeName", ("gone", "pv")),
    ),
    KWOK_NODE_CLASSES: (("nodeRegistrationDelay", SPANS), ("image", TEXTS)),
}  # fmt: skip

#: By kind: fields of the status, conditions aside.
STATUSES: Final[dict[Resource, Fields]] = {
    r.PODS: (("phase", ("Running", "Succeeded", "Failed", "Unknown", "Pending")),
             ("startTime", INSTANTS), ("nominatedNodeName", ("gone", ""))),
    r.NODES: (("allocatable.memory", AMOUNTS), ("allocatable.cpu", AMOUNTS),
              ("capacity.cpu", AMOUNTS), ("nodeInfo.bootID", TEXTS)),
    r.POD_DISRUPTION_BUDGETS: (("disruptionsAllowed", NUMBERS), ("currentHealthy", NUMBERS),
                               ("desiredHealthy", NUMBERS), ("expectedPods", NUMBERS),
                               ("disruptedPods", ({"gone": INSTANTS[4]}, {"a": INSTANTS[5]}))),
    r.NODE_CLAIMS: (("providerID", TEXTS), ("nodeName", TEXTS), ("imageID", TEXTS),
                    ("allocatable.cpu", AMOUNTS), ("capacity.memory", AMOUNTS),
                    ("lastPodEventTime", INSTANTS)),
    r.NODE_POOLS: (("nodes", NUMBERS), ("resources.cpu", AMOUNTS)),
    r.MAINTENANCE_WINDOWS: (("nodesMatched", NUMBERS),),
    KWOK_NODE_CLASSES: (),
}  # fmt: skip
_NODEINFO: Final = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage",
                    "containerRuntimeVersion", "kubeletVersion", "kubeProxyVersion",
                    "operatingSystem", "architecture")  # fmt: skip


class Odd:
    """One odd object: its manifest, and the status to write after it; empty: none."""

    def __init__(self, resource: Resource, manifest: Manifest, status: Manifest) -> None:
        self.resource, self.manifest, self.status = resource, manifest, status


def odd_objects(random: Random, unique: str = "odd") -> Iterator[Odd]:
    """Without end."""
    kinds = list(SPECS)
    number = 0
    while True:
        number += 1
        resource = random.choice([r.PODS, r.PODS, r.NODES, *kinds])
        yield _odd(random, resource, f"{unique}-{number}")


def _odd(random: Random, resource: Resource, name: str) -> Odd:
    manifest = _base(resource, name, random)
    for path, values in _some(random, SPECS[resource]):
        _put(manifest["spec"], path, copy.deepcopy(random.choice(values)))
    _about(random, manifest["metadata"])
    status: Manifest = {}
    if resource in STATUSES and random.random() < 0.7:
        for path, values in _some(random, STATUSES[resource]):
            _put(status, path, copy.deepcopy(random.choice(values)))
        _tell(random, resource, status)
    return Odd(resource, manifest, status)


def _some(random: Random, fields: Fields) -> Fields:
    return random.sample(list(fields), min(len(fields), random.choice((0, 1, 1, 2, 3))))


def _about(random: Random, metadata: Manifest) -> None:
    for name in random.sample(ANNOTATIONS, random.choice((0, 0, 1, 2))):
        stamped = "timestamp" in name or "since" in name
        values: tuple[str, ...] = STAMPS if stamped else LAUNCHES.get(name, (*SPANS, *TEXTS))
        metadata.setdefault("annotations", {})[name] = random.choice(values)
    if random.random() < 0.3:
        metadata.setdefault("labels", {})[random.choice(LABEL_KEYS)] = random.choice(LABELS)
    if random.random() < 0.2:
        metadata["finalizers"] = [random.choice((names.FINALIZER, "example.com/f"))]


LABEL_KEYS: Final = (names.NODEPOOL, names.ZONE, names.INSTANCE_TYPE, names.INITIALIZED, "app")


def _tell(random: Random, resource: Resource, status: Manifest) -> None:
    """Conditions with instants that no user means; what they must have, they have."""
    types = random.sample(CONDITIONS, random.choice((0, 1, 2, 3)))
    status["conditions"] = [
        {
            "type": type_,
            "status": random.choice(("True", "False", "Unknown")),
            "reason": random.choice(("Unschedulable", "KubeletReady", "R" * 200)),
            "message": random.choice(TEXTS[:5]),
            "lastTransitionTime": random.choice(INSTANTS),
        }
        for type_ in types
    ]
    if resource == r.NODES and "nodeInfo" in status:
        status["nodeInfo"] = {**dict.fromkeys(_NODEINFO, "x"), **status["nodeInfo"]}
    if resource == r.POD_DISRUPTION_BUDGETS:
        numbers = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
        for name in numbers:
            status.setdefault(name, 0)


def _base(resource: Resource, name: str, random: Random) -> Manifest:
    metadata: Manifest = {"name": name}
    if resource.namespaced:
        metadata["namespace"] = "default"
    spec: Manifest = {}
    if resource == r.PODS:
        spec = pod_spec()
        if random.random() < 0.6:
            spec["nodeName"] = f"odd-{random.randrange(200)}"
        if random.random() < 0.5:
            owner = {"apiVersion": "apps/v1", "kind": random.choice(("ReplicaSet", "DaemonSet")),
                     "name": "o", "uid": "11111111-1111-1111-1111-111111111111",
                     "controller": True}  # fmt: skip
            metadata["ownerReferences"] = [owner]
    elif resource == r.NODES:
        spec = {"providerID": f"kwok://{name}"}
        metadata["labels"] = {names.NODEPOOL: "oddpool", "karpenter.kwok.sh/kwoknodeclass": "odd"}
    elif resource == r.DAEMON_SETS:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": pod_spec()}
        spec = {"selector": {"matchLabels": labels}, "template": template}
    elif resource == r.POD_DISRUPTION_BUDGETS:
        spec = {"selector": {"matchLabels": {"app": "odd"}}}
    elif resource == r.NODE_POOLS:
        spec = a_pool(name)["spec"]
        spec["disruption"] = {"budgets": [{"nodes": "10%"}]}
    elif resource == r.NODE_CLAIMS:
        spec = a_pool(name)["spec"]["template"]["spec"]
        metadata["labels"] = {names.NODEPOOL: "oddpool"}
    elif resource == r.MAINTENANCE_WINDOWS:
        spec = {"actions": ["Drift"], "schedules": [{"cron": "0 6 * * *", "duration": "8h"}]}
    elif resource == r.PERSISTENT_VOLUMES:
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                "csi": {"driver": "example.com", "volumeHandle": name}}  # fmt: skip
    elif resource == r.VOLUME_ATTACHMENTS:
        spec = {"attacher": "example.com", "nodeName": "odd-1",
                "source": {"persistentVolumeName": "pv"}}  # fmt: skip
    elif resource == KWOK_NODE_CLASSES:
        spec = a_node_class(name)["spec"]
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": copy.deepcopy(spec),
    }


def _put(tree: Manifest, path: str, value: Any) -> None:
    """``a.b[].c``; a dot in a name is written ``~``."""
    steps = [step.replace("~", ".") for step in re.findall(r"[^.\[]+|\[\]", path)]
    here: Any = tree
    for step, following in zip(steps, [*steps[1:], ""], strict=True):
        last = following == ""
        if step == "[]":
            if not here:
                here.append({})
            here = here[0]
        elif last:
            here[step] = value
        else:
            here = here.setdefault(step, [] if following == "[]" else {})
