"""What a request asks for, read from its body and its query. Raises 400, 415 or 422."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tenure.errors import Invalid, SpecError
from tenure.parse import jsontext
from tenure.ports.transport import APPLY_PATCH, JSON, Request
from tenure.sim.apiserver.objects.numbers import is_number
from tenure.sim.apiserver.objects.refusals import (
    bad_request,
    malformed,
    required,
    unsupported,
    unsupported_media_type,
    untouchable,
)
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.ownership.managers import TENURE, Writer
from tenure.sim.apiserver.routes import Route
from tenure.sim.apiserver.store.deletion import POLICIES, DeleteOptions

TRUE: Final = ("true", "1", "True")
_DRY: Final = "All"
_MANAGER_LENGTH: Final = 128


def body_of(request: Request) -> Any:
    try:
        return jsontext.body(request.body)
    except SpecError as error:
        raise bad_request(f"the body of the request cannot be read: {error}") from error


def object_in(request: Request) -> Obj:
    """The body, which has to be an object."""
    body = body_of(request)
    if not isinstance(body, dict):
        raise bad_request("the body of the request is not an object")
    return body


def metadata_in(body: Any) -> Mapping[str, Any]:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def object_for(request: Request, target: Route, *, custom: bool) -> Obj:
    """The object in the body, settled to be the one that the path names."""
    if request.content_type != JSON:
        raise unsupported_media_type(request.content_type, [JSON])
    obj = object_in(request)
    resource = target.resource
    for field, expected in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        # A built-in kind is known from the path; a custom object must say what it is.
        got = obj.get(field, "" if custom else expected)
        if got != expected:
            raise bad_request(f"{field} {got!r} cannot be handled as {expected!r}")
    metadata = dict(metadata_in(obj))
    if metadata.setdefault("namespace", target.namespace) != target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if target.name and metadata.setdefault("name", target.name) != target.name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL "
            f"({target.name})"
        )
    return {**obj, "metadata": metadata}


def writer_of(request: Request) -> Writer:
    """Who writes, as ``fieldManager`` says; without one it is Tenure, which is in the same process."""
    name = request.query.get("fieldManager", "")
    applies = request.content_type == APPLY_PATCH
    causes = []
    if applies and not name:
        causes.append(required("fieldManager", "is required for apply patch"))
    if len(name) > _MANAGER_LENGTH:
        causes.append(malformed("fieldManager", f"must have at most {_MANAGER_LENGTH} characters"))
    if request.method == "PATCH" and "force" in request.query and not applies:
        causes.append(untouchable("force", "may not be specified for non-apply patch"))
    if causes:
        told = f"{causes[0].field}: {causes[0].message}"
        raise Invalid(f'PatchOptions.meta.k8s.io "" is invalid: {told}', causes=causes)
    return Writer(name) if name else TENURE


def deletion_wished(request: Request) -> DeleteOptions:
    """How to delete, from the body or the query."""
    return deletion_options(object_in(request) if request.body else {}, request.query)


def deletion_options(body: Mapping[str, Any], query: Mapping[str, str]) -> DeleteOptions:
    preconditions = body.get("preconditions") or {}
    grace = body.get("gracePeriodSeconds")
    if grace is None and is_number(query.get("gracePeriodSeconds", "")):
        grace = int(query["gracePeriodSeconds"])
    policy = body.get("propagationPolicy") or query.get("propagationPolicy", "")
    if policy and policy not in POLICIES:
        cause = unsupported("propagationPolicy", policy, POLICIES)
        raise Invalid(f"DeleteOptions is invalid: {cause.message}", causes=[cause])
    return DeleteOptions(
        grace_period_seconds=grace,
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        propagation_policy=policy,
    )


def only_tried(request: Request) -> bool:
    """Whether nothing is to be stored: ``dryRun=All``, in the query or in options of a deletion."""
    wishes = [request.query["dryRun"]] if "dryRun" in request.query else []
    if b'"dryRun"' in request.body:
        body = body_of(request)
        options = body.get("deleteOptions", body) if isinstance(body, dict) else {}
        if isinstance(options, dict) and options.get("dryRun"):
            wishes += options["dryRun"]
    if any(wish != _DRY for wish in wishes):
        cause = unsupported("dryRun", wishes, [_DRY])
        raise Invalid(f"dryRun: {cause.message}", causes=[cause])
    return bool(wishes)
