"""Every name that the KWOK provider writes on a Node beside the well-known ones.

Labels are Karpenter's, so that its users' selectors go on working. The annotations are
ours: an instance has no other place for its tags.
"""

from __future__ import annotations

from typing import Final

#: Of the provider's kinds, labels and annotations.
GROUP: Final = "karpenter.kwok.sh"

# Labels that pools and pods may ask for.
INSTANCE_SIZE: Final = f"{GROUP}/instance-size"
INSTANCE_FAMILY: Final = f"{GROUP}/instance-family"
INSTANCE_CPU: Final = f"{GROUP}/instance-cpu"
INSTANCE_MEMORY: Final = f"{GROUP}/instance-memory"

# Labels for others.
#: kwok plays the kubelet of nodes with this label; it looks for an annotation of that name, too.
KWOK_NODE: Final = "kwok.x-k8s.io/node"
KWOK_NODE_VALUE: Final = "fake"
#: Which of several kwok controllers plays the node; Karpenter has one, called ``a``.
PARTITION: Final = "kwok-partition"
PARTITION_VALUE: Final = "a"
#: Dollars per hour, with six decimals.
PRICE: Final = "eks-node-viewer/instance-price"
#: What a user announces about the Node's instance, to try it (``notices``).
NOTICE: Final = f"{GROUP}/notice"

# Annotations: the tags of the instance.
CLUSTER: Final = f"{GROUP}/cluster"
CLAIM: Final = f"{GROUP}/claim"
CLAIM_UID: Final = f"{GROUP}/claim-uid"
LAUNCHED_AT: Final = f"{GROUP}/launched-at"
IMAGE: Final = f"{GROUP}/image"
#: The mark: the instance is terminated, whatever still holds its Node.
TERMINATED_AT: Final = f"{GROUP}/terminated-at"
#: On the envelope of a Node that is not registered yet: when it is due.
REGISTERS_AT: Final = f"{GROUP}/registers-at"

PROVIDER_ID_PREFIX: Final = "kwok://"
