"""Who decides for pods, where `filter` answers one node."""

import random
import time

from app.settings import Settings, SettingsError
from app.telemetry.metrics import Metrics
from app.telemetry.metrics.decision_collector import DecisionCollector
from app.verbs.binding.pod_api import PodApi
from app.verbs.deciding.claims import InTreeNeeds
from app.verbs.deciding.decider import Decider
from app.verbs.deciding.pod_lookup import PodLookup
from app.verbs.deciding.scopes import DecideScope, decide_scopes
from app.verbs.evaluations import Evaluations
from app.wiring.cluster import Cluster
from app.wiring.preemption import Preemption
from core.equivalence.cache import EquivalenceCache
from core.mirror.cluster import ClusterMirror
from core.profile import COMPOSITES, Profile, full_profile


def create_decider(  # noqa: PLR0913  # what decides
    settings: Settings,
    mirror: ClusterMirror,
    profile: Profile,
    cache: EquivalenceCache | None,
    *,
    cluster: Cluster,
    preemption: Preemption,
    metrics: Metrics,
) -> Decider | None:
    """Return what the settings want; None where `filter` answers all nodes that fit. Raises SettingsError."""
    scopes = decide_scopes(settings)
    if scopes is None:
        return None
    if DecideScope.ANY_NODE in scopes.all:
        _check_that_all_is_judged(settings, profile)
    decider = Decider(
        profile,
        mirror,
        Evaluations(profile, mirror, cache),
        scopes,
        lookup=PodLookup(mirror, PodApi(cluster.client) if cluster.client is not None else None, time.monotonic),
        needs=InTreeNeeds(mirror, settings.decide_claims_scheduler),
        choose=random.randrange,
        clock=time.monotonic,
        nominations=preemption.nominations,
        refused_nodes=preemption.refused_nodes,
    )
    metrics.register(DecisionCollector(decider.decisions, cluster.settling))
    return decider


def _check_that_all_is_judged(settings: Settings, profile: Profile) -> None:
    """Refuse to choose among nodes that no scheduler has looked at by fewer rules than it has. Raises SettingsError."""
    judged = {part for plugin in profile.filters for part in COMPOSITES.get(plugin.name, (plugin.name,))}
    missing = [plugin.name for plugin in full_profile().filters if plugin.name not in judged]
    if missing:
        raise SettingsError(
            f"KINDRED_DECIDE_SCOPE={settings.decide_scope!r}: any-node needs every filter of the profile full, and "
            f"KINDRED_PROFILE={settings.profile!r} lacks {', '.join(missing)}"
        )
