"""What is wrong with a question that can be read."""


class ExplainError(Exception):
    """Something that a question says; `field` is where in it, and the message says what is wrong with it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class UnknownError(ExplainError):
    """It names what is not there."""


class TooMuchWorkError(ExplainError):
    """It is about a pod that takes more work than allowed."""


class ContradictionError(ExplainError):
    """It supposes what contradicts the cluster, or itself."""
