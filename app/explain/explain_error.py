"""Errors of a request that can be read."""


class ExplainError(Exception):
    """An error in a request; `field` is the place, and the message the fault."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class UnknownError(ExplainError):
    """It names a missing object."""


class TooMuchWorkError(ExplainError):
    """It is about a pod that takes more work than allowed."""


class ContradictionError(ExplainError):
    """It supposes what contradicts the cluster, or itself."""
