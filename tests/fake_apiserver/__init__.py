"""A fake kube-apiserver on a real TCP port, for tests and benchmarks of everything that lists and watches.

It behaves like v1.34: paged lists of one consistent snapshot, watches with history, bookmarks and WatchList, field
selectors, `v1.Status` errors. A client can read, bind, delete a pod by its name, and patch its
status. It can create, read and replace a Lease. `GET /version` returns `Behaviour.git_version`. Faults on the way can
be switched on. In a test:

    async with FakeApiServer(Behaviour(bookmark_interval=0.1)) as server:
        server.create(PODS.path, {"metadata": {"name": "p"}, "spec": {"nodeName": "n1"}})
        server.faults.add(refuse(expired_watch(1, 5)), PODS.path, "watch")        # the next watch is answered 410
        server.faults.add(StreamError(expired_watch(1, 5), after=3), PODS.path)   # or: an ERROR after three lines
        server.faults.add(Cut(after=2, extra=40), times=None)                     # every stream, until removed
        ...                                                                       # let the client at server.url
        await server.until_watching(PODS.path)
        server.disturb(End(), PODS.path)                                          # the running watches of pods
        assert len(server.requests.of(PODS.path, "watch")) <= 3

- `server.create / update / delete / objects / compact(path, ...)`: the cluster (`store.Store`). Objects are any JSON:
  one that no client can decode, of 1 MB, or with U+2028 in it, is just created. An update keeps the uid, a deletion
  and creation gives another one.
- `server.behaviour`: token, version, forbidden and absent resources, WatchList on / off / ignored, bookmarks,
  `chunk_bytes`; `other_apis` for what is not of the store, as `usage.FakeUsage` is metrics.k8s.io and Prometheus.
- `server.faults.add(action, path, *kinds, times=1)`: see `faults` for the actions; `refuse` with a Status of `statuses`
  makes one of each error. 410 comes in three places: `refuse(expired_watch(...))` on a watch, `StreamError(...)`, and
  `refuse(expired_continue())` on kind "page". A `Stall` is kept by the test and let go on by `release()`.
- What is done with one pod has the kinds "get", "bind", "delete" and "patch", and paths of `single_objects.pod_path`,
  `binding_path` and `status_path`. A pod on a node that a client deletes terminates until a test deletes it. Of Leases
  there are "get", "create" and "update", and `lease_path`.
- `server.refuse_connections(drop=...)` and `await server.listen()`, or `async with server.refusing_connections()`.
- `server.requests`: the log, a sequence; `of(path, *kinds)`; `connections`. `await server.until(condition)`.

Stalls and all other waits end when the block of the server ends. The block then raises the server's own errors.

As a separate process, with the bench cluster (`bench_data`), churn, and verbs below /_control/ (`control`):

    python -m tests.fake_apiserver --nodes 5000 --pods 150000 --port 0 --churn 1000

A test that needs more of a kube-apiserver (other writes, discovery, label selectors, HTTP/2) needs a real one.
"""

from tests.fake_apiserver.api_handler import Behaviour
from tests.fake_apiserver.faults import Stall, refuse
from tests.fake_apiserver.server import FakeApiServer

__all__ = ["Behaviour", "FakeApiServer", "Stall", "refuse"]
