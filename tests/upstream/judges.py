"""Who judges each field of a Pod, and each plugin of kube-scheduler's default configuration, with `decide`.

docs/judged.md has the rows of fields. The rows of plugins are here, and the page shows them beside the shipped
registrations. A test holds all against the recorded fields and plugins of all releases. It fails for a field or plugin
without a row, and for a row that no release has. No request reads them.
"""

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from app.scheduler_configuration.scheduler_config import load_scheduler_config
from app.scheduler_configuration.schema import POINTS, Profile
from core.plugins import DEVICES
from core.profile import parse_profile
from core.releases.release import RELEASES
from tests.markdown import table
from tests.upstream.recording import recorded

ROOT: Final = Path(__file__).parents[2]
UPSTREAM: Final = {str(release): recorded(str(release)) for release in RELEASES}


class Judge(Enum):
    """Who applies a rule to the pods of the scheduler profiles that decide."""

    KINDRED = "Kindred"
    """Kindred."""
    RETAINED = "kube-scheduler"
    """A plugin that the decide profile keeps."""
    CLAIMS = "claims scheduler"
    """A plugin that only the profile of `decideClaimsScheduler` has. Kindred sends the pod there."""
    GROUPS = "groups scheduler"
    """kube-scheduler, in the profile of `decideGroupsScheduler`, where all in-tree plugins judge a member."""
    NO_EFFECT = "no effect"
    """The node of a pod does not depend on it."""
    NOBODY = "no component"
    """No component judges it, although the node can depend on it. `note` has the consequence."""
    PARTS = "its fields"
    """The fields of the value have rows of their own."""
    WHOLE = "the whole value"
    """The field that has the value names the judge. The rows are there so that a new part is noticed."""


class Row(NamedTuple):
    """Who judges some fields of a type, or a plugin at some extension points.

    `source` is a path in k8s.io/kubernetes, below pkg/scheduler/framework/plugins unless it is longer.
    """

    of: str
    """The type in the API, or the plugin."""
    names: tuple[str, ...]
    """The fields, or the extension points."""
    judge: Judge
    by: tuple[str, ...]
    """For fields that are judged: the plugins, or modules of Kindred. A plugin is judged by the plugin of its name."""
    source: str
    """Of a field: a path in k8s.io/kubernetes, below pkg/scheduler/framework/plugins unless it is longer."""
    note: str
    """The remark, which begins with the releases of fields that not each release has."""


def _fields() -> Iterator[Row]:
    """Yield the rows of the table of fields in docs/judged.md."""
    page = (ROOT / "docs/judged.md").read_text("utf-8")
    for line in page.partition("\n## Fields of a Pod\n")[2].splitlines():
        match [cell.strip() for cell in line.strip("|").split("|")]:
            case [of, names, judged, source, note] if "`" in names:
                judge, _, by = judged.partition(": ")
                judges = tuple(by.split(", ")) if by else ()
                yield Row(of, tuple(re.findall(r"\w+", names)), Judge(judge), judges, source, note)


FIELDS: Final[Sequence[Row]] = tuple(_fields())
"""Every field of a Pod that a known release has, but for those in values of no effect."""


def _plugin(of: str, points: str, judge: Judge, note: str = "") -> Row:
    return Row(of, tuple(points.split()), judge, (), "", note)


_KINDRED: Final = Judge.KINDRED
_FILTERS: Final = "preFilter filter"
_ALL_FOUR: Final = "preFilter filter preScore score"
_DEFERRED: Final = (
    "with InPlacePodVerticalScalingSchedulerPreemption, 1.37 skips it for a pod whose resize is deferred, and Kindred "
    "does not"
)
_PLACEMENTS: Final = (
    "runs with TopologyAwareWorkloadScheduling only. kube-scheduler asks once for each placement of a group with "
    "schedulingConstraints, and may bind an earlier one. Kindred answers an `Error` for such a group"
)

PLUGINS: Final[Sequence[Row]] = (
    _plugin("SchedulingGates", "preEnqueue", Judge.RETAINED),
    _plugin("PrioritySort", "queueSort", Judge.RETAINED),
    _plugin("DefaultBinder", "bind", Judge.RETAINED),
    _plugin(
        "DefaultPreemption",
        "preEnqueue postFilter",
        Judge.RETAINED,
        "it finds no victim without filters; with `preempt: evict` Kindred does. In `kindred-groups` it "
        "has all filters",
    ),
    _plugin(
        "DefaultPreemption",
        "podGroupPostFilter",
        Judge.GROUPS,
        "runs with GenericWorkload only, for a scheduling group as a whole",
    ),
    _plugin("NodeUnschedulable", _FILTERS, _KINDRED, _DEFERRED),
    _plugin("NodeName", _FILTERS, _KINDRED),
    _plugin("TaintToleration", _ALL_FOUR, _KINDRED, _DEFERRED),
    _plugin("NodeAffinity", _ALL_FOUR, _KINDRED),
    _plugin("NodePorts", _FILTERS, _KINDRED),
    _plugin("NodeResourcesFit", _ALL_FOUR, _KINDRED),
    _plugin("NodeResourcesFit", "placementScore", Judge.NOBODY, _PLACEMENTS),
    _plugin("NodeResourcesBalancedAllocation", "preScore score", _KINDRED),
    _plugin("PodTopologySpread", _ALL_FOUR, _KINDRED),
    _plugin("InterPodAffinity", _ALL_FOUR, _KINDRED),
    _plugin("ImageLocality", "score", _KINDRED),
    _plugin("NodeDeclaredFeatures", _FILTERS, _KINDRED),
    _plugin("VolumeRestrictions", _FILTERS, _KINDRED),
    _plugin("NodeVolumeLimits", _FILTERS, _KINDRED),
    _plugin("VolumeZone", _FILTERS, _KINDRED),
    _plugin("VolumeBinding", _ALL_FOUR, _KINDRED),
    _plugin("VolumeBinding", "reserve preBind", Judge.CLAIMS, "for claims that are not bound yet"),
    _plugin(
        "DynamicResources",
        "preEnqueue preFilter filter postFilter reserve preBind",
        Judge.CLAIMS,
        "for spec.resourceClaims, and for resources that a DeviceClass stands for",
    ),
    _plugin(
        "DynamicResources",
        "score",
        Judge.CLAIMS,
        "for claims with alternatives (`firstAvailable`). With decide, kube-scheduler gets one node and scores none",
    ),
    _plugin("DynamicResources", "podGroupPostFilter", Judge.GROUPS, "for claims of a PodGroup"),
    _plugin(
        "GangScheduling",
        "preEnqueue reserve permit",
        Judge.GROUPS,
        "it counts the members that kube-scheduler has assumed",
    ),
    _plugin("TopologyPlacementGenerator", "placementGenerate", Judge.NOBODY, _PLACEMENTS),
    _plugin("PodGroupPodsCount", "placementScore", Judge.NOBODY, _PLACEMENTS),
    _plugin(
        "DeferredPodScheduling",
        "preFilter filter permit",
        Judge.NOBODY,
        "off in the shipped profiles, because an older kube-scheduler does not start with it. Kindred "
        "answers a bound pod whose resize waits with its own node or with none",
    ),
)
"""Every plugin of a known release's default configuration, at every extension point that it has."""


def each(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield each field as TYPE.FIELD, or each plugin as PLUGIN.POINT, with its row."""
    for row in rows:
        for name in row.names:
            yield f"{row.of}.{name}", row


class Registration(NamedTuple):
    """A profile of a shipped configuration of kube-scheduler, with what Kindred answers for its pods."""

    name: str
    profile: Profile
    runs: frozenset[tuple[str, str]]
    """(plugin, extension point) that Kindred runs."""

    def judge(self, plugin: str, point: str) -> str:
        """Return who runs a plugin at an extension point."""
        ours, theirs = (plugin, point) in self.runs, in_tree(self.profile, plugin, point)
        if ours and theirs:
            return "both"
        return "Kindred" if ours else "kube-scheduler" if theirs else "none"


def in_tree(profile: Profile, plugin: str, point: str) -> bool:
    """Return whether a profile has a plugin of the release's defaults at a point, with all feature gates on."""
    places = [each for each in POINTS if each in {point, "multiPoint"}]
    for place in sorted(places, key="multiPoint".__eq__):  # what is written for the point itself wins
        if plugin in profile.enabled(place):
            return True
        if {plugin, "*"} & {*profile.disabled(place)}:
            return False
    return True


def registrations() -> Iterator[Registration]:
    """Yield the registrations of docs/register.md, each profile on its own."""
    for name in ("score-offload", "full-offload", "decide"):
        config = load_scheduler_config(Path(f"manifests/scheduler/{name}.yaml"))
        settings = yaml.safe_load(Path(f"manifests/overlays/{name}/kindred.yaml").read_text("utf-8"))
        (extender,) = config.extenders
        plugins = parse_profile(settings["profile"])
        runs = set[tuple[str, str]]()
        if extender.filter_verb:
            runs |= {(plugin.name, point) for plugin in plugins.filters for point in ("preFilter", "filter")}
        if extender.prioritize_verb or "decide" in settings:
            runs |= {(plugin.name, point) for plugin, _ in plugins.scores for point in ("preScore", "score")}
        for profile in config.profiles:
            title = f"{name}, `{profile.name}`" if len(config.profiles) > 1 else name
            ranks = "decide" in settings and in_tree(profile, DEVICES.name, "score")
            yield Registration(title, profile, frozenset(runs | ({(DEVICES.name, "score")} if ranks else set())))


def plugins_table() -> str:
    """Return the table of plugins by registration."""
    rendered = [*registrations()]
    rows = [
        (row.of, ", ".join(points), *judges, releases, row.note)
        for row in PLUGINS
        for points, releases, judges in _alike(row, rendered)
    ]
    return table(("plugin", "at", *(each.name for each in rendered), "releases", "remark"), rows)


def _alike(row: Row, rendered: Sequence[Registration]) -> Iterator[tuple[list[str], str, Sequence[str]]]:
    """Yield points that the same releases have and the same programs run, with these releases and programs."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for point in row.names:
        judges = tuple(each.judge(row.of, point) for each in rendered)
        groups.setdefault((_releases_of_point(row.of, point), judges), []).append(point)
    for (releases, judges), points in groups.items():
        yield points, releases, judges


def _releases_of_point(plugin: str, point: str) -> str:
    gates = {
        release: upstream.plugins[plugin].gate
        for release, upstream in UPSTREAM.items()
        if plugin in upstream.plugins and point in upstream.plugins[plugin].points
    }
    return _releases(gates)


def releases_of_field(kind: str, field: str) -> str:
    """Return in which releases a type has a field. Empty for all without a gate."""
    gates = {
        release: upstream.gates.get(f"{kind}.{field}", "")
        for release, upstream in UPSTREAM.items()
        if field in upstream.fields.get(kind, ())
    }
    return _releases(gates)


def _releases(gates: dict[str, str]) -> str:
    """Return the releases, given with the feature gate that is off by default. Empty for all without a gate."""
    if len(gates) == len(UPSTREAM) and not any(gates.values()):
        return ""
    on = ", ".join(release for release, gate in gates.items() if not gate)
    off = [
        f"{', '.join(release for release, each in gates.items() if each == gate)} with `{gate}`"
        for gate in dict.fromkeys(filter(None, gates.values()))
    ]
    return "; ".join(filter(None, [on, *off]))


def open_table() -> str:
    """Return the table of what no component judges in a profile that decides. All fields have a judge."""
    rows = [
        (f"{row.of}.{name}", _releases_of_point(row.of, name), row.note)
        for row in PLUGINS
        if row.judge is Judge.NOBODY
        for name in row.names
    ]
    return table(("field or plugin", "releases", "consequence"), rows)


def blocks() -> dict[str, str]:
    """Return name -> the table of that name."""
    return {"plugins": plugins_table(), "open": open_table()}
