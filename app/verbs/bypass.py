"""Which pods pass untouched: the pods that the settings name, and Kindred's own pods, so that they can always start."""

from collections.abc import Collection
from typing import Final

from app.api_server.own_namespace import own_namespace
from app.settings import Settings
from core.objects.labels import parse_selector
from core.objects.pod import Pod

OWN_LABELS: Final = {"app.kubernetes.io/name": "kindred"}


class Bypass:
    """Returns whether a pod passes untouched."""

    def __init__(
        self,
        namespaces: Collection[str] = (),
        schedulers: Collection[str] = (),
        own_namespace: str = "",
    ) -> None:
        """Let pods of these namespaces and schedulers pass, and Kindred's own pods in `own_namespace`."""
        self._namespaces = frozenset(namespaces)
        self._schedulers = frozenset(schedulers)
        self._own_namespace = own_namespace
        self._own = parse_selector(OWN_LABELS, ())

    def covers(self, pod: Pod) -> bool:
        """Whether a pod passes."""
        return (
            pod.namespace in self._namespaces
            or pod.scheduler_name in self._schedulers
            or (pod.namespace == self._own_namespace and self._own.matches(pod.labels))
        )


NOBODY: Final = Bypass()


def create_bypass(settings: Settings) -> Bypass:
    """Return the bypass that the settings define."""
    return Bypass(settings.bypass_namespaces, settings.bypass_schedulers, own_namespace())
