"""The cluster that commands read from a dump or from the bundled demo: its options, and loading it."""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import resources
from typing import Any, BinaryIO, Final, NamedTuple, TypedDict

import click
import msgspec

from app.commands.admin_client import Access
from app.commands.manifests import InputError, read_input
from app.commands.options import OF_EXPLANATIONS, refuse_options
from app.commands.output import print_line
from app.dump.snapshot_file import DumpItem, SnapshotError, SnapshotSummary, load_items, read_items
from app.explain.explainer import Explainer
from app.explain.known_pods import KnownPods
from app.explain.stored_pod import Objects, read_json
from app.objects.decode import DecodeError, Metadata, WireObject
from app.objects.yaml_documents import is_json
from app.process.long_work import LongWork
from app.settings.settings import Settings
from app.verbs.request import RecentPods
from app.watch.freshness import OF_A_DUMP, Freshness
from app.watch.memory import memory_limit
from app.watch.objects import BulkLoads
from app.watch.release import AnsweredRelease, newest
from app.wiring.engine import apply_partition, create_cache, explained_profile, scheduler_profiles, served_profile
from core.mirror.cluster import ClusterMirror

DEMO: Final = resources.files("app") / "demo"
_SHOWN_PROBLEMS: Final = 20
MAX_DUMP_BYTES: Final = 8 * 1024**3
"""A dump of 15,000 nodes and 450,000 pods as `kubectl get -o json` prints it is 3 to 4 GB."""
_SHARE_OF_MEMORY: Final = 2
"""A dump may take half of the memory: its text is in memory beside the objects made from it."""
_WEIGHT_OF_YAML: Final = 32
"""Reading YAML takes 20 to 55 times the memory of its text. Short parts take more."""

SOURCE_OPTIONS: Final = (
    click.option(
        "--snapshot",
        type=click.File("rb"),
        help="Cluster dump: the output of `kubectl get nodes,pods,namespaces -A -o json` (or yaml); - reads stdin.",
    ),
    click.option("--demo", is_flag=True, help="Use the bundled demo cluster instead of a dump."),
    click.option("--skip-invalid", is_flag=True, help="Skip broken objects of the dump, and count them."),
)

_OF_A_DUMP_ALONE: Final = frozenset({"config", *OF_EXPLANATIONS, "skip_invalid"})
"""Options that are only for a dump. A service has its own settings."""


class Source(TypedDict):
    """The values of SOURCE_OPTIONS."""

    snapshot: BinaryIO | None
    demo: bool
    skip_invalid: bool


def is_of_dump(source: Source) -> bool:
    """Return whether a command reads a dump instead of a service. Raises UsageError for options of the other."""
    of_dump = source["demo"] or source["snapshot"] is not None
    if of_dump:
        refuse_options(Access.__annotations__, "for a running service, not for a dump")
    else:
        refuse_options(_OF_A_DUMP_ALONE, "for a dump (--snapshot or --demo), not for a running service")
    return of_dump


_identity_decoder: Final = msgspec.json.Decoder(WireObject)


_OTHER_KINDS: Final = ("ControllerRevision", "LimitRange", "PriorityClass", "ReplicaSet", "RuntimeClass")
"""Kinds that say what a manifest becomes. The mirror has none of them, or not all of their fields."""


class Cluster(NamedTuple):
    """A cluster, and the objects that it was loaded from, including objects that do not count, such as pending pods."""

    mirror: ClusterMirror
    release: AnsweredRelease
    freshness: Freshness = OF_A_DUMP
    """Has the kinds that the mirror lacks."""
    items: Sequence[DumpItem] = ()

    def others(self) -> Objects:
        """Return the objects of the kinds that controllers and admission read. The first call of it reads them all."""

        @cache
        def found() -> Mapping[str, Sequence[Mapping[str, Any]]]:
            by_kind: dict[str, list[Mapping[str, Any]]] = {kind: [] for kind in _OTHER_KINDS}
            for item in self.items:
                with suppress(DecodeError, msgspec.DecodeError, UnicodeDecodeError):  # an object that was skipped
                    kind = item.kind.partition(" ")[0] or _identity_decoder.decode(item.raw).kind
                    if kind in by_kind:
                        by_kind[kind].append(read_json(bytes(item.raw)))
            return by_kind

        return lambda kind: found()[kind]

    def pods(self, names: Collection[str]) -> Iterator[bytes]:
        """Yield the JSON of the pods with these names (NAMESPACE/NAME or uid). Reads all objects if there is a name."""
        for item in self.items if names else ():
            try:
                identity = _identity_decoder.decode(item.raw)
            except (msgspec.DecodeError, UnicodeDecodeError):  # an object that was skipped
                continue
            metadata = identity.metadata or Metadata()
            if (item.kind or identity.kind) != "Pod":
                continue
            if metadata.uid in names or f"{metadata.namespace or 'default'}/{metadata.name}" in names:
                yield bytes(item.raw)


def load_dump(settings: Settings, source: Source) -> Cluster:
    """Load the cluster that the options name, and print a summary on standard error. Raises SnapshotError.

    The release of Kubernetes comes from the settings, else from the newest kubelet.
    """
    snapshot = source["snapshot"]
    if source["demo"] == (snapshot is not None):
        raise click.UsageError("Give either --snapshot FILE or --demo.")
    text = _read(snapshot) if snapshot is not None else (DEMO / "cluster.json").read_bytes()
    mirror = ClusterMirror()
    with BulkLoads().loading():
        items = read_items(text)
        hidden = not sys.stderr.isatty()
        with click.progressbar(items, label="Loading", file=sys.stderr, hidden=hidden, update_min_steps=500) as shown:
            summary = load_items(shown, mirror, skip_invalid=source["skip_invalid"])
    release = AnsweredRelease(settings, mirror)
    if summary.kubelet_versions:
        release.take(newest(summary.kubelet_versions), "nodes")
    _report(summary)
    return Cluster(mirror, release, items=items)


def _read(snapshot: BinaryIO) -> bytes:
    memory = memory_limit()
    most = min(MAX_DUMP_BYTES, memory.bytes // _SHARE_OF_MEMORY)
    limit = "the largest dump" if most == MAX_DUMP_BYTES else f"half of {memory.source}"
    try:
        text = read_input(snapshot, most, limit)
    except InputError as error:
        raise SnapshotError(f"--snapshot: {error}") from None
    of_yaml = most // _WEIGHT_OF_YAML
    if len(text) > of_yaml and not is_json(text):
        raise SnapshotError(f"--snapshot: {len(text)} bytes of YAML, more than {of_yaml}: dump it as JSON")
    return text


def _report(summary: SnapshotSummary) -> None:
    for problem in summary.invalid[:_SHOWN_PROBLEMS]:
        print_line(f"Invalid: {problem}", err=True)
    if len(summary.invalid) > _SHOWN_PROBLEMS:
        print_line(f"... and {len(summary.invalid) - _SHOWN_PROBLEMS} more", err=True)
    print_line(f"Loaded {summary}", err=True)
    if not summary.taken["Node"]:
        print_line("Warning: the dump has no node; every request will fail.", err=True)


def explainer_of(settings: Settings, cluster: Cluster, waiting: RecentPods, work: LongWork) -> Explainer:
    """Return the explainer of a cluster, which works in the turns of `work`: the code of a running service.

    `waiting` are pods that a request may name although the mirror lacks them. Raises SettingsError.
    """
    profile = served_profile(settings)
    apply_partition(settings, cluster.mirror)
    cache = create_cache(settings, cluster.mirror, profile)
    explained = explained_profile(settings, profile)
    return Explainer(
        explained,
        KnownPods(cluster.mirror, waiting, work),
        cache,
        cluster.freshness,
        release=cluster.release,
        schedulers=scheduler_profiles(settings, explained),
    )
