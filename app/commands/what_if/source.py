"""The cluster of a question: a dump, the demo, or one that is listed with the rights of a kubeconfig."""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple

import click
import msgspec

from app.api_server.client import ApiClient, Impersonation, StatusError
from app.api_server.credentials import ConfigurationError, load_credentials
from app.commands.dump import SOURCE_OPTIONS, Cluster, Source, load_dump
from app.commands.options import given_options, loaded_settings, settings_options
from app.commands.output import print_line
from app.commands.why.cluster import list_cluster
from app.feeds.dump_text import DumpItem
from app.feeds.stream import pages_of
from app.objects.decode import WireObject
from app.objects.decode_pod import decode_pod
from app.objects.resources import RESOURCES, Resource
from app.settings.settings import Settings
from app.simulation.assumptions import Assumptions, Lack
from app.simulation.comes_again import ClusterFacts
from app.simulation.raw_objects import RawObjects
from app.wiring.engine import apply_partition, check_explained, create_profile, simulated_schedulers
from core.events import Kind
from core.explaining.words import counted
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.profile import full_profile
from core.scheduling_cycle import ALL
from core.simulation.moves import Basis
from core.simulation.placing import Schedulers

_SETTINGS: Final = ("kubernetes", "feature_gates", "scheduler_config")
_CLUSTER_OPTIONS: Final = (
    click.option("--kubeconfig", metavar="FILE", help="Kubeconfig file.  [default: as kubectl]"),
    click.option("--context", metavar="NAME", help="Context of the kubeconfig.  [default: its current context]"),
    click.option("--as", "impersonated", metavar="USER", help="User to impersonate."),
    click.option("--as-group", "groups", multiple=True, metavar="GROUP", help="Group to impersonate. Can be repeated."),
)
_MAX_ORDERS: Final = 100
orders_option: Final = click.option(
    "--orders",
    type=click.IntRange(1, _MAX_ORDERS),
    default=3,
    show_default=True,
    help="In how many orders pods arrive and ties are broken. The first one is the same each time.",
)
QUESTION_OPTIONS: Final = (*SOURCE_OPTIONS, *_CLUSTER_OPTIONS)
NODES_OPTIONS: Final = (
    click.argument("nodes", nargs=-1, metavar="[NODE]..."),
    click.option("--selector", "-l", default="", metavar="LABELS", help="Nodes with these labels, as for kubectl."),
    click.option("--zone", default="", metavar="ZONE", help="Nodes of this zone."),
)
_OF_OWNERS: Final = tuple(
    Resource(kind=Pod, kind_name=kind, group=group, decode=decode_pod)  # for its path; nothing is decoded
    for kind, group in (
        ("Deployment", "apps"),
        ("DaemonSet", "apps"),
        ("Job", "batch"),
        ("LimitRange", ""),
        ("ResourceQuota", ""),
        ("PriorityClass", "scheduling.k8s.io"),
        ("RuntimeClass", "node.k8s.io"),
    )
)
"""Kinds that make pods or complete them, and that no mirror has."""
_identity_decoder: Final = msgspec.json.Decoder(WireObject)


class QuestionSource(Source):
    """The values of QUESTION_OPTIONS, and of the settings."""

    config: Path | None
    kubeconfig: str | None
    context: str | None
    impersonated: str | None
    groups: tuple[str, ...]


class NodesSource(QuestionSource):
    """The values of NODES_OPTIONS, too."""

    nodes: tuple[str, ...]
    selector: str
    zone: str


class QuestionCluster(NamedTuple):
    """A cluster with what a question needs of it."""

    mirror: ClusterMirror
    facts: ClusterFacts
    raw: RawObjects
    schedulers: Schedulers
    kubernetes: str
    lacks: Sequence[Lack]

    def basis(self, orders: int) -> Basis:
        """Return what the questions of core.simulation take."""
        return Basis(self.mirror, self.schedulers, self.facts, orders)

    def assumed(self, orders: int) -> Assumptions:
        """Return what a response assumes. To be called after the question, because uncertainties are found by it."""
        return Assumptions(self.kubernetes, [*self.schedulers], ALL, orders, self.lacks, self.facts.uncertainties)


def question_settings() -> list[click.Parameter]:
    """Return the options of the settings that a question reads."""
    return settings_options(_SETTINGS)


def load(options: QuestionSource, kinds: Collection[Kind] = ()) -> QuestionCluster:
    """Load the cluster of a question, which also reads `kinds`. Raises as `load_dump` and `list_cluster` do."""
    settings = loaded_settings(options, _SETTINGS).model_copy(update={"profile": "full"})
    check_explained(settings)  # before a large dump is loaded
    raw = RawObjects()
    judged = full_profile() if settings.scheduler_config is not None else create_profile(settings)
    required = (*(each for each in judged.kinds if each in RESOURCES), *kinds)
    if options["demo"] or options["snapshot"] is not None:
        _refuse_cluster_options()
        cluster, lacks = load_dump(settings, options), list[Lack]()
        _take_all(cluster.items, raw)
    else:
        cluster, lacks = asyncio.run(_listed(options, required, settings, raw))
    apply_partition(settings, cluster.mirror)
    missing = cluster.freshness.missing_for_explanations()
    lacks = [*(Lack(*missing[kind]) for kind in dict.fromkeys(required) if kind in missing), *lacks]
    schedulers = simulated_schedulers(settings, cluster.mirror)
    facts = ClusterFacts(cluster.mirror, raw)
    return QuestionCluster(cluster.mirror, facts, raw, schedulers, str(cluster.release.status), [*dict.fromkeys(lacks)])


def _refuse_cluster_options() -> None:
    for option in given_options({"kubeconfig", "context", "impersonated", "groups"}):
        raise click.UsageError(f"{option} is for a kubeconfig, not for a dump.")


def _take_all(items: Sequence[DumpItem], raw: RawObjects) -> None:
    for item in items:
        with suppress(msgspec.DecodeError, UnicodeDecodeError):  # an object that was skipped
            raw.take(item.kind.partition(" ")[0] or _identity_decoder.decode(item.raw).kind or "", item.raw)


async def _listed(
    options: QuestionSource, kinds: Sequence[Kind], settings: Settings, raw: RawObjects
) -> tuple[Cluster, list[Lack]]:
    """List the cluster of a kubeconfig. Raises ApiError, CredentialsError, MissingRightsError."""
    try:
        credentials = await asyncio.to_thread(load_credentials, options["kubeconfig"], options["context"])
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}; instead of a kubeconfig, take --snapshot FILE or --demo") from None
    client = ApiClient(credentials, Impersonation(options["impersonated"] or "", options["groups"]))
    try:
        cluster = await list_cluster(client, [*dict.fromkeys(kinds)], settings, raw.take)
        lacks = [why for each in _OF_OWNERS if (why := await _taken(client, each, raw)) is not None]
    finally:
        await client.close()
    states = [state for state in cluster.freshness.states if state.synced and state.objects]
    listed = ", ".join(f"{state.objects:,} {state.plural}" for state in states) or counted(0, "object")
    print_line(f"Listed {listed} of {credentials.server}", err=True)
    return cluster, lacks


async def _taken(client: ApiClient, resource: Resource, raw: RawObjects) -> Lack | None:
    """Take the objects of a kind. Return why they are not known, if the API server forbids or lacks them."""
    try:
        async for page in pages_of(client, resource):
            for each in page.items:
                raw.take(resource.api_kind, each)
    except StatusError as error:
        if error.code not in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}:
            raise
        return Lack(f"{resource.plural}: {error.message or HTTPStatus(error.code).phrase}")
    return None
