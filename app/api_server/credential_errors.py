"""The two ways of having no credentials: never, and not now."""


class ConfigurationError(ValueError):
    """A configuration that can never work; the message says in one line what is wrong, and in which file or context."""


class CredentialsError(Exception):
    """No credentials could be got now, but later they may; the message says in one line why, and where."""
