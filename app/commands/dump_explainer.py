"""The explainer for a dump or for a listed cluster. It uses the code of a running service."""

from app.answered_release import AnsweredRelease
from app.commands.dump_source import Dump
from app.explain.explainer import Explainer
from app.long_work import LongWork
from app.settings import Settings
from app.verbs.effects import RecentPods
from app.watch.freshness import OF_A_DUMP, Freshness
from app.wiring.engine import create_cache, create_partition, explained_profile, scheduler_profiles, served_profile
from core.mirror.cluster import ClusterMirror


def dump_explainer(settings: Settings, dump: Dump, waiting: RecentPods, work: LongWork) -> Explainer:
    """Return the explainer of a dump, which works in the turns of `work`. Raises SettingsError.

    `waiting` are pods that a request may name although the mirror lacks them.
    """
    return mirror_explainer(settings, dump.mirror, waiting, work, freshness=OF_A_DUMP, release=dump.release)


def mirror_explainer(  # noqa: PLR0913  # what an explanation follows from
    settings: Settings,
    mirror: ClusterMirror,
    waiting: RecentPods,
    work: LongWork,
    *,
    freshness: Freshness,
    release: AnsweredRelease,
) -> Explainer:
    """Return the explainer of a mirror, as `dump_explainer`. `freshness` has the kinds that the mirror lacks."""
    profile = served_profile(settings)
    create_partition(settings, mirror)
    cache = create_cache(settings, mirror, profile)
    explained = explained_profile(settings, profile)
    return Explainer(
        explained,
        mirror,
        cache,
        waiting,
        freshness,
        release=release,
        work=work,
        schedulers=scheduler_profiles(settings, explained),
    )
