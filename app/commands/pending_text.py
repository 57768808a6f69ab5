"""Pending pods for people: a summary in one line, then a line for each pod, the oldest first."""

from collections.abc import Iterator, Sequence
from typing import Final

from app.commands.age_text import age_text
from app.commands.printer import Line, Styled
from app.commands.text_columns import counted, wrapped, wrapped_table
from app.explain.pending import PendingClass, PendingPod, PendingPods, PendingState
from core.diagnosis.victim_waits import AwaitedVictim

_HEADS: Final = ("NAME", "AGE", "STATE", "FIT", "REASON")
_MORE_HEADS: Final = ("SCHEDULER", "NOMINATED NODE", "WOULD HELP")
_MAX_VICTIMS: Final = 3
"""Limit of a line."""


def pending_text(pending: PendingPods, *, namespace: str | None, wide: bool) -> Iterator[Line]:
    """Return the pods as lines, which have colours on a terminal.

    With a namespace there is no column for it.
    """
    return _lines(pending, namespace, wide=wide)


def _lines(pending: PendingPods, namespace: str | None, *, wide: bool) -> Iterator[Line]:
    if pending.standing != "fresh":
        problems = "; ".join(pending.problems)
        text = f"The mirror is {pending.standing}: {problems}" if problems else f"The mirror is {pending.standing}."
        yield from (Styled(line, fg="yellow") for line in wrapped(text, 2, ""))
    if pending.left_out:
        text = f"{counted(pending.left_out, 'pending pod')} of other namespaces left out: {pending.names_hidden}"
        yield from (Styled(line, fg="yellow") for line in wrapped(text, 2, ""))
    within = f" in namespace {namespace}" if namespace else ""
    if not pending.pods:
        yield f"No pending pods{within}."
        return
    yield from (Styled(line, bold=True) for line in wrapped(_sum(pending, within), 2, ""))
    yield ""
    heads = (*(() if namespace else ("NAMESPACE",)), *_HEADS, *(_MORE_HEADS if wide else ()))
    yield from wrapped_table(heads, [_row(pod, pending, namespace, wide=wide) for pod in pending.pods], 0, wide=wide)
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
    not_asked = sum(pod.place is None for pod in pending.pods)
    if not_asked:
        parts.append(f"{not_asked:,} of more classes, not judged")
    return "; ".join(parts)


def _row(pod: PendingPod, pending: PendingPods, namespace: str | None, *, wide: bool) -> Sequence[str]:
    kind = pending.classes[pod.place] if pod.place is not None else None
    of_namespace, _, name = pod.pod.rpartition("/")
    fit = f"{kind.fit:,}/{kind.nodes:,}" if kind is not None else "-"
    unit = pending.units[pod.unit] if pod.unit is not None else None
    of_unit = f"group {unit.unit} is {unit.status.value}" if unit is not None else ""
    reasons = [_reason(pod, kind), of_unit, *_victims(pod.waits_for)]
    cells = [name, age_text(pod.seconds), pod.state.value, fit, "; ".join(filter(None, reasons)) or "-"]
    if not namespace:
        cells.insert(0, of_namespace)
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
