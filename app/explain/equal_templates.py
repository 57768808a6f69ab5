"""Whether the template of a manifest is that of an object that a controller has made."""

from collections.abc import Mapping
from typing import Final

from app.explain.stored_pod import amount_of

_DEFAULTS: Final[Mapping[str, object]] = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "protocol": "TCP",
    "defaultMode": 420,
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
    "scheme": "HTTP",
    "apiVersion": "v1",
    "volumeMode": "Filesystem",
}
"""The defaults of a stored template, beside empty values (pkg/apis/core/v1/defaults.go)."""
_ADDED: Final = frozenset(
    {"pod-template-hash", "$patch", "imagePullPolicy", "serviceAccount", "kubectl.kubernetes.io/restartedAt"}
)
"""What a stored template may have with any value. The last one is of `kubectl rollout restart`."""


def _is_added(key: str, value: object, *, is_stored: bool) -> bool:
    """Return whether a member that only one of two templates has makes no difference."""
    if not value or _DEFAULTS.get(key) == value:
        return True
    return is_stored and (key in _ADDED or (isinstance(value, dict) and value.keys() <= _ADDED))


def alike(given: object, stored: object) -> bool:
    """Return whether a template has become the stored one: the same, but for what defaulting adds.

    Source: pkg/controller/deployment/util/deployment_util.go (EqualIgnoreHash), which compares templates with defaults.
    """
    if isinstance(given, dict) and isinstance(stored, dict):
        return all(
            alike(given[key], stored[key])
            if key in given and key in stored
            else _is_added(key, given.get(key, stored.get(key)), is_stored=key in stored)
            for key in given.keys() | stored.keys()
        )
    if isinstance(given, list) and isinstance(stored, list):
        return len(given) == len(stored) and all(map(alike, given, stored))
    return given == stored or (given is not None and amount_of(given) == amount_of(stored) is not None)
