"""`kindred pending`: the pods without a node, the oldest first, of a running service or of a dump."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Unpack

import click
import msgspec

from app.commands.admin_client import ACCESS_OPTIONS, Access, get_response, understood
from app.commands.dump import SOURCE_OPTIONS, Source, explainer_of, is_of_dump, load_dump
from app.commands.options import (
    OF_EXPLANATIONS,
    clear_errors,
    explaining_settings,
    output_option,
    settings_options,
    with_options,
)
from app.commands.output import Line, OutputFormat, age_text, pod_name, print_output, styled, table, wrapped
from app.explain.pending import PendingClass, PendingPod, PendingPods, PendingPodsExplainer, PendingState
from app.process.long_work import LongWork
from app.verbs.request import RecentPods
from app.wiring.engine import check_explained
from core.diagnosis.wakes import AwaitedVictim
from core.explaining.words import counted

_HEADS: Final = ("NAMESPACE", "NAME", "AGE", "STATE", "FIT", "REASON")
_MORE_HEADS: Final = ("SCHEDULER", "NOMINATED NODE", "WOULD HELP")
_MAX_VICTIMS: Final = 3
_PATIENCE: Final = 60.0
"""Seconds. The service judges the classes of pods in steps between scheduler requests."""


class Options(Access, Source):
    """All options of the command."""

    namespace: str | None
    all_namespaces: bool
    output: OutputFormat
    config: Path | None


@click.command("pending", params=settings_options(OF_EXPLANATIONS, profile="full"))
@click.option("--namespace", "-n", metavar="NS", help="Only pods of this namespace.  [default: all namespaces]")
@click.option("--all-namespaces", "-A", is_flag=True, help="Pods of all namespaces; overrides -n.")
@output_option()
@with_options(SOURCE_OPTIONS)
@with_options(ACCESS_OPTIONS)
def pending_command(**options: Unpack[Options]) -> None:
    """Print the pending pods, the oldest first: how many nodes each fits on now, and why not on the others.

    Calls the admin port of a running service (--server), or reads a dump of a cluster (--snapshot, --demo). -o wide
    adds the scheduler, the nominated node and remedies.
    """
    of_a_dump = is_of_dump(options)
    namespace = None if options["all_namespaces"] else options["namespace"]
    with clear_errors():
        pending = _of_dump(options, namespace) if of_a_dump else _of_service(options, namespace)
    names = (pod_name(each.pod) for each in pending.pods)
    print_output(options["output"], pending, partial(pending_text, pending, namespace=namespace), names)


def _of_service(access: Access, namespace: str | None) -> PendingPods:
    """Call a running service. Raises CannotAskError."""
    query = {"namespace": namespace} if namespace is not None else None
    response = get_response(access, "GET", "/pending", query, patience=_PATIENCE)
    return understood(access["url"], response, msgspec.json.Decoder(PendingPods).decode)


def _of_dump(options: Options, namespace: str | None) -> PendingPods:
    """Judge with the code of a service. Raises SettingsError and SnapshotError."""
    settings = explaining_settings(options)
    check_explained(settings)  # fails before a large dump is loaded
    work = LongWork()
    explainer = explainer_of(settings, load_dump(settings, options), RecentPods(), work)
    pending = PendingPodsExplainer(explainer, work, time.time)
    return pending.view(asyncio.run(pending.judge()), namespace).message()


def pending_text(pending: PendingPods, *, namespace: str | None, wide: bool) -> Iterator[Line]:
    """Yield the pods as lines. With a namespace there is no column for it."""
    if pending.standing != "fresh":
        problems = "; ".join(pending.problems)
        text = f"The mirror is {pending.standing}: {problems}" if problems else f"The mirror is {pending.standing}."
        yield from styled(wrapped(text, 2, ""), "yellow")
    if pending.left_out:
        text = f"{counted(pending.left_out, 'pending pod')} of other namespaces left out: {pending.names_hidden}"
        yield from styled(wrapped(text, 2, ""), "yellow")
    within = f" in namespace {namespace}" if namespace else ""
    if not pending.pods:
        yield f"No pending pods{within}."
        return
    yield from styled(wrapped(_sum(pending, within), 2, ""), bold=True)
    yield ""
    first = 1 if namespace else 0
    rows = [_row(pod, pending, wide=wide)[first:] for pod in pending.pods]
    yield from table((*_HEADS, *(_MORE_HEADS if wide else ()))[first:], rows, 0, wide=wide)
    for unit in pending.units:
        if unit.reason:
            yield ""
            yield from wrapped(f"Group {unit.unit} is {unit.status.value}: {unit.reason}", 2, "")


def _sum(pending: PendingPods, within: str) -> str:
    nowhere = sum(each.pods for each in pending.classes if each.state is PendingState.UNSCHEDULABLE)
    parts = [
        f"{counted(len(pending.pods), 'pending pod')}{within} of {counted(len(pending.classes), 'class', 'classes')}",
        f"{nowhere:,} {'fits' if nowhere == 1 else 'fit'} nowhere",
    ]
    unrequested = sum(pod.place is None for pod in pending.pods)
    if unrequested:
        parts.append(f"{unrequested:,} of more classes, not judged")
    return "; ".join(parts)


def _row(pod: PendingPod, pending: PendingPods, *, wide: bool) -> Sequence[str]:
    kind = pending.classes[pod.place] if pod.place is not None else None
    of_namespace, _, name = pod.pod.rpartition("/")
    fit = f"{kind.fit:,}/{kind.nodes:,}" if kind is not None else "-"
    unit = pending.units[pod.unit] if pod.unit is not None else None
    of_unit = f"group {unit.unit} is {unit.status.value}" if unit is not None else ""
    reasons = [_reason(pod, kind), of_unit, *_victims(pod.waits_for)]
    cells = [of_namespace, name, age_text(pod.seconds), pod.state.value, fit, "; ".join(filter(None, reasons)) or "-"]
    if wide:
        helps = kind.helps if kind is not None else ()
        cells += [pod.scheduler or "-", pod.nominated_node or "-", "; or ".join(helps) or "-"]
    return cells


def _reason(pod: PendingPod, kind: PendingClass | None) -> str:
    if pod.gates:
        return f"scheduling gates: {', '.join(pod.gates)}"
    if kind is None:
        return ""
    if kind.scheduler is not None and not kind.scheduler.has_profile:
        return f"no scheduler profile {kind.scheduler.name}"
    if kind.first_reason:
        return kind.first_reason
    return "; ".join(f"{each.plugin}: {each.why}" for each in kind.not_judged)


def _victims(victims: Sequence[AwaitedVictim]) -> Iterator[str]:
    yield from map(victim_text, victims[:_MAX_VICTIMS])
    if len(victims) > _MAX_VICTIMS:
        yield f"and for {counted(len(victims) - _MAX_VICTIMS, 'more victim')}"


def victim_text(victim: AwaitedVictim) -> str:
    """Return which victim of preemption a pod waits for, and since when."""
    return f"waits for {victim.name} on {victim.node} to end, since {victim.waiting:.0f} s"
