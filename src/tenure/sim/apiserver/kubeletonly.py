"""What only a kubelet could answer: logs, and a shell in a container.

No kubelet of the embedded cluster can be reached, so the answers are those of a server
whose nodes have no address.
"""

from __future__ import annotations

from collections.abc import Mapping

from tenure.errors import ApiError
from tenure.sim.apiserver.objects.refusals import Unexplained, bad_request
from tenure.sim.apiserver.objects.tree import Obj, dig


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
    addresses = dig(pod, "status", "hostIPs") or []
    return Unexplained(f"no preferred addresses found; known addresses: {addresses}")
