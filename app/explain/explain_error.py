"""Errors of a readable request."""


class ExplainError(Exception):
    """An error in a request. `field` is the place of the error."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class UnknownError(ExplainError):
    """The request names an unknown object."""


class TooMuchWorkError(ExplainError):
    """The pod of the request takes more work than allowed."""


class ContradictionError(ExplainError):
    """A supposition contradicts the cluster, or another supposition."""
