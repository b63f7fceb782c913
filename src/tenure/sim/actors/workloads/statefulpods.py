"""A stateful set's pods: their lasting names, what they carry, and the storage of each.

The pod at place 2 of the set ``db`` is ``db-2`` for ever; a successor has the same name and
another UID. Its claims are ``<template>-db-2``; they are made before the pod and outlive it.
"""

from __future__ import annotations

from typing import Final

from tenure.model.api.resource import STATEFUL_SETS
from tenure.sim.actors.workloads.podtemplate import new_pod, template_revision
from tenure.sim.apiserver.objects.tree import Obj, dig

REVISION_LABEL: Final = "controller-revision-hash"
_NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
_INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"


def stateful_pod(stateful_set: Obj, ordinal: int) -> Obj:
    """The pod to create for this place."""
    spec = stateful_set["spec"]
    pod = new_pod(spec["template"], stateful_set, STATEFUL_SETS)
    name = f"{stateful_set['metadata']['name']}-{ordinal}"
    labels = {
        **pod["metadata"]["labels"],
        _INDEX_LABEL: str(ordinal),
        REVISION_LABEL: revision_of(stateful_set),
        _NAME_LABEL: name,
    }
    pod["metadata"] = {**pod["metadata"], "name": name, "labels": labels}
    pod["spec"] = {**pod["spec"], "hostname": name}
    if service := spec.get("serviceName"):
        pod["spec"]["subdomain"] = service
    if templates := spec.get("volumeClaimTemplates"):
        pod["spec"]["volumes"] = _volumes(pod["spec"], templates, name)
    return pod


def _volumes(spec: Obj, templates: list[Obj], pod_name: str) -> list[Obj]:
    """The pod's volumes: a claim template wins over a volume of the same name."""
    claimed = {template["metadata"]["name"] for template in templates}
    others = [volume for volume in spec.get("volumes") or () if volume["name"] not in claimed]
    return [
        *(
            {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod_name}"}}
            for name in (template["metadata"]["name"] for template in templates)
        ),
        *others,
    ]


def claims_for(stateful_set: Obj, ordinal: int) -> list[Obj]:
    """The claims of the pod at this place, one for each template."""
    metadata, spec = stateful_set["metadata"], stateful_set["spec"]
    selected = dig(spec, "selector", "matchLabels") or {}
    return [
        {
            "metadata": {
                "name": f"{template['metadata']['name']}-{metadata['name']}-{ordinal}",
                "namespace": metadata["namespace"],
                "labels": {**(template["metadata"].get("labels") or {}), **selected},
                "annotations": template["metadata"].get("annotations") or {},
            },
            "spec": template["spec"],
        }
        for template in spec.get("volumeClaimTemplates") or ()
    ]


def ordinal_of(stateful_set: Obj, pod: Obj) -> int | None:
    """The pod's place; None for a name that is not of this set's making."""
    base, _, number = pod["metadata"]["name"].rpartition("-")
    mine = base == stateful_set["metadata"]["name"] and number.isdecimal()
    return int(number) if mine else None


def revision_of(stateful_set: Obj) -> str:
    return template_revision(stateful_set, f"{stateful_set['metadata']['name']}-")
