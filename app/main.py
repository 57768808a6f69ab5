"""create_service(): makes the service from settings and a mirror, part by part. `app.wiring` makes each part.

The order, in which a part uses only earlier ones:

    metrics      made first, because the other parts count in them and register theirs
    profile      the plugins, and the mirror's state for them
    cluster      reflectors, memory watch and leader election; or a dump
    preemption   the record that `filter` keeps for it, and the evictor
    engine       the cache, `filter` and `prioritize`
    verbs        all four as routes, with the queue before them and the observers behind them
    ports        the apps of the scheduler's port, the health port and the admin port
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from fastapi import FastAPI

from app.admin.explain_routes import Sample
from app.api_server.credentials import Credentials
from app.server.ports import Port
from app.server.process import Background, watch_loop
from app.settings.limits import DEFAULTS, Limits
from app.settings.settings import Settings
from app.telemetry.metrics import Metrics, release_metrics
from app.verbs.admission import ServingState
from app.watch.release import AnsweredRelease
from app.wiring.apps import Ports, Verbs, create_ports, create_verbs
from app.wiring.cluster import Cluster, check_usage, dumped_cluster, followed_cluster
from app.wiring.engine import (
    Preemption,
    create_engine,
    create_preemption,
    explained_kinds,
    grouping_kinds,
    prepare_mirror,
    watched_kinds,
)
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
    sources: Mapping[str, str] = MappingProxyType({}),
    release: AnsweredRelease | None = None,
    *,
    samples: Sequence[Sample] = (),
    limits: Limits = DEFAULTS,
) -> Service:
    """Return the service that answers from a mirror, which follows a cluster if there are credentials for one.

    `sources` has the place where each setting was made; see Configuration. `release` is the release of a dump; without
    one it follows from the settings and the API server. `samples` are pods that the page offers to ask about. Raises
    SettingsError.
    """
    if release is None:
        release = AnsweredRelease(settings, mirror)
    metrics = Metrics(mirror, time.monotonic)
    metrics.register(partial(release_metrics, release))
    profile = prepare_mirror(settings, mirror)
    if credentials is None:
        cluster = dumped_cluster(settings, metrics, limits)
    else:
        check_usage(settings, profile)
        cluster = followed_cluster(
            settings,
            mirror,
            release,
            kinds=watched_kinds(settings, profile),
            beside=(*explained_kinds(settings, profile), *grouping_kinds(settings)),
            credentials=credentials,
            metrics=metrics,
            limits=limits,
        )
    preemption = create_preemption(settings, mirror, profile, cluster, metrics)
    engine = create_engine(
        settings, mirror, profile, cluster=cluster, preemption=preemption, metrics=metrics, limits=limits
    )
    verbs = create_verbs(settings, engine, cluster, preemption, metrics=metrics, limits=limits)
    ports = create_ports(
        settings,
        engine,
        cluster,
        verbs,
        metrics=metrics,
        limits=limits,
        sources=sources,
        release=release,
        samples=samples,
    )
    return Service(
        app=ports.extender.app,
        admin=ports.admin.app if ports.admin is not None else None,
        background=_background(cluster, preemption, verbs, ports),
        watch_loop=partial(watch_loop, metrics.loop_holds.observe),
        state=cluster.state,
        finish=_finish(cluster, verbs),
        ports=ports.wanted(),
    )


def _background(cluster: Cluster, preemption: Preemption, verbs: Verbs, ports: Ports) -> Sequence[Background]:
    of_ports = (work for port in ports.wanted() for work in port.background)
    return (*cluster.background, *preemption.background, *verbs.background, *of_ports)


def _finish(cluster: Cluster, verbs: Verbs) -> Background:
    async def finish() -> None:
        await verbs.finish()
        if cluster.state.leadership is not None:  # as the last step: only the leader binds
            await cluster.state.leadership.resign()

    return finish
