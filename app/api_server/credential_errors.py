"""The errors of credentials: permanent (ConfigurationError) and temporary (CredentialsError)."""


class ConfigurationError(ValueError):
    """A configuration that can never work. The message names the error and its file or context in one line."""


class CredentialsError(Exception):
    """Credentials are not available now, but may be later. The message names cause and source in one line."""
