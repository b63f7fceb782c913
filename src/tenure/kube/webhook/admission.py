"""Answer an AdmissionReview: refuse what a change makes wrong, and let everything else pass.

The first of these that applies:

1. a review that we cannot read, or about something that is not ours to review   allowed, and said;
2. a subresource, an object on its way out                                      allowed;
3. a pool or claim of another provider, or of none                              allowed, and said
                                                                                of a pool when it
                                                                                becomes so;
4. a problem that was not there before                                          refused;
5. problems that were there before                                              allowed, and said
                                                                                where the spec changes;
6. nothing wrong                                                                allowed, with advice
                                                                                where the spec changes.

What cannot be reviewed passes: the status of the object says what is wrong with it, too. So an
old mistake never keeps a user from mending something else, or from deleting the object.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.nodepool import NodePool
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.snapshot.kinds import Unreadable, decode
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.parse.jsontext import DECODE_ERRORS
from tenure.schema.advice import advice_for, by_force, foreign_class
from tenure.schema.fieldmarks import Mark
from tenure.schema.fields import used_by
from tenure.schema.findings import Code, Finding
from tenure.schema.problems import Problems, brought_by, problems_in
from tenure.schema.structure.crd import CUSTOM_KINDS, CustomKind
from tenure.schema.structure.fielderror import INVALID

API_VERSION: Final = "admission.k8s.io/v1"
#: Others share the 4,096 characters that an API server passes on.
_WARNINGS_MAX: Final = 8
_WARNING_LENGTH: Final = 250
#: A user reads no more of them; a legal object can have hundreds, one of a megabyte thousands.
_CAUSES_MAX: Final = 20
_CAUSE_LENGTH: Final = 500


class _GroupVersionKind(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""


class AdmissionRequest(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    kind: _GroupVersionKind = _GroupVersionKind()
    sub_resource: str = ""
    name: str = ""
    operation: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    request: AdmissionRequest
    api_version: str = ""


class Review(msgspec.Struct, frozen=True):
    """Refused when there are problems."""

    problems: Problems = ()
    warnings: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        return not self.problems

    @property
    def answer(self) -> str:
        """In a word, for metrics."""
        if not self.allowed:
            return "refused"
        return "warned" if self.warnings else "allowed"


_REVIEW: Final = msgspec.json.Decoder(_Review)


class Admission:
    def __init__(
        self,
        ours: Collection[tuple[str, str]],
        kinds: Sequence[CustomKind] = (),
        *,
        watched: Collection[str] | None = None,
    ) -> None:
        """``ours``: group and kind of the node classes that our provider serves; ``kinds``: those
        whose schema it declares; ``watched``: the conditions that it states, where that is known:
        its cloud may not be reached here."""
        self._ours = frozenset(ours)
        self._watched = watched
        self._kinds = {
            (kind.resource.group, kind.resource.version, kind.resource.kind): kind
            for kind in (*CUSTOM_KINDS, *kinds)
        }

    def answer(self, body: bytes, now: datetime) -> tuple[bytes, Review]:
        """The review to send back, and what was found."""
        try:
            review = _REVIEW.decode(body)
        except DECODE_ERRORS as error:
            reviewed = _passed(f"the review cannot be read: {error}")
            return _encoded(AdmissionRequest(), reviewed), reviewed
        if review.api_version != API_VERSION:
            reviewed = _passed(f"a review of {review.api_version or 'no version'} is not reviewed")
        else:
            reviewed = self.review(review.request, now)
        return _encoded(review.request, reviewed, review.api_version), reviewed

    def review(self, request: AdmissionRequest, now: datetime) -> Review:
        about = request.kind
        kind = self._kinds.get((about.group, about.version, about.kind))
        if kind is None:
            return _passed(
                f"{about.kind or 'no kind'} in {about.group}/{about.version}: not reviewed"
            )
        if request.operation not in ("CREATE", "UPDATE"):
            return _passed(f"the operation {request.operation or 'without a name'} is not reviewed")
        new = decode(kind.resource, request.object)
        if isinstance(new, Unreadable):
            return _passed(f"the object cannot be read: {new.problem}")
        if request.sub_resource or new.deleting:
            return Review()
        old = decode(kind.resource, request.old_object) if request.operation == "UPDATE" else None
        if self._is_foreign(new, kind):
            return Review(warnings=tuple(self._left_alone(new, old)))
        return self._compared(new, old, kind, now)

    def _compared(
        self, new: ApiObject, old: ApiObject | None, kind: CustomKind, now: datetime
    ) -> Review:
        if old is not None and _specs_equal(new, old):
            return Review()
        wrong = problems_in(new, kind, self._watched)
        if is_unreadable(old):  # Who can tell what the change has made wrong?
            return Review(warnings=_still_wrong(wrong))
        before = problems_in(old, kind, self._watched) if old is not None else ()
        brought = brought_by(wrong, before)
        if brought:
            return Review(problems=brought)
        if wrong:
            return Review(warnings=_still_wrong(wrong))
        news = _news(new, old, kind, now, self._watched or ())
        return Review(warnings=tuple(map(str, news)))

    def _left_alone(self, new: ApiObject, old: ApiObject | None) -> Iterator[str]:
        if not isinstance(new, NodePool):
            return
        if isinstance(old, NodePool) and old.node_class_ref == new.node_class_ref:
            return
        yield from map(str, foreign_class(new, self._ours))

    def _is_foreign(self, obj: ApiObject, kind: CustomKind) -> bool:
        match obj:
            case NodePool():
                ref = obj.node_class_ref
                return (ref.group, ref.kind) not in self._ours
            case NodeClaim():
                ref = obj.spec.node_class_ref
                return (ref.group, ref.kind) not in self._ours
            case NodeClass():
                return kind.resource.group_kind not in self._ours
            case _:
                return False


def _specs_equal(new: ApiObject, old: ApiObject) -> bool:
    """Then only metadata or status change: finalizers, labels, conditions."""
    return getattr(new, "spec", None) == getattr(old, "spec", None)


def _news(
    new: ApiObject,
    old: ApiObject | None,
    kind: CustomKind,
    now: datetime,
    watched: Collection[str],
) -> Iterator[Finding]:
    """What is worth a word; what a change brings about only where there is one."""
    if _turns_forceful(new, old):
        yield by_force()
    yield from (one.finding for one in used_by(new) if one.mark.mark is Mark.IGNORED)
    readable = old is not None and not problems_in(old, kind, None)
    known = set(advice_for(old, now)) if old is not None and readable else set()
    for finding in advice_for(new, now, watched):
        if finding.code is not Code.PERIOD_DRIFTS_NODES or finding not in known:
            yield finding


def _turns_forceful(new: ApiObject, old: ApiObject | None) -> bool:
    """The API server has written the mode that was left out, so only a new block tells."""
    kinds = NodePool | NodePoolPolicy
    if not isinstance(new, kinds) or not isinstance(old, kinds):
        return False
    block = new.spec.repair
    return old.spec.repair is None and block is not None and block.termination_mode == "Forceful"


def _still_wrong(problems: Problems) -> tuple[str, ...]:
    return tuple(f"wrong as before: {problem}" for problem in problems)


def _passed(why: str) -> Review:
    return Review(warnings=(f"tenure lets it pass: {why}",))


def _encoded(request: AdmissionRequest, reviewed: Review, api_version: str = API_VERSION) -> bytes:
    response: dict[str, Any] = {"uid": request.uid, "allowed": reviewed.allowed}
    if reviewed.warnings:
        shown = reviewed.warnings[:_WARNINGS_MAX]
        response["warnings"] = [_cut(warning, _WARNING_LENGTH) for warning in shown]
    if not reviewed.allowed:
        response["status"] = _status(request, reviewed.problems)
    review = {"apiVersion": api_version, "kind": "AdmissionReview", "response": response}
    return msgspec.json.encode(review)


def _cut(text: str, length: int) -> str:
    """One line, as the header that carries a warning."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def _status(request: AdmissionRequest, problems: Problems) -> dict[str, Any]:
    """As an API server says it of its own schema, so that kubectl lists the causes."""
    about = f"{request.kind.kind}.{request.kind.group}"
    shown = problems[:_CAUSES_MAX]
    causes = [
        {
            "reason": INVALID,
            "field": _cut(problem.at, _CAUSE_LENGTH),
            "message": _cut(_without_place(problem), _CAUSE_LENGTH),
        }
        for problem in shown
    ]
    listed = ", ".join(_cut(str(problem), _CAUSE_LENGTH) for problem in shown)
    if len(problems) > len(shown):
        listed += f", and {len(problems) - len(shown)} more"
    return {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": f'{about} "{request.name}" is invalid: {listed}',
        "details": {
            "name": request.name,
            "group": request.kind.group,
            "kind": request.kind.kind,
            "causes": causes,
        },
    }


def _without_place(problem: SpecError) -> str:
    return str(problem).removeprefix(f"{problem.at}: ")
