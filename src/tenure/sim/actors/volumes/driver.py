"""The storage driver: does what a VolumeAttachment asks for, after a while.

A new one is attached, one that is being deleted is detached, and gone when that is done: until
then its finalizer holds it. An attachment without that finalizer belongs to another driver.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import msgspec

from tenure.model.api.resource import VOLUME_ATTACHMENTS
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.virtual.environment import Environment

_FINALIZER: Final = "external-attacher/"


class VolumeTimings(msgspec.Struct, frozen=True, kw_only=True):
    #: A claim may have a volume → it has one.
    provision_for: timedelta = timedelta(seconds=1)
    #: A pod is bound → its volume is attached.
    attach_for: timedelta = timedelta(seconds=5)
    #: Unmounted → the attachment is gone.
    detach_for: timedelta = timedelta(seconds=5)


class VolumeDriver:
    def __init__(self, environment: Environment, store: Store, timings: VolumeTimings) -> None:
        self._environment, self._store, self._timings = environment, store, timings
        #: UIDs of attachments that are being detached.
        self._detaching: set[str] = set()
        store.subscribe(VOLUME_ATTACHMENTS, self._on_attachment, replay=True)

    def _on_attachment(self, type_: str, attachment: Obj, old: Obj | None) -> None:
        metadata = attachment["metadata"]
        if type_ == DELETED:
            self._detaching.discard(metadata["uid"])
        elif not is_ours(attachment):
            return
        elif "deletionTimestamp" in metadata:
            if metadata["uid"] not in self._detaching:
                self._detaching.add(metadata["uid"])
                self._later(self._timings.detach_for, self._detach, metadata)
        elif old is None and not dig(attachment, "status", "attached"):
            self._later(self._timings.attach_for, self._attach, metadata)

    def _later(self, delay: timedelta, act: Callable[[Obj], None], metadata: Obj) -> None:
        self._environment.after(delay, self._act, act, metadata["name"], metadata["uid"])

    def _act(self, act: Callable[[Obj], None], name: str, uid: str) -> None:
        attachment = self._store.find(VOLUME_ATTACHMENTS, "", name)
        if attachment is not None and attachment["metadata"]["uid"] == uid:
            act(attachment)

    def _attach(self, attachment: Obj) -> None:
        if "deletionTimestamp" in attachment["metadata"]:
            return
        patch = {"status": {"attached": True}}
        name = attachment["metadata"]["name"]
        self._store.patch(VOLUME_ATTACHMENTS, "", name, patch, subresource="status")

    def _detach(self, attachment: Obj) -> None:
        finalizers = attachment["metadata"]["finalizers"]
        left = [one for one in finalizers if not one.startswith(_FINALIZER)]
        patch = {"metadata": {"finalizers": left or None}}
        self._store.patch(VOLUME_ATTACHMENTS, "", attachment["metadata"]["name"], patch)


def tracking(driver: str) -> str:
    """The finalizer by which a driver keeps the attachments it has to undo."""
    return f"{_FINALIZER}{re.sub('[^a-zA-Z0-9-]', '-', driver)}"


def is_ours(attachment: Obj) -> bool:
    finalizers = attachment["metadata"].get("finalizers") or ()
    return any(one.startswith(_FINALIZER) for one in finalizers)
