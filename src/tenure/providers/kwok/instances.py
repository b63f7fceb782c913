"""An instance of the KWOK provider is a Node: how one is written, and how it is read back.

There is nothing behind the Node object, so whatever the cloud knows of an instance stands
on it: tags, time of launch and image as annotations, the offering as labels, its size as
status. The name follows from the claim's UID, so that the same launch meets itself.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.fields import LABEL_VALUE_LENGTH
from tenure.model.api.meta import ApiObject, Wire
from tenure.model.api.names import (
    CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    UNREGISTERED_TAINT,
    ZONE,
)
from tenure.model.api.node import NodeSpec, NodeSystemInfo, Taint
from tenure.model.cloud.instance import Instance, LaunchRequest
from tenure.model.cloud.market import Offer
from tenure.model.cloud.offering import MICRO_DOLLARS
from tenure.model.values.quantity import format_resources, parse_quantity
from tenure.parse.jsontext import DECODE_ERRORS
from tenure.providers.kwok import labels as kwok

#: Together with prefix and suffix it still does as a label.
_NAME_LENGTH: Final = 44
_SUFFIX_LENGTH: Final = 12

_OBJECT_NAME: Final = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")


class _Status(Wire, frozen=True):
    capacity: Mapping[str, str] = {}
    allocatable: Mapping[str, str] = {}
    node_info: NodeSystemInfo = NodeSystemInfo()


class KwokInstance(ApiObject, frozen=True, kw_only=True):
    """As much of a Node as its instance is made of."""

    spec: NodeSpec = NodeSpec()
    status: _Status = _Status()

    def is_of(self, cluster: str) -> bool:
        """Whether it carries our tags; nothing else is ever touched, copies of it included."""
        tags = self.annotations
        tagged = bool(tags.get(kwok.CLAIM_UID)) and tags.get(kwok.CLUSTER) == cluster
        return tagged and self.spec.provider_id == provider_id(self.name)

    @property
    def terminated(self) -> bool:
        return kwok.TERMINATED_AT in self.annotations

    def as_instance(self, decided: Collection[str]) -> Instance:
        """``decided``: the labels that are the cloud's to say; the rest came with the request."""
        tags, labels = self.annotations, self.labels
        return Instance(
            provider_id=self.spec.provider_id,
            cluster=tags.get(kwok.CLUSTER, ""),
            claim_uid=tags.get(kwok.CLAIM_UID, ""),
            claim_name=tags.get(kwok.CLAIM, ""),
            instance_type=labels.get(INSTANCE_TYPE, ""),
            zone=labels.get(ZONE, ""),
            capacity_type=labels.get(CAPACITY_TYPE, ""),
            image_id=tags.get(kwok.IMAGE, ""),
            price=_micro_dollars(labels.get(kwok.PRICE, "")),
            launched_at=read_time(tags.get(kwok.LAUNCHED_AT, "")) or self.created_at,
            labels={key: value for key, value in labels.items() if key in decided},
            capacity=self.status.capacity,
            allocatable=self.status.allocatable,
        )


_INSTANCE: Final = msgspec.json.Decoder(KwokInstance)


def read_instance(data: bytes | msgspec.Raw) -> KwokInstance | None:
    """The instance; None for a Node in a shape that we never write."""
    try:
        return _INSTANCE.decode(data)
    except DECODE_ERRORS:
        return None


def node_name(request: LaunchRequest) -> str:
    suffix = hashlib.sha256(request.claim_uid.encode()).hexdigest()[:_SUFFIX_LENGTH]
    return f"kwok-{request.claim_name[:_NAME_LENGTH].rstrip('-.')}-{suffix}"


def manifest(request: LaunchRequest, offer: Offer, *, image: str, now: datetime) -> dict[str, Any]:
    """The Node that the instance registers as."""
    name = node_name(request)
    kind = offer.instance_type
    tags = {
        kwok.CLUSTER: request.cluster,
        kwok.CLAIM: request.claim_name,
        kwok.CLAIM_UID: request.claim_uid,
        kwok.LAUNCHED_AT: now.astimezone(UTC).isoformat(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": dict(sorted(_labels(request, offer, name).items())),
            "annotations": {
                **tags,
                **({kwok.IMAGE: image} if image else {}),
                kwok.KWOK_NODE: kwok.KWOK_NODE_VALUE,
            },
        },
        "spec": {"providerID": provider_id(name), "taints": _taints(request)},
        "status": {
            "phase": "Pending",
            "capacity": format_resources(kind.capacity),
            "allocatable": format_resources(kind.allocatable),
        },
    }


def _labels(request: LaunchRequest, offer: Offer, name: str) -> dict[str, str]:
    """The request's own labels first: what the instance decides is not theirs to say."""
    price = offer.offering.price
    hostname = request.claim_name
    return {
        **request.requirements.labels(),
        **request.labels,
        **_chosen(request, offer),
        **offer.labels,
        HOSTNAME: hostname if len(hostname) <= LABEL_VALUE_LENGTH else name,
        kwok.PRICE: f"{price // MICRO_DOLLARS}.{price % MICRO_DOLLARS:06d}",
        kwok.PARTITION: kwok.PARTITION_VALUE,
        kwok.KWOK_NODE: kwok.KWOK_NODE_VALUE,
    }


def _chosen(request: LaunchRequest, offer: Offer) -> dict[str, str]:
    """A type that runs several systems runs one of them here: one that was asked for."""
    offered = offer.instance_type.requirements
    both = (offered[key].intersection(request.requirements.allowed(key)) for key in offered)
    return {each.key: value for each in both if (value := each.any()) is not None}


def _taints(request: LaunchRequest) -> list[dict[str, str]]:
    """Unregistered until it is ours; the API refuses a key and effect that come twice."""
    unregistered = Taint(key=UNREGISTERED_TAINT, effect="NoExecute")
    once: dict[tuple[str, str], Taint] = {}
    for taint in (unregistered, *request.taints):
        once.setdefault((taint.key, taint.effect), taint)
    return [msgspec.to_builtins(taint) for taint in once.values()]


def provider_id(name: str) -> str:
    return f"{kwok.PROVIDER_ID_PREFIX}{name}"


def name_of(provider_id_: str) -> str:
    """The Node's name; empty when the id is none of ours."""
    prefix, _, name = provider_id_.partition("//")
    is_ours = f"{prefix}//" == kwok.PROVIDER_ID_PREFIX and is_object_name(name)
    return name if is_ours else ""


def is_object_name(name: str) -> bool:
    """Whether it can stand in a path: what is none never reaches the API server."""
    return _OBJECT_NAME.fullmatch(name) is not None


def read_time(text: str) -> datetime | None:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return instant if instant.tzinfo is not None else None


def _micro_dollars(price: str) -> int:
    try:
        return parse_quantity(price) * MICRO_DOLLARS // 10**9
    except SpecError:
        return 0
