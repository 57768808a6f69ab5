"""The verbs with their endpoints, with the queue before them and the observers behind them."""

import random
import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from app.explain.decisions import Decisions
from app.process.long_work import LongWork
from app.server.process import Background
from app.settings.limits import Limits, queue_bytes
from app.settings.settings import Settings
from app.telemetry.metrics import Metrics
from app.telemetry.metrics.requests import queue_metrics
from app.telemetry.request_log import observer
from app.verbs.admission import Admission
from app.verbs.bind import Binder, BindingCheck, bind_verb
from app.verbs.endpoint import VerbEndpoint
from app.verbs.filter import filter_verb, prioritize_verb
from app.verbs.gang_keeping import keep_cycles, keep_gangs
from app.verbs.preempt import PreemptVerb, preempt_verb
from app.watch.memory import memory_limit
from app.wiring.cluster import Cluster
from app.wiring.engine import Engine
from app.wiring.preemption import Preemption


class Verbs(NamedTuple):
    """The verbs of kube-scheduler's extender, and the state of their requests."""

    endpoints: Sequence[VerbEndpoint]
    finish: Background
    """Waits for bindings whose callers have disconnected. Call it when no request is in progress."""
    work: LongWork
    """The turn of long work, which lets the verbs go first."""
    decisions: Decisions
    background: tuple[Background, ...]


def create_verbs(  # noqa: PLR0913  # the parts before it
    settings: Settings, engine: Engine, cluster: Cluster, preemption: Preemption, *, metrics: Metrics, limits: Limits
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
    binder = _binder(settings, engine, cluster) if settings.bind else None
    endpoint = partial(
        VerbEndpoint,
        state=cluster.state,
        freshness=cluster.freshness,
        admission=admission,
        observe=observe,
        max_body_bytes=limits.max_body_bytes,
    )
    endpoints = (
        endpoint(filter_verb(engine.extender, engine.effects)),
        endpoint(prioritize_verb(engine.extender, engine.effects)),
        endpoint(bind_verb(binder)),
        endpoint(preempt_verb(_preempt(engine, preemption), engine.effects)),
    )
    # After the deadline, every request has had its turn or was shed.
    work = LongWork(admission.lull, settings.deadline)
    background = _of_gangs(engine, cluster)
    finish = _nothing if binder is None else binder.finish
    return Verbs(endpoints, finish, work, decisions, background)


async def _nothing() -> None:
    """Finish no binding: the verb is off."""


def _of_gangs(engine: Engine, cluster: Cluster) -> tuple[Background, ...]:
    if cluster.settling is None:
        return ()
    gangs, cycles = engine.effects.gangs, partial(keep_cycles, engine.effects)
    return (cycles,) if gangs is None else (cycles, partial(keep_gangs, gangs, time.monotonic, cluster.state.refusal))


def _binder(settings: Settings, engine: Engine, cluster: Cluster) -> Binder:
    return Binder(
        BindingCheck(engine.profile, engine.mirror, engine.bypass),
        engine.mirror,
        engine.effects,
        engine.pods,
        timeout=settings.deadline,
        clock=time.monotonic,
        state=cluster.state,
    )


def _preempt(engine: Engine, preemption: Preemption) -> PreemptVerb | None:
    if preemption.refused_nodes is None:
        return None
    return PreemptVerb(
        engine.profile, engine.mirror, preemption.refused_nodes, offset=random.randrange, bypass=engine.bypass
    )
