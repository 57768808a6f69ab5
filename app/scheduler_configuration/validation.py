"""Values of a configuration with which kube-scheduler does not start, and the arguments of its plugins.

Source: k8s.io/kubernetes v1.36.3 pkg/scheduler/apis/config/validation, k8s.io/component-base config/validation, and for
TLS k8s.io/client-go transport/transport.go (TLSConfigFor).
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from app.objects.decode import DecodeError, decoding_field
from app.objects.plugin_args import decode_plugin_args
from app.process.json_text import encode
from app.scheduler_configuration.schema import (
    API_VERSION,
    LeaderElection,
    Point,
    Profile,
    WrittenConfig,
    WrittenExtender,
    WrittenPluginConfig,
    parse_go_duration,
)
from core.framework.interface import Plugin
from core.plugins import DEFAULTS, PLUGINS
from core.profile import Arguments, todays_name

_OF_EVERY: Final = frozenset({"apiVersion", "kind"})
_JUDGED: Final[Collection[Point]] = ("filter", "score")
"""The points at which a default plugin has the same in all releases."""
_NEEDED: Final[Mapping[Point, str]] = {"queueSort": "PrioritySort", "bind": "DefaultBinder"}
"""Point without a plugin at which kube-scheduler does not start -> its default plugin."""
_ELECTION: Final = {"leaseDuration": 15.0, "renewDeadline": 10.0, "retryPeriod": 2.0}
"""Duration of the leader election -> its default, in seconds."""


class UnreadableError(ValueError):
    """An unreadable input. The message is one line."""


def arguments_of(written: WrittenPluginConfig, where: str) -> Arguments:
    """Return plugin -> arguments of its constructor, without those that affect no verdict. Raises UnreadableError."""
    args = {} if written.args is None else written.args
    left_out = DEFAULTS.get(written.name, Plugin).left_out
    if isinstance(args, dict):
        if str(version := args.get("apiVersion", API_VERSION)) != API_VERSION:
            raise UnreadableError(f"{where}.apiVersion: expected {API_VERSION}, found {str(version)[:60]!r}")
        if written.name not in PLUGINS and (unknown := sorted(map(str, args.keys() - left_out.keys() - _OF_EVERY))):
            raise UnreadableError(f"{where}: object contains unknown field {unknown[0][:60]}")
        for field in sorted(left_out.keys() & args.keys()):
            try:
                decoding_field(partial(msgspec.convert, type=left_out[field]), args[field], field)
            except DecodeError as error:
                raise UnreadableError(f"{where}.{error}") from None
        args = {key: value for key, value in args.items() if key not in left_out}
    if written.name not in PLUGINS:
        return {}
    try:
        return decode_plugin_args(encode({written.name: args}).decode())
    except DecodeError as error:
        raise UnreadableError(f"{where}: {error}") from None
    except (TypeError, UnicodeEncodeError, RecursionError):
        raise UnreadableError(f"{where}: a value that JSON does not have") from None


def rejected_parts(written: WrittenConfig, profiles: Sequence[Profile]) -> Iterator[str]:
    """Yield "PLACE: RULE" for what kube-scheduler rejects of the process, the profiles and TLS."""
    if written.parallelism <= 0:
        yield f"parallelism: {written.parallelism}: must be positive"
    first, most = written.pod_initial_backoff_seconds, written.pod_max_backoff_seconds
    if first <= 0:
        yield f"podInitialBackoffSeconds: {first}: must be positive"
    elif most < first:
        yield f"podMaxBackoffSeconds: {most}: must be at least podInitialBackoffSeconds, {first}"
    if written.client_connection.burst < 0:
        yield f"clientConnection.burst: {written.client_connection.burst}: must not be negative"
    yield from _rejected_election(written.leader_election)
    yield from _rejected_queues(profiles)
    for profile in profiles:
        yield from _rejected_plugins(profile)
        yield from _rejected_arguments(profile)
    for index, extender in enumerate(written.extenders):
        yield from _rejected_tls(extender, f"extenders[{index}].tlsConfig.insecure")


def _rejected_election(election: LeaderElection) -> Iterator[str]:
    texts = (election.lease_duration, election.renew_deadline, election.retry_period)
    seconds = {}
    for (name, default), text in zip(_ELECTION.items(), texts, strict=True):
        if (given := parse_go_duration(text)) is None:
            yield f"leaderElection.{name}: {text[:60]!r}: must be a duration such as 15s"
        seconds[name] = given or default
    if election.leader_elect is False:
        return
    yield from (f"leaderElection.{name}: must be positive" for name, each in seconds.items() if each < 0)
    if seconds["leaseDuration"] <= seconds["renewDeadline"]:
        yield (
            f"leaderElection.leaseDuration: {seconds['leaseDuration']:g}s: must be longer than renewDeadline, "
            f"{seconds['renewDeadline']:g}s"
        )
    if election.resource_lock not in {"", "leases"}:
        yield f"leaderElection.resourceLock: {election.resource_lock[:60]!r}: must be leases"


def _rejected_queues(profiles: Sequence[Profile]) -> Iterator[str]:
    """validateCommonQueueSort: one queue serves all profiles."""
    common = profiles[0].written_at("queueSort")
    if len(common.enabled) > 1:
        yield f"{profiles[0].at('plugins.queueSort.enabled')}: only one plugin can sort the queue"
    for profile in profiles[1:]:
        if profile.written_at("queueSort") != common:
            yield f"{profile.at('plugins.queueSort')}: must be the same in all profiles"


def _rejected_plugins(profile: Profile) -> Iterator[str]:
    """Yield what pkg/scheduler/framework/runtime/framework.go (NewFramework) rejects."""
    for point in profile.plugins:
        where = profile.at(f"plugins.{point}.enabled")
        for name, count in Counter(each.name for each in profile.written_at(point).enabled).items():
            if name in {"", "*"}:
                yield f"{where}: {name!r}: is no plugin"
            elif (today := todays_name(name)) != name:
                yield f"{where}: {name}: is {today} today, and no kube-scheduler starts with the former name"
            elif point in _JUDGED and name in DEFAULTS and point not in DEFAULTS[name].points:
                yield f"{where}: {name}: has nothing there"
            elif count > 1:
                yield f"{where}: {name}: twice"
    for point in _NEEDED:
        if not profile.order(point):
            yield f"{profile.at(f'plugins.{point}')}: no plugin: enable {_NEEDED[point]}"


def _rejected_arguments(profile: Profile) -> Iterator[str]:
    for index, written in enumerate(profile.plugin_config):
        if written.name in DEFAULTS:  # own plugins have arguments of their own
            try:
                arguments_of(written, profile.at(f"pluginConfig[{index}].args"))
            except UnreadableError as error:
                yield str(error)


def _rejected_tls(extender: WrittenExtender, where: str) -> Iterator[str]:
    tls = extender.tls_config
    if tls is not None and tls.insecure and tls.has_ca:
        yield f"{where}: true, beside a CA: take insecure out, or kube-scheduler does not start"
