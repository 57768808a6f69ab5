"""What is wrong with a question that can be read."""


class QuestionError(Exception):
    """Something that a question says; `field` is where in it, and the message says what is wrong with it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class UnknownError(QuestionError):
    """It names what is not there."""


class ContradictionError(QuestionError):
    """It supposes what contradicts the cluster, or itself."""
