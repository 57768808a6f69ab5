"""Which pods are remembered of the questions, and for how long."""

import pytest

from app.settings.settings import Settings
from app.verbs.request import RecentPods, Request
from app.wiring.engine import create_extender
from core.objects.pod import Pod
from tests.app.questions import by_name, shop
from tests.app.verbs.receptions import effects_over
from tests.builders import make_pod

KIB = 1024


def pod(number: int, **fields: str) -> Pod:
    return Pod(str(number), "default", f"p-{number}", fields)


def known(recent: RecentPods, *numbers: int) -> list[bool]:
    return [recent.get(str(number)) == pod(number) for number in numbers]


def test_the_pods_that_were_asked_about_last_are_remembered() -> None:
    recent = RecentPods()
    for number in (*range(4096), 0, 4096):
        recent.add(pod(number), bytes(100))
    assert known(recent, 0, 1, 2, 4096) == [True, False, True, True]


def test_as_many_pods_are_remembered_as_have_sixteen_mebibytes() -> None:
    recent = RecentPods()
    for number in range(1024):
        recent.add(pod(number), bytes(16 * KIB))
    assert known(recent, 0, 1023) == [True] * 2
    recent.add(pod(1024), bytes(16 * KIB))
    assert known(recent, 0, 1, 1024) == [False, True, True]
    recent.add(pod(1024), bytes(8 * KIB))
    recent.add(pod(1025), bytes(8 * KIB))
    assert known(recent, 1, 1025) == [True] * 2


def test_pods_larger_than_ordinary_ones_count_eight_times() -> None:
    recent = RecentPods()
    for number, size in enumerate((512, 512, 512, 512)):
        recent.add(pod(number), bytes(size * KIB))
    assert known(recent, 0, 1, 2, 3) == [True] * 4
    recent.add(pod(2), bytes(640 * KIB))
    assert known(recent, 0, 1, 2, 3) == [False, True, True, True]
    recent.add(pod(4), bytes(2049 * KIB))
    assert known(recent, 1, 2, 3, 4) == [False] * 4
    recent.add(pod(5), bytes(2048 * KIB))
    assert known(recent, 5) == [True]


def test_a_pod_is_as_it_was_asked_about_last() -> None:
    recent = RecentPods()
    recent.add(pod(1, app="old"), bytes(100))
    recent.add(pod(1, app="new"), bytes(100))
    assert recent.get("1") == pod(1, app="new")


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_both_verbs_remember_the_pod_of_a_question(verb: str) -> None:
    mirror = shop()
    extender, effects = create_extender(Settings(), mirror), effects_over(mirror)
    question = by_name(make_pod("p").uid("u").label("app", "web"), "a1")
    {"filter": extender.filter, "prioritize": extender.prioritize}[verb](Request(question), effects)
    remembered = effects.recent_pods.get("u")
    assert remembered is not None
    assert (remembered.full_name, remembered.labels) == ("default/p", {"app": "web"})


def test_the_size_that_counts_is_that_of_the_pod() -> None:
    mirror = shop()
    extender, effects = create_extender(Settings(), mirror), effects_over(mirror)
    names = ["n" * 200 + str(number) for number in range(40_000)]
    for uid in ("u", "v", "w"):
        question = by_name(make_pod("p").uid(uid), *names)  # 8 MB each, without the pod a few bytes
        extender.filter(Request(question), effects)
    assert effects.recent_pods.get("u") is not None


def test_the_last_pod_is_known_by_its_json_too() -> None:
    recent = RecentPods()
    recent.add(pod(1), b"one")
    recent.add(pod(2), b"two")
    assert recent.by_json(b"two") == pod(2)
    assert recent.by_json(b"one") is None, "only the last pod is stored: a repeated request follows at once"
    assert RecentPods().by_json(b"") is None


def test_the_json_of_a_pod_is_the_very_bytes_that_came() -> None:
    recent = RecentPods()
    raw = bytes(100)
    recent.add(pod(1), raw)
    assert recent.json_of("1") is raw
    assert recent.json_of("2") == b""
