"""A profile of kube-scheduler's configuration as plugins of Kindred, with a list of the plugins that Kindred lacks."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from app.objects.decode import DecodeError
from app.objects.plugin_args import decode_plugin_args
from app.process.json_text import encode
from app.scheduler_configuration.plugin_sets import KNOWN, NEEDS_PRE, Profile
from app.scheduler_configuration.scheduler_config import Extender, UnreadableError
from app.scheduler_configuration.schema import Point, WrittenPluginConfig
from core.diagnosis.not_judged import NotJudged
from core.profile import PLUGINS, Arguments, full_profile
from core.profile import Profile as Plugins

FULL: Final = full_profile()
FILTERS: Final = frozenset(plugin.name for plugin in FULL.filters)
SCORES: Final = frozenset(plugin.name for plugin, _ in FULL.scores)
"""Scoring plugins of kube-scheduler's defaults that Kindred implements."""
DYNAMIC_RESOURCES: Final = "DynamicResources"
_FIT: Final = "NodeResourcesFit"
_VOLUME_BINDING: Final = "VolumeBinding"
_DEFAULT_SHAPE: Final[Sequence[object]] = (
    [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}],
    None,
    [],
)
"""Values of VolumeBindingArgs.shape that mean the default: SetDefaults_VolumeBindingArgs."""
_MAY_REFUSE: Final[Sequence[Point]] = ("multiPoint", "preEnqueue", "preFilter", "filter", "reserve", "permit")
"""Extension points at which a plugin can reject nodes for a pod."""
_REFUSE_EARLY: Final = ("NodeAffinity", "VolumeRestrictions", "VolumeBinding", "VolumeZone")
"""Plugins whose PreFilter may reject a pod without their Filter, except plugins that are `never judged` anyway."""
_OF_SCORES: Final = frozenset({
    "scoring_strategy", "resources", "hard_pod_affinity_weight", "ignore_preferred_terms_of_existing_pods",
})  # fmt: skip
"""Arguments that affect no verdict."""
_OF_FILTERS: Final = frozenset({"ignored_resources", "ignored_resource_groups"})
"""Arguments that affect no score. All other arguments affect verdicts and scores."""


class SchedulerPlugins(NamedTuple):
    """The plugins of a profile of kube-scheduler."""

    plugins: Plugins
    """The plugins that Kindred implements, in kube-scheduler's order and with its weights."""
    in_default_order: bool
    filter_otherwise: frozenset[str]
    """Plugins with other arguments in Kindred's settings, so that other nodes may pass."""
    score_otherwise: frozenset[str]
    """Plugins with other arguments in Kindred's settings, so that scores may differ."""
    not_judged: tuple[NotJudged, ...]
    early: tuple[NotJudged, ...]
    """Plugins whose PreFilter runs without their Filter, which Kindred does not support."""
    not_scored: tuple[NotJudged, ...]


def scheduler_plugins(
    profile: Profile, extenders: Sequence[Extender], own: Plugins, own_arguments: Arguments
) -> SchedulerPlugins:
    """Return the plugins of a profile. Raises UnreadableError that names the field, for invalid arguments.

    `own` are plugins with `own_arguments`. A plugin of `own` is used if the profile has the same arguments, so that
    each plugin runs once.
    """
    arguments = _arguments(profile, extenders)
    changed = {name: _changed(name, arguments, own_arguments) for name in FILTERS | SCORES}
    made: dict[str, Any] = {name: PLUGINS[name](**arguments.get(name, {})) for name in FILTERS | SCORES}
    to_filter = made | {plugin.name: plugin for plugin in own.filters if not changed.get(plugin.name)}
    to_score = made | {plugin.name: plugin for plugin, _ in own.scores if not changed.get(plugin.name)}
    filters = tuple(to_filter[name] for name in profile.order("filter") if name in FILTERS)
    scores = tuple((to_score[name], profile.weight(name)) for name in profile.order("score") if name in SCORES)
    return SchedulerPlugins(
        Plugins(filters, scores),
        in_default_order=not profile.enabled("filter") and "*" not in profile.disabled("multiPoint"),
        filter_otherwise=frozenset(name for name, fields in changed.items() if fields - _OF_SCORES),
        score_otherwise=frozenset(name for name, fields in changed.items() if fields - _OF_FILTERS),
        not_judged=(*_outside(profile), *_without_pre(profile)),
        early=tuple(_pre_filter_alone(profile)),
        not_scored=(*_outside_scores(profile), *_shape(profile)),
    )


def _arguments(profile: Profile, extenders: Sequence[Extender]) -> Arguments:
    """Return plugin -> arguments of the constructor, for plugins with arguments."""
    found: dict[str, Mapping[str, Any]] = {}
    for index, written in enumerate(profile.plugin_config):
        if written.name not in PLUGINS:
            continue  # a plugin that Kindred lacks, or that is not in-tree
        try:
            found |= decode_plugin_args(encode({written.name: _judged_args(written)}).decode())
        except DecodeError as error:
            raise UnreadableError(f"{profile.at(f'pluginConfig[{index}].args')}: {error}") from None
        except (TypeError, UnicodeEncodeError, RecursionError):
            where = profile.at(f"pluginConfig[{index}].args")
            raise UnreadableError(f"{where}: a value that JSON does not have") from None
    ignored = [each.name for extender in extenders for each in extender.managed_resources if each.ignored_by_scheduler]
    if ignored:  # replaces the configured value: pkg/scheduler/scheduler.go, buildExtenders
        found[_FIT] = {**found.get(_FIT, {}), "ignored_resources": ignored}
    return found


def _judged_args(written: WrittenPluginConfig) -> object:
    """Return the arguments without those that affect no verdict, or that `_shape` excludes."""
    args = {} if written.args is None else written.args
    if written.name != _VOLUME_BINDING or not isinstance(args, dict):
        return args
    return {key: value for key, value in args.items() if key not in {"bindTimeoutSeconds", "shape"}}


def _changed(name: str, arguments: Arguments, others: Arguments) -> frozenset[str]:
    """Return the arguments of a plugin that differ."""
    ours, theirs = _effective(name, arguments), _effective(name, others)
    return frozenset(field for field, value in ours.items() if theirs[field] != value)


def _effective(name: str, arguments: Arguments) -> Mapping[str, object]:
    """Return all arguments of a plugin, with defaults for missing ones."""
    defaults = {each.name: each.default for each in inspect.signature(PLUGINS[name]).parameters.values()}
    given = {**defaults, **arguments.get(name, {})}
    return {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}


def _outside(profile: Profile) -> Iterator[NotJudged]:
    """Yield plugins that are not in-tree and may reject nodes."""
    at = {name: point for point in reversed(_MAY_REFUSE) for name in profile.enabled(point) if name not in KNOWN}
    for name, point in at.items():
        yield NotJudged(name, f"no in-tree plugin, which the scheduler's profile enables at {point}")


def _outside_scores(profile: Profile) -> Iterator[NotJudged]:
    for name in profile.order("score"):
        if name not in KNOWN:
            yield NotJudged(name, "no in-tree plugin")


def _without_pre(profile: Profile) -> Iterator[NotJudged]:
    """Yield plugins that fail for every pod, because the extension point that prepares their state is off."""
    for (before, point), names in NEEDS_PRE.items():
        for name in sorted(names):
            if profile.runs(name, point) and not profile.runs(name, before):
                yield NotJudged(
                    name, f"{point} is on and {before} is off in the scheduler's profile, which is an error"
                )


def _pre_filter_alone(profile: Profile) -> Iterator[NotJudged]:
    for name in _REFUSE_EARLY:
        if profile.runs(name, "preFilter") and not profile.runs(name, "filter"):
            yield NotJudged(name, "preFilter is on in the scheduler's profile, and may refuse the pod; filter is off")


def _shape(profile: Profile) -> Iterator[NotJudged]:
    for written in profile.plugin_config:
        args = written.args if isinstance(written.args, dict) else {}
        if written.name == _VOLUME_BINDING and args.get("shape") not in _DEFAULT_SHAPE:
            yield NotJudged(_VOLUME_BINDING, "shape is not judged here")
