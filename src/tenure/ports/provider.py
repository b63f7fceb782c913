"""What a cloud plugin declares, and how its cloud is opened.

Everything that differs by provider is declared here: kinds with their schema, options, defaults.
Reading a declaration connects to nothing. Only ``open`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from tenure.errors import TenureError
from tenure.model.api.resource import Resource
from tenure.model.cloud.repairs import RepairStatement
from tenure.ports.clock import Clock
from tenure.ports.cloud import Cloud
from tenure.schema.structure.crd import CustomKind

#: Where a provider that keeps something in the cluster keeps it, unless told otherwise.
DEFAULT_NAMESPACE: Final = "kube-system"


class Api(Protocol):
    """The cluster's own API, as far as a provider may need it; ``kube``'s client has it.

    Answers are JSON as bytes, refusals are the ``ApiError`` tree.
    """

    async def get(self, resource: Resource, name: str, namespace: str = "") -> bytes: ...

    async def list_all(
        self, resource: Resource, namespace: str = "", *, label_selector: str = ""
    ) -> tuple[list[msgspec.Raw], str]: ...

    async def create(
        self, resource: Resource, body: Mapping[str, Any], namespace: str = ""
    ) -> bytes: ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, Any],
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> bytes: ...

    async def delete(
        self, resource: Resource, name: str, *, uid: str, namespace: str = ""
    ) -> bytes: ...


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that only this provider has: a flag, a variable and a key of ``tenure run``."""

    #: The flag without its dashes, for example ``instance-types-file``.
    name: str
    #: What it is for, and why the default is what it is.
    reason: str
    #: What stands for the value in the help.
    metavar: str
    #: Completes "expected …".
    expected: str
    example: str
    #: What the provider does where the option is not given, in words.
    default: str
    #: Karpenter has it too, so that the variable has no prefix.
    karpenters: bool = False
    #: Raises ``ValueError`` for a text that it is not. The provider gets the text.
    check: Callable[[str], object] | None = None


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider may use. A cloud with an API of its own needs little of it."""

    #: What is written through it is fenced like our own writes.
    api: Api
    clock: Clock
    #: Tags every instance, so that clusters never touch each other's.
    cluster: str
    #: What goes wrong in the background, where no caller hears of it.
    report: Callable[[TenureError], None] = lambda _: None
    #: For objects that the provider keeps in the cluster.
    namespace: str = DEFAULT_NAMESPACE
    #: Opened to read (``tenure plan``): begin nothing that would change something.
    read_only: bool = False
    #: What was set of ``Provider.options``, by name; texts as they were written.
    options: Mapping[str, str] = {}


@runtime_checkable
class Provider(Protocol):
    @property
    def name(self) -> str:
        """Short, for logs and metrics; the name of its entry point."""
        ...

    @property
    def node_classes(self) -> tuple[Resource, ...]:
        """The kinds of node classes it serves: they are watched, and they make things *ours*."""
        ...

    @property
    def kinds(self) -> tuple[CustomKind, ...]:
        """The kinds whose CRD it ships: their schema, and what is valid. ``tenure crds`` prints
        them, ``tenure lint`` and the webhook check objects against them."""
        ...

    @property
    def repair_statements(self) -> tuple[RepairStatement, ...]:
        """What its cloud will state, as far as that is known before it is opened."""
        ...

    @property
    def options(self) -> tuple[Option, ...]:
        """Its settings. None may have the name of a setting of Tenure."""
        ...

    @property
    def namespace(self) -> str:
        """Where Tenure's chart lets it keep objects in the cluster, in a release of the usual
        name; empty: it keeps none there."""
        ...

    def open(self, surroundings: Surroundings) -> AbstractAsyncContextManager[Cloud]:
        """The cloud, for as long as the block lasts; what it runs in the background ends with it.

        Raises ``SpecError`` for options that cannot be used, before anything is reached.
        """
        ...
