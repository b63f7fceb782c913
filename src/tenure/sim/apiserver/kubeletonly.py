"""What only a kubelet could answer: logs, and a shell in a container.

Pods of the embedded cluster are played, not run: nothing is logged, and there is nothing to attach to.
The answer says so, in one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tenure.errors import ApiError
from tenure.sim.apiserver.objects.refusals import bad_request
from tenure.sim.apiserver.objects.tree import Obj

PLAYED: Final = "pods of the embedded cluster are played, not run"
#: Subresource → what there is nothing of.
_WANTED: Final = {
    "attach": "no container to attach to",
    "ephemeralcontainers": "no container to debug",
    "exec": "no container to run a command in",
    "log": "no log",
    "portforward": "no port to forward",
}


def kubelet_answer(pod: Obj, subresource: str, query: Mapping[str, str]) -> ApiError | None:
    """Why there is no answer; None for a log that is not there yet, and so is empty."""
    name, container = pod["metadata"]["name"], query.get("container", "")
    spec = pod.get("spec") or {}
    known = [c.get("name") for k in ("containers", "initContainers") for c in spec.get(k) or []]
    if container and container not in known:
        return bad_request(f"container {container} is not valid for pod {name}")
    if not spec.get("nodeName"):
        if subresource == "log":
            return None
        return bad_request(f"pod {name} does not have a host assigned")
    namespace = pod["metadata"]["namespace"]
    return bad_request(f"pod {namespace}/{name} has {_WANTED[subresource]}: {PLAYED}")
