"""The cluster that a mirror follows, or the dump that it was loaded from: freshness, leadership and API access."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from app.api_server.access_reviews import AccessReviews
from app.api_server.client import ApiClient
from app.api_server.credentials import ConfigurationError, Credentials
from app.api_server.elector import create_elector
from app.api_server.lease_api import OwnPod
from app.api_server.login import own_namespace, own_pod
from app.feeds.freshness import OF_A_DUMP, Freshness, ResourceState, SyncStatus
from app.feeds.memory import MemoryWatch, memory_limit
from app.feeds.objects import MirrorFeed
from app.feeds.prometheus import Prometheus, prometheus_client
from app.feeds.release import ReleaseTracker, ServerRelease
from app.feeds.retry import Timing
from app.feeds.usage_feed import Apply, MetricsApi, UsageFeed, UsageSource
from app.feeds.watcher import Watcher
from app.objects.resources import RESOURCES
from app.server.process import Background
from app.settings.limits import Limits
from app.settings.settings import Settings, SettingsError, port_rule, variable_of
from app.telemetry.metrics import Metrics, leader_metrics, memory_metrics, usage_metrics, watch_metrics
from app.verbs.admission import ServingState, Takeover
from core.events import Kind
from core.mirror.changes import Listener
from core.mirror.cluster import ClusterMirror
from core.objects.groups import PodGroup, SchedulingGroup
from core.objects.node import NodeMetrics
from core.objects.pod import Pod
from core.profile import Profile

_MAX_AGE: Final = 180.0
"""Seconds after which a measurement is not used: metrics-server and Prometheus make one a minute or more often."""


def check_usage(settings: Settings, profile: Profile) -> None:
    """Raise SettingsError for plugins that need node usage, if the settings name no source."""
    reading = sorted(plugin.name for plugin in profile.plugins if NodeMetrics in plugin.kinds)
    if reading and settings.usage_source == "off":
        text = f"{', '.join(reading)} needs {variable_of('usage_source')}"
        raise SettingsError(f"{variable_of('profile')}={settings.profile!r}: {text}")


def create_usage_feed(
    settings: Settings,
    mirror: ClusterMirror,
    apply: Apply,
    client: ApiClient,
    metrics: Metrics,
) -> UsageFeed | None:
    """Return the feed of node usage. None if the settings name no source. Raises SettingsError."""
    source = _source(settings, client)
    if source is None:
        return None
    feed = UsageFeed(source, mirror, apply, time.time, interval=settings.usage_interval, max_age=_MAX_AGE)
    metrics.register(partial(usage_metrics, feed))
    return feed


def _source(settings: Settings, client: ApiClient) -> UsageSource | None:
    match settings.usage_source:
        case "off":
            return None
        case "metrics-api":
            return MetricsApi(client)
        case "prometheus":
            try:
                return Prometheus(prometheus_client(settings), settings.usage_cpu_query, settings.usage_memory_query)
            except ConfigurationError as error:
                raise SettingsError(str(error)) from None


class Cluster(NamedTuple):
    """State of the cluster besides the mirror."""

    state: ServingState
    client: ApiClient | None
    """None if the mirror was loaded from a dump."""
    background: tuple[Background, ...]
    release: ReleaseTracker
    takeover: Takeover | None = None
    """None if Kindred does not decide, or if there are no earlier decisions to wait for."""
    reviews: AccessReviews | None = None
    """Reviews of the callers of the admin port. None if all callers see everything."""


def dumped_cluster(
    settings: Settings, release: ReleaseTracker, metrics: Metrics, limits: Limits, freshness: Freshness = OF_A_DUMP
) -> Cluster:
    """Return the cluster of a mirror that was loaded from a dump. Raises SettingsError."""
    if settings.explain_access == "review":
        name = variable_of("explain_access")
        raise SettingsError(f"{name}: review needs an API server, but the cluster is from a dump")
    metrics.register(partial(watch_metrics, freshness, time.time))
    return Cluster(ServingState(memory=_memory(limits, (), metrics), freshness=freshness), None, (), release)


def followed_cluster(  # noqa: PLR0913  # the parts of a watch, and its kinds
    settings: Settings,
    mirror: ClusterMirror,
    release: ReleaseTracker,
    kinds: Mapping[Kind, bool],
    *,
    credentials: Credentials,
    metrics: Metrics,
    limits: Limits,
    states: Sequence[Callable[[ClusterMirror], Listener]] = (),
) -> Cluster:
    """Return the cluster that the mirror follows, for objects of these kinds. Raises SettingsError.

    `kinds`: kind -> whether requests of schedulers need it, or only explanations or groups. `states`: see MirrorFeed.
    """
    clock = time.monotonic
    resources = [ResourceState(RESOURCES[kind], serves=serves) for kind, serves in kinds.items()]
    # The first decision needs them.
    groups = [state for state in resources if state.resource.kind in {PodGroup, SchedulingGroup}]
    client = ApiClient(credentials)
    asking = ServerRelease(client, release, resources, clock)
    freshness = Freshness(resources, settings.stale_after, clock, asking.problem)
    memory = _memory(limits, resources, metrics)
    feed = MirrorFeed(mirror, clock, metrics.confirmations.observe, states=states)
    watcher = Watcher(client, resources, feed, Timing(clock=clock), memory)
    known = {reflector.state.plural: reflector.known for reflector in watcher.reflectors}
    metrics.register(partial(watch_metrics, freshness, time.time, known))
    following: tuple[Background, ...] = (
        watcher.run,
        partial(feed.follow_time, lambda: freshness.status() is not SyncStatus.FRESH, lambda: watcher.version(Pod)),
    )
    usage = create_usage_feed(settings, mirror, feed.apply, client, metrics)
    if usage is not None:
        following = (*following, usage.run)
    if not release.is_fixed:
        following = (*following, asking.run)

    def synced() -> bool:
        return freshness.status() is not SyncStatus.NOT_SYNCED and all(map(_is_known, groups))

    namespace = own_namespace()
    mark = OwnPod(client, namespace, own_pod()).mark if namespace else None  # outside of a cluster there is no pod
    catch_up = partial(watcher.catch_up, Pod, mark)
    names = not port_rule(settings, "extender").is_open
    takeover, reviews = _takeover(settings, limits, mirror, catch_up), _reviews(settings, credentials)
    if reviews is not None:
        following = (*following, reviews.run)
    if not settings.elects:
        first = () if takeover is None else (partial(takeover.after_sync, synced),)
        state, following = ServingState(None, memory, takeover, freshness=freshness, names=names), (*following, *first)
        return Cluster(state, client, (*following, state.log_readiness), release, takeover, reviews)
    # Without `decide` there is no binding but Kindred's own, which a leader finishes before others can lead.
    take_over = (lambda *_: catch_up()) if takeover is None else takeover.after
    elector = create_elector(settings, client, limits, stands=synced, catch_up=take_over)
    metrics.register(partial(leader_metrics, elector.leads))
    state = ServingState(elector, memory, freshness=freshness, names=names)
    return Cluster(state, client, (*following, state.log_readiness, elector.run), release, takeover, reviews)


def _reviews(settings: Settings, credentials: Credentials) -> AccessReviews | None:
    if settings.explain_access == "all" or not settings.admin:
        return None
    return AccessReviews(ApiClient(credentials.without_login()), time.monotonic)


def _is_known(state: ResourceState) -> bool:
    """Return whether the objects are in the mirror, or the reason for their absence is known."""
    return state.synced or bool(state.problem)


def _takeover(
    settings: Settings, limits: Limits, mirror: ClusterMirror, catch_up: Callable[[], Awaitable[None]]
) -> Takeover | None:
    if settings.decide == "off":
        return None

    def undecided() -> set[str]:
        return {pod.uid for pod in mirror.pending if not pod.waiting.gates and not pod.terminating}

    return Takeover(limits.settle, undecided=undecided, catch_up=catch_up, clock=time.monotonic)


def _memory(limits: Limits, states: Sequence[ResourceState], metrics: Metrics) -> MemoryWatch:
    memory = MemoryWatch(memory_limit(), limits.memory_watermark, states, time.monotonic)
    metrics.register(partial(memory_metrics, memory))
    return memory
