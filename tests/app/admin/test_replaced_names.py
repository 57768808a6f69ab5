"""What a caller of few rights gets of an explanation is what others get, but for the names, in random clusters."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from app.admin.access import Viewer, visible_part
from app.api_server.access_reviews import TokenCaller
from app.explain.explain_request import ExplainRequest
from app.explain.explainer import Detail, Explainer, Explanation
from app.explain.known_pods import KnownPods
from app.feeds.freshness import OF_A_DUMP
from app.feeds.release import ReleaseTracker
from app.settings.settings import Settings
from app.verbs.request import RecentPods
from core.diagnosis.explained_profile import served_alone
from core.explaining.pod_names import HIDDEN as PLACEHOLDER
from core.profile import full_profile
from tests.app.admin.limited_callers import (
    ALLOWED,
    DISK,
    HIDDEN,
    NODES,
    OURS,
    ReviewingServer,
    everywhere,
    nodes,
    ours,
    theirs,
)
from tests.builders import PodBuilder
from tests.conformance.engine import load
from tests.core.decoded import pod_of
from tests.core.profile_parts import derive_states
from tests.depth import tries


@st.composite
def pods(draw: st.DrawFn, name: str, node: str = "") -> PodBuilder:
    """Draw a pod of either namespace that may be in the way of others, in several ways."""
    mine = draw(st.booleans())
    pod = ours(name) if mine else theirs(name)
    ways = draw(st.sets(st.sampled_from(("port", "web", "shy", "repelled", "large", "disk", "important"))))
    pod = pod.host_port(80) if "port" in ways else pod
    pod = pod.label("app", "web") if "web" in ways else pod
    pod = pod.required_anti_affinity(everywhere(app="web")) if "shy" in ways else pod
    pod = pod.preferred_anti_affinity(7, everywhere(app="web")) if "repelled" in ways else pod
    pod = pod.requests(cpu=draw(st.integers(1, 3))) if "large" in ways else pod
    pod = pod.volume(DISK) if "disk" in ways else pod
    pod = pod.priority(10) if "important" in ways else pod
    return pod.on(node) if node else pod.nominated(draw(st.sampled_from(("", *NODES))))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[PodBuilder], PodBuilder]:
    """Draw the pods of a cluster, and one of OURS to ask about."""
    on_nodes = [draw(pods(f"{node}-{number}", node)) for node in NODES for number in range(draw(st.integers(0, 3)))]
    pending = [draw(pods(f"pending-{number}")) for number in range(draw(st.integers(0, 3)))]
    requested = draw(pods("incoming").filter(lambda pod: pod.namespace == OURS))
    return [*on_nodes, *pending], requested


def explanation(world: Sequence[PodBuilder], requested: PodBuilder) -> Explanation:
    mirror = load([], [node.obj() for node in nodes()], [pod.obj() for pod in world])
    profile = full_profile()
    derive_states(profile, mirror)
    release = ReleaseTracker(Settings(), mirror)
    explainer = Explainer(served_alone(profile), KnownPods(mirror, RecentPods()), None, OF_A_DUMP, release=release)
    return asyncio.run(explainer.explain(ExplainRequest(pod_of(requested)), Detail(NODES, 50, score_all=True)))


def as_seen(reported: Explanation, viewer: Viewer) -> Any:  # noqa: ANN401  # decoded JSON
    return json.loads(bytes(asyncio.run(visible_part(reported, viewer)).body))


def differences(whole: Any, seen: Any, path: str = "") -> Iterator[tuple[str, str, str]]:  # noqa: ANN401  # decoded JSON
    """Yield (path, text, text that is seen) wherever two values of the same form differ."""
    assert type(whole) is type(seen), path
    if isinstance(whole, dict):
        assert whole.keys() == seen.keys()
        for key in whole:
            yield from differences(whole[key], seen[key], f"{path}.{key}")
    elif isinstance(whole, list):
        assert len(whole) == len(seen), path
        for left, right in zip(whole, seen, strict=True):
            yield from differences(left, right, path)
    elif whole != seen:
        yield path, whole, seen


@settings(max_examples=tries(default=25, full=400))
@given(worlds())
def test_names_are_replaced_and_nothing_else(world: tuple[list[PodBuilder], PodBuilder]) -> None:
    reported = explanation(*world)
    server = ReviewingServer(ALLOWED)
    whole = as_seen(reported, Viewer(None, None))
    seen = as_seen(reported, Viewer(server.reviews(), TokenCaller("of-ours")))
    text = json.dumps(seen)
    assert HIDDEN not in text
    found = [*differences(whole, seen)]
    assert bool(found) == (HIDDEN in json.dumps(whole))
    for path, before, after in found:
        if path == ".names_hidden":
            continue
        assert HIDDEN in before, path
        assert after == "" if path.endswith(".uid") else PLACEHOLDER in after, path
    assert as_seen(reported, Viewer(server.reviews(), TokenCaller("of-all"))) == whole
