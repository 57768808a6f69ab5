"""Numbers that no installation had to change, each with its reason. They are no settings; tests pass other ones."""

from typing import Final, NamedTuple

from core.mirror.work import DEFAULT_MAX_WORK

_MIB: Final = 1024 * 1024


class Limits(NamedTuple):
    """Limits of ports, of the queue, of the cache, of leader election and of waits. Times are in seconds."""

    lease_duration: float = 6.0
    """A Lease is valid for this time after its last renewal. kube-scheduler's own times are 15, 10 and 2 s. The price
    of shorter ones is a request a second of each replica, and that an outage of the API server of more than 4 s ends
    the leadership. For Kindred that is no loss: without an API server nothing is bound, and it takes over again."""
    lease_renew_deadline: float = 4.0
    """After this time without a renewal, the leader stops leading: before another replica can lead."""
    lease_retry_period: float = 1.0
    """Between two attempts to acquire or renew the Lease."""
    settle: float = 3.0
    """From a decision to the end of its binding, at most. One takes some tens of milliseconds. The first decision after
    a start or a fail-over waits so long after the last decision before it, if that may be under way."""
    cache_bytes: int = 0
    """Size limit of the equivalence cache, in bytes; 0 for an eighth of the memory limit."""
    shadow_share: float = 0.001
    """Share of the requests served from the cache whose results are computed again and compared. It costs less than
    can be measured, and shows a wrong cell within about a thousand requests."""
    memory_watermark: float = 0.9
    """Share of the memory limit above which the replica is not ready and starts no list: a list of a large cluster
    takes some of the rest before it can be seen."""
    max_work: int = DEFAULT_MAX_WORK
    """Units of work for the evaluation of a pod: while it lasts, no other request and no probe gets a response."""
    max_connections: int = 512
    """Connections that can be open on one port; further ones are closed at once. kube-scheduler has one for each
    of its requests in progress."""
    max_body_bytes: int = 64 * _MIB
    """Largest request body. 5,000 whole Node objects are about 32 MB."""
    max_header_bytes: int = 32 * 1024
    """Largest head of a request: request line and headers. Each header counts for 32 bytes more, because an object of
    its own costs that."""
    read_timeout: float = 10.0
    """A client must complete a request that it began, and must read a response, within this time. So slow clients do
    not take all connections."""
    idle_timeout: float = 120.0
    """After this time without a request, a connection is closed. It is above the 90 s of Go's clients: the side that
    closes first receives no request at that moment."""
    queue_limit: int = 100
    """Requests that may wait in the queue. Further ones are rejected at once, as those that waited too long: most of
    them would be, later."""

    question_seconds: float = 600.0
    """Time for a question about what would happen. The loss of each of three zones with 50,000 pods, in three orders,
    takes a few minutes of one CPU."""
    question_cache_bytes: int = 12 * _MIB
    """Size limit of the caches of a question, which are beside those of the service. Alike pods mostly follow each
    other, so a few classes are enough."""


DEFAULTS: Final = Limits()


def cache_bytes(memory: int) -> int:
    """Return the size limit of the equivalence cache, in bytes, for a memory limit in bytes; 0 for no limit."""
    return max(memory // 8, 16 * _MIB) if memory else 128 * _MIB


def queue_bytes(memory: int, largest_body: int) -> int:
    """Return the bytes that the bodies of requests in progress may take, for a memory limit in bytes; 0 for none."""
    return max(memory // 4 if memory else 256 * _MIB, largest_body)
