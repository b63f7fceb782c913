"""What a client asks about itself: may I, what may I, who am I.

There is one token, and its holder may do everything.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

#: The one user.
USER: Final = "tenure-up"
_GROUPS: Final = ("system:masters", "system:authenticated")
_ALL: Final = ("*",)
_RULES: Final[dict[str, Any]] = {
    "resourceRules": [{"verbs": _ALL, "apiGroups": _ALL, "resources": _ALL}],
    "nonResourceRules": [{"verbs": _ALL, "nonResourceURLs": _ALL}],
    "incomplete": False,
}
_ALLOWED: Final[dict[str, Any]] = {"allowed": True}
_USER_INFO: Final[dict[str, Any]] = {"userInfo": {"username": USER, "groups": _GROUPS}}
_AUTHORIZATION: Final = "authorization.k8s.io/v1"
_AUTHENTICATION: Final = "authentication.k8s.io/v1"
#: Group and version, plural, kind, and the status that is answered.
_REVIEWS: Final = (
    (_AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview", _ALLOWED),
    (_AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview", _RULES),
    (_AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview", _USER_INFO),
)
#: Path of the request → the answer.
ANSWERS: Final = {
    f"/apis/{version}/{plural}": msgspec.json.encode(
        {"kind": kind, "apiVersion": version, "metadata": {}, "spec": {}, "status": status}
    )
    for version, plural, kind, status in _REVIEWS
}
