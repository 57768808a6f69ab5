"""The tables in docs/judged.md, from the table of judges, the shipped registrations and the recorded releases."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from app.scheduler_configuration.plugin_sets import Profile
from app.scheduler_configuration.scheduler_config import load_scheduler_config
from app.scheduler_configuration.schema import POINTS
from core.profile import parse_profile
from core.releases import RELEASES
from tests.upstream.judges import FIELDS, PLUGINS, Judge, Row
from tests.upstream.recording import recorded

_UPSTREAM: Final = {str(release): recorded(str(release)) for release in RELEASES}


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
            yield Registration(title, profile, frozenset(runs))


def plugins_table() -> Iterator[str]:
    """Yield the lines of the table of plugins by registration."""
    shown = [*registrations()]
    yield "| plugin | at | " + " | ".join(each.name for each in shown) + " | releases | remark |"
    yield "|---" * (len(shown) + 4) + "|"
    for row in PLUGINS:
        for points, releases, judges in _alike(row, shown):
            yield f"| {row.of} | {', '.join(points)} | {' | '.join(judges)} | {releases} | {row.note} |"


def _alike(row: Row, shown: Sequence[Registration]) -> Iterator[tuple[list[str], str, Sequence[str]]]:
    """Yield points that the same releases have and the same programs run, with these releases and programs."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for point in row.names:
        judges = tuple(each.judge(row.of, point) for each in shown)
        groups.setdefault((_releases_of_point(row.of, point), judges), []).append(point)
    for (releases, judges), points in groups.items():
        yield points, releases, judges


def _releases_of_point(plugin: str, point: str) -> str:
    gates = {
        release: upstream.plugins[plugin].gate
        for release, upstream in _UPSTREAM.items()
        if plugin in upstream.plugins and point in upstream.plugins[plugin].points
    }
    return _releases(gates)


def _releases_of_field(kind: str, field: str) -> str:
    gates = {
        release: upstream.gates.get(f"{kind}.{field}", "")
        for release, upstream in _UPSTREAM.items()
        if field in upstream.fields.get(kind, ())
    }
    return _releases(gates)


def _releases(gates: dict[str, str]) -> str:
    """Return the releases, given with the feature gate that is off by default. Empty for all without a gate."""
    if len(gates) == len(_UPSTREAM) and not any(gates.values()):
        return ""
    on = ", ".join(release for release, gate in gates.items() if not gate)
    off = [
        f"{', '.join(release for release, each in gates.items() if each == gate)} with `{gate}`"
        for gate in dict.fromkeys(filter(None, gates.values()))
    ]
    return "; ".join(filter(None, [on, *off]))


def open_table() -> Iterator[str]:
    """Yield the lines of the table of what no component judges in a profile that decides."""
    yield "| field or plugin | releases | consequence |"
    yield "|---|---|---|"
    for rows, releases in ((FIELDS, _releases_of_field), (PLUGINS, _releases_of_point)):
        for row in rows:
            if row.judge is Judge.NOBODY:
                for name in row.names:
                    yield f"| {row.of}.{name} | {releases(row.of, name)} | {row.note} |"


def fields_table() -> Iterator[str]:
    """Yield the lines of the table of fields, without those whose values have lines of their own."""
    yield "| type | fields | judged by | source | remark |"
    yield "|---|---|---|---|---|"
    for row in FIELDS:
        if row.judge is Judge.PARTS:
            continue
        fields = ", ".join(f"`{name}`" for name in row.names)
        dated = [f"`{name}`: {releases}" for name in row.names if (releases := _releases_of_field(row.of, name))]
        remark = "<br>".join(filter(None, [*dated, row.note]))
        yield f"| {row.of} | {fields} | {_judged_by(row)} | {row.source} | {remark} |"


def _judged_by(row: Row) -> str:
    if row.judge in {Judge.KEPT, Judge.CLAIMS, Judge.GROUPS, Judge.KINDRED}:
        return f"{row.judge.value}: {', '.join(row.by)}"
    return str(row.judge.value)


def blocks() -> dict[str, str]:
    """Return name -> the table of that name."""
    made = {"plugins": plugins_table(), "open": open_table(), "fields": fields_table()}
    return {name: "\n".join(lines) for name, lines in made.items()}
