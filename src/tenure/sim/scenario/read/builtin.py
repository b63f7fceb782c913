"""The shape of the built-in kinds that users paste into scenarios.

An API server knows every field of them; here are those of the workloads that the
embedded cluster brings to life, so that ``replica: 3`` or ``cpu: lots`` is found before
anything runs. Parts that nothing here reads are let through as they are.
"""

from __future__ import annotations

from typing import Any, Final

from tenure.model.api import resource as r
from tenure.model.api.fields import QUANTITY
from tenure.model.api.resource import Resource
from tenure.schema.structure.shape import METADATA_FIELDS
from tenure.schema.structure.structural import Schema

_ANY: Final[Schema] = {}
_TEXT: Final[Schema] = {"type": "string"}
_WHOLE: Final[Schema] = {"type": "integer"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_FLAG: Final[Schema] = {"type": "boolean"}
_SHARE: Final[Schema] = {"x-kubernetes-int-or-string": True}
_LABELS: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}
_QUANTITIES: Final[Schema] = {
    "type": "object",
    "additionalProperties": {"x-kubernetes-int-or-string": True, "pattern": QUANTITY},
}


def _object(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _anything(*names: str) -> dict[str, Schema]:
    return dict.fromkeys(names, _ANY)


_EXPRESSION: Final = _object(("key", "operator"), key=_TEXT, operator=_TEXT, values=_list(_TEXT))
_SELECTOR: Final = _object(matchLabels=_LABELS, matchExpressions=_list(_EXPRESSION))

METADATA: Final[Schema] = {
    "type": "object",
    "properties": {
        **_anything(*METADATA_FIELDS),
        "name": _TEXT,
        "namespace": _TEXT,
        "labels": _LABELS,
        "annotations": _LABELS,
        "finalizers": _list(_TEXT),
    },
}

_CONTAINER: Final = _object(
    ("name", "image"),
    **_anything(
        *("command", "args", "workingDir", "envFrom", "env", "volumeMounts", "volumeDevices"),
        *("livenessProbe", "readinessProbe", "startupProbe", "terminationMessagePath"),
        *("terminationMessagePolicy", "imagePullPolicy", "securityContext", "stdin", "stdinOnce"),
        *("tty", "resizePolicy", "restartPolicyRules", "lifecycle"),
    ),
    name=_TEXT,
    image=_TEXT,
    ports=_list(
        _object(containerPort=_WHOLE, hostPort=_WHOLE, hostIP=_TEXT, protocol=_TEXT, name=_TEXT)
    ),
    resources=_object(requests=_QUANTITIES, limits=_QUANTITIES, claims=_ANY),
    restartPolicy=_TEXT,
)

_TOLERATION: Final = _object(
    key=_TEXT, operator=_TEXT, value=_TEXT, effect=_TEXT, tolerationSeconds=_WHOLE
)

_POD_SPEC: Final = _object(
    ("containers",),
    **_anything(
        *("volumes", "ephemeralContainers", "dnsPolicy", "serviceAccountName", "serviceAccount"),
        *("automountServiceAccountToken", "hostPID", "hostIPC", "hostUsers", "hostname"),
        *("shareProcessNamespace", "securityContext", "imagePullSecrets", "subdomain"),
        *("affinity", "hostAliases", "dnsConfig", "readinessGates", "runtimeClassName"),
        *("enableServiceLinks", "preemptionPolicy", "overhead", "topologySpreadConstraints"),
        *("setHostnameAsFQDN", "os", "schedulingGates", "resourceClaims", "resources"),
        *("hostnameOverride", "workloadRef"),
    ),
    containers=_list(_CONTAINER),
    initContainers=_list(_CONTAINER),
    restartPolicy=_TEXT,
    terminationGracePeriodSeconds=_COUNT,
    activeDeadlineSeconds=_COUNT,
    nodeSelector=_LABELS,
    nodeName=_TEXT,
    hostNetwork=_FLAG,
    schedulerName=_TEXT,
    tolerations=_list(_TOLERATION),
    priorityClassName=_TEXT,
    priority=_WHOLE,
)

_TEMPLATE: Final = _object(("spec",), metadata=METADATA, spec=_POD_SPEC)

#: What the embedded cluster does; it deletes no claims by itself.
_RETAIN: Final[Schema] = {"type": "string", "enum": ["Retain"]}
_TYPE: Final[dict[str, Schema]] = {"apiVersion": _TEXT, "kind": _TEXT}
_CLAIM: Final = _object(
    **_anything("dataSource", "dataSourceRef", "selector", "volumeAttributesClassName"),
    accessModes=_list(_TEXT),
    resources=_object(requests=_QUANTITIES, limits=_QUANTITIES),
    storageClassName=_TEXT,
    volumeMode=_TEXT,
    volumeName=_TEXT,
)

_SPECS: Final[dict[Resource, Schema]] = {
    r.PODS: _POD_SPEC,
    r.DEPLOYMENTS: _object(
        ("selector", "template"),
        replicas=_COUNT,
        selector=_SELECTOR,
        template=_TEMPLATE,
        strategy=_object(
            type={"type": "string", "enum": ["RollingUpdate", "Recreate"]},
            rollingUpdate=_object(maxSurge=_SHARE, maxUnavailable=_SHARE),
        ),
        minReadySeconds=_COUNT,
        revisionHistoryLimit=_COUNT,
        paused=_FLAG,
        progressDeadlineSeconds=_COUNT,
    ),
    r.REPLICA_SETS: _object(
        ("selector", "template"),
        replicas=_COUNT,
        selector=_SELECTOR,
        template=_TEMPLATE,
        minReadySeconds=_COUNT,
    ),
    r.DAEMON_SETS: _object(
        ("selector", "template"),
        selector=_SELECTOR,
        template=_TEMPLATE,
        updateStrategy=_ANY,
        minReadySeconds=_COUNT,
        revisionHistoryLimit=_COUNT,
    ),
    r.STATEFUL_SETS: _object(
        ("selector", "template"),
        replicas=_COUNT,
        selector=_SELECTOR,
        template=_TEMPLATE,
        serviceName=_TEXT,
        podManagementPolicy={"type": "string", "enum": ["OrderedReady", "Parallel"]},
        updateStrategy=_object(
            type={"type": "string", "enum": ["RollingUpdate", "OnDelete"]},
            rollingUpdate=_object(partition=_COUNT),
        ),
        minReadySeconds=_COUNT,
        revisionHistoryLimit=_COUNT,
        ordinals=_object(start=_COUNT),
        persistentVolumeClaimRetentionPolicy=_object(whenDeleted=_RETAIN, whenScaled=_RETAIN),
        volumeClaimTemplates=_list(
            _object(("metadata", "spec"), **_TYPE, metadata=METADATA, spec=_CLAIM, status=_ANY)
        ),
    ),
    r.JOBS: _object(
        ("template",),
        **_anything("selector", "manualSelector"),
        template=_TEMPLATE,
        completions=_COUNT,
        parallelism=_COUNT,
        backoffLimit=_COUNT,
        activeDeadlineSeconds=_COUNT,
        ttlSecondsAfterFinished=_COUNT,
        suspend=_FLAG,
        completionMode={"type": "string", "enum": ["NonIndexed"]},
        podReplacementPolicy={"type": "string", "enum": ["TerminatingOrFailed", "Failed"]},
    ),
    r.PERSISTENT_VOLUME_CLAIMS: _CLAIM,
    r.POD_DISRUPTION_BUDGETS: _object(
        minAvailable=_SHARE,
        maxUnavailable=_SHARE,
        selector=_SELECTOR,
        unhealthyPodEvictionPolicy={"type": "string", "enum": ["IfHealthyBudget", "AlwaysAllow"]},
    ),
    r.NODES: _object(
        **_anything("podCIDR", "podCIDRs", "configSource", "externalID"),
        providerID=_TEXT,
        unschedulable=_FLAG,
        taints=_list(
            _object(("key", "effect"), key=_TEXT, value=_TEXT, effect=_TEXT, timeAdded=_TEXT)
        ),
    ),
}

_TOP: Final[dict[str, Schema]] = {**_TYPE, "metadata": METADATA}


def schema_of(resource: Resource) -> Schema:
    """What a manifest of that kind looks like; of some kinds only the metadata is known."""
    if resource == r.PRIORITY_CLASSES:
        more: dict[str, Any] = _anything("globalDefault", "description", "preemptionPolicy")
        return _object(("metadata", "value"), **_TOP, **more, value=_WHOLE)
    spec = _SPECS.get(resource)
    if spec is None:
        return {**_object(("metadata",), **_TOP), "additionalProperties": _ANY}
    required = ("metadata",) if resource == r.NODES else ("metadata", "spec")
    return _object(required, **_TOP, spec=spec, status=_ANY)
