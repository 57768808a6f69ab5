"""The cost of an explanation relative to a filter call with the same body: the summary, and one node in detail."""

import asyncio
import itertools
import json
import time
from typing import Final

from app.explain.explain_request import decode_explain_request
from app.explain.explainer import Detail, Explainer
from app.explain.known_pods import KnownPods
from app.feeds.freshness import OF_A_DUMP
from app.feeds.release import ReleaseTracker
from app.process.json_text import encode
from app.settings.settings import Settings
from app.verbs.effects import Effects
from app.verbs.filter import Extender
from app.verbs.pods import PodLookup
from app.verbs.request import Request
from core.diagnosis.explained_profile import every_rule
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.profile import Profile, parse_profile
from tests.bench import cluster
from tests.bench.command import Size
from tests.bench.decisions import loaded, names_of, settle, timed
from tests.bench.report import Ratio, Row, Section, Times
from tests.core.profile_parts import derive_states

_ROUNDS: Final = 5
_SAMPLES: Final = 20
_AT_MOST: Final = 10.0
"""Limit as a multiple of a filter call. A scheduler's request may have to wait for one explanation."""


FITS_NOWHERE: Final = "fits nowhere"
"""A pod that requests more than any node has. Its explanation tries out many remedies."""


class Bench:
    """One cluster with an extender and an explainer."""

    def __init__(self, size: Size, profile: Profile) -> None:
        mirror = loaded(size)
        derive_states(profile, mirror)
        cache = EquivalenceCache(mirror, profile.plugins, CacheOptions(mode="spec"))
        self._extender = Extender(profile, mirror, cache)
        self._effects = Effects(mirror, time.monotonic, PodLookup(mirror, None, time.monotonic))
        self._explainer = Explainer(
            every_rule(profile),
            KnownPods(mirror, self._effects.recent_pods),
            cache,
            OF_A_DUMP,
            release=ReleaseTracker(Settings(), mirror),
        )
        self._names = names_of(size)
        self._apps = cluster.app_count(size.pods)
        self._numbers = itertools.count()
        self._runner = asyncio.Runner()
        settle()

    def close(self) -> None:
        """End the event loop."""
        self._runner.close()

    def ask(self, kind: str) -> tuple[float, float, float]:
        """Request another pod. Return the seconds of filter, of the summary, and of the summary with one node."""
        number = next(self._numbers)
        pod = self._pod(kind, number)
        body = json.dumps({"Pod": pod, "NodeNames": self._names}).encode()
        self._extender.filter(Request(body), self._effects)  # the first request makes the pod's counters
        node = self._names[number % len(self._names)]
        filtering, _ = timed(lambda: self._extender.filter(Request(body), self._effects))
        summing_up, _ = timed(lambda: self._explain(body, Detail()))
        detailing, _ = timed(lambda: self._explain(body, Detail(nodes=(node,))))
        return filtering, summing_up, detailing

    def _pod(self, kind: str, number: int) -> cluster.Object:
        if kind != FITS_NOWHERE:
            return cluster.incoming(kind, number, self._apps)
        pod = cluster.incoming("plain", number, self._apps)
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000"}}
        return pod

    def _explain(self, body: bytes, detail: Detail) -> bytes:
        question = decode_explain_request(body, self._explainer.mirror)
        return encode(self._runner.run(self._explainer.explain(question, detail)))


def measure(size: Size) -> Section:
    """Measure all kinds of pods, with inter-pod affinity alone and with all plugins."""
    rows = [row for profile in ("affinity", "full") for row in _rows(size, profile)]
    return Section("explain", f"What an explanation costs, {size}", rows)


def _rows(size: Size, profile: str) -> list[Row]:
    bench = Bench(size, parse_profile(profile))
    try:
        kinds = (*cluster.KINDS, FITS_NOWHERE)
        return [_row(bench, kind, f"{kind}, profile {profile}", size.samples(_SAMPLES)) for kind in kinds]
    finally:
        bench.close()


def _row(bench: Bench, kind: str, name: str, samples: int) -> Row:
    rounds = [[bench.ask(kind) for _ in range(samples)] for _ in range(_ROUNDS)]
    filtering, summing_up, detailing = (
        [[requested[place] for requested in one] for one in rounds] for place in range(3)
    )
    return Row(
        name,
        {
            "filter": Times.over(filtering),
            "summary": Times.over(summing_up),
            "with a node": Times.over(detailing),
        },
        ratios={
            "summary to filter": Ratio.of(summing_up, filtering, at_most=None if kind == FITS_NOWHERE else _AT_MOST),
            "with a node to filter": Ratio.of(detailing, filtering),
        },
    )
