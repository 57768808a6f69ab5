"""The two ways of having no credentials: never, and not now."""


class ConfigurationError(ValueError):
    """A configuration that can never work. The message names the fault and its file or context in one line."""


class CredentialsError(Exception):
    """No credentials could be got now, but later they may; the message says in one line why, and where."""
