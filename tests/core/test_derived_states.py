"""What plugins derive from a mirror is made before there is anything in it."""

from collections.abc import Callable
from typing import Final, cast

import pytest

from core.events import ClusterEvent
from core.framework.evaluation import FreshEvaluation
from core.mirror.changes import Listener
from core.mirror.cluster import ClusterMirror
from core.profile import COMPOSITES, PLUGINS, Profile, full_profile, parse_profile
from core.scheduling_cycle import DERIVED_STATES, derive_states
from tests.core.profile_parts import affinity_profile
from tests.properties import scheduling_pool as pool

OF_NODES_ALONE: Final = frozenset({"_taints", "_cordoned_nodes", "_reports", "LabelColumns", "LabelProjections"})
"""Made in milliseconds, when they are asked for."""
OF_SERVICES: Final = frozenset({"ServiceIndex", "ServiceSelectors"})


class Recording(ClusterMirror):
    """Remembers what was derived."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[str] = []

    def derived(self, make: Callable[[ClusterMirror], Listener]) -> Listener:  # type: ignore[override]  # any state will do
        def recorded(mirror: ClusterMirror) -> Listener:
            self.made.append(f"{getattr(make, '__module__', '')}.{getattr(make, '__qualname__', '')}")
            return make(mirror)

        known = self._recorders.setdefault(make, recorded)
        return super().derived(known)

    @property
    def _recorders(self) -> dict[object, Callable[[ClusterMirror], Listener]]:
        return cast("dict[object, Callable[[ClusterMirror], Listener]]", self.__dict__.setdefault("recorders", {}))


def test_no_question_derives_what_is_read_from_pods() -> None:
    profile = parse_profile(",".join((*PLUGINS, "GeneralPredicates")))
    mirror = Recording()
    derive_states(profile, mirror)
    before = len(mirror.made)
    for each in (*pool.NODES[:4], *pool.NAMESPACE_STATES, *pool.OTHERS):
        mirror.apply(ClusterEvent("Add", each))
    for number, template in enumerate(pool.PODS):
        evaluation = FreshEvaluation(mirror, pool.incoming(template, f"q{number}", "rs-1"))
        batch = mirror.batch(list(mirror.nodes.slots))
        evaluation.filtered(profile.filters, batch)
        for plugin, _ in profile.scores:
            evaluation.raw_scores(plugin, batch)
    late = {made.rpartition(".")[2] for made in mirror.made[before:]}
    assert late <= OF_NODES_ALONE | OF_SERVICES


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        pytest.param(affinity_profile(), 0, id="affinity"),
        pytest.param(parse_profile("GeneralPredicates"), 2, id="a-composite-stands-for-its-parts"),
        pytest.param(full_profile(), 9, id="full"),
    ],
)
def test_only_what_a_profile_asks_for_is_made(profile: Profile, expected: int) -> None:
    mirror = Recording()
    derive_states(profile, mirror)
    assert len([made for made in mirror.made if made.rpartition(".")[2] not in OF_NODES_ALONE]) == expected


def test_the_names_are_those_of_plugins() -> None:
    assert DERIVED_STATES.keys() <= PLUGINS.keys()
    assert {part for parts in COMPOSITES.values() for part in parts} <= PLUGINS.keys()
