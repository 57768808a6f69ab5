"""The equivalence cache on against off, in turns in one run: by kind of pod and profile, in a rollout, and its size.

*Plugins* is the cost of an evaluation with the nodes as slots: class key, filter, scores, normalisation. *Verbs* is the
cost of both verbs from request bytes to response bytes. Most of it is for names, whatever the plugins cost.
"""

import gc
import itertools
from collections.abc import Sequence
from typing import Final

from core.profile import Profile, full_profile
from tests.bench import cluster, dressed
from tests.bench.cluster import Object
from tests.bench.command import Size
from tests.bench.decisions import Decider, decoded, names_of, settle
from tests.bench.report import Ratio, Rounds, Row, Section, Times
from tests.conformance.engine import load
from tests.core.profile_parts import affinity_profile

SLOWEST: Final = 1.05
"""Limit for the time of both verbs with the cache, as a multiple of their time without it, for any kind."""
FASTER: Final = 3.0
"""Least factor by which the cache must speed up the plugins, for predicates beyond affinity."""
_LIVE_CLASSES: Final = 3_000
_PODS_PER_KIND: Final = 40
_ROUNDS: Final = 12
_REPEATS: Final = range(3)
"""The quickest counts. The first one of a side has cold caches of the CPU: it took 1.7 times as long, and the median of
the ratios was that of two kinds, by the side that came first."""
_DEPLOYMENTS: Final = 200
_PLUGINS: Final = ("plugins off", "plugins on")
_VERBS: Final = ("verbs off", "verbs on")
_REPLICAS: Final = 50


def compare(decider: Decider, v1_pods: Sequence[Object], name: str, fastest: float | None) -> Row:
    """Evaluate pods for the first time, and then in rounds. `fastest` is the limit of the plugins' ratio."""
    pods = [decoded(pod) for pod in v1_pods]
    first = [decider.from_cache(pod)[0] for pod in pods]
    plugins, verbs = Rounds(*_PLUGINS), Rounds(*_VERBS)
    for number in range(_ROUNDS):
        plugins.begin()
        verbs.begin()
        for pod, v1_pod in zip(pods, v1_pods, strict=True):
            turns = (False, True) if number % 2 else (True, False)
            for cached in turns:
                evaluate = decider.from_cache if cached else decider.afresh
                plugins.add(_PLUGINS[cached], min(evaluate(pod)[0] for _ in _REPEATS))
            for cached in turns:
                verbs.add(_VERBS[cached], min(decider.verbs(v1_pod, cached=cached) for _ in _REPEATS))
    return Row(
        name,
        {"first question": Times.of(first), **plugins.times(), **verbs.times()},
        ratios={"plugins on to off": _on_to_off(plugins, fastest), "verbs on to off": _on_to_off(verbs, SLOWEST)},
    )


def _on_to_off(times: Rounds, at_most: float | None = None) -> Ratio:
    """Return the time with the cache as a multiple of the time without, request by request."""
    off, on = times.of.values()
    return Ratio.of_pairs(on, off, at_most=at_most)


def of_profile(decider: Decider, name: str, size: Size) -> list[Row]:
    """Compare kinds of pods under a profile."""
    rows = []
    count, apps = size.samples(_PODS_PER_KIND), cluster.app_count(size.pods)
    for kind, dress in itertools.product(cluster.KINDS, (False, True) if name == "full" else (False,)):
        make = dressed.incoming if dress else cluster.incoming
        v1_pods = [make(kind, index, apps) for index in range(count)]
        title = f"{name}: {kind}{', dressed' if dress else ''}"
        rows.append(compare(decider, v1_pods, title, 1 / FASTER if name == "full" else None))
    return rows


def roll_out(decider: Decider, size: Size) -> Row:
    """Evaluate and place every pod of all Deployments in turns, and report hits and time saved by the cache."""
    apps, deployments, kinds = cluster.app_count(size.pods), size.samples(_DEPLOYMENTS), list(cluster.KINDS)
    templates = [dressed.incoming(kinds[number % 4], number, apps) for number in range(deployments)]
    decider.cache.clear()
    before = decider.cache.statistics.hits, decider.cache.statistics.misses.total()
    times = Rounds(*_PLUGINS)
    for replica in range(size.samples(_REPLICAS)):
        times.begin()
        for number, template in enumerate(templates):
            pod = decoded(dressed.of_deployment(template, number, replica))
            times.add(_PLUGINS[False], decider.afresh(pod)[0])
            seconds, node = decider.from_cache(pod)
            times.add(_PLUGINS[True], seconds)
            if node:
                decider.mirror.assume(pod, node, 0.0)
    hits = decider.cache.statistics.hits - before[0]
    misses = decider.cache.statistics.misses.total() - before[1]
    return Row(
        f"full: a rollout of {deployments} Deployments, each placement applied",
        times.times(),
        {"cells from the cache, %": 100 * hits / (hits + misses)},
        {"plugins on to off": _on_to_off(times)},
    )


def weigh(decider: Decider, size: Size) -> Row:
    """Report the memory of the cache with many classes. The process's growth includes counters of new classes."""
    decider.cache.clear()
    gc.collect()
    before = _resident_bytes()
    kinds, apps = list(cluster.KINDS), cluster.app_count(size.pods)
    for number in range(size.samples(_LIVE_CLASSES)):
        v1_pod = dressed.of_deployment(dressed.incoming(kinds[number % 4], number, apps), number, 0)
        v1_pod["metadata"]["labels"]["copy"] = str(number)
        decider.from_cache(decoded(v1_pod))
    grown = _resident_bytes() - before
    figures = {"as the cache counts, MB": decider.cache.nbytes / 1e6, "growth of the process, MB": grown / 1e6}
    return Row(f"full: {len(decider.cache):,} live classes", figures=figures)


def measure(size: Size) -> Section:
    """Measure all of it."""
    mirror = load(cluster.namespaces(), dressed.nodes(size.nodes), cluster.pods(size.pods, size.nodes))
    settle()
    profiles: dict[str, Profile] = {"affinity": affinity_profile(), "full": full_profile()}
    deciders = {name: Decider(mirror, names_of(size), profile) for name, profile in profiles.items()}
    rows = [row for name, decider in deciders.items() for row in of_profile(decider, name, size)]
    rows += [roll_out(deciders["full"], size), weigh(deciders["full"], size)]
    return Section("cache", f"The equivalence cache on against off, {size}", rows)


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - no path, a kernel's answer
        return int(file.read().split()[1]) * 4096
