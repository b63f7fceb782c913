"""The webhook of a replica, as its settings and its place have it."""

from __future__ import annotations

from tenure.cli.cluster.access import Reached
from tenure.kube.client.client import Client
from tenure.kube.webhook.admission import Admission, Review
from tenure.kube.webhook.webhook import Webhook, WebhookSettings
from tenure.model.settings import Settings
from tenure.ports.provider import Provider
from tenure.runtime.clock.system import SystemClock
from tenure.runtime.telemetry.logs import Log
from tenure.runtime.telemetry.metrics import Metrics


def new_webhook(
    settings: Settings,
    reached: Reached,
    provider: Provider,
    *,
    client: Client,
    log: Log,
    metrics: Metrics,
) -> Webhook | None:
    """None where it is turned off, and beside Karpenter, whose kinds are not ours to refuse. ``client`` has no fence: every replica serves, leader or not."""
    if not settings.webhook_port or settings.beside_karpenter:
        return None

    def count(reviewed: Review) -> None:
        metrics.reviews.labels(reviewed.answer).inc()

    own = reached.access.namespace if reached.in_pod else ""
    return Webhook(
        client=client,
        clock=SystemClock(),
        admission=Admission([kind.group_kind for kind in provider.node_classes], provider.kinds),
        settings=WebhookSettings(
            name=settings.webhook_name,
            namespace=own or settings.lease_namespace,
            is_pod=reached.in_pod,
            port=settings.webhook_port,
        ),
        say=log.info,
        complain=log.warning,
        reviewed=count,
    )
