"""Which decisions are kept, and what of them, also as the extender makes them."""

import gc
from hashlib import blake2b
from typing import Final

import pytest
from msgspec.structs import replace

from app.explain.decisions import MAX_BYTES, MAX_DECISIONS, MAX_OF_A_POD, SMALL, Decisions
from app.settings.settings import Settings
from app.verbs.request import RecentPods, Request, VerbOutcome, VerbResponse
from app.wiring.engine import create_extender
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from tests.app.verbs.receptions import effects_over

NOON: Final = 1_763_812_800.0


class Asking:
    """An extender over a mirror whose answers are noted."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self.mirror = mirror
        self.extender = create_extender(Settings(), mirror)
        self.effects = effects_over(mirror)
        self.decisions = Decisions(mirror, self.effects.recent_pods, lambda: NOON)

    def ask(self, body: bytes, verb: str = "filter") -> int:
        """Ask, and give the number of the decision."""
        request = Request(body, verb=verb, size=len(body), seconds=0.25, waited=0.125)
        request.response = (self.extender.filter if verb == "filter" else self.extender.prioritize)(
            request, self.effects
        )
        self.decisions(request)
        return self.decisions.noted


RESPONSE = VerbResponse(b"answers", "hit 12", pod="a/p", uid="u", nodes=5, passed=3)
ONE = Request(b"asked!", verb="filter", size=6, seconds=0.25, waited=0.125, stale="late", response=RESPONSE)
UNREADABLE = replace(ONE, response=VerbResponse(b"answers", outcome=VerbOutcome.BAD_REQUEST))


@pytest.fixture
def recent() -> RecentPods:
    return RecentPods()


@pytest.fixture
def decisions(recent: RecentPods) -> Decisions:
    return Decisions(ClusterMirror(), recent, lambda: NOON)


def about(uid: str, body: bytes = b"asked!") -> Request:
    return replace(ONE, body=body, response=replace(RESPONSE, body=body, pod=f"a/{uid}", uid=uid))


def numbers(decisions: Decisions, pod: str | None = None) -> list[int]:
    return [decision.id for decision in decisions.latest(pod)]


def test_the_pod_is_shared_and_stays_though_another_state_of_it_was_asked_about(
    decisions: Decisions, recent: RecentPods
) -> None:
    raw = b'{"a":1}'
    recent.add(Pod("u", "a", "p"), raw)
    decisions(ONE)
    decisions(replace(ONE, verb="prioritize"))
    recent.add(Pod("u", "a", "p"), b'{"a":2}')
    decisions(ONE)
    assert [decision.pod_sent for decision in decisions.latest()] == [b'{"a":2}', raw, raw]
    assert all(decision.pod_sent is raw for decision in decisions.latest() if decision.id < 3)


def test_a_large_body_is_kept_by_nobody(decisions: Decisions) -> None:
    class Body(bytearray):
        """A body that can be looked for."""

    decisions(replace(ONE, body=Body(SMALL + 1), response=VerbResponse(bytes(SMALL + 1))))
    decisions(replace(ONE, body=Body(SMALL), response=VerbResponse(bytes(SMALL))))
    small, large = decisions.latest()
    assert (large.request, large.response, large.arguments_hash) == (b"", b"", "")
    assert (small.request, small.response) == (bytes(SMALL), bytes(SMALL))
    assert type(small.request) is bytes  # whoever gathered it may use it again
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, Body)]


def test_hashes_are_those_of_what_was_sent(decisions: Decisions, recent: RecentPods) -> None:
    recent.add(Pod("u", "a", "p"), b'{"a":1}')
    decisions(ONE)
    decisions(replace(UNREADABLE, body=b""))
    unknown, known = decisions.latest()
    assert known.pod_hash == blake2b(b'{"a":1}', digest_size=16).hexdigest()
    assert known.arguments_hash == blake2b(b"asked!", digest_size=16).hexdigest()
    assert (unknown.pod_hash, unknown.arguments_hash) == ("", "")


def test_of_one_pod_the_latest_few_are_kept_and_all_of_another(decisions: Decisions) -> None:
    decisions(about("other"))
    for _ in range(MAX_OF_A_POD + 3):
        decisions(about("u"))
    assert numbers(decisions) == [*range(MAX_OF_A_POD + 4, 4, -1), 1]
    assert numbers(decisions, "u") == numbers(decisions, "a/u") == [*range(MAX_OF_A_POD + 4, 4, -1)]
    assert numbers(decisions, "other") == [1]
    assert numbers(decisions, "nobody") == []
    assert (decisions.get(4), decisions.noted, len(decisions)) == (None, MAX_OF_A_POD + 4, MAX_OF_A_POD + 1)


def test_requests_that_could_not_be_read_do_not_fill_all(decisions: Decisions) -> None:
    decisions(ONE)
    for _ in range(3 * MAX_OF_A_POD):
        decisions(UNREADABLE)
    assert len(decisions) == MAX_OF_A_POD + 1


def test_as_many_decisions_are_kept_as_may_be_the_oldest_go_first(decisions: Decisions) -> None:
    for number in range(MAX_DECISIONS + 2):
        decisions(about(f"{number}"))
    assert numbers(decisions) == [*range(MAX_DECISIONS + 2, 2, -1)]
    assert numbers(decisions, "0") == numbers(decisions, "a/1") == []
    assert numbers(decisions, "2") == [3]


def test_all_that_is_kept_is_bounded_by_bytes(decisions: Decisions, recent: RecentPods) -> None:
    recent.add(Pod("u", "a", "p"), bytes(MAX_BYTES // 8))
    for _ in range(8):
        decisions(ONE)
    assert numbers(decisions) == [8, 7, 6, 5, 4, 3, 2]  # the bodies take some, too
    for number in range(3000):
        decisions(about(f"{number}", bytes(SMALL)))
    stored = sum(len(each.pod_sent) + len(each.request) + len(each.response) for each in decisions.latest())
    assert MAX_BYTES * 0.9 < stored < MAX_BYTES
    assert numbers(decisions, "u") == []


def test_what_is_dropped_leaves_nothing_behind(decisions: Decisions) -> None:
    for number in range(2 * MAX_DECISIONS):
        decisions(about(f"{number}"))
    assert [len(each) for each in vars(decisions).values() if isinstance(each, dict)] == [MAX_DECISIONS] * 2


def test_a_dry_run_is_no_decision(decisions: Decisions) -> None:
    decisions(replace(ONE, dry_run=True))
    assert (decisions.noted, numbers(decisions)) == (0, [])
    decisions(ONE)
    assert (decisions.noted, numbers(decisions)) == (1, [1])
