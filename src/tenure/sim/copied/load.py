"""Puts a copy into a world: the same objects with the same identities, and what plays the rest of its cluster.

In this order: namespaces and node classes that are only named · every object, owners before what they own · a
kubelet for every Node that was heard of · an instance for every claim that has one · the bill of the other Nodes. A
Node whose kubelet was silent stays silent. What cannot be stored is named, and the rest goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.errors import ApiError, SpecError, TenureError, shown
from tenure.model.api import resource as r
from tenure.model.api.names import DO_NOT_DISRUPT, NODEPOOL, NODEPOOL_HASH, NODEPOOL_HASH_VERSION
from tenure.model.api.resource import Resource
from tenure.model.cloud.instance import Instance
from tenure.model.values.quantity import parse_quantity, parse_resources
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.sim.actors.nodestatus import READY, BootedInstance, status_of
from tenure.sim.actors.workloads.ownedpods import controller_of
from tenure.sim.apiserver.objects.customkinds import schema_for
from tenure.sim.apiserver.objects.kinds import BY_KIND, KINDS
from tenure.sim.apiserver.objects.storedkinds import REPLICATION_CONTROLLERS
from tenure.sim.apiserver.objects.strictness import Strictness
from tenure.sim.apiserver.objects.tree import Obj, dig, drop, put
from tenure.sim.copied.cloudlabels import bought
from tenure.sim.copied.copy import NODE_CLASSES, ClusterCopy
from tenure.sim.copied.leftout import (
    How,
    LeftOut,
    Problem,
    counted,
    name_of,
    node_of,
    problem_of,
    told,
)
from tenure.sim.copied.picking import is_known
from tenure.sim.copied.redaction import TAKEN
from tenure.sim.copied.revisions import Revisions
from tenure.sim.copied.types import price_at, types_of, unpriced
from tenure.sim.copied.unclaimed import UnclaimedNodes
from tenure.sim.world import World, WorldOptions

_TEMPLATED: Final = (r.DEPLOYMENTS, r.REPLICA_SETS, r.STATEFUL_SETS, r.DAEMON_SETS, r.JOBS)
#: Whose actors say which generation they have seen.
_COUNTED: Final = (*_TEMPLATED, r.POD_DISRUPTION_BUDGETS)
_WITHOUT_SPEC: Final = frozenset(
    {r.PRIORITY_CLASSES, r.STORAGE_CLASSES, r.NAMESPACES, *NODE_CLASSES}
)
#: What every pod has of its own.
_OWN_OF_POD: Final = frozenset({"nodeName", "hostname", "priority"})
_NAMED_MAX: Final = 5
_AMOUNTS_OF_CLAIM: Final = (
    ("spec", "resources", "requests"),
    ("status", "capacity"),
    ("status", "allocatable"),
)
#: Of the kinds that own pods, what makes them again here; and whose pods end with their Node.
_PLAYED: Final = frozenset(
    (one.api_version, one.kind)
    for one in (r.REPLICA_SETS, r.STATEFUL_SETS, r.DAEMON_SETS, r.JOBS, r.NODES)
)
_CONTROLLER: Final = (REPLICATION_CONTROLLERS.api_version, REPLICATION_CONTROLLERS.kind)
#: Custom kinds of which there are few. Claims are made by programs, and there are thousands.
_CHECKED: Final = frozenset({r.NODE_POOLS, r.MAINTENANCE_WINDOWS, r.NODE_POOL_POLICIES})


def options_for(copy: ClusterCopy, options: WorldOptions | None = None) -> WorldOptions:
    """The world begins when the copy was taken, and its cloud sells what the cluster's cloud does."""
    options = options or WorldOptions()
    infrastructure = msgspec.structs.replace(
        options.infrastructure,
        types=types_of(copy, seed=options.seed),
        stands_in_for=[kind for kind in _classes_used(copy) if kind != KWOK_NODE_CLASSES],
    )
    return msgspec.structs.replace(options, epoch=copy.at, infrastructure=infrastructure)


def load(copy: ClusterCopy, world: World) -> tuple[str, ...]:
    """Gives what the copy lacks and what is not as it was there, a sentence each."""
    return _Loading(copy, world).load()


class _Loading:
    def __init__(self, copy: ClusterCopy, world: World) -> None:
        self._copy, self._world, self._store = copy, world, world.store
        self._revisions = Revisions(copy)
        #: Of what is stored: owners come before what they own.
        self._uids: set[str] = set()
        #: Of what cannot be: an object is not collected for an owner that is only missing here.
        self._left_out: list[LeftOut] = [*copy.left_out]
        self._types = {kind.name: kind for kind in world.cloud.types}
        self._pools = {name_of(one): one for one in copy.of(r.NODE_POOLS)}
        #: Of pods: parts of specs that were found good. Equal parts are one object (``sharing.py``).
        self._admitted_parts: set[tuple[int, ...]] = set()
        self._notes: list[str] = [*copy.notes]

    def load(self) -> tuple[str, ...]:
        self._name_namespaces()
        self._name_controllers()
        for resource in (*NODE_CLASSES, *TAKEN):
            self._put_all(resource)
        self._name_classes()
        self._protect({one.node for one in self._left_out})
        for node in self._copy.of(r.NODES):
            name = node["metadata"]["name"]
            there = self._store.find(r.NODES, "", name) is not None
            if there and status_of(node, READY) in ("True", "False"):
                self._world.kubelets.adopt(name)
        for claim in self._copy.of(r.NODE_CLAIMS):
            self._adopt(claim)
        UnclaimedNodes(self._world, dict(self._unclaimed()))
        # Actors are told of it before anything listens to what happens from here on.
        self._world.loop.run_until_complete(asyncio.sleep(0))
        self._notes += self._prices()
        self._notes += self._owners()
        self._notes += self._lost()
        self._notes += told(self._left_out)
        return tuple(dict.fromkeys(self._notes))

    def _put_all(self, resource: Resource) -> None:
        for obj in self._copy.of(resource):
            try:
                self._put(resource, obj)
            except (TenureError, AttributeError, LookupError, TypeError, ValueError) as error:
                problem = problem_of(resource, obj, error)
                node = node_of(resource, obj)
                self._left_out.append(LeftOut(resource.kind, name_of(obj), problem, node=node))
            else:
                self._uids.add(obj["metadata"].get("uid", ""))

    def _put(self, resource: Resource, obj: Obj) -> None:
        metadata = obj["metadata"]
        if not metadata.get("uid") or not metadata.get("creationTimestamp"):
            self._world.apply(obj)  # Written by hand: no cluster has had it yet.
            return
        if resource == r.NODES:
            obj = self._with_readable_amounts(obj)
        elif resource == r.NODE_CLAIMS:
            self._check_amounts(obj)
            obj = self._with_annotations_of_its_pool(obj)
        admitted = self._admitted(resource, obj)
        counted = resource in _COUNTED or KINDS[resource].custom
        if counted and not isinstance(metadata.get("generation"), int):
            # Tools that clean dumps leave it out.
            obj = {**obj, "metadata": {**metadata, "generation": 1}}
        if resource in _TEMPLATED:
            # What admission fills in again later would count as a change of the template.
            obj = self._revisions.known({**obj, "spec": admitted["spec"]})
        self._store.restore(resource, self._owned(obj))

    def _admitted(self, resource: Resource, obj: Obj) -> Obj:
        """As a new one would be. What the API server would refuse, its actors cannot read: raises.

        Custom kinds are taken as they are: Tenure reads the same on the real cluster.
        """
        kind = KINDS[resource]
        if resource not in _WITHOUT_SPEC and not isinstance(obj.get("spec"), dict):
            raise SpecError("spec", obj.get("spec"), "fields and values")
        if kind.custom:
            self._check(resource, obj)
            return obj
        parts = (
            tuple(id(value) for key, value in obj["spec"].items() if key not in _OWN_OF_POD)
            if resource == r.PODS
            else ()
        )
        if parts and parts in self._admitted_parts:
            return obj  # Another pod of these very parts was good.
        read = self._store.gate.read(kind, obj, None, Strictness(warn=False))
        admitted = self._store.gate.create(kind, read)
        self._admitted_parts.add(parts)
        return admitted

    def _with_annotations_of_its_pool(self, claim: Obj) -> Obj:
        """Of a claim that was made of the template as it is: the copy has no other annotations of users, and a
        drift would be told of all of them.
        """
        pool = self._pools.get(str(dig(claim, "metadata", "labels", NODEPOOL)))
        marks, marks_of_pool = (dig(one, "metadata", "annotations") or {} for one in (claim, pool))
        same = all(
            marks.get(key) and marks.get(key) == marks_of_pool.get(key)
            for key in (NODEPOOL_HASH, NODEPOOL_HASH_VERSION)
        )
        template = dig(pool, "spec", "template", "metadata", "annotations") if same else None
        if not isinstance(template, dict):
            return claim
        # Those that are always taken and are not there were removed from the claim.
        lost = {key: value for key, value in template.items() if not is_known(key)}
        return {**claim, "metadata": {**claim["metadata"], "annotations": {**lost, **marks}}}

    def _protect(self, names: set[str]) -> None:
        """Keep the Nodes whose pods are not all here: they look emptier than they are."""
        nodes = [node for name in sorted(names) if (node := self._store.find(r.NODES, "", name))]
        for node in nodes:
            marked = put(node, ("metadata", "annotations", DO_NOT_DISRUPT), "true")
            self._store.rewrite(r.NODES, marked)
        if nodes:
            yet = f"{DO_NOT_DISRUPT} is set on {counted(len(nodes), 'Node')} ({_listed([*map(name_of, nodes)])})"
            self._notes.append(f"{yet}: pods that run there are left out")

    def _check_amounts(self, claim: Obj) -> None:
        """Tenure protects a claim whose amounts it cannot read."""
        for path in _AMOUNTS_OF_CLAIM:
            amounts = dig(claim, *path)
            for name, amount in amounts.items() if isinstance(amounts, dict) else ():
                try:
                    parse_resources({name: amount})
                except SpecError as error:
                    where = ".".join((*path, name))
                    problem = Problem(where, shown(repr(amount)), error.expected)
                    self._left_out.append(
                        LeftOut("NodeClaim", name_of(claim), problem, How.AS_IT_IS)
                    )
                    return

    def _with_readable_amounts(self, node: Obj) -> Obj:
        """A Node without an amount that cannot be read has none of it to give; its pods stay."""
        for part in ("capacity", "allocatable"):
            amounts = dig(node, "status", part)
            for name, amount in amounts.items() if isinstance(amounts, dict) else ():
                try:
                    parse_quantity(str(amount))
                except SpecError as error:
                    where = f"status.{part}.{name}"
                    problem = Problem(where, shown(repr(amount)), error.expected)
                    self._left_out.append(
                        LeftOut("Node", name_of(node), problem, How.WITHOUT_FIELD)
                    )
                    node = drop(node, ("status", part, name))
        return node

    def _check(self, resource: Resource, obj: Obj) -> None:
        """Tenure protects what it cannot read: the object stays, and the copy says so."""
        schema = schema_for(resource.group, resource.kind) if resource in _CHECKED else None
        for error in schema.validate(obj)[:1] if schema is not None else ():
            got = shown(repr(error.value)) if error.expected else ""
            problem = Problem(error.field, got, error.expected or error.message)
            self._left_out.append(LeftOut(resource.kind, name_of(obj), problem, How.AS_IT_IS))

    def _owned(self, obj: Obj) -> Obj:
        """Without owners that the copy lacks: the object would be collected with them."""
        owners = obj["metadata"].get("ownerReferences")
        if not owners:
            return obj
        kept = [
            one
            for one in owners
            if one.get("uid") in self._uids
            or (one.get("apiVersion"), one.get("kind")) not in BY_KIND
        ]
        if len(kept) == len(owners):
            return obj
        return {**obj, "metadata": {**obj["metadata"], "ownerReferences": kept}}

    def _name_namespaces(self) -> None:
        """Objects of a namespace that could not be read need it all the same."""
        named = {one["metadata"]["name"] for one in self._copy.of(r.NAMESPACES)}
        wanted = {
            one["metadata"].get("namespace", "")
            for resource, objects in self._copy.objects.items()
            if resource.namespaced
            for one in objects
        }
        for name in sorted(wanted - named - {""}):
            if self._store.find(r.NAMESPACES, "", name) is None:
                # Of a name that no namespace may have its objects are named when they are put.
                with suppress(ApiError):
                    self._store.create(r.NAMESPACES, {"metadata": {"name": name}})

    def _name_controllers(self) -> None:
        """A kind that is only stored is not taken, and its pods would be collected for an owner that is missing."""
        for pod in self._copy.of(r.PODS):
            owner, metadata = controller_of(pod) or {}, pod["metadata"]
            if (owner.get("apiVersion"), owner.get("kind")) != _CONTROLLER or not owner.get("uid"):
                continue
            found = {key: owner[key] for key in ("name", "uid")}
            found |= {
                "namespace": metadata.get("namespace", ""),
                "creationTimestamp": self._store.stamp(),
            }
            if owner["uid"] not in self._uids:
                self._store.restore(REPLICATION_CONTROLLERS, {"metadata": found, "spec": {}})
                self._uids.add(owner["uid"])

    def _name_classes(self) -> None:
        """A class that could not be read is taken as one that is Ready."""
        served = {kind.group_kind: kind for kind in NODE_CLASSES}
        for group, kind, name in sorted(_references(self._copy)):
            resource = served.get((group, kind))
            if resource is None:
                self._notes.append(
                    f"{kind}.{group} is no node class that the embedded cloud can stand in for: its nodes "
                    "stay as they are, and none is launched for it"
                )
            elif self._store.find(resource, "", name) is None:
                self._stand_in(resource, name)

    def _stand_in(self, resource: Resource, name: str) -> None:
        ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": ""}
        ready["lastTransitionTime"] = self._store.stamp()
        try:
            made = self._store.create(resource, {"metadata": {"name": name}, "spec": {}})
        except ApiError as error:
            problem = problem_of(resource, {"metadata": {"name": name}}, error)
            self._left_out.append(LeftOut(resource.kind, shown(name), problem))
            return
        self._store.update(resource, {**made, "status": {"conditions": [ready]}}, "status")
        self._notes.append(
            f"{resource.kind} {name} was not read: a class of that name that is Ready stands in"
        )

    def _adopt(self, claim: Obj) -> None:
        provider_id = dig(claim, "status", "providerID")
        if not provider_id:
            return
        instance = self._instance(claim, provider_id)
        node = dig(claim, "status", "nodeName") or self._node_of(provider_id)
        if node and self._store.find(r.NODES, "", node) is not None:
            self._world.cloud.adopt(instance, node)
            return
        name = f"node-{claim['metadata']['name']}"
        self._world.cloud.adopt(instance, name)
        if "deletionTimestamp" not in claim["metadata"]:  # It is on its way.
            labels = claim["metadata"].get("labels") or {}
            booted = BootedInstance(instance=instance, node_name=name, labels=labels)
            self._world.cloud.boot_adopted(booted)

    def _instance(self, claim: Obj, provider_id: str) -> Instance:
        metadata = claim["metadata"]
        labels: dict[str, str] = metadata.get("labels") or {}
        where, status = bought(labels), claim.get("status") or {}
        return Instance(
            provider_id=provider_id,
            cluster=self._world.options.settings.cluster_name,
            claim_uid=metadata.get("uid", ""),
            claim_name=metadata["name"],
            instance_type=where.type,
            zone=where.zone,
            capacity_type=where.capacity_type,
            image_id=self._world.cloud.image_of(claim),
            price=price_at(self._types, where) or 0,
            launched_at=_instant(metadata.get("creationTimestamp"), self._copy.at),
            labels=labels,
            capacity=status.get("capacity") or {},
            allocatable=status.get("allocatable") or {},
        )

    def _unclaimed(self) -> Iterator[tuple[str, int]]:
        """Nodes without an instance of a claim, and what they cost; 0: not known."""
        cloud = self._world.cloud
        claimed = {cloud.node_name(one.provider_id) for one in cloud.instances()}
        for node in self._store.list(r.NODES):
            metadata = node["metadata"]
            if metadata["name"] not in claimed:
                where = bought(metadata.get("labels") or {})
                yield metadata["name"], price_at(self._types, where) or 0

    def _node_of(self, provider_id: str) -> str:
        for node in self._copy.of(r.NODES):
            if dig(node, "spec", "providerID") == provider_id:
                return str(node["metadata"]["name"])
        return ""

    def _prices(self) -> Iterator[str]:
        used = {bought(n["metadata"].get("labels") or {}).type for n in self._copy.of(r.NODES)}
        without = [name for name in unpriced(self._world.cloud.types) if name in used]
        if without:
            yield (
                f"no price is known of {_listed(without)}: it is shown as unknown, and no node is replaced "
                "to save on it"
            )
        if untyped := sum(
            not bought(n["metadata"].get("labels") or {}).type for n in self._copy.of(r.NODES)
        ):
            yield f"no instance type label on {counted(untyped, 'Node')}: the price is unknown"

    def _lost(self) -> Iterator[str]:
        """The API server's own controllers delete such pods."""
        there = {one["metadata"]["name"] for one in self._store.list(r.NODES)}
        named = [node for pod in self._store.list(r.PODS) if (node := dig(pod, "spec", "nodeName"))]
        if missing := [node for node in named if node not in there]:
            yield (
                f"{counted(len(missing), 'pod')} on Nodes that are not among the objects "
                f"({_listed(sorted(set(missing)))}): lost with them"
            )

    def _owners(self) -> Iterator[str]:
        """Pods whose owner is played by nothing here are not made again once they are gone."""
        kinds = sorted(
            {
                str(owner.get("kind"))
                for pod in self._copy.of(r.PODS)
                if (owner := controller_of(pod)) is not None
                and (owner.get("apiVersion"), owner.get("kind")) not in _PLAYED
            }
        )
        if kinds:
            yield f"pods of {_listed(kinds)} are not made again once they are evicted: nothing here plays that kind"


def _classes_used(copy: ClusterCopy) -> list[Resource]:
    wanted = {(group, kind) for group, kind, _ in _references(copy)}
    return [kind for kind in NODE_CLASSES if kind.group_kind in wanted]


def _references(copy: ClusterCopy) -> set[tuple[str, str, str]]:
    """(group, kind, name) of the node classes that pools and claims name."""
    pools = (dig(one, "spec", "template", "spec", "nodeClassRef") for one in copy.of(r.NODE_POOLS))
    claims = (dig(one, "spec", "nodeClassRef") for one in copy.of(r.NODE_CLAIMS))
    found: set[tuple[str, str, str]] = set()
    for ref in (*pools, *claims):
        if isinstance(ref, dict):
            found.add((str(ref.get("group")), str(ref.get("kind")), str(ref.get("name"))))
    return found


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return ", ".join(names[:_NAMED_MAX]) + more


def _instant(text: Any, otherwise: datetime) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return otherwise
