"""The objects that a question reads beside a mirror, from a dump or from the API server: see raw_objects.py."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Final, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from app.api_server.client import ApiClient, ApiError, StatusError
from app.api_server.credentials import ConfigurationError, Credentials, CredentialsError
from app.feeds.dump_text import DumpItem
from app.feeds.stream import pages_of
from app.objects.decode import DecodeError, WireObject
from app.objects.decode_pod import decode_pod
from app.objects.resources import RESOURCES, Resource, rule_text
from app.simulation.assumptions import Lack
from app.simulation.questions import AnyQuestion, NodesQuestion
from app.simulation.quotas import KIND as QUOTA
from app.simulation.raw_objects import RawObjects
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import ReplicaSet, ReplicationController, StatefulSet
from core.objects.pod import Pod

OF_OWNERS: Final = tuple(
    Resource(kind=Pod, kind_name=kind, group=group, decode=decode_pod)  # for its path; nothing is decoded
    for kind, group in (
        ("Deployment", "apps"),
        ("DaemonSet", "apps"),
        ("Job", "batch"),
        ("LimitRange", ""),
        (QUOTA, ""),
        ("PriorityClass", "scheduling.k8s.io"),
        ("RuntimeClass", "node.k8s.io"),
    )
)
"""Kinds that make pods or complete them, and that no mirror has."""
_FEW_NODES: Final = 20
"""Nodes whose pods are listed one by one: the API server has an index of pods by node."""
_identity_decoder: Final = msgspec.json.Decoder(WireObject)


class Taken(NamedTuple):
    """What is not known of the objects beside the mirror."""

    lacks: Sequence[Lack] = ()
    without_quotas: Sequence[Lack] = ()
    """What is not known if there is no ResourceQuota."""


TakeObjects: TypeAlias = Callable[[AnyQuestion, RawObjects], Taken]
"""Takes the objects that a question reads beside the mirror. It runs in the child, and may take its time."""


def take_nothing(_question: AnyQuestion, _raw: RawObjects) -> Taken:
    """Take no object: the mirror is all there is."""
    return Taken()


def take_items(items: Iterable[DumpItem], raw: RawObjects) -> None:
    """Take the objects of a dump."""
    for item in items:
        with suppress(msgspec.DecodeError, UnicodeDecodeError):  # an object that was skipped
            raw.take(item.kind.partition(" ")[0] or _identity_decoder.decode(item.raw).kind or "", item.raw)


async def take_listed(
    client: ApiClient, resources: Iterable[Resource], raw: RawObjects, forbidden: Iterable[Resource] = ()
) -> Sequence[Lack]:
    """List the objects of these resources, and take them. Return what the API server lacks or forbids.

    `forbidden` has what it forbids of others. Raises ApiError, CredentialsError and DecodeError.
    """
    lacks, not_listed = list[Lack](), [*forbidden]
    for resource in resources:
        try:
            async for page in pages_of(client, resource):
                for each in page.items:
                    raw.take(resource.api_kind, each)
        except StatusError as error:
            if error.code not in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}:
                raise
            if error.code == HTTPStatus.FORBIDDEN:
                not_listed.append(resource)
            else:
                lacks.append(Lack(f"{resource.plural}: {error.message or HTTPStatus(error.code).phrase}"))
    return [*_lacks_of(not_listed), *lacks]


def _lacks_of(resources: Iterable[Resource]) -> Iterator[Lack]:
    """Yield what is forbidden, once for each API group: who may list pods alone would read twenty rules else."""
    by_group: dict[str, list[str]] = {}
    for group, plural in dict.fromkeys((each.group, each.plural) for each in resources):  # pods may be there by node
        by_group.setdefault(group, []).append(plural)
    for group, plurals in by_group.items():
        yield Lack(f"{', '.join(plurals)}: forbidden; the RBAC rule that is missing: {rule_text(group, plurals)}")


class ServerObjects:
    """Takes what a question reads from the API server, by its credentials. Only for a forked child."""

    def __init__(self, credentials: Credentials, mirror: ClusterMirror) -> None:
        self._credentials = credentials
        self._mirror = mirror

    def take(self, question: AnyQuestion, raw: RawObjects) -> Taken:
        """Take them. An error is a lack. Raises QuestionError for unknown nodes."""
        resources = [*self._pods(question), *_owners(question)]
        try:
            return Taken(asyncio.run(self._listed(resources, raw)))
        except (ApiError, ConfigurationError, CredentialsError, DecodeError) as error:
            return Taken([Lack(f"owners and facts of pods: {error}")])

    async def _listed(self, resources: Sequence[Resource], raw: RawObjects) -> Sequence[Lack]:
        client = ApiClient(self._credentials.again())
        try:
            return await take_listed(client, resources, raw)
        finally:
            await client.close()

    def _pods(self, question: AnyQuestion) -> Sequence[Resource]:
        """Return the lists of pods: of each node, if they are few."""
        if not isinstance(question, NodesQuestion):
            return ()
        pods, nodes = RESOURCES[Pod], question.chosen(self._mirror, may_be_all=True)
        if not 0 < len(nodes) <= _FEW_NODES:
            return (pods,)
        return [replace(pods, field_selector=f"{pods.field_selector},spec.nodeName={name}") for name in nodes]


def _owners(question: AnyQuestion) -> Sequence[Resource]:
    kinds = (ReplicaSet, StatefulSet, ReplicationController, *question.kinds)
    of_owners = (each for each in OF_OWNERS if question.reads_quotas or each.kind_name != QUOTA)
    return [*(RESOURCES[kind] for kind in kinds), *of_owners]
