"""`kindred explain` and `kindred why`: why a pod fits on a node or not, by a dump, a service or a kubeconfig."""

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import Final, Unpack

import click
import msgspec

from app.admin.access import CALLER_HEADER
from app.api_server.client import ApiError
from app.api_server.credentials import ConfigurationError, CredentialsError
from app.commands.admin_client import ACCESS_OPTIONS, Access, get_response
from app.commands.dump import SOURCE_OPTIONS, Source, explainer_of, is_of_dump, load_dump
from app.commands.explanation_text import explanation_text
from app.commands.inquiry import INQUIRY_OPTIONS, InquiryOptions, RejectedError, explanation_of, inquiry_of, taken
from app.commands.options import (
    EXIT_NO,
    EXIT_OK,
    OF_EXPLANATIONS,
    clear_errors,
    explaining_settings,
    given_options,
    output_option,
    refuse_options,
    settings_options,
    with_options,
)
from app.commands.output import OutputFormat, node_name, print_output
from app.commands.why.cluster import MissingRightsError
from app.commands.why.kubeconfig import CLUSTER_OPTIONS, ClusterOptions, explanation_of_cluster
from app.explain.explain_request import UnknownError
from app.explain.explainer import Explanation
from app.explain.known_pods import UNKNOWN_POD
from app.process.long_work import LongWork
from app.verbs.request import RecentPods
from app.verbs.wire_in import decode_incoming_pod
from app.wiring.engine import check_explained

_OF_A_URL: Final = frozenset({"url", "caller_token_file"})
_OF_A_SERVICE: Final = frozenset({"service", "admin_port", "token_file", "send_token", "ca_file"})
_OF_A_CLUSTER: Final = frozenset(ClusterOptions.__annotations__)
_OF_A_DUMP: Final = frozenset(Source.__annotations__)
_OF_A_JUDGE: Final = frozenset({"config", *OF_EXPLANATIONS})


class Options(InquiryOptions, Access, Source, ClusterOptions):
    """All options of the command."""

    config: Path | None
    output: OutputFormat


def _explain(**options: Unpack[Options]) -> None:
    """Explain why a pod fits on nodes or does not, also under suppositions.

    Reads a dump (--snapshot, --demo), calls the admin port of a service (--server), or takes a kubeconfig as kubectl
    does. With the latter, it calls a service of the cluster, or lists the cluster with your rights. Without any of
    these, `explain` calls the default --server, and `why` takes your kubeconfig. Both are one command.

    The pod is NAME, NAMESPACE/NAME, a uid, or TYPE/NAME of a workload (deploy, sts, rs, ds, job, cj, rc), of which the
    pod is explained that has waited longest; or its manifest is in a file (-f). With -o name, prints the nodes with
    the best scores. Ends with 0 if the pod fits somewhere, 1 if nowhere, and 2 for errors.
    """
    if not any(options["pod"]) and options["file"] is None:
        raise click.UsageError("Give a pod (NAME, NAMESPACE/NAME, TYPE/NAME or a uid), or -f FILE.")
    is_of_cluster = _is_of_cluster(options)
    of_a_dump = not is_of_cluster and is_of_dump(options)
    with clear_errors(ApiError, CredentialsError, MissingRightsError, RejectedError):
        if is_of_cluster:
            explanation = _of_cluster(options)
        elif of_a_dump:
            explanation = _of_dump(options)
        else:
            inquiry = inquiry_of(options)
            response = get_response(options, "POST", "/explain", inquiry.query, inquiry.body)
            explanation = taken(response, options["url"])
    best = map(node_name, (each.node for each in explanation.summary.best))
    print_output(options["output"], explanation, partial(explanation_text, explanation), best)
    sys.exit(EXIT_OK if explanation.summary.fit else EXIT_NO)


def _is_of_cluster(options: Options) -> bool:
    """Return whether a kubeconfig is the source. Raises UsageError for options of another source."""
    if options["demo"] or options["snapshot"] is not None:
        refuse_options(_OF_A_CLUSTER, "for a kubeconfig, not for a dump")
        return False
    if given_options(_OF_A_URL):
        refuse_options(_OF_A_CLUSTER, "for a kubeconfig, not for --server")
        return False
    is_why = click.get_current_context().info_name == "why"
    if not (is_why or given_options(_OF_A_CLUSTER)):
        return False
    refuse_options(_OF_A_DUMP, "for a dump, not for a kubeconfig")
    if options["local"]:
        refuse_options(_OF_A_SERVICE, "for a service, not for --local")
    else:
        refuse_options(_OF_A_JUDGE, "for --local: a service has its settings")
    if options["send_token"] and (options["impersonated"] or options["groups"]):
        raise click.UsageError("--send-token: the token is your own, not the one of --as")
    return True


def _of_cluster(options: Options) -> Explanation:
    settings = explaining_settings(options)
    check_explained(settings)  # before a needless request
    try:
        return asyncio.run(explanation_of_cluster(options, partial(inquiry_of, options), settings))
    except ConfigurationError as error:
        raise RejectedError(f"{error}; instead of a kubeconfig, take --snapshot FILE or --server URL") from None
    except (RejectedError, UnknownError) as error:
        if CALLER_HEADER in str(error) and not options["send_token"]:
            hint = "--send-token sends the token of your kubeconfig to the service, which you must trust"
            raise RejectedError(f"{error}; {hint}; --local calls no service") from None
        if UNKNOWN_POD in str(error) and not options["all_namespaces"]:
            raise RejectedError(f"{error}; name another namespace with -n, or look in all with -A") from None
        raise


def _of_dump(options: Options) -> Explanation:
    """Explain with the code of a service. Raises SettingsError, SnapshotError, DecodeError and ExplainError."""
    inquiry = inquiry_of(options)
    settings = explaining_settings(options)
    check_explained(settings)  # fails before a large dump is loaded
    dump = load_dump(settings, options)
    waiting = RecentPods()
    for raw in dump.pods(inquiry.pods):  # the mirror lacks pods that have ended
        waiting.add(decode_incoming_pod(msgspec.Raw(raw)), raw)
    return asyncio.run(explanation_of(explainer_of(settings, dump, waiting, LongWork()), inquiry, dump.others()))


_OPTIONS: Final = (*INQUIRY_OPTIONS, output_option(), *SOURCE_OPTIONS, *ACCESS_OPTIONS, *CLUSTER_OPTIONS)


def _named(name: str) -> click.Command:
    decorated = click.argument("pod", nargs=-1, metavar="[POD]")(with_options(_OPTIONS)(_explain))
    return click.command(name, params=settings_options(OF_EXPLANATIONS, profile="full"))(decorated)


explain_command, why_command = map(_named, ("explain", "why"))
