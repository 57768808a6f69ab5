"""Node usage from the metrics API, which metrics-server serves through the API server."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from app.api_server.client import ApiClient, StatusError
from app.objects.decode_node_metrics import Measurements, decode_node_metrics

PATH: Final = "/apis/metrics.k8s.io/v1beta1/nodes"
RBAC_RULE: Final = 'apiGroups: ["metrics.k8s.io"], resources: ["nodes"], verbs: ["get", "list"]'

_REMEDIES: Final[Mapping[int, str]] = {
    HTTPStatus.NOT_FOUND: "no metrics-server is installed",
    HTTPStatus.FORBIDDEN: f"the RBAC rule that is missing: {RBAC_RULE}",
    HTTPStatus.SERVICE_UNAVAILABLE: "metrics-server is not available",
}


class MetricsApi:
    """One sample per node, over the window of metrics-server (about 15 s). There are no standard deviations."""

    name = "metrics.k8s.io"

    def __init__(self, client: ApiClient) -> None:
        """`client` is the client of the API server."""
        self._client = client

    async def measurements(self) -> Measurements:
        """List all nodes; see UsageSource."""
        return decode_node_metrics(await self._client.get(PATH, {}))

    def remedy(self, error: Exception) -> str:
        """Return the remedy if the API is not installed, forbidden or not available. Else empty."""
        return _REMEDIES.get(error.code, "") if isinstance(error, StatusError) else ""

    async def close(self) -> None:
        """Close nothing: the watcher closes the client."""
