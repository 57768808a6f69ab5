"""The OpenAPI description of a port: FastAPI's description of its routes, with the types that msgspec encodes.

FastAPI cannot describe the verbs, which are no FastAPI routes, nor responses of bytes. A description is made at the
first request for it, and kept as bytes.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec
from fastapi import APIRouter, FastAPI, Response
from fastapi.openapi.utils import get_openapi

from app.admin.cluster_routes import Units
from app.admin.decisions_routes import DecisionDetail, LastDecisions
from app.admin.equivalence_routes import CacheState, ClassState
from app.admin.explain_routes import Samples
from app.admin.health_routes import Version
from app.admin.what_if_routes import QUESTIONS, Progress
from app.explain.explain_request import ExplainRequestBody
from app.explain.explainer import Explanation
from app.explain.known_pods import FoundNames
from app.explain.node_map import NodeMap
from app.explain.pending import PendingPods
from app.process.json_text import encode
from app.simulation.responses import CapacityResponse, DrainResponse, LossResponse, RemovalResponse
from app.verbs.endpoint import ExtenderApp
from core.diagnosis.cluster_view import ClusterView
from core.framework.scores import MAX_NODE_SCORE
from core.mirror.comparer import Differences
from core.mirror.dump import MirrorDump

Schema: TypeAlias = dict[str, Any]

PATH: Final = "/openapi.json"
_JSON: Final = "application/json"
_ABOUT_VERBS: Final = (
    "The verbs of kube-scheduler's extender v1. Each response of a verb has the status 200, because kube-scheduler "
    "discards the body of any other: `Error` has the fault. `Content-Type` of a request is ignored."
)
_ABOUT_OTHERS: Final = "A port beside the scheduler's: for people, or for probes and Prometheus."


class _Message(msgspec.Struct, rename="pascal", forbid_unknown_fields=True):
    """A message of k8s.io/kube-scheduler extender/v1/types.go. The verbs read and write it without this struct."""


class NodeList(msgspec.Struct):
    """v1.NodeList."""

    items: list[Schema]


class ExtenderArgs(_Message):
    """A v1.Pod, and either names of nodes or v1.Node objects. Keys may be written in any case, as Go reads them."""

    pod: Schema
    node_names: list[str] | None = None
    nodes: NodeList | None = None


class ExtenderFilterResult(_Message):
    """The nodes have the form of the request. Objects are returned byte for byte."""

    nodes: NodeList | None
    node_names: list[str] | None
    failed_nodes: dict[str, str] | None
    failed_and_unresolvable_nodes: dict[str, str] | None
    error: str


class HostPriority(_Message):
    """The score of one node."""

    host: str
    score: Annotated[int, msgspec.Meta(ge=0, le=MAX_NODE_SCORE)]


class NoPriorities(_Message):
    """In place of the scores if the nodes of the request are unreadable. kube-scheduler logs it and goes on."""

    error: Annotated[str, msgspec.Meta(min_length=1)]


class ExtenderBindingArgs(_Message):
    """The pod of a binding, and its node."""

    pod_name: str
    pod_namespace: str
    pod_uid: str = msgspec.field(name="PodUID")
    node: str


class ExtenderBindingResult(_Message):
    """Empty if the pod is bound, otherwise the reason. kube-scheduler then tries it again."""

    error: str


class ExtenderPreemptionArgs(_Message):
    """The pod that preempts, and the victims that kube-scheduler chose on each node, by UID or as v1.Pod."""

    pod: Schema
    node_name_to_meta_victims: dict[str, Schema] | None = None
    node_name_to_victims: dict[str, Schema] | None = None


class MetaPod(_Message):
    """The UID of a pod."""

    uid: Annotated[str, msgspec.Meta(min_length=1)] = msgspec.field(name="UID")


class MetaVictims(_Message):
    """The pods that must be preempted on a node."""

    pods: list[MetaPod]
    violations: int = msgspec.field(name="NumPDBViolations")


class ExtenderPreemptionResult(_Message):
    """The nodes on which the pod fits without these pods. Upstream has no `Error`: it is for people."""

    node_name_to_meta_victims: dict[str, MetaVictims]
    error: str = ""


class _Verb(NamedTuple):
    summary: str
    request: type[_Message]
    responses: tuple[Any, ...]
    """Types, of which the response has one."""
    headers: tuple[str, ...] = ("Kindred-Dry-Run",)


_CACHED: Final = ("Kindred-Cache", "Kindred-Dry-Run")
_VERBS: Final[Mapping[str, _Verb]] = {
    "/filter": _Verb("The nodes that the pod fits on.", ExtenderArgs, (ExtenderFilterResult,), _CACHED),
    "/prioritize": _Verb("A score for each node.", ExtenderArgs, (list[HostPriority], NoPriorities), _CACHED),
    "/bind": _Verb("Check all rules again, then bind the pod.", ExtenderBindingArgs, (ExtenderBindingResult,)),
    "/preempt": _Verb("The pods to evict.", ExtenderPreemptionArgs, (ExtenderPreemptionResult,)),
}
_RESPONSES: Final[Mapping[tuple[str, str], tuple[Any, ...]]] = {
    ("get", "/debug/mirror"): (MirrorDump,),
    ("get", "/debug/mirror/diff"): (dict[str, Differences],),
    ("get", "/debug/decisions"): (LastDecisions,),
    ("get", "/debug/decisions/{number}"): (DecisionDetail,),
    ("get", "/debug/equivalence"): (CacheState, ClassState),
    ("post", "/explain"): (Explanation,),
    ("post", "/explain/nodes"): (NodeMap,),
    ("post", "/explain/manifest"): (Schema,),
    ("get", "/cluster"): (ClusterView,),
    ("get", "/names"): (FoundNames,),
    ("get", "/samples"): (Samples,),
    ("get", "/pending"): (PendingPods,),
    ("get", "/units"): (Units,),
    ("get", "/version"): (Version,),
    ("post", "/what-if/capacity"): (CapacityResponse,),
    ("post", "/what-if/drain"): (DrainResponse,),
    ("post", "/what-if/loss"): (LossResponse,),
    ("post", "/what-if/removal"): (RemovalResponse,),
    ("get", "/what-if/progress"): (Progress,),
}
"""Operation -> types that msgspec encodes, of which the response has one."""
_REQUESTS: Final[Mapping[tuple[str, str], type[msgspec.Struct]]] = {
    ("post", "/explain"): ExplainRequestBody,
    ("post", "/explain/nodes"): ExplainRequestBody,
    **{("post", path): kind for path, kind in QUESTIONS.items()},
}
_ERROR: Final[Schema] = {
    "description": "`detail` has the reason, and `field` the place in the request.",
    "content": {
        _JSON: {
            "schema": {
                "type": "object",
                "properties": {"detail": {"type": "string"}, "field": {"type": "string"}},
                "required": ["detail"],
            }
        }
    },
}


def openapi_router(app: FastAPI) -> APIRouter:
    """Return the route of an app's description. It covers the routes that the app has at the first request for it."""
    router = APIRouter()
    made = cache(lambda: encode(describe(app)))

    @router.get(PATH, include_in_schema=False)
    async def openapi() -> Response:
        return Response(made(), media_type=_JSON)

    return router


def describe(app: FastAPI) -> Schema:
    """Return the OpenAPI 3.1 description of an app."""
    verbs = {path: _VERBS[path] for path in app.verbs} if isinstance(app, ExtenderApp) else {}
    about = _ABOUT_VERBS if verbs else _ABOUT_OTHERS
    found: Schema = get_openapi(title=app.title, version=app.version, description=about, routes=app.routes)
    paths = found["paths"]
    documented = {key: kinds for key, kinds in _RESPONSES.items() if key[0] in paths.get(key[1], {})}
    sent = {key: kind for key, kind in _REQUESTS.items() if key in documented}
    for path, verb in verbs.items():
        paths[path] = {"post": {"summary": verb.summary, "operationId": path[1:], "parameters": _headers(verb)}}
        documented["post", path], sent["post", path] = verb.responses, verb.request
    types = dict.fromkeys(kind for kinds in (*documented.values(), [*sent.values()]) for kind in kinds)
    made, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    found.setdefault("components", {}).setdefault("schemas", {}).update(components)
    schemas = dict(zip(types, made, strict=True))
    for (method, path), kinds in documented.items():
        of_kinds = [schemas[kind] for kind in kinds]
        schema = of_kinds[0] if len(of_kinds) == 1 else {"oneOf": of_kinds}
        responses = paths[path][method].setdefault("responses", {})
        responses["200"] = {"description": "The response.", "content": {_JSON: {"schema": schema}}}
        if path not in verbs:
            responses |= {"4XX": _ERROR, "5XX": _ERROR}
    for (method, path), kind in sent.items():
        paths[path][method]["requestBody"] = {"required": True, "content": {_JSON: {"schema": schemas[kind]}}}
    return found


def _headers(verb: _Verb) -> list[Schema]:
    return [{"name": name, "in": "header", "schema": {"type": "string"}} for name in verb.headers]
