"""`kindred why`: why a pod of the cluster is pending, with the caller's kubeconfig and nothing else."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypedDict, Unpack

import click
import msgspec

from app.admin.access import CALLER_HEADER
from app.admin.explain_routes import MAX_SHOWN
from app.api_server.client import ApiClient, ApiError
from app.api_server.credentials import ConfigurationError, Credentials, CredentialsError, load_credentials
from app.api_server.impersonation import Impersonation
from app.commands.admin_client import CannotAskError
from app.commands.dump import mirror_explainer
from app.commands.explain import Inquiry, RefusedError, explanation_of, print_explanation, taken
from app.commands.options import (
    OF_EXPLANATIONS,
    ExplanationFlags,
    exit_with_error,
    flags_of_explanations,
    loaded_settings,
    output_option,
    refuse_options,
    settings_options,
    with_options,
)
from app.commands.output import OutputFormat, counted, print_line, print_lines, print_progress
from app.commands.why.cluster import MissingRightsError, list_cluster
from app.commands.why.pod_argument import Argument, NotPendingError, PendingPod, find_pod, parse_argument
from app.commands.why.service import ADMIN_PORT, Caller, NoServiceError, Way, find_way
from app.explain.explain_request import ExplainError
from app.objects.decode import DecodeError
from app.objects.decode_pod import decode_pod
from app.process.files import MAX_TOKEN_BYTES, read_file
from app.process.json_text import encode
from app.process.long_work import LongWork
from app.settings.settings import Settings, SettingsError
from app.verbs.effects import RecentPods
from app.wiring.engine import check_explained, create_profile, judged_kinds
from core.events import Kind
from core.objects.groups import SchedulingGroup

_FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)
_OF_A_SERVICE: Final = frozenset({"service", "admin_port", "token_file", "send_token", "ca_file"})
_OF_A_LIST: Final = frozenset({"config", *OF_EXPLANATIONS})
_ORIGINS: Final[Mapping[str, str]] = {"node": "--why-not"}
_PROFILE: Final = "full"
"""Every rule of kube-scheduler, unless options or a file select others: there is no service whose rules apply."""


class ClusterFlags(TypedDict):
    """kubectl's options for the cluster and the user."""

    kubeconfig: str | None
    context: str | None
    impersonated: str | None
    groups: tuple[str, ...]


class Options(ClusterFlags, ExplanationFlags):
    """All options of the command."""

    pod: tuple[str, ...]
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
    click.option("--token-file", type=_FILE, help="File with a token of the admin port."),
    click.option(
        "--send-token",
        is_flag=True,
        help="Send the token of the kubeconfig to the service, which checks your rights at the API server.",
    ),
    click.option("--ca-file", type=_FILE, help="Certificate authorities, PEM, of the service's certificate."),
)


@click.command("why", params=settings_options(OF_EXPLANATIONS))
@click.argument("pod", nargs=-1, required=True, metavar="(NAME | TYPE/NAME)")
@click.option("--namespace", "-n", help="Namespace of the pod.  [default: the namespace of the context]")
@click.option("--all-namespaces", "-A", is_flag=True, help="Search the pod in all namespaces.")
@click.option("--why-not", multiple=True, metavar="NODE", help="Show all results of this node. Can be repeated.")
@click.option(
    "--limit",
    type=click.IntRange(0, MAX_SHOWN),
    default=5,
    show_default=True,
    help="Maximum number of domains, pods and nodes in a list.",
)
@output_option()
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
    try:
        answer = asyncio.run(_answer(argument, options))
    except (
        ApiError,
        CannotAskError,
        ConfigurationError,
        CredentialsError,
        DecodeError,
        MissingRightsError,
        NotPendingError,
        SettingsError,
    ) as error:
        exit_with_error(error, _rules(error))
    except RefusedError as error:
        wants_token = CALLER_HEADER in str(error) and not options["send_token"]
        hint = (
            "; --send-token sends the token of your kubeconfig to the service, which you must trust; "
            "--local calls no service"
        )
        exit_with_error(f"{_ORIGINS.get(error.field, error.field)}: {error}{hint if wants_token else ''}")
    sys.exit(print_explanation(answer, options["output"]))


async def _answer(argument: Argument, options: Options) -> bytes:
    """Return the explanation as JSON. Raises errors that `why_command` turns into a line."""
    settings = _settings(options)
    check_explained(settings)  # before a needless request
    credentials = await asyncio.to_thread(load_credentials, options["kubeconfig"], options["context"])
    impersonation = Impersonation(options["impersonated"] or "", options["groups"])
    client = ApiClient(credentials, impersonation)
    try:
        namespace = "" if options["all_namespaces"] else options["namespace"] or credentials.namespace or "default"
        pod = await find_pod(client, argument, namespace)
        _say_which(argument, pod)
        inquiry = _inquiry(pod, options)
        way = None if options["local"] else await _way(client, options)
        if way is not None:
            token, own = _token(options["token_file"]), await _own_token(credentials) if options["send_token"] else ""
            caller = Caller(client, token, options["ca_file"], own, _kubectl_options(options))
            answer = await _of_service(way, caller, inquiry, is_wanted=options["service"] is not None)
            if answer is not None:
                return answer
        return await _of_list(client, credentials, settings, inquiry, _kinds(settings, pod))
    finally:
        await client.close()


def _kubectl_options(options: Options) -> tuple[str, ...]:
    given = {"kubeconfig": options["kubeconfig"], "context": options["context"], "as": options["impersonated"]}
    named = tuple(f"--{name}={value}" for name, value in given.items() if value)
    return (*named, *(f"--as-group={group}" for group in options["groups"]))


def _settings(options: Options) -> Settings:
    flags = flags_of_explanations(options)
    if options["config"] is None and flags["profile"] is None:
        flags = {**flags, "profile": _PROFILE}
    return loaded_settings(options["config"], flags)


def _inquiry(pod: PendingPod, options: Options) -> Inquiry:
    body = encode({"pod": msgspec.Raw(pod.manifest)})
    nodes, limit = options["why_not"], options["limit"]
    return Inquiry(body, frozenset(), nodes, limit, "fitting", f"pod {pod.full_name}", _ORIGINS)


def _say_which(argument: Argument, pod: PendingPod) -> None:
    if argument.kind.kind != "Pod":
        print_line(f"Of {argument}: pod {pod.full_name}", err=True)
    if pod.gates:
        gates = ", ".join(pod.gates)
        print_line(f"kube-scheduler does not try the pod before its scheduling gates are removed: {gates}", err=True)


async def _way(client: ApiClient, options: Options) -> Way | None:
    """Return the way to a service; None if there is none and none is named."""
    try:
        return await find_way(client, options["service"] or "", options["admin_port"])
    except NoServiceError as error:
        print_line(f"Listing the cluster: {error}", err=True)
    except (CannotAskError, MissingRightsError) as error:
        if options["service"] is not None:
            raise
        _say_that_it_lists(error)
    return None


async def _of_service(way: Way, caller: Caller, inquiry: Inquiry, *, is_wanted: bool) -> bytes | None:
    """Return the service's response; None if it cannot be called and was not named."""
    print_line(f"Calling {way}", err=True)
    query = {"node": inquiry.nodes, "limit": [str(inquiry.limit)], "score": [inquiry.score]}
    try:
        return taken(await way.post(caller, "/explain", query, inquiry.body), str(way))
    except (ApiError, CannotAskError, MissingRightsError) as error:
        if is_wanted:
            raise
        _say_that_it_lists(error)
        return None


def _say_that_it_lists(error: Exception) -> None:
    begin = f"Listing the cluster, because the service cannot be called: {error}"
    print_lines([begin, *_rules(error)], err=True)


def _rules(error: Exception) -> Sequence[str]:
    return error.rules if isinstance(error, MissingRightsError) else ()


def _token(file: Path | None) -> str:
    if file is None:
        return ""
    try:
        return read_file(file, MAX_TOKEN_BYTES).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotAskError(f"--token-file {file}: {error}") from None


async def _own_token(credentials: Credentials) -> str:
    """Return the bearer token that the kubeconfig logs in with. Raises CannotAskError, CredentialsError."""
    scheme, _, token = (await credentials.headers()).get("Authorization", "").partition(" ")
    if scheme != "Bearer":
        raise CannotAskError(
            "--send-token: your kubeconfig logs in without a token, such as by a client certificate, and a service "
            "cannot ask the API server on behalf of that; use `kubectl create token`, or --local"
        )
    return token


def _kinds(settings: Settings, pod: PendingPod) -> Sequence[Kind]:
    """Return the kinds to list: the kinds that rules read, and PodGroups for a member. Raises DecodeError."""
    kinds = judged_kinds(settings, create_profile(settings))
    return (*kinds, SchedulingGroup) if decode_pod(pod.manifest).in_scheduling_group else kinds


async def _of_list(
    client: ApiClient, credentials: Credentials, settings: Settings, inquiry: Inquiry, kinds: Sequence[Kind]
) -> bytes:
    """List the cluster, and explain with the code of a service."""
    shown = _Progress()
    cluster = await list_cluster(client, kinds, settings, shown)
    shown.end([(state.plural, state.objects) for state in cluster.states if state.synced], credentials.server)
    explainer = mirror_explainer(
        settings,
        cluster.mirror,
        RecentPods(),
        LongWork(),
        freshness=cluster.freshness,
        release=cluster.release,
    )
    try:
        return await explanation_of(explainer, inquiry)
    except DecodeError as error:
        raise RefusedError(error.field, error.message) from None
    except ExplainError as error:
        raise RefusedError(error.field, str(error).removeprefix(f"{error.field}: ")) from None


class _Progress:
    """Shows the progress of a list on a terminal, on one line that is overwritten."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()

    def __call__(self, plural: str, number: int) -> None:
        """Show the number of objects of a kind so far."""
        if self._is_shown:
            print_progress(f"Listing {plural}: {number:,}")

    def end(self, listed: Sequence[tuple[str, int]], server: str) -> None:
        """Print a summary of the cluster."""
        if self._is_shown:
            print_progress("")
        kinds = ", ".join(f"{number:,} {plural}" for plural, number in listed if number)
        print_line(f"Listed {kinds or counted(0, 'object')} of {server}", err=True)
