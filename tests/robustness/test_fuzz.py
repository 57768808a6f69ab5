"""Bodies and requests that are wrong in all ways that chance finds: each is answered, and nothing is left behind.

The same requests are made each time, so that what is found can be found again.
KINDRED_TEST_DEPTH=20 makes 20 times as many.
"""

import json
import random
from collections.abc import Iterator
from typing import Final

import pytest

from tests.app.admin.test_openapi import described_responses
from tests.app.serving import until
from tests.depth import tries
from tests.robustness import bodies, wire
from tests.robustness.bodies import mutated, odd_bodies, valid_bodies
from tests.robustness.watched import Watched, watched
from tests.robustness.wire import Client, exchange, odd_requests

ODD_EACH: Final = tries(default=1, full=3)  # in each place of each body
MUTATED_EACH: Final = tries(default=60, full=200)  # of each body
REQUESTS_EACH: Final = tries(default=30, full=100)
MAX_BYTES: Final = 5_000_000
"""That a pass may add to the memory, once all that is kept is there. Measured: 0.1 MB."""
ALLOWED: Final = {200, 400, 404, 405, 408, 411, 413, 414, 417, 431, 505}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with watched(tmp_path_factory.mktemp("fuzz")) as found:
        yield found
        found.assert_unharmed()


def corpus(seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield a path with a body, so many times that nothing is left out."""
    source = random.Random(seed)  # noqa: S311 - to be the same each time
    whole = [valid.body for valid in valid_bodies()]
    for valid in valid_bodies():
        yield valid.path, valid.body
        for body in odd_bodies(source, valid.document, ODD_EACH):
            yield valid.path, body
        for _ in range(MUTATED_EACH):
            yield valid.path, mutated(source, valid.body, whole)


def responses(service: Watched) -> list[bytes]:
    """Return the answers to what is right."""
    with Client(service.address) as client:
        return [client.post(valid.path, valid.body).body for valid in valid_bodies()]


def ask_all(service: Watched) -> int:
    """Ask the whole corpus, and look at each answer; give how many there were."""
    described = described_responses()
    count = 0
    with Client(service.address) as client:
        for path, body in corpus(seed=1):
            response = client.post(path, body)
            rendered = (path, body[:5000], response)
            assert response.status == 200, rendered
            assert b"internal error" not in response.body, rendered
            assert described[path].is_valid(json.loads(response.body)), rendered
            count += 1
    return count


def test_odd_bodies_are_answered_and_nothing_is_left_of_them(service: Watched) -> None:
    before = responses(service)
    ask_all(service)  # then caches are full, and the heap has its size
    memory, descriptors, tasks = service.rss(), service.descriptors(), service.tasks()
    assert ask_all(service) > 1000
    assert before == responses(service)
    until(lambda: service.descriptors() <= descriptors)
    assert service.tasks() <= tasks
    assert service.rss() - memory < MAX_BYTES
    service.assert_unharmed()


def test_odd_requests_are_answered_or_refused_and_nothing_is_left_of_them(service: Watched) -> None:
    before = responses(service)
    memory, descriptors, tasks = 0, service.descriptors(), service.tasks()
    for _ in range(2):
        memory = service.rss()
        source = random.Random(2)  # noqa: S311 - to be the same each time
        for valid in valid_bodies():
            for pieces in odd_requests(source, valid.path, valid.body, REQUESTS_EACH):
                for response in exchange(service.address, pieces):
                    assert response.status in ALLOWED, (pieces, response)
                    assert b"internal error" not in response.body, (pieces, response)
    assert before == responses(service)
    until(lambda: service.descriptors() <= descriptors)
    until(lambda: service.tasks() <= tasks)
    assert service.rss() - memory < MAX_BYTES
    service.assert_unharmed()


def test_whatever_there_is_to_be_tried_is_tried() -> None:
    tried = [body for _, body in corpus(seed=1)]
    for text in bodies.ODD:
        assert any(text.encode() in body for body in tried), text[:20]
    source = random.Random(2)  # noqa: S311 - to be the same each time
    sent = [b"".join(pieces) for pieces in odd_requests(source, "/filter", b"{}", 2000)]
    for line in wire.FIRST_LINES:
        assert any(each.startswith(line + b"\r\n") for each in sent), line[:20]
