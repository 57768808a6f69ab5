"""The cluster of a question: a dump, the demo, or one that is listed with the rights of a kubeconfig."""

import asyncio
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from app.api_server.client import ApiError
from app.api_server.credentials import ConfigurationError, CredentialsError
from app.commands.dump import Cluster, Source, load_dump, without_quotas
from app.commands.kubeconfig import KubeconfigOptions, client_of, credentials_of
from app.commands.options import clear_errors, exit_with_error, loaded_settings, refuse_options, settings_options
from app.commands.why.cluster import MissingRightsError, list_cluster, report
from app.objects.decode import DecodeError
from app.settings.settings import Settings
from app.simulation.assumptions import Lack
from app.simulation.chosen_nodes import QuestionError
from app.simulation.comes_again import ClusterFacts, Creator
from app.simulation.objects_at_hand import OF_OWNERS, take_items, take_listed
from app.simulation.questions import QuestionCluster
from app.simulation.raw_objects import RawObjects
from app.wiring.engine import apply_partition, check_explained, for_simulations, simulated_kinds, simulated_schedulers
from core.events import Kind

_SETTINGS: Final = ("kubernetes", "feature_gates", "scheduler_config")
NODES_OPTIONS: Final = (
    click.argument("nodes", nargs=-1, metavar="[NODE]..."),
    click.option("--selector", "-l", default="", metavar="LABELS", help="Nodes with these labels, as for kubectl."),
    click.option("--zone", default="", metavar="ZONE", help="Nodes of this zone."),
)
_OF_KUBECONFIG: Final = frozenset({*KubeconfigOptions.__annotations__, "dry_run_create"})
OF_ITS_OWN_CLUSTER: Final = frozenset({"config", *_SETTINGS, *Source.__annotations__, *_OF_KUBECONFIG})
"""Options that are not for a running service."""
_UNNAMED: Final = frozenset({"nodes", "of", "manifests"})
"""Fields of a question that are arguments, or whose messages name the object."""
_MANIFEST: Final = re.compile(r"\Amanifests\[\d+\]\.?")


class QuestionSource(Source, KubeconfigOptions):
    """The values of the options that choose a cluster, and of the settings."""

    config: Path | None


class NodesSource(QuestionSource):
    """The values of NODES_OPTIONS, too."""

    nodes: tuple[str, ...]
    selector: str
    zone: str


def question_settings() -> list[click.Parameter]:
    """Return the options of the settings that a question reads."""
    return settings_options(_SETTINGS)


@contextmanager
def clear_question_errors() -> Iterator[None]:
    """Turn an error of a question or of its cluster into one line on standard error, which names the option."""
    with clear_errors(ApiError, CredentialsError, MissingRightsError):
        try:
            yield
        except QuestionError as error:
            exit_with_error(": ".join(filter(None, (_option_text(error), error.message))))
        except MissingRightsError as error:
            error.rules += ("Or ask a running service: --server URL",)
            raise
        except DecodeError as error:
            raise DecodeError(_MANIFEST.sub("", error.field), error.message) from None


def _option_text(error: QuestionError) -> str:
    option = "--" + re.sub("[A-Z]", lambda found: f"-{found[0].lower()}", error.field)
    return " ".join(filter(None, ("" if error.field in _UNNAMED else option, error.value)))


def load(options: QuestionSource, kinds: Collection[Kind] = (), creator: Creator | None = None) -> QuestionCluster:
    """Load the cluster of a question, which also reads `kinds`. Raises as `load_dump` and `list_cluster` do.

    `creator` is asked for the pods that come again.
    """
    settings = for_simulations(loaded_settings(options, _SETTINGS))
    check_explained(settings)  # before a large dump is loaded
    raw = RawObjects()
    required = (*simulated_kinds(settings), *kinds)
    if options["demo"] or options["snapshot"] is not None:
        refuse_options(_OF_KUBECONFIG, "for a kubeconfig, not for a dump")
        cluster, lacks = load_dump(settings, options), list[Lack]()
        take_items(cluster.items, raw)
    else:
        cluster, lacks = asyncio.run(_listed(options, required, settings, raw))
    apply_partition(settings, cluster.mirror)
    missing = cluster.freshness.missing_for_explanations()
    forbidden = {state.resource.kind for state in cluster.freshness.states if state.forbidden}  # in `lacks`
    lacks = [*(Lack(*missing[kind]) for kind in dict.fromkeys(required) if kind in missing.keys() - forbidden), *lacks]
    return QuestionCluster(
        cluster.mirror,
        ClusterFacts(cluster.mirror, raw, creator),
        raw,
        simulated_schedulers(settings, cluster.mirror),
        str(cluster.release.status),
        [*dict.fromkeys(lacks)],
        without_quotas(options["snapshot"]),
    )


async def _listed(
    options: QuestionSource, kinds: Sequence[Kind], settings: Settings, raw: RawObjects
) -> tuple[Cluster, list[Lack]]:
    """List the cluster of a kubeconfig. Raises ApiError, CredentialsError, MissingRightsError."""
    try:
        credentials = await credentials_of(options)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}; instead of a kubeconfig, take --snapshot FILE or --demo") from None
    client = client_of(credentials, options)
    try:
        cluster = await list_cluster(client, [*dict.fromkeys(kinds)], settings, raw.take)
        forbidden = [state.resource for state in cluster.freshness.states if state.forbidden]
        lacks = [*await take_listed(client, OF_OWNERS, raw, forbidden)]
    finally:
        await client.close()
    report(cluster, credentials.server)
    return cluster, lacks
