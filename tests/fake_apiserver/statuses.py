"""The errors of a kube-apiserver: v1.Status values, with the messages of v1.34.

Source: k8s.io/apimachinery pkg/api/errors/errors.go, k8s.io/apiserver pkg/storage/{errors.go,etcd3/errors.go}.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from tests.fake_apiserver.resources import Resource

Status: TypeAlias = Mapping[str, Any]


class RejectedError(Exception):
    """A request whose response is a Status. `in_stream`: a watch returns 200 and then the Status as an ERROR event."""

    def __init__(self, status: Status, *, in_stream: bool = False) -> None:
        super().__init__(status["message"])
        self.status = status
        self.in_stream = in_stream


def failure(code: int, reason: str, message: str, details: Status | None = None, continue_token: str = "") -> Status:
    """Make a Status of a failure."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {"continue": continue_token} if continue_token else {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        **({"details": details} if details else {}),
        "code": code,
    }


def bad_request(message: str) -> Status:
    return failure(400, "BadRequest", message)


def unauthorized() -> Status:
    return failure(401, "Unauthorized", "Unauthorized")


def forbidden(user: str, verb: str, resource: Resource) -> Status:
    """Return RBAC's error for a user without the right to list or watch a resource."""
    qualified = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    message = (
        f'{qualified} is forbidden: User "{user}" cannot {verb} resource "{resource.plural}" '
        f'in API group "{resource.group}" at the cluster scope'
    )
    details = {**({"group": resource.group} if resource.group else {}), "kind": resource.plural}
    return failure(403, "Forbidden", message, details)


def not_found() -> Status:
    return failure(404, "NotFound", "the server could not find the requested resource", {})


def no_such_object(resource: Resource, name: str) -> Status:
    """Return the error that a resource has no object of a name."""
    return failure(404, "NotFound", f'{resource.plural} "{name}" not found', {"name": name, "kind": resource.plural})


def conflict(resource: str, name: str, error: str) -> Status:
    """Return the error that an object's state does not allow a change. The resource may be a subresource."""
    message = f'Operation cannot be fulfilled on {resource} "{name}": {error}'
    return failure(409, "Conflict", message, {"name": name, "kind": resource})


def expired_watch(version: int, oldest: int) -> Status:
    """Return the error that the watch cache no longer has the events after a version."""
    return failure(410, "Expired", f"too old resource version: {version} ({oldest})")


def expired_list() -> Status:
    return failure(410, "Expired", "The resourceVersion for the provided list is too old.")


def expired_continue(continue_token: str = "") -> Status:
    """Return the error that the snapshot of a paged list expired, with a token for an inconsistent continuation."""
    message = (
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    return failure(410, "Expired", message, continue_token=continue_token)


def invalid_option(field: str, message: str) -> Status:
    """Return the error of a list option."""
    message = f"Forbidden: {message}"
    causes = [{"reason": "FieldValueForbidden", "message": message, "field": field}]
    details = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": causes}
    return failure(422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {field}: {message}', details)


def watch_list_disabled() -> Status:
    """Return the error of a server without the WatchList feature for sendInitialEvents."""
    message = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
    return invalid_option("sendInitialEvents", message)


def internal_error(message: str = "etcdserver: request timed out") -> Status:
    return failure(500, "InternalError", f"Internal error occurred: {message}", {"causes": [{"message": message}]})


def unavailable(message: str = "the server is currently unable to handle the request") -> Status:
    return failure(503, "ServiceUnavailable", message)


def too_many_requests(retry_after: int = 1) -> Status:
    """Return the error of an unready watch cache. Priority and fairness returns the same code in plain text."""
    return failure(429, "TooManyRequests", "storage is (re)initializing", {"retryAfterSeconds": retry_after})


def too_large_version(version: int, current: int, retry_after: int = 1) -> Status:
    """Return the error that a version is newer than the server's."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    details = {"causes": [cause], **({"retryAfterSeconds": retry_after} if retry_after else {})}
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    return failure(504, "Timeout", message, details)
