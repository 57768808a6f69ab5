"""An explanation with the caller's kubeconfig: by a service of the cluster, or of the cluster as it is listed."""

from collections.abc import Callable
from typing import Final

import click

from app.api_server.client import ApiError
from app.api_server.credentials import Credentials
from app.commands.admin_client import Access, CannotAskError, read_token
from app.commands.dump import explainer_of
from app.commands.inquiry import Inquiry, explanation_of, taken
from app.commands.kubeconfig import KUBECONFIG_OPTIONS, KubeconfigOptions, client_of, credentials_of
from app.commands.output import print_line, print_lines
from app.commands.why.cluster import MissingRightsError, list_cluster, report
from app.commands.why.service import ADMIN_PORT, Caller, NoServiceError, find_service
from app.explain.explainer import Explanation
from app.process.long_work import LongWork
from app.settings.settings import Settings
from app.verbs.request import RecentPods
from app.wiring.engine import create_profile, judged_kinds
from core.objects.groups import SchedulingGroup


class ClusterOptions(KubeconfigOptions):
    """The values of CLUSTER_OPTIONS."""

    service: str | None
    local: bool
    admin_port: int
    send_token: bool


CLUSTER_OPTIONS: Final = (
    *KUBECONFIG_OPTIONS,
    click.option(
        "--service", metavar="[NAMESPACE/]NAME", help="Service of Kindred to call.  [default: the installed one]"
    ),
    click.option("--local", is_flag=True, help="List the cluster instead of calling a service."),
    click.option(
        "--admin-port",
        type=click.IntRange(1, 65535),
        default=ADMIN_PORT,
        show_default=True,
        help="Admin port of the service's pods, for a port-forward.",
    ),
    click.option(
        "--send-token",
        is_flag=True,
        help="Send the token of the kubeconfig to the service, which checks your rights at the API server.",
    ),
)


class Options(ClusterOptions, Access):
    """The options of the source."""


async def explanation_of_cluster(
    options: Options, inquiry_of: Callable[[str], Inquiry], settings: Settings
) -> Explanation:
    """Call a service of the cluster, or list the cluster. `inquiry_of` takes the namespace of the context.

    Raises ApiError, CredentialsError, MissingRightsError, RejectedError, CannotAskError and ExplainError.
    """
    credentials = await credentials_of(options)
    inquiry = inquiry_of(credentials.namespace or "default")
    client = client_of(credentials, options)
    try:
        if not options["local"]:
            own = await _own_token(credentials) if options["send_token"] else ""
            token = read_token(options.get("token_file"))
            caller = Caller(client, token, options.get("ca_file"), own, _kubectl_options(options))
            response = await _of_service(caller, inquiry, options)
            if response is not None:
                return response
        kinds = (*judged_kinds(settings, create_profile(settings)), SchedulingGroup)
        cluster = await list_cluster(client, kinds, settings)
        report(cluster, credentials.server)
        return await explanation_of(explainer_of(settings, cluster, RecentPods(), LongWork()), inquiry)
    finally:
        await client.close()


def _kubectl_options(options: Options) -> tuple[str, ...]:
    given = {"kubeconfig": options["kubeconfig"], "context": options["context"], "as": options["impersonated"]}
    named = tuple(f"--{name}={value}" for name, value in given.items() if value)
    return (*named, *(f"--as-group={group}" for group in options["groups"]))


async def _of_service(caller: Caller, inquiry: Inquiry, options: Options) -> Explanation | None:
    """Return the service's response; None if there is no service, or one that cannot be called and was not named."""
    try:
        transport = await find_service(caller.client, options["service"] or "", options["admin_port"])
        print_line(f"Calling {transport}", err=True)
        return taken(await transport.post(caller, "/explain", inquiry.query, inquiry.body), str(transport))
    except NoServiceError as error:
        print_line(f"Listing the cluster: {error}", err=True)
    except (ApiError, CannotAskError, MissingRightsError) as error:
        if options["service"] is not None:
            raise
        begin = f"Listing the cluster, because the service cannot be called: {error}"
        print_lines([begin, *getattr(error, "rules", ())], err=True)
    return None


async def _own_token(credentials: Credentials) -> str:
    """Return the bearer token that the kubeconfig logs in with. Raises CannotAskError, CredentialsError."""
    scheme, _, token = (await credentials.headers()).get("Authorization", "").partition(" ")
    if scheme != "Bearer":
        raise CannotAskError(
            "--send-token: your kubeconfig logs in without a token, such as by a client certificate, and a service "
            "cannot ask the API server on behalf of that; use `kubectl create token`, or --local"
        )
    return token
