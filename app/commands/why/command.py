"""`kindred why`: why a pod of the cluster is pending, with the caller's kubeconfig and nothing else."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypedDict, Unpack

import click
import msgspec

from app.admin.access import CALLER_HEADER
from app.api_server.client import ApiClient, ApiError, Impersonation
from app.api_server.credentials import Credentials, CredentialsError, load_credentials
from app.commands.admin_client import FILE, CannotAskError, read_token
from app.commands.dump import explainer_of
from app.commands.explain import DETAIL_OPTIONS, Inquiry, RefusedError, explanation_of, print_explanation, taken
from app.commands.options import (
    OF_EXPLANATIONS,
    clear_errors,
    exit_with_error,
    explaining_settings,
    refuse_options,
    settings_options,
    with_options,
)
from app.commands.output import OutputFormat, counted, print_line, print_lines
from app.commands.why.cluster import MissingRightsError, list_cluster
from app.commands.why.pod_argument import Argument, NotPendingError, find_pod, parse_argument
from app.commands.why.service import ADMIN_PORT, Caller, NoServiceError, find_way
from app.explain.explainer import Explanation
from app.process.json_text import encode
from app.process.long_work import LongWork
from app.settings.settings import Settings
from app.verbs.request import RecentPods
from app.wiring.engine import check_explained, create_profile, judged_kinds
from core.events import Kind
from core.objects.groups import SchedulingGroup
from core.objects.pod import Pod

_OF_A_SERVICE: Final = frozenset({"service", "admin_port", "token_file", "send_token", "ca_file"})
_OF_A_LIST: Final = frozenset({"config", *OF_EXPLANATIONS})


class Options(TypedDict):
    """All options of the command."""

    pod: tuple[str, ...]
    kubeconfig: str | None
    context: str | None
    impersonated: str | None
    groups: tuple[str, ...]
    namespace: str | None
    all_namespaces: bool
    service: str | None
    local: bool
    admin_port: int
    token_file: Path | None
    send_token: bool
    ca_file: Path | None
    why_not: tuple[str, ...]
    limit: int
    config: Path | None
    output: OutputFormat


CLUSTER_OPTIONS: Final = (
    click.option("--kubeconfig", metavar="FILE", help="Kubeconfig file.  [default: as kubectl]"),
    click.option("--context", metavar="NAME", help="Context of the kubeconfig.  [default: its current context]"),
    click.option("--as", "impersonated", metavar="USER", help="User to impersonate."),
    click.option("--as-group", "groups", multiple=True, metavar="GROUP", help="Group to impersonate. Can be repeated."),
)
_SERVICE_OPTIONS: Final = (
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
    click.option("--token-file", type=FILE, help="File with a token of the admin port."),
    click.option(
        "--send-token",
        is_flag=True,
        help="Send the token of the kubeconfig to the service, which checks your rights at the API server.",
    ),
    click.option("--ca-file", type=FILE, help="Certificate authorities, PEM, of the service's certificate."),
)


@click.command("why", params=settings_options(OF_EXPLANATIONS))
@click.argument("pod", nargs=-1, required=True, metavar="(NAME | TYPE/NAME)")
@click.option("--namespace", "-n", help="Namespace of the pod.  [default: the namespace of the context]")
@click.option("--all-namespaces", "-A", is_flag=True, help="Search the pod in all namespaces.")
@with_options(DETAIL_OPTIONS)
@with_options(CLUSTER_OPTIONS)
@with_options(_SERVICE_OPTIONS)
def why_command(**options: Unpack[Options]) -> None:
    """Explain why a pod of the cluster is pending.

    TYPE is pod, deploy, sts, rs, ds, job or rc. For a workload, the command explains the pod that has waited longest.
    It calls a Kindred service in the cluster if there is one. Otherwise it lists the cluster with the rights of the
    caller. Ends with 0 if the pod fits somewhere, 1 if nowhere, and 2 for errors.
    """
    argument = parse_argument(options["pod"])
    if options["namespace"] is not None and options["all_namespaces"]:
        raise click.UsageError("Give either -n or -A.")
    if options["send_token"] and (options["impersonated"] or options["groups"]):
        raise click.UsageError("--send-token: the token is your own, not the one of --as")
    if options["local"]:
        refuse_options(_OF_A_SERVICE, "for a service, not for --local")
    else:
        refuse_options(_OF_A_LIST, "for --local: a service has its settings")
    with clear_errors(ApiError, CredentialsError, MissingRightsError, NotPendingError):
        try:
            explanation = asyncio.run(_explanation(argument, options))
        except RefusedError as error:
            if CALLER_HEADER not in str(error) or options["send_token"]:
                exit_with_error(error)
            exit_with_error(
                f"{error}; --send-token sends the token of your kubeconfig to the service, which you must trust; "
                "--local calls no service"
            )
    sys.exit(print_explanation(explanation, options["output"]))


async def _explanation(argument: Argument, options: Options) -> Explanation:
    settings = explaining_settings(options)
    check_explained(settings)  # before a needless request
    credentials = await asyncio.to_thread(load_credentials, options["kubeconfig"], options["context"])
    impersonation = Impersonation(options["impersonated"] or "", options["groups"])
    client = ApiClient(credentials, impersonation)
    try:
        namespace = "" if options["all_namespaces"] else options["namespace"] or credentials.namespace or "default"
        pod, manifest = await find_pod(client, argument, namespace)
        _say_which(argument, pod)
        inquiry = Inquiry(encode({"pod": msgspec.Raw(manifest)}), options["why_not"], options["limit"])
        if not options["local"]:
            own = await _own_token(credentials) if options["send_token"] else ""
            token = read_token(options["token_file"])
            caller = Caller(client, token, options["ca_file"], own, _kubectl_options(options))
            answer = await _of_service(caller, inquiry, options)
            if answer is not None:
                return answer
        cluster = await list_cluster(client, _kinds(settings, pod), settings)
        states = [state for state in cluster.freshness.states if state.synced and state.objects]
        listed = ", ".join(f"{state.objects:,} {state.plural}" for state in states) or counted(0, "object")
        print_line(f"Listed {listed} of {credentials.server}", err=True)
        return await explanation_of(explainer_of(settings, cluster, RecentPods(), LongWork()), inquiry)
    finally:
        await client.close()


def _kubectl_options(options: Options) -> tuple[str, ...]:
    given = {"kubeconfig": options["kubeconfig"], "context": options["context"], "as": options["impersonated"]}
    named = tuple(f"--{name}={value}" for name, value in given.items() if value)
    return (*named, *(f"--as-group={group}" for group in options["groups"]))


def _say_which(argument: Argument, pod: Pod) -> None:
    if argument.kind.kind != "Pod":
        print_line(f"Of {argument}: pod {pod.full_name}", err=True)
    if pod.waiting.gates:
        gates = ", ".join(pod.waiting.gates)
        print_line(f"kube-scheduler does not try the pod before its scheduling gates are removed: {gates}", err=True)


async def _of_service(caller: Caller, inquiry: Inquiry, options: Options) -> Explanation | None:
    """Return the service's response; None if there is no service, or one that cannot be called and was not named."""
    try:
        way = await find_way(caller.client, options["service"] or "", options["admin_port"])
        print_line(f"Calling {way}", err=True)
        return taken(await way.post(caller, "/explain", inquiry.query, inquiry.body), str(way))
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


def _kinds(settings: Settings, pod: Pod) -> Sequence[Kind]:
    kinds = judged_kinds(settings, create_profile(settings))
    return (*kinds, SchedulingGroup) if pod.in_scheduling_group else kinds
