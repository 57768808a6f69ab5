"""The cluster that commands read from a dump or from the bundled demo: its options, and loading it."""

import shlex
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, TypedDict

import click
import msgspec

from app.commands.admin_client import Access
from app.commands.manifests import InputError, read_input
from app.commands.options import OF_EXPLANATIONS, refuse_options
from app.commands.output import print_line, print_lines, wrapped
from app.demo import demo_cluster
from app.explain.explainer import Explainer
from app.explain.known_pods import KnownPods
from app.explain.pod_names import WORKLOADS, pod_query
from app.explain.stored_pod import Objects, read_json
from app.feeds.dump_text import CutOffError, Dump, DumpItem, SnapshotError, read_dump, refuse_foreign
from app.feeds.freshness import OF_A_DUMP, Freshness, of_a_dump
from app.feeds.memory import memory_limit
from app.feeds.objects import BulkLoads
from app.feeds.release import ReleaseTracker, newest
from app.feeds.snapshot_file import SnapshotSummary, load_items
from app.objects.decode import DecodeError, Metadata, WireObject
from app.objects.resources import DUMP_COMMAND, OF_MANIFESTS, RESOURCES, dump_command, list_command
from app.objects.yaml_documents import is_json
from app.process.long_work import LongWork
from app.settings.settings import Settings
from app.simulation.assumptions import Lack
from app.simulation.objects_at_hand import Taken, take_items
from app.simulation.raw_objects import RawObjects
from app.verbs.filter import create_bypass
from app.verbs.request import RecentPods
from app.wiring import engine
from core.events import Kind, Missing
from core.mirror.cluster import ClusterMirror
from core.objects.devices import DeviceTaintRule
from core.objects.kinds import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.volumes import PersistentVolume, PersistentVolumeClaim
from core.plugins import DEVICES, PLUGINS
from core.profile import Profile

_MAX_LISTED_PROBLEMS: Final = 20
MAX_DUMP_BYTES: Final = 8 * 1024**3
"""A dump of 15,000 nodes and 450,000 pods as `kubectl get -o json` prints it is 3 to 4 GB."""
_SHARE_OF_MEMORY: Final = 2
"""A dump may take half of the memory: its text is in memory beside the objects made from it."""
_WEIGHT_OF_YAML: Final = 32
"""Reading YAML takes 20 to 55 times the memory of its text. Short parts take more."""
_STDIN: Final = "-"
_YAML: Final = {".yaml", ".yml"}
_SUFFIXES: Final = {".json", *_YAML}

SOURCE_OPTIONS: Final = (
    click.option(
        "--snapshot",
        metavar="FILE",
        type=click.Path(exists=True, allow_dash=True),
        help=f"""Cluster dump: a file of JSON or YAML, a folder of such files, or - for stdin. This makes a whole one:

        \b
        {DUMP_COMMAND} > cluster.json""",
    ),
    click.option("--demo", is_flag=True, help="Use the bundled demo cluster instead of a dump."),
    click.option("--skip-invalid", is_flag=True, help="Skip broken objects of the dump, and count them."),
)

_OF_A_DUMP_ALONE: Final = frozenset({"config", *OF_EXPLANATIONS, "skip_invalid"})
"""Options that are only for a dump. A service has its own settings."""


class Source(TypedDict):
    """The values of SOURCE_OPTIONS."""

    snapshot: str | None
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


class Cluster(NamedTuple):
    """A cluster, and the objects that it was loaded from, including objects that do not count, such as pending pods."""

    mirror: ClusterMirror
    release: ReleaseTracker
    freshness: Freshness = OF_A_DUMP
    """Has the kinds that the mirror lacks."""
    items: Sequence[DumpItem] = ()
    superseded: Collection[str] = ()
    """The places of objects that a later one of the dump replaces. They are not among `items`."""

    def others(self) -> Objects:
        """Return the objects of the kinds that controllers and admission read. The first call of it reads them all."""

        @cache
        def found() -> Mapping[str, Sequence[Mapping[str, Any]]]:
            by_kind: dict[str, list[Mapping[str, Any]]] = {kind: [] for kind in (*OF_MANIFESTS, *WORKLOADS)}
            for item in self.items:
                with suppress(DecodeError, msgspec.DecodeError, UnicodeDecodeError):  # an object that was skipped
                    kind = item.kind.partition(" ")[0] or _identity_decoder.decode(item.raw).kind
                    if kind in by_kind:
                        by_kind[kind].append(read_json(bytes(item.raw)))
            return by_kind

        return lambda kind: found()[kind]

    def pods(self, names: Collection[str]) -> Iterator[bytes]:
        """Yield the JSON of the pods with these texts. Reads all objects if there is a text."""
        keys = {*names, *(pod_query(text).key for text in names)}
        for item in self.items if names else ():
            try:
                identity = _identity_decoder.decode(item.raw)
            except (msgspec.DecodeError, UnicodeDecodeError):  # an object that was skipped
                continue
            metadata = identity.metadata or Metadata()
            if (item.kind or identity.kind) != "Pod":
                continue
            full_name = f"{metadata.namespace or 'default'}/{metadata.name}"
            if not keys.isdisjoint((metadata.uid, metadata.name, full_name)):
                yield bytes(item.raw)


def load_dump(settings: Settings, source: Source) -> Cluster:
    """Load the cluster that the options name, and print a summary on standard error. Raises SnapshotError.

    The release of Kubernetes comes from the settings, else from the newest kubelet.
    """
    snapshot = source["snapshot"]
    if source["demo"] == (snapshot is not None):
        raise click.UsageError("Give either --snapshot FILE or --demo.")
    mirror = ClusterMirror()
    with BulkLoads().loading():
        found = _read(source)
        refuse_foreign(found)
        items = found.items
        hidden = not sys.stderr.isatty()
        with click.progressbar(items, label="Loading", file=sys.stderr, hidden=hidden, update_min_steps=500) as bar:
            summary = load_items(bar, mirror, skip_invalid=source["skip_invalid"], stated=found.stated)
    if summary.superseded:
        items = [item for item in items if item.place not in summary.superseded]
    lacking = {} if snapshot is None else _lacking(summary.lacking(), redirection(snapshot))
    release = ReleaseTracker(settings, mirror)
    if summary.kubelet_versions:
        release.take(newest(summary.kubelet_versions), "nodes")
    _report(summary, redirection(snapshot) if snapshot is not None else "")
    return Cluster(mirror, release, of_a_dump(lacking), items, summary.superseded)


def take_again(source: Source, superseded: Collection[str], _question: object, raw: RawObjects) -> Taken:
    """Take the objects that a mirror lacks from its dump, which is read again: to keep its text would double it."""
    snapshot = source["snapshot"]
    if snapshot == _STDIN:
        return Taken([Lack("owners and facts of pods: the dump was read from standard input; serve a file")])
    try:
        found = _read(source, quiet=True)
    except SnapshotError as error:
        return Taken([Lack(f"owners and facts of pods: the dump cannot be read again: {error}")])
    take_items((item for item in found.items if item.place not in superseded), raw)
    return Taken(without_quotas=without_quotas(snapshot))


_TOGETHER: Final[Sequence[Collection[Kind]]] = (
    {kind for plugin in PLUGINS.values() if PersistentVolume in plugin.kinds for kind in plugin.kinds},
    tuple(kind for kind in DEVICES.kinds if kind not in {Node, DeviceTaintRule}),
    (Service, ReplicaSet, StatefulSet, ReplicationController),
)
"""Kinds that the same rules read, so that one command gets all that is missing. DeviceTaintRule is apart, because
servers before 1.37 lack it."""


def _lacking(kinds: Collection[Kind], adding: str) -> Mapping[Kind, Missing]:
    """Return why the objects of these kinds are unknown, and the command that adds them to the dump."""
    found: dict[Kind, Missing] = {}
    for kind in kinds:
        group = next((each for each in _TOGETHER if kind in each), (kind,))
        lacks = [each for each in kinds if each in group]
        names = ", ".join(RESOURCES[each].name for each in lacks)
        if kind is Namespace:
            names = "Namespace of some pods"
        command = dump_command(lacks) + adding
        if kind in DEVICES.kinds:  # few clusters have an object of each, and `kubectl get -A` does not say so
            command = " && ".join([list_command(each) + adding for each in lacks])
        found[kind] = Missing(f"the dump has no {names}", command)
    return found


def redirection(name: str) -> str:
    """Return the redirection that adds JSON to a dump, empty where none can: JSON texts may follow each other."""
    if Path(name).is_dir():
        return f" >> {shlex.quote(str(Path(name) / 'more.json'))}"
    return f" >> {shlex.quote(name)}" if name != _STDIN and Path(name).suffix not in _YAML else ""


def without_quotas(snapshot: str | None) -> Sequence[Lack]:
    """Return what a question does not know if a dump has no ResourceQuota. Without a dump: nothing."""
    if snapshot is None:
        return ()
    return (Lack("the dump has no resourcequotas", f"kubectl get -A -o json quota{redirection(snapshot)}"),)


def warn_of_lacks(cluster: Cluster, profile: Profile) -> None:
    """Print a warning for the kinds that responses to schedulers depend on, because a response cannot say it."""
    missing = cluster.freshness.missing_for_explanations()
    reported = dict.fromkeys(missing[kind] for kind in profile.kinds if kind in missing)
    for why, command in reported:
        print_line(f"Warning: {why}; responses are as if there were none. This adds them:", err=True)
        print_line(f"  {command}", err=True)


def _read(source: Source, *, quiet: bool = False) -> Dump:
    """Return the objects of the demo, of a file, of standard input, or of the files in a folder.

    Raises SnapshotError.
    """
    snapshot, reading = source["snapshot"], _Reading()
    if snapshot is None:
        return read_dump(demo_cluster(time.time()))
    if not Path(snapshot).is_dir():
        try:
            with click.open_file(snapshot, "rb") as file:
                return read_dump(reading.text(file, "--snapshot"))
        except OSError as error:
            raise SnapshotError(f"--snapshot: {error.strerror}") from None
    return _read_folder(Path(snapshot), reading, skip_invalid=source["skip_invalid"], quiet=quiet)


def _read_folder(folder: Path, reading: "_Reading", *, skip_invalid: bool, quiet: bool) -> Dump:
    """Return the objects of the files of JSON and YAML below a folder, such as that of a must-gather.

    Such folders have other files, too. They are named, unless `quiet`, and left out. A file that was cut off is an
    error.
    """
    found = Dump([], set())
    files = sorted(each for each in folder.rglob("*") if each.suffix in _SUFFIXES and each.is_file())
    left_out = []
    for each in files:
        name = str(each.relative_to(folder))
        try:
            with each.open("rb") as file:
                part = read_dump(reading.text(file, name), name)
        except OSError as error:
            left_out.append(f"{name} {error.strerror}")
        except SnapshotError as error:
            if isinstance(error, CutOffError) and not skip_invalid:
                raise
            left_out.append(str(error))
        else:
            found.items.extend(part.items)
            found.stated.update(part.stated)
    if not quiet:
        _print_problems("Left out", left_out)
    if not found.items and not found.stated:
        raise SnapshotError(f"--snapshot: no object in {len(files)} files of {', '.join(sorted(_SUFFIXES))}")
    return found


class _Reading:
    """Reads files, whose text is limited by the memory, because it is there beside the objects made from it."""

    def __init__(self) -> None:
        memory = memory_limit()
        self._most = min(MAX_DUMP_BYTES, memory.bytes // _SHARE_OF_MEMORY)
        self._yaml = self._most // _WEIGHT_OF_YAML
        self._limit = "the largest dump" if self._most == MAX_DUMP_BYTES else f"half of {memory.source}"

    def text(self, file: IO[bytes], name: str) -> bytes:
        """Return the text of another file. Raises SnapshotError."""
        try:
            text = read_input(file, self._most, self._limit)
        except InputError as error:
            raise SnapshotError(f"{name}: {error}") from None
        self._most -= len(text)
        if not is_json(text):
            if len(text) > self._yaml:
                raise SnapshotError(f"{name}: {len(text)} bytes of YAML, more than {self._yaml}: dump it as JSON")
            self._yaml -= len(text)
        return text


def _report(summary: SnapshotSummary, adding: str) -> None:
    _print_problems("Invalid", summary.invalid)
    print_lines(wrapped(f"Loaded {summary}"), err=True)
    lacks: tuple[str, Kind] | None = None
    if not summary.taken["Node"]:
        lacks = "the dump has no node, so no pod fits anywhere", Node
    elif not summary.taken["Pod"] and Pod not in summary.stated:
        lacks = "the dump has no pod; nodes are judged as if they were empty", Pod
    elif len(summary.namespaces_of_pods) == 1 != summary.taken["Namespace"] and summary.placed_pods:
        # kubectl get without -A
        lacks = f"all pods are in the namespace {min(summary.namespaces_of_pods)}; those of others use nodes, too", Pod
    elif len(summary.namespaces_of_claims) == 1 and summary.claiming - summary.namespaces_of_claims:
        (only,) = summary.namespaces_of_claims
        lacks = (
            f"all persistentvolumeclaims are in the namespace {only}, but pods of others name some",
            PersistentVolumeClaim,
        )
    if lacks:
        print_line(f"Warning: {lacks[0]}. This adds them:", err=True)
        print_line(f"  {dump_command([lacks[1]])}{adding}", err=True)


def _print_problems(name: str, problems: Sequence[str]) -> None:
    for problem in problems[:_MAX_LISTED_PROBLEMS]:
        print_line(f"{name}: {problem}", err=True)
    if len(problems) > _MAX_LISTED_PROBLEMS:
        print_line(f"... and {len(problems) - _MAX_LISTED_PROBLEMS} more", err=True)


def explainer_of(settings: Settings, cluster: Cluster, waiting: RecentPods, work: LongWork) -> Explainer:
    """Return the explainer of a cluster, which works in the turns of `work`: the code of a running service.

    `waiting` are pods that a request may name although the mirror lacks them. Raises SettingsError.
    """
    profile = engine.served_profile(settings)
    engine.apply_partition(settings, cluster.mirror)
    cache = engine.create_cache(settings, cluster.mirror, profile)
    explained = engine.explained_profile(settings, profile)
    return Explainer(
        explained,
        KnownPods(cluster.mirror, waiting, work),
        cache,
        cluster.freshness,
        release=cluster.release,
        schedulers=engine.scheduler_profiles(settings, explained),
        bypass=create_bypass(settings),
        untouched=engine.untouched_profile(settings),
    )
