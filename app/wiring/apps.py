"""The verbs, and the apps of the ports: the scheduler's, health without client certificates, and the admin port."""

import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from heapq import merge
from typing import NamedTuple, TypeAlias, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Request

from app import __version__
from app.admin.access import Access
from app.admin.cluster_routes import cluster_router, events_router, names_router, pending_router, units_router
from app.admin.debug_routes import config_router, debug_router
from app.admin.decisions_routes import decisions_router
from app.admin.equivalence_routes import equivalence_router
from app.admin.explain_routes import Sample, explain_router, explained_nodes_router, samples_router
from app.admin.health_routes import health_router, metrics_router
from app.admin.openapi import openapi_router
from app.admin.page_routes import OPEN_PATHS, page_router
from app.admin.what_if_routes import what_if_router
from app.explain.decisions import Decisions
from app.explain.explainer import Explainer
from app.explain.known_pods import KnownPods, NameSearch
from app.explain.pending import PendingPodsExplainer
from app.feeds.memory import memory_limit
from app.objects.resources import Resource
from app.process.long_work import LongWork
from app.server.ports import Port, admin_port, extender_port, health_port
from app.server.process import Background
from app.settings.limits import Limits, queue_bytes
from app.settings.settings import PortName, Settings, port_rule
from app.simulation.asking import Asker, Simulated
from app.simulation.objects_at_hand import TakeObjects, take_nothing
from app.telemetry.metrics import Metrics
from app.telemetry.request_log import observer
from app.telemetry.request_metrics import queue_metrics
from app.verbs.admission import Admission
from app.verbs.bind import Binder, bind_verb
from app.verbs.endpoint import ExtenderApp, VerbEndpoint
from app.verbs.filter import filter_verb, prioritize_verb
from app.verbs.preempt import PreemptVerb, preempt_verb
from app.wiring.cluster import Cluster
from app.wiring.engine import (
    Engine,
    explained_profile,
    for_simulations,
    scheduler_profiles,
    simulated_kinds,
    simulated_schedulers,
    untouched_profile,
)
from core.diagnosis.wakes import VictimsByPod, victims_by_pod
from core.events import NOT_MISSING
from core.gangs.scheduling_groups import scheduling_group_statuses
from core.gangs.unit import UnitStatus
from core.objects.groups import SchedulingGroup


class Verbs(NamedTuple):
    """The verbs of kube-scheduler's extender, and the state of their requests."""

    endpoints: Sequence[VerbEndpoint]
    finish: Background | None
    """Waits for bindings whose callers have disconnected, when no request is in progress. None: `bind` is off."""
    work: LongWork
    """The turn of long work, which lets the verbs go first."""
    decisions: Decisions


def create_verbs(  # the parts before it
    settings: Settings, engine: Engine, cluster: Cluster, *, metrics: Metrics, limits: Limits
) -> Verbs:
    """Return the verbs that the settings define. Raises SettingsError."""
    decisions = Decisions(engine.mirror, engine.effects.recent_pods, time.time)
    observe = observer(metrics.requests.observe, decisions if settings.admin else None)
    admission = Admission(
        deadline=settings.deadline,
        queue_limit=limits.queue_limit,
        max_bytes=queue_bytes(memory_limit().bytes, limits.max_body_bytes),
        clock=time.monotonic,
    )
    metrics.register(lambda: queue_metrics(admission.waiting, admission.shed))
    binder = None
    if settings.bind:
        binder = Binder(
            engine.profile,
            engine.mirror,
            engine.extender.bypass,
            engine.effects,
            timeout=settings.deadline,
            clock=time.monotonic,
            state=cluster.state,
        )
    endpoint = partial(
        VerbEndpoint,
        state=cluster.state,
        admission=admission,
        observe=observe,
        max_body_bytes=limits.max_body_bytes,
    )
    endpoints = (
        endpoint(filter_verb(engine.extender, engine.effects)),
        endpoint(prioritize_verb(engine.extender, engine.effects)),
        endpoint(bind_verb(binder)),
        endpoint(preempt_verb(_preempt(engine), engine.effects)),
    )
    # After the deadline, every request has had its turn or was shed.
    work = LongWork(admission.wait_until_idle, settings.deadline)
    finish = None if binder is None else binder.finish
    return Verbs(endpoints, finish, work, decisions)


def _preempt(engine: Engine) -> PreemptVerb | None:
    rejected, bypass = engine.effects.rejected_nodes, engine.extender.bypass
    if rejected is None:
        return None
    return PreemptVerb(engine.profile, engine.mirror, rejected, offset=random.randrange, bypass=bypass)


Lifespan: TypeAlias = Callable[[FastAPI], AbstractAsyncContextManager[None]]
Guard: TypeAlias = Callable[[Request], Awaitable[None]]
App = TypeVar("App", bound=FastAPI)


def create_scheduler_ports(  # noqa: PLR0913  # all parts with routes
    settings: Settings, engine: Engine, cluster: Cluster, verbs: Verbs, *, metrics: Metrics, limits: Limits
) -> list[Port]:
    """Return the scheduler's port, and the health port if the settings define one. Raises ConfigurationError."""
    scrapes = metrics_router(metrics, verbs.work)

    def probes(port: PortName) -> tuple[APIRouter, APIRouter]:
        return _health(settings, engine, cluster, port), scrapes

    ports = [extender_port(settings, _extender_app(probes("extender"), verbs, metrics), limits)]
    if settings.health_port is not None:
        ports.append(health_port(settings, settings.health_port, _app(FastAPI, *probes("health")), limits))
    return ports


def _health(settings: Settings, engine: Engine, cluster: Cluster, port: PortName) -> APIRouter:
    names = not port_rule(settings, port).is_open
    return health_router(engine.mirror, cluster.state.freshness, cluster.state, cluster.release, names=names)


def _extender_app(probes: Sequence[APIRouter], verbs: Verbs, metrics: Metrics) -> ExtenderApp:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with metrics.gc_pauses.observing():
            yield

    app = _app(ExtenderApp, *probes, lifespan=lifespan)
    app.add_verbs(*verbs.endpoints)
    return app


def create_admin_port(  # noqa: PLR0913  # all parts with routes
    settings: Settings,
    engine: Engine,
    cluster: Cluster,
    verbs: Verbs,
    *,
    limits: Limits,
    sources: Mapping[str, str],
    samples: Sequence[Sample],
    take: TakeObjects = take_nothing,
) -> Port:
    """Return the admin port. Raises ConfigurationError.

    `sources` has the source of each setting, see Configuration. The page offers `samples`. `take` gets what a question
    about what would happen reads beside the mirror.
    """
    mirror, work, recent_pods = engine.mirror, verbs.work, engine.effects.recent_pods

    def resources() -> list[Resource]:
        return [state.resource for state in cluster.state.freshness.states]  # in the version that is followed now

    explained = explained_profile(settings, engine.profile)
    gangs = engine.effects.gangs
    explainer = Explainer(
        explained,
        KnownPods(mirror, recent_pods, work),
        engine.cache,
        cluster.state.freshness,
        release=cluster.release,
        schedulers=scheduler_profiles(settings, explained),
        effects=engine.effects,
        bypass=engine.extender.bypass,
        untouched=untouched_profile(settings),
    )

    def waits() -> VictimsByPod:
        return victims_by_pod(mirror, time.monotonic())

    def units() -> Iterator[UnitStatus]:
        placed_here = () if gangs is None else gangs.unit_statuses(time.monotonic())
        unread = cluster.state.freshness.missing_for_explanations().get(SchedulingGroup, NOT_MISSING).why
        return merge(placed_here, scheduling_group_statuses(mirror, unread), key=lambda each: each.unit)

    simulated = _simulated(settings, engine, cluster, limits, take)
    asker = Asker(simulated, work, cluster.state.memory, limits.question_seconds)
    access = Access(cluster.reviews)
    app = _app(
        FastAPI,
        _health(settings, engine, cluster, "admin"),
        debug_router(mirror, cluster.client, resources, work),
        equivalence_router(engine.cache, time.monotonic, work),
        config_router(settings, sources),
        decisions_router(verbs.decisions, work),
        explain_router(explainer, limits.max_body_bytes, access),
        explained_nodes_router(explainer, limits.max_body_bytes, access),
        cluster_router(mirror, work),
        names_router(NameSearch(mirror, recent_pods, work), access),
        events_router(explainer.mirror_state, lambda: mirror.pending.changes, cluster.state),
        samples_router(samples),
        pending_router(PendingPodsExplainer(explainer, work, time.time, waits=waits), work, access),
        units_router(units),
        what_if_router(asker, cluster.state, limits.max_body_bytes, access),
        page_router(),
        admitted=access.admit,
    )
    return admin_port(settings, app, limits, open_paths=OPEN_PATHS)


def _simulated(settings: Settings, engine: Engine, cluster: Cluster, limits: Limits, take: TakeObjects) -> Simulated:
    simulating = for_simulations(settings)
    return Simulated(
        engine.mirror,
        cluster.state.freshness,
        cluster.release,
        simulated_kinds(simulating),
        partial(simulated_schedulers, simulating, engine.mirror, limits.question_cache_bytes),
        take,
    )


def _app(kind: type[App], *routers: APIRouter, lifespan: Lifespan | None = None, admitted: Guard | None = None) -> App:
    """Return an app. `admitted` is called before each of its routes."""
    # FastAPI's interactive pages are off: they load scripts from other hosts, and the verbs are not for browsers.
    dependencies = [] if admitted is None else [Depends(admitted)]
    app = kind(title="Kindred", version=__version__, openapi_url=None, lifespan=lifespan, dependencies=dependencies)
    for router in (*routers, openapi_router(app)):
        app.include_router(router)
    return app
