"""The kubeconfig of a command: its options, as kubectl has them, and a client with its login."""

import asyncio
from typing import Final, TypedDict

import click

from app.api_server.client import ApiClient, impersonating
from app.api_server.credentials import Credentials, load_credentials


class KubeconfigOptions(TypedDict):
    """The values of KUBECONFIG_OPTIONS."""

    kubeconfig: str | None
    context: str | None
    impersonated: str | None
    groups: tuple[str, ...]


KUBECONFIG_OPTIONS: Final = (
    click.option("--kubeconfig", metavar="FILE", help="Kubeconfig file.  [default: as kubectl]"),
    click.option("--context", metavar="NAME", help="Context of the kubeconfig.  [default: its current context]"),
    click.option("--as", "impersonated", metavar="USER", help="User to impersonate."),
    click.option("--as-group", "groups", multiple=True, metavar="GROUP", help="Group to impersonate. Can be repeated."),
)


async def credentials_of(options: KubeconfigOptions) -> Credentials:
    """Return the credentials. Raises ConfigurationError, CredentialsError."""
    return await asyncio.to_thread(load_credentials, options["kubeconfig"], options["context"])


def client_of(credentials: Credentials, options: KubeconfigOptions) -> ApiClient:
    """Return a client that acts for the user to be impersonated. Raises ConfigurationError."""
    return ApiClient(credentials, impersonating(options["impersonated"] or "", options["groups"]))
