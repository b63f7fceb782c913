"""One consistent look at everything, with indexes that are kept up incrementally.

``Tables`` is the mutable side: the informers put objects in and take them out.
``Snapshot`` is what deciders see of it: mappings to read, nothing to change. A turn is
synchronous from the look to the plan, so a snapshot over live tables is consistent for
as long as it is used; what runs beside the loop works on ``Tables.copy()``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Generic, TypeVar, cast

import msgspec

from tenure.errors import SpecError
from tenure.model.api import resource as r
from tenure.model.api.meta import ApiObject, controller_of
from tenure.model.api.names import (
    DRIFTED_CONDITION,
    EMPTY_CONDITION,
    EXPIRED_AT,
    EXPIRED_CONDITION,
    INSTANCE_TYPE,
    NODEPOOL,
    REBALANCE_CONDITION,
    REPLACED_BY,
    REPLACES,
    ZONE,
)
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.api.window import MaintenanceWindow
from tenure.model.api.workload import (
    CsiNode,
    DaemonSet,
    LimitRange,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    StorageClass,
    VolumeAttachment,
)
from tenure.model.snapshot.derived import Derived
from tenure.model.snapshot.governed import (
    Govern,
    Ruling,
    as_written,
    governed_claim,
    governed_pool,
)
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.touched import Touched
from tenure.model.snapshot.unreadable import UNKNOWN, is_unreadable, stand_in

T = TypeVar("T", bound=ApiObject)
#: What a Node's conditions do so soon after its creation is its boot.
BOOTS: Final = timedelta(minutes=5)
V = TypeVar("V")


class Change(msgspec.Struct, frozen=True):
    """One object came, changed or went."""

    resource: r.Resource
    key: str
    old: ApiObject | None
    new: ApiObject | None

    def versions(self) -> Iterable[ApiObject]:
        """Both sides that exist: what the change may concern is what either says."""
        if self.old is not None:
            yield self.old
        if self.new is not None:
            yield self.new


class Index(Generic[T]):
    """Objects of one kind grouped by something they say; an empty group disappears."""

    def __init__(self, group_of: Callable[[T], str]) -> None:
        self.group_of = group_of
        self.groups: dict[str, dict[str, T]] = {}
        #: Of the groups that were asked for it: whose creation is the latest.
        self._newest: dict[str, T] = {}

    def add(self, key: str, item: T, group: str) -> None:
        if group:
            self.groups.setdefault(group, {})[key] = item
            if group in self._newest and _age(self._newest[group]) < _age(item):
                self._newest[group] = item

    def replace(self, key: str, old: T, new: T, group: str) -> None:
        """Most changes leave an object in its group. ``group``: of the new one."""
        if group != self.group_of(old):
            self.discard(key, old)
            self.add(key, new, group)
        elif group:
            self.groups[group][key] = new
            if self._newest.get(group) is old:
                self._newest[group] = new

    def discard(self, key: str, item: T) -> None:
        group = self.group_of(item)
        if group and (members := self.groups.get(group)) is not None:
            members.pop(key, None)
            if not members:
                del self.groups[group]
            known = self._newest.get(group)
            if known is not None and known.key == key:
                del self._newest[group]

    def fill(self, items: Mapping[str, T]) -> None:
        """An empty one, with all objects at once."""
        group_of, groups = self.group_of, self.groups
        for key, item in items.items():
            if group := group_of(item):
                groups.setdefault(group, {})[key] = item

    def newest(self, group: str) -> T | None:
        """Worked out when it is first asked for, then kept up: groups of daemons are large."""
        if group not in self._newest:
            if not (members := self.groups.get(group)):
                return None
            self._newest[group] = max(members.values(), key=_age)
        return self._newest[group]


def _age(item: ApiObject) -> tuple[datetime, str]:
    return item.created_at, item.uid


def _pod_node(pod: Pod) -> str:
    return pod.spec.node_name


def _pod_coming(pod: Pod) -> str:
    return pod.coming_to


def _pod_waiting(pod: Pod) -> str:
    return "unschedulable" if pod.unschedulable and pod.active else ""


def _pod_claiming(pod: Pod) -> str:
    """Where the volumes of its claims are in use; nearly all other pods have volumes of other kinds."""
    if not pod.spec.volumes or not pod.spec.node_name or pod.finished:
        return ""
    claims = any(
        one.persistent_volume_claim or one.ephemeral is not None for one in pod.spec.volumes
    )
    return "claiming" if claims else ""


def _node_provider(node: Node) -> str:
    return node.spec.provider_id


def _node_leaving(node: Node) -> str:
    return "leaving" if node.deleting else ""


def _pool_label(item: ApiObject) -> str:
    return item.labels.get(NODEPOOL, "")


def _node_changed(node: Node) -> str:
    return "changed" if node.changed_at - node.created_at > BOOTS else ""


def _node_zone(node: Node) -> str:
    return node.labels.get(ZONE, "")


def _node_type(node: Node) -> str:
    return node.labels.get(INSTANCE_TYPE, "")


def _claim_provider(claim: NodeClaim) -> str:
    return claim.provider_id


def _claim_node(claim: NodeClaim) -> str:
    return claim.node_name


def _claim_new(claim: NodeClaim) -> str:
    return "" if claim.initialized else "new"


def _claim_coming(claim: NodeClaim) -> str:
    return "" if claim.registered else "coming"


def _claim_image(claim: NodeClaim) -> str:
    return claim.status.image_id


def _claim_class(claim: NodeClaim) -> str:
    ref = claim.spec.node_class_ref
    return f"{ref.kind}/{ref.name}"


def _claim_rebooting(claim: NodeClaim) -> str:
    return "rebooting" if claim.rebooting else ""


def _uid(item: ApiObject) -> str:
    return item.uid


def _claim_replaced(claim: NodeClaim) -> str:
    return "replaced" if REPLACED_BY in claim.annotations else ""


def _claim_replacing(claim: NodeClaim) -> str:
    return "replacing" if REPLACES in claim.annotations else ""


def _claim_says(type_: str, claim: NodeClaim) -> str:
    """Beside Karpenter an annotation says that it has expired: the status is Karpenter's."""
    expired = type_ == EXPIRED_CONDITION and EXPIRED_AT in claim.annotations
    return type_ if expired or claim.is_true(type_) else ""


def _node_suspect(node: Node) -> str:
    return "" if node.plainly_healthy else "suspect"


def _namespace(item: ApiObject) -> str:
    return item.namespace


def _pod_daemon_set(pod: Pod) -> str:
    """The DaemonSet that made a living pod."""
    owner = controller_of(pod.metadata)
    if owner is None or owner.kind != "DaemonSet" or not pod.active:
        return ""
    return f"{pod.namespace}/{owner.name}"


def _attached_to(attachment: VolumeAttachment) -> str:
    return attachment.spec.node_name


#: Conditions by which claims are found: each makes a node a candidate of voluntary disruption.
CANDIDATE_CONDITIONS: Final = (
    EMPTY_CONDITION,
    EXPIRED_CONDITION,
    DRIFTED_CONDITION,
    REBALANCE_CONDITION,
)

_INDEXES: Final[dict[tuple[r.Resource, str], Callable[[Any], str]]] = {
    (r.PODS, "node"): _pod_node,
    (r.PODS, "coming"): _pod_coming,
    (r.PODS, "waiting"): _pod_waiting,
    (r.PODS, "daemon"): _pod_daemon_set,
    (r.PODS, "claiming"): _pod_claiming,
    (r.NODES, "provider"): _node_provider,
    (r.NODES, "pool"): _pool_label,
    (r.NODES, "leaving"): _node_leaving,
    (r.NODES, "suspect"): _node_suspect,
    (r.NODES, "changed"): _node_changed,
    (r.NODES, "zone"): _node_zone,
    (r.NODES, "type"): _node_type,
    (r.NODE_CLAIMS, "provider"): _claim_provider,
    (r.NODE_CLAIMS, "node"): _claim_node,
    (r.NODE_CLAIMS, "image"): _claim_image,
    (r.NODE_CLAIMS, "class"): _claim_class,
    (r.NODE_CLAIMS, "new"): _claim_new,
    (r.NODE_CLAIMS, "coming"): _claim_coming,
    (r.NODE_CLAIMS, "pool"): _pool_label,
    (r.NODE_CLAIMS, "uid"): _uid,
    (r.NODE_CLAIMS, "replaced"): _claim_replaced,
    (r.NODE_CLAIMS, "replacing"): _claim_replacing,
    (r.NODE_CLAIMS, "rebooting"): _claim_rebooting,
    **{(r.NODE_CLAIMS, type_): partial(_claim_says, type_) for type_ in CANDIDATE_CONDITIONS},
    (r.POD_DISRUPTION_BUDGETS, "namespace"): _namespace,
    (r.LIMIT_RANGES, "namespace"): _namespace,
    (r.VOLUME_ATTACHMENTS, "node"): _attached_to,
}


#: Kinds that policies make something else of, and the policies.
_GOVERNED: Final = frozenset({r.NODE_POOLS, r.NODE_CLAIMS, r.NODE_POOL_POLICIES})


#: Changes that are noted before they should be taken: what they replaced is kept meanwhile, and Python's collector begins
#: after 5,000 new containers that are kept; a pod is some forty.
MANY: Final = 64
#: By kind and key: the object, or None where it is gone.
Changed = dict[tuple[r.Resource, str], ApiObject | None]


class Noted:
    """What has changed in tables since it was last taken."""

    def __init__(self, many: Callable[[], object]) -> None:
        """``many``: told once when it should be taken."""
        self._changed: Changed = {}
        self._many = many

    @property
    def is_many(self) -> bool:
        return len(self._changed) >= MANY

    def note(self, resource: r.Resource, key: str, item: ApiObject | None) -> None:
        before = self.is_many
        self._changed[resource, key] = item
        if self.is_many and not before:
            self._many()

    def take(self) -> Changed:
        changed, self._changed = self._changed, {}
        return changed


class Tables:
    """Every object we watch, by kind and key, with the indexes above."""

    def __init__(
        self,
        readers: Mapping[r.Resource, Sequence[Callable[[Any], object]]] = {},
        derived: Derived | None = None,
        govern: Govern | None = None,
    ) -> None:
        """``readers``: of each kind, what deciders read of an object by itself. ``govern``: what
        policies say about a pool; pools and claims are in the tables as that makes them."""
        self._readers = readers
        self._govern = govern
        #: By pool: what policies say about it.
        self._rulings: dict[str, Ruling] = {}
        #: Changes of pools and claims that the change of another object has made.
        self._followers: list[Change] = []
        self.derived = Derived() if derived is None else derived
        self.objects: dict[r.Resource, dict[str, Any]] = {}
        #: Those in the tables that are stand-ins: they cannot be read, or not be evaluated.
        self.unreadable: dict[tuple[r.Resource, str], ApiObject] = {}
        #: Kinds that the API server does not list, and why: there may be objects of them.
        self.unlisted: dict[r.Resource, str] = {}
        self._indexes: dict[tuple[r.Resource, str], Index[Any]] = {
            name: Index(group_of) for name, group_of in _INDEXES.items()
        }
        self.touched: Final = Touched()
        #: Each is told of all changes.
        self.noted: Final[list[Noted]] = []
        self._indexes_of: dict[r.Resource, list[Index[Any]]] = {}
        for (resource, _), index in self._indexes.items():
            self._indexes_of.setdefault(resource, []).append(index)

    def table(self, resource: r.Resource) -> dict[str, Any]:
        return self.objects.setdefault(resource, {})

    def groups(self, resource: r.Resource, name: str) -> Mapping[str, Mapping[str, Any]]:
        return self._indexes[resource, name].groups

    def newest(self, resource: r.Resource, name: str, group: str) -> ApiObject | None:
        return self._indexes[resource, name].newest(group)

    def put(self, resource: r.Resource, item: ApiObject, *, unchanged: bool = False) -> Change:
        """An object on which an index or a reader fails gets a stand-in, and stops no other.

        ``unchanged``: nothing that we read differs from the version that is here.
        """
        governs = resource in _GOVERNED
        if governs:
            item = as_written(item)
        indexes = self._indexes_of.get(resource, ())
        try:
            if not unchanged:
                self._read(resource, item)
            groups = [index.group_of(item) for index in indexes]
            ruled = governs and self._ruled(item)
        except Exception as error:  # noqa: BLE001  # whatever is wrong with it, it is that object's
            item = stand_in(item, f"{type(error).__name__}: {error}", decoded=True)
            groups = [index.group_of(item) for index in indexes]
            ruled = governs and self._ruled(item)
        if is_unreadable(item):
            self.unreadable[resource, item.key] = item
        else:
            self.unreadable.pop((resource, item.key), None)
        seen = self._governed(item) if governs else item
        change = self._place(resource, seen, indexes, groups, unchanged)
        if ruled:
            self._place_claims_again(item.name)
        elif governs and resource == r.NODE_POOL_POLICIES and not unchanged:
            self._rule_again()
        return change

    def _place(
        self,
        resource: r.Resource,
        item: ApiObject,
        indexes: Sequence[Index[Any]],
        groups: Sequence[str],
        unchanged: bool,
    ) -> Change:
        """``groups``: in each of the indexes, that which the object belongs to."""
        key, table = item.key, self.table(resource)
        old = table.get(key)
        self._forget(resource)
        self._keep_derived(old, item, unchanged=unchanged)
        for index, group in zip(indexes, groups, strict=True):
            if old is None:
                index.add(key, item, group)
            else:
                index.replace(key, old, item, group)
        table[key] = item
        for noted in self.noted:
            noted.note(resource, key, item)
        if not unchanged:
            self._touch_nodes(resource, key, old, item)
        return Change(resource, key, old, item)

    def _touch_nodes(self, resource: r.Resource, key: str, *versions: ApiObject | None) -> None:
        touch = self.touched.touch
        if resource == r.NODES:
            touch(key)
            self.touched.tidy(len(self.table(r.NODES)))
        elif resource == r.PODS:
            for pod in cast("tuple[Pod | None, ...]", versions):
                if pod is not None:
                    touch(pod.spec.node_name)
                    touch(pod.coming_to)
        elif resource == r.NODE_CLAIMS:
            nodes = self.groups(r.NODES, "provider")
            for claim in cast("tuple[NodeClaim | None, ...]", versions):
                for name in nodes.get(claim.provider_id, ()) if claim is not None else ():
                    touch(name)

    # -- what policies make of pools and claims ------------------------------------------

    def take_followers(self) -> list[Change]:
        """Changes of pools and claims since the last call that followed from changes of others."""
        followers, self._followers = self._followers, []
        return followers

    def _governed(self, item: ApiObject) -> ApiObject:
        if not self._rulings or is_unreadable(item):
            return item
        if isinstance(item, NodePool) and (ruling := self._rulings.get(item.name)) is not None:
            return governed_pool(item, ruling)
        if isinstance(item, NodeClaim) and (ruling := self._rulings.get(item.pool_name)):
            return governed_claim(item, ruling)
        return item

    def _ruled(self, item: ApiObject) -> bool:
        """Whether policies say something else about a pool now. A policy is tried on each pool alone, so
        that one which makes the asking fail is set aside before it is asked about with others."""
        if isinstance(item, NodePoolPolicy) and self._govern is not None:
            for pool in (NodePool(), *map(as_written, self.table(r.NODE_POOLS).values())):
                self._govern(pool, (item,))
        return isinstance(item, NodePool) and self._rule(item)

    def _rule(self, pool: NodePool) -> bool:
        """Ask what policies say about the pool; whether that is something else than before."""
        policies = self.objects.get(r.NODE_POOL_POLICIES, _NOTHING)
        why = self.unlisted.get(r.NODE_POOL_POLICIES, "")
        asks = self._govern is not None and (policies or why)
        ruling = self._govern(pool, policies.values(), why) if self._govern and asks else None
        if ruling == self._rulings.get(pool.name):
            return False
        if ruling is None:
            del self._rulings[pool.name]
        else:
            self._rulings[pool.name] = ruling
        return True

    def _rule_again(self) -> None:
        for name, pool in [*self.table(r.NODE_POOLS).items()]:
            if self._rule(as_written(pool)):
                self._place_again(r.NODE_POOLS, name)
                self._place_claims_again(name)

    def _place_claims_again(self, pool: str) -> None:
        for key in [*self.groups(r.NODE_CLAIMS, "pool").get(pool, ())]:
            self._place_again(r.NODE_CLAIMS, key)

    def _place_again(self, resource: r.Resource, key: str) -> None:
        old = self.table(resource)[key]
        seen = self._governed(as_written(old))
        if seen != old:
            indexes = self._indexes_of.get(resource, ())
            groups = [index.group_of(seen) for index in indexes]
            self._followers.append(self._place(resource, seen, indexes, groups, False))

    # -- what is derived -------------------------------------------------------------------

    def _forget(self, resource: r.Resource) -> None:
        """What followed from all objects together, and from all of this kind."""
        self.derived.of_all.clear()
        self.derived.of_kind.pop(resource, None)

    def _keep_derived(self, old: ApiObject | None, new: ApiObject, *, unchanged: bool) -> None:
        self.derived.admit(new, old if unchanged else None)
        if old is not None and old is not new:
            self.derived.drop(old)

    def _read(self, resource: r.Resource, item: ApiObject) -> None:
        if is_unreadable(item):
            return
        for read in self._readers.get(resource, ()):
            try:
                read(item)
            except SpecError:  # one after the other
                continue  # A field that cannot be used: the deciders say so themselves.

    def set_aside(self, resource: r.Resource, key: str, problem: str, field: str = "") -> Change:
        """A decider failed on the object: until it changes, a stand-in takes its place."""
        item = self.table(resource)[key]
        return self.put(resource, stand_in(item, problem, field=field, decoded=True))

    def remove(self, resource: r.Resource, key: str) -> Change:
        self._forget(resource)
        self.unreadable.pop((resource, key), None)
        old = self.table(resource).pop(key, None)
        for noted in self.noted:
            noted.note(resource, key, None)
        if old is not None:
            self.derived.drop(old)
            for index in self._indexes_of.get(resource, ()):
                index.discard(key, old)
            self._touch_nodes(resource, key, old)
        if resource == r.NODE_POOLS and self._rulings.pop(key, None) is not None:
            self._place_claims_again(key)
        elif resource == r.NODE_POOL_POLICIES:
            self._rule_again()
        return Change(resource, key, old, None)

    def list_failed(self, resource: r.Resource, why: str) -> bool:
        """``why``: empty once it was listed after all. Whether this is new."""
        if why == self.unlisted.get(resource, ""):
            return False
        self.derived.of_all.clear()
        if why:
            self.unlisted[resource] = why
        else:
            del self.unlisted[resource]
        if resource == r.NODE_POOL_POLICIES:
            self._rule_again()
        return True

    # -- as a twin of others ---------------------------------------------------------------

    def fill(self, objects: Mapping[r.Resource, dict[str, Any]], derived: Derived) -> None:
        """Empty ones, with the objects of others and with what is derived from each there."""
        for resource, table in objects.items():
            self.objects[resource] = table
            for index in self._indexes_of.get(resource, ()):
                index.fill(table)
            for item in table.values():
                self.derived.share(item, derived)

    def follow(self, changed: Changed, derived: Derived) -> None:
        """What has changed in others since."""
        for (resource, key), item in changed.items():
            if item is None:
                self.remove(resource, key)
                continue
            indexes = self._indexes_of.get(resource, ())
            groups = [index.group_of(item) for index in indexes]
            self._place(resource, item, indexes, groups, False)
            self.derived.share(item, derived)

    def copy(self) -> Tables:
        """An independent look, for work that outlives the turn."""
        twin = Tables(govern=self._govern)
        twin.unlisted = dict(self.unlisted)
        # Policies first, so that each pool and claim is put once.
        for resource in sorted(self.objects, key=lambda one: one != r.NODE_POOL_POLICIES):
            for item in self.objects[resource].values():
                twin.put(resource, item)
        twin.take_followers()
        return twin


_NOTHING: Final[Mapping[str, Any]] = {}


class _EveryClass(frozenset[tuple[str, str]]):
    """Beside Karpenter pools and claims of every node class are looked at, whichever provider's."""

    def __contains__(self, _: object) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return self is other  # It is not the same as none: results are kept by it.

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return hash("every node class")


#: Stands for the node classes of a provider. A Node counts by its claim alone.
EVERY_CLASS: Final = _EveryClass()


class Snapshot:
    """What deciders see: objects by key, groups by index, and our observations."""

    __slots__ = ("_tables", "observations", "ours")

    def __init__(
        self,
        tables: Tables,
        observations: Observations | None = None,
        *,
        ours: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        self._tables = tables
        self.observations = observations if observations is not None else Observations()
        #: (group, kind) of the node classes that our provider serves.
        self.ours = ours

    @property
    def beside_karpenter(self) -> bool:
        """Karpenter is in charge of every pool and claim: we look at all of them."""
        return self.ours is EVERY_CLASS

    def once(self, work_out: Callable[[Snapshot], V]) -> V:
        """What follows from the objects and the provider's statements: worked out once for all.

        This spares work and nothing else, so it must not depend on our other observations.
        """
        kept = self.derived.of_all
        key = work_out, self.observations.repair_statements, self.ours
        if key not in kept:
            kept[key] = work_out(self)
        return cast("V", kept[key])

    def once_of(self, resource: r.Resource, work_out: Callable[[Mapping[str, Any]], V]) -> V:
        """What follows from the objects of one kind alone: worked out when one of them has changed."""
        kept = self.derived.of_kind.setdefault(resource, {})
        if work_out not in kept:
            kept[work_out] = work_out(self.objects(resource))
        return cast("V", kept[work_out])

    @property
    def tables(self) -> Tables:
        """For a twin of them alone."""
        return self._tables

    @property
    def derived(self) -> Derived:
        """What was derived from single objects, kept with the tables."""
        return self._tables.derived

    def touched_nodes(self, since: int) -> tuple[list[str] | None, int]:
        """Names of the Nodes that something has changed of after this change; None: any may have. And the last change."""
        touched = self._tables.touched
        return touched.since(since), touched.number

    def kinds(self) -> Iterable[r.Resource]:
        """Those of which there are, or were, objects: a provider's node classes included."""
        return self._tables.objects

    def objects(self, resource: r.Resource) -> Mapping[str, Any]:
        """Every object of a kind, by key; for one that cannot be read, its stand-in."""
        return self._tables.objects.get(resource, _NOTHING)

    @property
    def pods(self) -> Mapping[str, Pod]:
        return self.objects(r.PODS)

    @property
    def nodes(self) -> Mapping[str, Node]:
        return self.objects(r.NODES)

    @property
    def claims(self) -> Mapping[str, NodeClaim]:
        return self.objects(r.NODE_CLAIMS)

    @property
    def pools(self) -> Mapping[str, NodePool]:
        """As policies make them (``governed``); so are claims."""
        return self.objects(r.NODE_POOLS)

    @property
    def windows(self) -> Mapping[str, MaintenanceWindow]:
        return self.objects(r.MAINTENANCE_WINDOWS)

    @property
    def pool_policies(self) -> Mapping[str, NodePoolPolicy]:
        return self.objects(r.NODE_POOL_POLICIES)

    @property
    def namespaces(self) -> Mapping[str, Namespace]:
        return self.objects(r.NAMESPACES)

    @property
    def daemon_sets(self) -> Mapping[str, DaemonSet]:
        return self.objects(r.DAEMON_SETS)

    @property
    def pdbs(self) -> Mapping[str, PodDisruptionBudget]:
        return self.objects(r.POD_DISRUPTION_BUDGETS)

    @property
    def persistent_volumes(self) -> Mapping[str, PersistentVolume]:
        return self.objects(r.PERSISTENT_VOLUMES)

    @property
    def volume_claims(self) -> Mapping[str, PersistentVolumeClaim]:
        """By ``namespace/name``."""
        return self.objects(r.PERSISTENT_VOLUME_CLAIMS)

    @property
    def storage_classes(self) -> Mapping[str, StorageClass]:
        return self.objects(r.STORAGE_CLASSES)

    @property
    def csi_nodes(self) -> Mapping[str, CsiNode]:
        """By the name of their Node."""
        return self.objects(r.CSI_NODES)

    @property
    def attachments(self) -> Mapping[str, VolumeAttachment]:
        return self.objects(r.VOLUME_ATTACHMENTS)

    def attachments_on(self, node: str) -> Mapping[str, VolumeAttachment]:
        return self._group(r.VOLUME_ATTACHMENTS, "node", node)

    def unreadable(self) -> Mapping[tuple[r.Resource, str], ApiObject]:
        """The stand-ins among all objects: of those that cannot be read, or not be evaluated."""
        return self._tables.unreadable

    def set_aside(self, resource: r.Resource, key: str, problem: str, field: str = "") -> Change:
        """A decider failed on the object: a stand-in takes its place until it changes."""
        return self._tables.set_aside(resource, key, problem, field)

    def put_back(self, change: Change) -> Change:
        """Take an object that was set aside for what it was."""
        assert change.old is not None
        return self._tables.put(change.resource, change.old)

    def take_followers(self) -> list[Change]:
        """What these two have changed beside the object: the pools and claims of a policy."""
        return self._tables.take_followers()

    def unlisted(self, resource: r.Resource) -> str:
        """Why the API server does not list the kind; empty if it does."""
        return self._tables.unlisted.get(resource, "")

    def unlisted_kinds(self) -> Mapping[r.Resource, str]:
        """Kinds that the API server does not list, and why."""
        return self._tables.unlisted

    def pdbs_in(self, namespace: str) -> Mapping[str, PodDisruptionBudget]:
        return self._group(r.POD_DISRUPTION_BUDGETS, "namespace", namespace)

    def limit_ranges_in(self, namespace: str) -> Mapping[str, LimitRange]:
        return self._group(r.LIMIT_RANGES, "namespace", namespace)

    def daemon_pod(self, daemon_set: str) -> Pod | None:
        """The newest living pod of a DaemonSet, by the DaemonSet's key."""
        return cast("Pod | None", self._tables.newest(r.PODS, "daemon", daemon_set))

    def pods_on(self, node: str) -> Mapping[str, Pod]:
        return self._group(r.PODS, "node", node)

    def pods_coming_to(self, node: str) -> Mapping[str, Pod]:
        """Pods that the scheduler is about to bind there."""
        return self._group(r.PODS, "coming", node)

    def claiming_pods(self) -> Mapping[str, Pod]:
        """Unfinished pods on nodes that use PersistentVolumeClaims."""
        return self._group(r.PODS, "claiming", "claiming")

    def pods_nowhere(self) -> Mapping[str, Pod]:
        """Stand-ins of pods that are on a node which cannot be read."""
        return self._group(r.PODS, "node", UNKNOWN)

    def attachments_nowhere(self) -> Mapping[str, VolumeAttachment]:
        return self._group(r.VOLUME_ATTACHMENTS, "node", UNKNOWN)

    def unschedulable_pods(self) -> Mapping[str, Pod]:
        """Pods that the scheduler found no node for."""
        return self._group(r.PODS, "waiting", "unschedulable")

    def nodes_with_provider(self, provider_id: str) -> Mapping[str, Node]:
        """Where there is none: those whose provider id cannot be read, for it may be theirs."""
        found = self._group(r.NODES, "provider", provider_id)
        if found or not provider_id or not self._tables.unreadable:
            return found
        return self._group(r.NODES, "provider", UNKNOWN)

    def claims_with_provider(self, provider_id: str) -> Mapping[str, NodeClaim]:
        return self._group(r.NODE_CLAIMS, "provider", provider_id)

    def claims_of_node(self, name: str) -> Mapping[str, NodeClaim]:
        """The claims that say that this is their Node, whether or not it exists."""
        return self._group(r.NODE_CLAIMS, "node", name)

    def claims_with_uid(self, uid: str) -> Mapping[str, NodeClaim]:
        """At most one."""
        return self._group(r.NODE_CLAIMS, "uid", uid)

    def rebooting_claims(self) -> Mapping[str, NodeClaim]:
        return self._group(r.NODE_CLAIMS, "rebooting", "rebooting")

    def replaced_claims(self) -> Mapping[str, NodeClaim]:
        """Claims that are marked with their replacements."""
        return self._group(r.NODE_CLAIMS, "replaced", "replaced")

    def replacing_claims(self) -> Mapping[str, NodeClaim]:
        """Claims that were launched as replacements."""
        return self._group(r.NODE_CLAIMS, "replacing", "replacing")

    def claims_that_say(self, type_: str) -> Mapping[str, NodeClaim]:
        """Claims with this condition, one of ``CANDIDATE_CONDITIONS``, True; or the mark that stands for it."""
        return self._group(r.NODE_CLAIMS, type_, type_)

    def suspect_nodes(self) -> Mapping[str, Node]:
        """Nodes with a condition that may mean unhealthy; whether it does, their pool's policies say."""
        return self._group(r.NODES, "suspect", "suspect")

    def leaving_nodes(self) -> Mapping[str, Node]:
        """Nodes that are being deleted."""
        return self._group(r.NODES, "leaving", "leaving")

    def nodes_of_pool(self, pool: str) -> Mapping[str, Node]:
        return self._group(r.NODES, "pool", pool)

    def changed_nodes(self) -> Mapping[str, Node]:
        """Nodes with a condition that has changed after their boot: few, in a quiet cluster."""
        return self._group(r.NODES, "changed", "changed")

    def nodes_in_zone(self, zone: str) -> Mapping[str, Node]:
        return self._group(r.NODES, "zone", zone)

    def nodes_of_type(self, instance_type: str) -> Mapping[str, Node]:
        return self._group(r.NODES, "type", instance_type)

    def new_claims(self) -> Mapping[str, NodeClaim]:
        """Claims that are not initialized."""
        return self._group(r.NODE_CLAIMS, "new", "new")

    def coming_claims(self) -> Mapping[str, NodeClaim]:
        """Claims that are not registered."""
        return self._group(r.NODE_CLAIMS, "coming", "coming")

    def claims_of_image(self, image: str) -> Mapping[str, NodeClaim]:
        return self._group(r.NODE_CLAIMS, "image", image)

    def claims_of_class(self, node_class: str) -> Mapping[str, NodeClaim]:
        """``node_class``: the key of its observations, ``Kind/name``."""
        return self._group(r.NODE_CLAIMS, "class", node_class)

    def claims_of_pool(self, pool: str) -> Mapping[str, NodeClaim]:
        return self._group(r.NODE_CLAIMS, "pool", pool)

    def claim_of(self, node: Node) -> NodeClaim | None:
        """The one claim with the node's provider id; None where there are none or several."""
        claims = self.claims_with_provider(node.spec.provider_id)
        return next(iter(claims.values())) if len(claims) == 1 else None

    def node_class(self, group: str, kind: str, name: str) -> ApiObject | None:
        """The node class a pool or claim names, if it exists."""
        for resource, table in self._tables.objects.items():
            if resource.group == group and resource.kind == kind:
                return cast("ApiObject | None", table.get(name))
        return None

    def _group(self, resource: r.Resource, index: str, group: str) -> Mapping[str, Any]:
        return self._tables.groups(resource, index).get(group, _NOTHING) if group else _NOTHING
