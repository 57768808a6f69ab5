"""`kindred serve` as it is, save that an answer for a member of a group ends the places of the others of the group."""

from app.commands.cli import main
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod

_assume = ClusterMirror.assume


def _assume_alone(mirror: ClusterMirror, pod: Pod, node_name: str, now: float, *, wait: float | None = None) -> Pod:
    """Count a pod, and forget the members of its group that are assumed."""
    known = mirror.assumed.items() if pod.in_scheduling_group else ()
    for uid in [uid for uid, each in known if each.pod.scheduling_group == pod.scheduling_group]:
        mirror.forget(uid)
    return _assume(mirror, pod, node_name, now, wait=wait)


if __name__ == "__main__":
    ClusterMirror.assume = _assume_alone  # type: ignore[assignment, method-assign]
    main(prog_name="kindred")
