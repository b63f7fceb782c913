"""What a Service knows of the pods that it leads to, and how EndpointSlices and Endpoints say it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from tenure.model.api.resource import PODS, SERVICES
from tenure.sim.apiserver.objects.tree import Obj, dig

#: Pods in an Endpoints object, at most: as kube-controller-manager has it.
MOST_IN_ENDPOINTS: Final = 1000
#: The label of a slice that names its Service.
OF_SERVICE: Final = "kubernetes.io/service-name"
_HEADLESS: Final = "service.kubernetes.io/headless"
_SLICES_BY: Final = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
_ENDPOINTS_BY: Final = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
_TRUNCATED: Final = {"endpoints.kubernetes.io/over-capacity": "truncated"}

#: (name, number, protocol, application protocol) of each port.
Ports = tuple[tuple[str, int, str, str], ...]


class Place(NamedTuple):
    """A pod that a Service leads to."""

    name: str
    uid: str
    address: str
    node: str
    hostname: str
    serving: bool
    terminating: bool
    ports: Ports


def selects(service: Obj) -> bool:
    spec = service["spec"]
    return bool(spec.get("selector")) and spec.get("type") != "ExternalName"


def place_of(service: Obj, pod: Obj) -> Place | None:
    """None for a pod that the Service does not find, that has no address or has ended."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    labels, address = metadata.get("labels") or {}, status.get("podIP")
    selector = service["spec"]["selector"]
    if any(labels.get(key) != value for key, value in selector.items()):
        return None
    if not address or status.get("phase") in ("Succeeded", "Failed"):
        return None
    return Place(
        name=metadata["name"],
        uid=metadata["uid"],
        address=address,
        node=pod["spec"].get("nodeName") or "",
        hostname=pod["spec"].get("hostname") or "",
        serving=any(
            one.get("type") == "Ready" and one.get("status") == "True"
            for one in status.get("conditions") or ()
        ),
        terminating="deletionTimestamp" in metadata,
        ports=ports_of(service, pod),
    )


def ports_of(service: Obj, pod: Obj | None = None) -> Ports:
    """The numbers that the pod listens on; a port whose name it does not have is left out."""
    return tuple(_ports(service["spec"].get("ports") or (), pod))


def _ports(ports: Iterable[Obj], pod: Obj | None) -> Iterator[tuple[str, int, str, str]]:
    for port in ports:
        target, protocol = port.get("targetPort", port.get("port")), port.get("protocol") or "TCP"
        number = target if isinstance(target, int) else _numbered(pod, str(target), protocol)
        if number is not None:
            yield port.get("name") or "", number, protocol, port.get("appProtocol") or ""


def _numbered(pod: Obj | None, name: str, protocol: str) -> int | None:
    for container in dig(pod, "spec", "containers") or ():
        for port in container.get("ports") or ():
            if port.get("name") == name and (port.get("protocol") or "TCP") == protocol:
                number: int = port["containerPort"]
                return number
    return None


def slice_of(
    service: Obj, ports: Ports, places: Iterable[Place], zone_of: Callable[[str], str]
) -> Obj:
    """An EndpointSlice; ``zone_of`` knows the zone of a Node, or nothing."""
    metadata = service["metadata"]
    labels = {**(metadata.get("labels") or {}), **_SLICES_BY, OF_SERVICE: metadata["name"]}
    if _is_headless(service):
        labels[_HEADLESS] = ""
    owner = {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "metadata": {
            "generateName": f"{metadata['name']}-",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner],
        },
        "addressType": "IPv4",
        "endpoints": [_endpoint(service, place, zone_of(place.node)) for place in places],
        "ports": [{"name": port[0], **_port(port)} for port in ports],
    }


def _endpoint(service: Obj, place: Place, zone: str) -> Obj:
    found: Obj = {
        "addresses": [place.address],
        "conditions": {
            "ready": _unready_too(service) or (place.serving and not place.terminating),
            "serving": place.serving,
            "terminating": place.terminating,
        },
        "targetRef": _reference(service, place),
        "hostname": place.hostname if _is_headless(service) else "",
        "nodeName": place.node,
        "zone": zone,
    }
    return {key: value for key, value in found.items() if value}


def endpoints_of(service: Obj, places: Mapping[str, Place]) -> Obj:
    """Pods with the same ports together; those that terminate are left out."""
    metadata = service["metadata"]
    own: Obj = {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "labels": {**(metadata.get("labels") or {}), **_ENDPOINTS_BY},
    }
    if len(places) > MOST_IN_ENDPOINTS:
        own["annotations"] = _TRUNCATED
    subsets = [*_subsets(service, places.values())]
    return {"metadata": own, **({"subsets": subsets} if subsets else {})}


def _subsets(service: Obj, places: Iterable[Place]) -> Iterator[Obj]:
    unready_too = _unready_too(service)
    led_to = sorted(places, key=lambda place: place.address)
    staying = (one for one in led_to if unready_too or not one.terminating)
    by_ports: dict[Ports, tuple[list[Obj], list[Obj]]] = {}
    for place in islice(staying, MOST_IN_ENDPOINTS):
        ready, unready = by_ports.setdefault(place.ports, ([], []))
        address: Obj = {"ip": place.address, "targetRef": _reference(service, place)}
        if place.node:
            address["nodeName"] = place.node
        (ready if place.serving or unready_too else unready).append(address)
    for ports, (ready, unready) in by_ports.items():
        numbered = [{**({"name": one[0]} if one[0] else {}), **_port(one)} for one in ports]
        subset = {"addresses": ready, "notReadyAddresses": unready, "ports": numbered}
        yield {key: value for key, value in subset.items() if value}


def _port(port: tuple[str, int, str, str]) -> Obj:
    _, number, protocol, application = port
    return {"port": number, "protocol": protocol} | (
        {"appProtocol": application} if application else {}
    )


def _reference(service: Obj, place: Place) -> Obj:
    return {
        "kind": PODS.kind,
        "namespace": service["metadata"]["namespace"],
        "name": place.name,
        "uid": place.uid,
    }


def _is_headless(service: Obj) -> bool:
    return bool(service["spec"].get("clusterIP") == "None")


def _unready_too(service: Obj) -> bool:
    return bool(service["spec"].get("publishNotReadyAddresses"))
