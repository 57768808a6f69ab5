"""create_service(): the one place where settings, mirror, watch, plugins and routes meet."""

import random
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from fastapi import APIRouter, FastAPI

from app import __version__
from app.binding.binder import Binder
from app.binding.pod_api import PodApi
from app.equivalence import MismatchLog
from app.extender_v1 import Extender
from app.metrics import Metrics
from app.nominations import Nominations
from app.partition import NodePartition, decode_rule
from app.plugin_args import plugin_arguments
from app.preempt_v1 import Preempter, PreemptOff
from app.preemption.evaluator import Evaluator
from app.preemption.preemption_api import PreemptionApi
from app.preemption.preemptor import Preemptor
from app.process import Background
from app.refused_nodes import RefusedNodes
from app.routes.config import config_router
from app.routes.debug import debug_router
from app.routes.equivalence import equivalence_router
from app.routes.extender import ExtenderApp, Verb, binding_route, extender_routes, preemption_route
from app.routes.health import health_router
from app.routes.metrics import metrics_router
from app.settings import Settings, SettingsError
from app.stale_policy import StalePolicy
from app.watch.client import ApiClient
from app.watch.credentials import Credentials
from app.watch.decode import DecodeError
from app.watch.feed import MirrorFeed
from app.watch.freshness import OF_A_DUMP, Freshness, ResourceState, Standing
from app.watch.reflector import Timing
from app.watch.resources import RESOURCES
from app.watch.watcher import Watcher
from core.derived_states import derive_states
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import Kind
from core.mirror.cluster import ClusterMirror
from core.objects.disruption import PodDisruptionBudget
from core.profile import Profile, ProfileError, parse_profile

Lifespan: TypeAlias = Callable[[FastAPI], AbstractAsyncContextManager[None]]
App = TypeVar("App", bound=FastAPI)


class Service:
    """The apps of the two ports, and what runs behind them."""

    def __init__(self, app: FastAPI, admin: FastAPI | None, background: Sequence[Background]) -> None:
        self.app = app
        self.admin = admin
        self.background = background


def create_profile(settings: Settings) -> Profile:
    """Return the plugins that are enabled, with their arguments, as the settings want them. Raises SettingsError."""
    try:
        return parse_profile(settings.profile, plugin_arguments(settings))
    except ProfileError as error:
        raise SettingsError(f"KINDRED_PROFILE={settings.profile!r}: {error}") from None


def watched_kinds(settings: Settings, profile: Profile) -> tuple[Kind, ...]:
    """Return the kinds of objects that the mirror has to hold, so that everything that is served can be answered."""
    return profile.kinds if settings.preempt == "off" else (*profile.kinds, PodDisruptionBudget)


def create_cache(settings: Settings, mirror: ClusterMirror, profile: Profile) -> EquivalenceCache | None:
    """Return the equivalence cache over a mirror; None when it is off."""
    if not settings.equivalence_cache:
        return None
    options = CacheOptions(
        mode=settings.equivalence_mode,
        max_bytes=settings.equivalence_max_bytes,
        shadow_share=settings.equivalence_shadow_share,
    )
    return EquivalenceCache(mirror, profile.plugins, options, MismatchLog(), time.monotonic)


def create_extender(settings: Settings, mirror: ClusterMirror) -> Extender:
    """Return the verbs over a mirror, for a few questions: without a cache."""
    return Extender(create_profile(settings), mirror, None, settings.max_score)


def create_partition(settings: Settings, mirror: ClusterMirror) -> NodePartition:
    """Return the partition of a mirror, put to the rule of the settings. Raises SettingsError."""
    partition = NodePartition(mirror)
    if settings.partition:
        try:
            partition.replace(decode_rule(settings.partition))
        except DecodeError as error:
            raise SettingsError(f"KINDRED_PARTITION={settings.partition!r}: {error}") from None
    return partition


def create_service(
    settings: Settings,
    mirror: ClusterMirror,
    credentials: Credentials | None,
    sources: Mapping[str, str] = MappingProxyType({}),
) -> Service:
    """Return the service that answers from a mirror, which follows a cluster if there are credentials for one.

    `sources` tells which settings were made, and where; see Configuration. Raises SettingsError.
    """
    engine = _Engine(settings, mirror, sources)
    clock = time.monotonic
    if credentials is None:
        metrics = Metrics(mirror, OF_A_DUMP, clock, node_figures=settings.node_metrics)
        return _service(settings, engine, OF_A_DUMP, metrics, None)
    states = [ResourceState(RESOURCES[kind]) for kind in watched_kinds(settings, engine.profile)]
    freshness = Freshness(states, settings.stale_after, clock)
    metrics = Metrics(mirror, freshness, clock, node_figures=settings.node_metrics)
    client = ApiClient(credentials)
    feed = MirrorFeed(mirror, clock, metrics.observe_confirmation)
    watcher = Watcher(client, states, feed, Timing(clock=clock))
    metrics.follow(watcher.reflectors)
    service = _service(settings, engine, freshness, metrics, client)
    background: list[Background] = [watcher.run, feed.expire_assumed_pods]
    if settings.preempt == "evict" and engine.refused_nodes is not None:
        background.append(_preemptor(engine, engine.refused_nodes, freshness, metrics, client).run)
    return Service(service.app, service.admin, background)


class _Engine:
    """A mirror with all that answers from it."""

    def __init__(self, settings: Settings, mirror: ClusterMirror, sources: Mapping[str, str]) -> None:
        self.sources = sources
        self.mirror = mirror
        self.profile = create_profile(settings)
        derive_states(self.profile, mirror)
        self.cache = create_cache(settings, mirror, self.profile)
        self.refused_nodes = RefusedNodes(mirror, time.monotonic) if settings.preempt != "off" else None
        self.nominations = Nominations(mirror, time.monotonic)
        self.extender = Extender(
            self.profile,
            mirror,
            self.cache,
            settings.max_score,
            refused_nodes=self.refused_nodes,
            nominations=self.nominations,
            percentage_of_nodes_to_score=settings.percentage_of_nodes_to_score,
        )


def _binder(settings: Settings, engine: _Engine, metrics: Metrics, client: ApiClient | None) -> Binder:
    return Binder(
        engine.profile,
        engine.mirror,
        engine.extender.recent_pods,
        PodApi(client) if client is not None else None,
        timeout=settings.bind_timeout,
        clock=time.monotonic,
        observe=metrics.binds.observe,
    )


def _preempt(engine: _Engine, metrics: Metrics) -> Verb:
    if engine.refused_nodes is None:
        return PreemptOff(metrics.preempts.observe).preempt
    preempter = Preempter(
        engine.profile,
        engine.mirror,
        engine.refused_nodes,
        clock=time.monotonic,
        offset=random.randrange,
        observe=metrics.preempts.observe,
    )
    return preempter.preempt


def _preemptor(
    engine: _Engine, refused_nodes: RefusedNodes, freshness: Freshness, metrics: Metrics, client: ApiClient
) -> Preemptor:
    preemptor = Preemptor(
        engine.mirror,
        Evaluator(engine.profile, engine.mirror, random.randrange),
        refused_nodes,
        PreemptionApi(client),
        is_fresh=lambda: freshness.standing() is Standing.FRESH,
        clock=time.monotonic,
        observe=lambda outcome: metrics.preempts.observe_preemption(*outcome),
    )
    refused_nodes.tell_refused_everywhere = preemptor.consider
    engine.nominations.is_ours = preemptor.preempts_for
    return preemptor


def _service(
    settings: Settings, engine: _Engine, freshness: Freshness, metrics: Metrics, client: ApiClient | None
) -> Service:
    mirror, cache = engine.mirror, engine.cache
    if cache is not None:
        metrics.add_cache(cache)
    partition = create_partition(settings, mirror)
    stale_policy = StalePolicy(freshness, settings.stale_policy, metrics.count_stale_answer)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with metrics.gc_pauses.observing():
            yield

    app = _app(ExtenderApp, health_router(mirror, freshness), metrics_router(metrics), lifespan=lifespan)
    binder = _binder(settings, engine, metrics, client)
    app.add_verbs(
        *extender_routes(engine.extender, stale_policy, settings.max_body_bytes),
        binding_route(binder, stale_policy, settings.max_body_bytes),
        preemption_route(_preempt(engine, metrics), stale_policy, settings.max_body_bytes),
    )
    admin = None
    if settings.admin_port is not None:
        resources = [state.resource for state in freshness.states]
        admin = _app(
            FastAPI,
            debug_router(mirror, partition, client, resources),
            equivalence_router(cache, engine.profile, time.monotonic),
            config_router(settings, engine.sources),
        )
    return Service(app, admin, ())


def _app(kind: type[App], *routers: APIRouter, lifespan: Lifespan | None = None) -> App:
    # The interactive pages of FastAPI load scripts from elsewhere, and the verbs are not for browsers.
    app = kind(title="Kindred", version=__version__, openapi_url=None, lifespan=lifespan)
    for router in routers:
        app.include_router(router)
    return app
