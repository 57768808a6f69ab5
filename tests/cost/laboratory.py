"""A service over the bench cluster in this process, and attacks on it, each in a fork.

Requests go to the apps by ASGI, through the queue and the routes. Objects of the watch go through its decoders and its
feed. `tests.cost.live` measures the cost of HTTP itself with a running service.
"""

import asyncio
import hashlib
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

import httpx

from app.feeds.objects import MirrorFeed
from app.objects.decode import DecodeError
from app.objects.resources import RESOURCES, Resource
from app.settings.limits import Limits
from app.settings.settings import Settings
from app.wiring.main import Service, create_service
from core.equivalence.cache import EquivalenceCache
from core.events import Action, ClusterEvent
from core.gangs.gangs import Gangs
from core.gangs.placing import Placer
from core.mirror.cluster import ClusterMirror
from core.mirror.work import WorkLimitError
from core.objects.pod import Pod
from core.profile import full_profile
from core.releases.differences import rules_of
from core.releases.release import RELEASES
from tests.bench import cluster, dressed
from tests.cost.attack import Attack, Object, compact
from tests.cost.forked import MAX_CPU, MAX_MEMORY, Recorder, Step, forked
from tests.cost.report import IN_GANGS, OTHER, SAME

Work: TypeAlias = Callable[[Recorder], None]

_RESOURCES: Final = {kind.__name__: resource for kind, resource in RESOURCES.items()}
_EXPLAIN: Final = "/explain?limit=200&score=all"
_MAX_NODES: Final = 20
_TURNS: Final = 300
_VERBS: Final = ("filter", "prioritize")
_WARM_UPS: Final = 8
_REPORTED: Final = 160  # characters of a response


class Laboratory:
    """A service with a mirror of `nodes` nodes and `pods` pods."""

    def __init__(self, nodes: int, pods: int, profile: str = "full") -> None:
        self.names: Final = [cluster.node_name(index) for index in range(nodes)]
        self.mirror: Final = ClusterMirror()
        self.service: Final[Service] = create_service(
            Settings(profile=profile, admin="127.0.0.1:0", http_timeout=300),
            self.mirror,
            None,
            limits=Limits(shadow_share=0.0),
        )
        self._feed = MirrorFeed(self.mirror, time.monotonic, lambda _: None)
        self._apps = cluster.app_count(pods)
        self._load("Namespace", cluster.namespaces())
        self._load("Node", dressed.nodes(nodes))
        self._load("Pod", cluster.pods(pods, nodes))
        for number in range(_WARM_UPS):
            for ask in self._ordinary(number):
                ask()
        self.ask("/explain", compact(cluster.incoming("plain", 0, self._apps)), admin=True)  # imports much
        self._ordinarily = self._checksum()

    def measure(self, attack: Attack, cpu: int = MAX_CPU, most: int = MAX_MEMORY) -> list[Step]:
        """Run an attack in each of its ways, each in its own fork. Return all steps."""
        return [step for work in self._works(attack) for step in forked(work, cpu, most)]

    def _works(self, attack: Attack) -> list[Work]:  # noqa: PLR0911  # one for each way
        match attack.way:
            case "pod":
                verbs = [self._asking(verb, f"/{verb}", self.args(attack.document)) for verb in _VERBS]
                return [*verbs, self._explaining(compact(attack.document)), self._watching([attack.document])]
            case "question":
                return [self._asking(verb, f"/{verb}", attack.body()) for verb in _VERBS]
            case "explain":
                return [self._explaining(attack.body())]
            case "manifest":
                return [self._asking("manifest", "/explain/manifest", attack.body(), admin=True)]
            case "waiting":
                return [self._among(attack.document)]
            case "objects":
                return [self._watching(attack.document if isinstance(attack.document, list) else [])]
            case "gangs":
                return [self._deciding(attack.document)]
        raise ValueError(f"{attack.way}: needs a running service")

    def args(self, pod: object) -> bytes:
        """Return ExtenderArgs about a pod and all nodes, by name."""
        return b'{"Pod":%s,"Nodes":null,"NodeNames":%s}' % (compact(pod), compact(self.names))

    def _asking(self, name: str, path: str, body: bytes, *, admin: bool = False) -> Work:
        """Send the request twice, as schedulers retry, and then an ordinary request."""

        def work(recorder: Recorder) -> None:
            recorder.step(name, lambda: self.ask(path, body, admin=admin))
            recorder.step(f"{name} again", lambda: self.ask(path, body, admin=admin))
            recorder.step(f"ordinary after {name}", self._same)

        return work

    def _explaining(self, body: bytes) -> Work:
        nodes = "".join(f"&node={name}" for name in self.names[:_MAX_NODES])

        def work(recorder: Recorder) -> None:
            recorder.step("explain", lambda: self.ask("/explain", body, admin=True))
            recorder.step("explain in full", lambda: self.ask(_EXPLAIN + nodes, body, admin=True))
            recorder.step("explain nodes", lambda: self.ask("/explain/nodes?score=all", body, admin=True))
            recorder.step("ordinary after explain", self._same)

        return work

    def _watching(self, objects: Sequence[object]) -> Work:
        known = [each for each in objects if isinstance(each, dict) and str(each.get("kind", "Pod")) in _RESOURCES]
        added = [self._bound(each, "1") for each in known]
        changed = [self._bound(each, "2") for each in known]
        # A deletion of the cluster's own objects changes results rightly.
        compared = not any(self._is_of_cluster(each) for each in known)

        def work(recorder: Recorder) -> None:
            recorder.step("watch: add", lambda: self._tell("Add", added))
            recorder.step("ordinary beside", self._ask_ordinarily)
            recorder.step("watch: update", lambda: self._tell("Update", changed))
            recorder.step("watch: delete", lambda: self._tell("Delete", changed))
            recorder.step("ordinary after watch", lambda: self._same() if compared else SAME)

        return work

    def _deciding(self, members: Sequence[Object]) -> Work:
        """Let a request for a member come every 0.1 s, and let gangs go on in between."""

        def work(recorder: Recorder) -> None:
            waiting = [(_RESOURCES["Pod"], compact(each)) for each in members]
            recorder.step("watch: members", lambda: self._tell("Add", waiting))
            recorder.longest(f"{IN_GANGS}a request", self._turns(self._gangs()))
            recorder.step("ordinary beside", self._ask_ordinarily)

        return work

    def _turns(self, gangs: Gangs) -> Iterator[Callable[[], str]]:
        pods, turn = [*self.mirror.pending], random.Random(1)  # noqa: S311  # the same each time
        for number in range(_TURNS):
            pod, now = turn.choice(pods), number / 10
            if not self.mirror.is_assumed(pod.uid) or gangs.has_reserved(pod.uid):
                yield partial(_requested, gangs, pod, now)
            yield partial(_worked, gangs, now)

    def _gangs(self) -> Gangs:
        profile = full_profile()
        cache = EquivalenceCache(self.mirror, profile.plugins)
        placer = Placer(self.mirror, profile, cache.evaluation, lambda _, best: int(best[0]))
        return Gangs(self.mirror, placer, lambda _: True, time.thread_time)

    def _among(self, document: Object) -> Work:
        """Explain a pod among objects that came before, with the newest rules."""
        objects = [(_RESOURCES[each["kind"]], compact(each)) for each in document["objects"]]
        explain = self._explaining(compact(document["pod"]))

        def work(recorder: Recorder) -> None:
            self.mirror.change_rules(rules_of(RELEASES[-1]))
            self._tell("Add", objects)
            self._ordinarily = self._checksum()
            explain(recorder)

        return work

    def _bound(self, given: Object, version: str) -> tuple[Resource, bytes]:
        """Return an object with a version. Pods are bound."""
        kind = str(given.get("kind", "Pod"))
        made = dict(given)
        if isinstance(metadata := given.get("metadata"), dict):
            made["metadata"] = {**metadata, "resourceVersion": version}
            if version == "2" and isinstance(labels := metadata.get("labels") or {}, dict):
                made["metadata"]["labels"] = {**labels, "version": "v1"}
        if kind == "Pod" and isinstance(spec := given.get("spec"), dict) and "nodeName" not in spec:
            made["spec"] = {**spec, "nodeName": self.names[0]}
        return _RESOURCES[kind], compact(made)

    def _is_of_cluster(self, given: Object) -> bool:
        metadata = given.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(metadata, dict) or not isinstance(name, str):
            return False
        full_name = f"{metadata.get('namespace') or 'default'}/{name}"
        pod = self.mirror.get_pod(str(metadata.get("uid") or full_name))
        return name in self.mirror.nodes.slots or name in self.mirror.namespaces or pod is not None

    def _tell(self, action: Action, objects: Iterable[tuple[Resource, bytes]]) -> str:
        rejected = ""
        for resource, raw in objects:
            try:
                self._feed.apply(ClusterEvent(action, resource.decode(raw)))
            except DecodeError as error:
                rejected = str(error)
        return rejected[:_REPORTED]

    def ask(self, path: str, body: bytes, *, admin: bool = False) -> str:
        """Send a request to the service. Return the status and the beginning of an error."""
        response = self._response(path, body, admin=admin)
        found = response.content.rfind(b'"Error":"')
        reported = response.content[found:] if found >= 0 and response.content[found + 9 : found + 10] != b'"' else b""
        if response.status_code != httpx.codes.OK:
            reported = response.content
        text = reported[:_REPORTED].decode(errors="replace")
        return f"{response.status_code} {len(response.content)} bytes {text}".strip()

    def _response(self, path: str, body: bytes, *, admin: bool = False) -> httpx.Response:
        app = self.service.admin if admin else self.service.app
        assert app is not None  # because of the setting

        async def exchange() -> httpx.Response:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.post(path, content=body)

        return asyncio.run(exchange())

    def _ordinary(self, number: int) -> list[Callable[[], httpx.Response]]:
        """Return requests for a pod of a kind: filter and prioritize."""
        kind = [*cluster.KINDS][number % len(cluster.KINDS)]
        body = self.args(dressed.of_deployment(dressed.incoming(kind, number, self._apps), number, 0))
        return [lambda: self._response("/filter", body), lambda: self._response("/prioritize", body)]

    def _ask_ordinarily(self) -> str:
        return self._checksum()[:8]

    def _checksum(self) -> str:
        """Request pods of all kinds. Return a checksum of the responses."""
        responses = b"".join(ask().content for number in range(len(cluster.KINDS)) for ask in self._ordinary(number))
        return hashlib.sha256(responses).hexdigest()

    def _same(self) -> str:
        return SAME if self._checksum() == self._ordinarily else OTHER

    def _load(self, kind: str, objects: Iterable[Object]) -> None:
        self._tell("Add", ((_RESOURCES[kind], json.dumps(each).encode()) for each in objects))


def _requested(gangs: Gangs, pod: Pod, now: float) -> str:
    gangs.begin(now)
    try:
        return str(gangs.ask(pod, now))[:_REPORTED]
    except WorkLimitError as error:
        return str(error)[:_REPORTED]


def _worked(gangs: Gangs, now: float) -> str:
    return f"between requests, goes on: {gangs.work(now)}"
