"""create_service(): the one place where settings, mirror, watch, plugins and routes meet."""

import random
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import NamedTuple, TypeAlias, TypeVar

from fastapi import APIRouter, FastAPI

from app import __version__
from app.binding.binder import Binder
from app.binding.pod_api import PodApi
from app.bypass import create_bypass
from app.conformance_case.case import CaseArgs
from app.decisions import Decisions
from app.equivalence import MismatchLog
from app.explain.explainer import Explainer
from app.extender_v1 import Extender
from app.leadership.elector import Elector, create_elector
from app.metrics import Metrics
from app.nominations import Nominations
from app.observers import create_observers
from app.openapi import openapi_router
from app.partition import NodePartition, decode_rule
from app.plugin_args import plugin_arguments
from app.ports import Port, admin_port, extender_port, health_port
from app.preempt_v1 import Preempter, PreemptOff
from app.preemption.evaluator import Evaluator
from app.preemption.preemption_api import PreemptionApi
from app.preemption.preemptor import Preemptor
from app.process import Background
from app.refused_nodes import RefusedNodes
from app.replay import Replayer
from app.routes.config import config_router
from app.routes.debug import debug_router
from app.routes.debug_pods import debug_pods_router
from app.routes.decisions import decisions_router
from app.routes.equivalence import equivalence_router
from app.routes.explain import explain_router
from app.routes.explained_nodes import explained_nodes_router
from app.routes.extender import ExtenderApp, binding_route, extender_routes, preemption_route
from app.routes.health import health_router
from app.routes.metrics import metrics_router
from app.routes.page import OPEN_PATHS, page_router
from app.routes.reception import Reception, create_admission
from app.serving_state import ServingState
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
from core.objects.pod import Pod
from core.profile import Profile, ProfileError, parse_profile

Lifespan: TypeAlias = Callable[[FastAPI], AbstractAsyncContextManager[None]]
App = TypeVar("App", bound=FastAPI)


class Service(NamedTuple):
    """The apps of the ports, what runs behind them, and what belongs to their end."""

    app: FastAPI
    admin: FastAPI | None
    background: Sequence[Background]
    state: ServingState
    finish: Background
    ports: Sequence[Port]


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


def create_replayer(settings: Settings, mirror: ClusterMirror) -> Replayer:
    """Return what asks decisions again of a mirror, as a service with these settings does. Raises SettingsError."""
    create_partition(settings, mirror)
    return Replayer(mirror, _Engine(settings, mirror, {}).fresh_extender)


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
    background: list[Background] = [watcher.run, feed.expire_assumed_pods]
    if settings.leader_election:
        elector = _elector(settings, freshness, watcher, client)
        engine.state.leadership = elector
        metrics.add_leadership(elector)
        background.append(elector.run)
    service = _service(settings, engine, freshness, metrics, client)
    if settings.preempt == "evict" and engine.refused_nodes is not None:
        background.append(_preemptor(engine, engine.refused_nodes, freshness, metrics, client).run)
    return service._replace(background=(*background, *service.background))


class _Engine:
    """A mirror with all that answers from it."""

    def __init__(self, settings: Settings, mirror: ClusterMirror, sources: Mapping[str, str]) -> None:
        self._settings = settings
        self.state = ServingState()
        self.sources = sources
        self.mirror = mirror
        self.profile = create_profile(settings)
        derive_states(self.profile, mirror)
        self.cache = create_cache(settings, mirror, self.profile)
        self.refused_nodes = RefusedNodes(mirror, time.monotonic) if settings.preempt != "off" else None
        self.nominations = Nominations(mirror, time.monotonic)
        self.bypass = create_bypass(settings)
        self.extender = Extender(
            self.profile,
            mirror,
            self.cache,
            settings.max_score,
            refused_nodes=self.refused_nodes,
            nominations=self.nominations,
            percentage_of_nodes_to_score=settings.percentage_of_nodes_to_score,
            bypass=self.bypass,
        )

    def fresh_extender(self) -> Extender:
        """Return the verbs as they answer schedulers, without the cache and all that is told of questions."""
        return Extender(
            self.profile,
            self.mirror,
            None,
            self._settings.max_score,
            percentage_of_nodes_to_score=self._settings.percentage_of_nodes_to_score,
            bypass=self.bypass,
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
        bypass=engine.bypass,
        state=engine.state,
    )


def _elector(settings: Settings, freshness: Freshness, watcher: Watcher, client: ApiClient) -> Elector:
    return create_elector(
        settings,
        client,
        stands=lambda: freshness.standing() is not Standing.NOT_SYNCED,
        catch_up=lambda: watcher.resync(Pod),
    )


def _preempt(engine: _Engine, metrics: Metrics) -> Preempter | PreemptOff:
    if engine.refused_nodes is None:
        return PreemptOff(metrics.preempts.observe)
    return Preempter(
        engine.profile,
        engine.mirror,
        engine.refused_nodes,
        offset=random.randrange,
        observe=metrics.preempts.observe,
        bypass=engine.bypass,
    )


def _preemptor(
    engine: _Engine, refused_nodes: RefusedNodes, freshness: Freshness, metrics: Metrics, client: ApiClient
) -> Preemptor:
    preemptor = Preemptor(
        engine.mirror,
        Evaluator(engine.profile, engine.mirror, random.randrange),
        refused_nodes,
        PreemptionApi(client),
        may_evict=lambda: freshness.standing() is Standing.FRESH and engine.state.may_decide(),
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
    decisions = Decisions(mirror, engine.extender.recent_pods, time.time)
    noting = () if settings.admin_port is None else (decisions,)
    observing = create_observers(settings, metrics.verbs, *noting)
    reception = Reception(
        engine.state,
        StalePolicy(freshness, settings.stale_policy, metrics.count_stale_answer),
        create_admission(settings),
        observing.observe,
        settings.max_body_bytes,
        traces=bool(settings.traces_endpoint),
    )
    metrics.add_queue(reception.admission)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with metrics.gc_pauses.observing():
            yield

    app = _app(ExtenderApp, health_router(mirror, freshness, engine.state), metrics_router(metrics), lifespan=lifespan)
    ports = [extender_port(settings, app)]
    if settings.health_port is not None:
        health = _app(FastAPI, health_router(mirror, freshness, engine.state), metrics_router(metrics))
        ports.append(health_port(settings, settings.health_port, health))
    binder = _binder(settings, engine, metrics, client)
    app.add_verbs(
        *extender_routes(engine.extender, reception),
        binding_route(binder, reception),
        preemption_route(_preempt(engine, metrics), reception),
    )
    admin = None
    if settings.admin_port is not None:
        resources = [state.resource for state in freshness.states]
        # After so long every question has had its turn, or was turned away.
        lull = partial(reception.admission.lull, settings.deadline)
        explainer = Explainer(engine.profile, mirror, cache, engine.extender.recent_pods, freshness, lull=lull)
        admin = _app(
            FastAPI,
            debug_router(mirror, partition, client, resources),
            debug_pods_router(observing.debugged_pods, time.time),
            equivalence_router(cache, engine.profile, time.monotonic),
            config_router(settings, engine.sources),
            decisions_router(
                mirror,
                decisions,
                Replayer(mirror, engine.fresh_extender),
                CaseArgs(**plugin_arguments(settings).get("InterPodAffinity", {})),
                explainer.turn,
            ),
            explain_router(explainer, settings.max_body_bytes),
            explained_nodes_router(explainer, engine.extender.recent_pods, settings.max_body_bytes),
            page_router(),
        )
        ports.append(admin_port(settings, settings.admin_port, admin, OPEN_PATHS))
    metrics.add_ports([port.connections for port in ports], [port.tls for port in ports if port.tls is not None])

    async def finish() -> None:
        await binder.finish()
        if engine.state.leadership is not None:
            await engine.state.leadership.resign()

    background = (*observing.background, *(work for port in ports for work in port.background))
    return Service(app, admin, background, engine.state, finish, ports)


def _app(kind: type[App], *routers: APIRouter, lifespan: Lifespan | None = None) -> App:
    # The interactive pages of FastAPI load scripts from elsewhere, and the verbs are not for browsers.
    app = kind(title="Kindred", version=__version__, openapi_url=None, lifespan=lifespan)
    for router in (*routers, openapi_router(app)):
        app.include_router(router)
    return app
