"""create_service(): makes the service from settings and a mirror, part by part. `app.wiring` makes each part.

The order, in which a part uses only earlier ones:

    metrics      made first, because the other parts count in them and register theirs
    profile      the plugins, and the mirror's state for them
    cluster      reflectors, memory watch and leader election; or a dump
    engine       the cache, `filter` and `prioritize`, and the evictor
    verbs        all four with their endpoints, with the queue before them and the observers behind them
    ports        the apps of the scheduler's port, the health port and the admin port
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from fastapi import FastAPI

from app.admin.explain_routes import Sample
from app.api_server.credentials import Credentials
from app.feeds.freshness import OF_A_DUMP, Freshness
from app.feeds.release import ReleaseTracker
from app.server.ports import Port
from app.server.process import Background, watch_loop
from app.settings.limits import DEFAULTS, Limits
from app.settings.settings import Settings
from app.simulation.objects_at_hand import ServerObjects, TakeObjects, take_nothing
from app.telemetry.metrics import Metrics, release_metrics, tls_metrics
from app.verbs.admission import ServingState
from app.wiring.apps import Verbs, create_admin_port, create_scheduler_ports, create_verbs
from app.wiring.cluster import Cluster, check_usage, dumped_cluster, followed_cluster
from app.wiring.engine import Engine, create_engine, derived_states, followed_kinds, served_profile
from core.mirror.cluster import ClusterMirror


class Service(NamedTuple):
    """The apps of the ports, their background tasks, and the steps at their end."""

    app: FastAPI
    admin: FastAPI | None
    background: Sequence[Background]
    watch_loop: Background
    """Ends the process when its loop is stuck; for a process of its own. See app/server/process.py."""
    state: ServingState
    finish: Background
    ports: Sequence[Port]


def create_service(  # noqa: PLR0913  # the inputs of a service
    settings: Settings,
    mirror: ClusterMirror,
    credentials: Credentials | None,
    sources: Mapping[str, str] = {},
    release: ReleaseTracker | None = None,
    *,
    freshness: Freshness = OF_A_DUMP,
    samples: Sequence[Sample] = (),
    take: TakeObjects = take_nothing,
    limits: Limits = DEFAULTS,
) -> Service:
    """Return the service that answers from a mirror, which follows a cluster if there are credentials for one.

    `sources` has the place where each setting was made; see Configuration. `release` is the release of a dump; without
    one it follows from the settings and the API server. `freshness` says what the dump lacks. `samples` are pods that
    the page offers to ask about. `take` gets what questions read of a dump beside the mirror. Raises SettingsError.
    """
    if release is None:
        release = ReleaseTracker(settings, mirror)
    metrics = Metrics(mirror, time.monotonic)
    metrics.register(partial(release_metrics, release))
    mirror.work.limit = limits.max_work
    profile = served_profile(settings)
    states = derived_states(settings, profile)
    if credentials is None:
        for make in states:
            mirror.derived(make)
        cluster = dumped_cluster(settings, release, metrics, limits, freshness)
    else:
        check_usage(settings, profile)
        take = ServerObjects(credentials, mirror).take
        kinds = followed_kinds(settings, profile)
        cluster = followed_cluster(
            settings, mirror, release, kinds, credentials=credentials, metrics=metrics, limits=limits, states=states
        )
    engine = create_engine(settings, mirror, profile, cluster, metrics=metrics, limits=limits)
    verbs = create_verbs(settings, engine, cluster, metrics=metrics, limits=limits)
    ports = create_scheduler_ports(settings, engine, cluster, verbs, metrics=metrics, limits=limits)
    admin = None
    if settings.admin:
        admin = create_admin_port(
            settings, engine, cluster, verbs, limits=limits, sources=sources, samples=samples, take=take
        )
        ports.append(admin)
    if reloaded := [port.tls for port in ports if port.tls is not None]:
        metrics.register(partial(tls_metrics, reloaded))
    return Service(
        app=ports[0].app,
        admin=admin.app if admin is not None else None,
        background=(*cluster.background, *engine.background, *(work for port in ports for work in port.background)),
        watch_loop=partial(watch_loop, metrics.loop_holds.observe),
        state=cluster.state,
        finish=_finish(cluster, engine, verbs),
        ports=ports,
    )


def _finish(cluster: Cluster, engine: Engine, verbs: Verbs) -> Background:
    async def finish() -> None:
        if verbs.finish is not None:
            await verbs.finish()
        if cluster.state.leadership is not None:  # as the last step: only the leader binds
            landed = cluster.takeover is None or await engine.effects.have_landed()
            await cluster.state.leadership.resign(landed=landed)

    return finish
