"""The part of the scheduler's configuration in an explanation, for people."""

from collections.abc import Iterator

from app.commands.text_columns import counted, wrapped
from core.diagnosis.scheduler_rules import SchedulerState


def scheduler_text(scheduler: SchedulerState) -> Iterator[str]:
    """Yield the pod's profile, and the rules that are off in it."""
    if not scheduler.has_profile:
        yield from wrapped(
            f"No profile of the configuration has schedulerName {scheduler.name}: this kube-scheduler does not "
            f"schedule this pod. Every rule is judged as if it were on.",
            2,
            "",
        )
        return
    if scheduler.filters_off:
        yield from wrapped(
            f"Not in the scheduler's profile {scheduler.name}, nor judged by Kindred: "
            f"{', '.join(scheduler.filters_off)}",
            2,
            "",
        )


def profile_text(scheduler: SchedulerState | None, labels: int) -> Iterator[str]:
    """Yield the profile of an explanation, and the extender that is Kindred. `labels` is the width of the label."""
    if scheduler is not None and scheduler.has_profile:
        kindred = (
            f"Kindred is its extender {scheduler.extender}" if scheduler.extender else "Kindred is not its extender"
        )
        yield from wrapped(f"profile {scheduler.name}; {kindred}", labels, "Scheduler".ljust(labels))


def unscored_text(scheduler: SchedulerState) -> Iterator[str]:
    """Yield the plugins whose scores are off or unknown."""
    if scheduler.scores_off:
        yield from wrapped(f"not in the scheduler's profile: {', '.join(scheduler.scores_off)}", 4, "  ")
    for each in scheduler.not_scored:
        yield from wrapped(f"not in these scores: {each.plugin}: {each.why}", 4, "  ")


def sample_text(scheduler: SchedulerState, fit: int) -> Iterator[str]:
    """Yield a note if kube-scheduler stops before it has found all nodes that fit."""
    if scheduler.nodes_to_score < fit:
        share = scheduler.percentage_of_nodes_to_score or "by the size of the cluster"
        yield from wrapped(
            f"kube-scheduler looks for {counted(scheduler.nodes_to_score, 'node')} that fit and scores no others "
            f"(percentageOfNodesToScore: {share}), so its best node may be another.",
            4,
            "  ",
        )
