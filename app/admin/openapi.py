"""The OpenAPI description of the two ports: FastAPI's description of its own routes, with additions.

FastAPI cannot describe the verbs, which are no FastAPI routes, and the types that msgspec encodes. A description is
made at the first request for it, and kept as bytes.
"""

from collections.abc import Collection, Mapping
from functools import cache
from http import HTTPStatus
from importlib import resources
from typing import Any, Final, NamedTuple

import msgspec
from fastapi import APIRouter, FastAPI, Response
from fastapi.openapi.utils import get_openapi

from app.admin.decisions_routes import DecisionDetail, LastDecisions
from app.admin.equivalence_routes import CacheState, CellsOfNode, ClassState
from app.admin.explained_nodes_routes import PageState
from app.admin.extender_schemas import REFERENCE, Schema, extender_schemas
from app.admin.health_routes import Readiness
from app.admin.node_partition import Rule
from app.admin.partition_routes import PartitionState
from app.admin.samples_routes import Samples
from app.admin.units_routes import Units
from app.explain.explain_request import ExplainRequestBody
from app.explain.explainer import Explanation
from app.explain.name_search import FoundNames
from app.explain.node_map import NodeMap
from app.explain.pending import PendingPods
from app.json_text import decode, encode
from app.telemetry.metrics import Metrics
from app.verbs.routes import ExtenderApp
from core.diagnosis.cluster_view import ClusterView
from core.mirror.comparer import Differences
from core.mirror.dump import MirrorDump

PATH: Final = "/openapi.json"
_JSON: Final = "application/json"
_REQUESTS: Final = resources.files("app") / "demo" / "requests"
_WHY_200: Final = (
    "Every response has the status 200, because kube-scheduler discards the body of any other. `Error` has the fault."
)
_ABOUT_VERBS: Final = (
    "The verbs of kube-scheduler's extender v1, for one or many schedulers, and routes for probes and Prometheus. "
    "`Content-Type` of a request is ignored. " + _WHY_200
)
_ABOUT_OTHERS: Final = "A port beside the scheduler's: for people, or for probes and Prometheus."


class _Verb(NamedTuple):
    """The request, the response and the purpose of a verb."""

    args: str
    results: tuple[str, ...]
    text: str
    examples: tuple[str, ...] = ()
    """Files of app/demo/requests."""
    cached: bool = False


_VERBS: Final[Mapping[str, _Verb]] = {
    "/filter": _Verb(
        "ExtenderArgs",
        ("ExtenderFilterResult",),
        "Which of these nodes the pod fits on, and why it does not fit on the others.",
        ("required-affinity", "required-anti-affinity"),
        cached=True,
    ),
    "/prioritize": _Verb(
        "ExtenderArgs",
        ("HostPriorityList", "NoPriorities"),
        "How well each of these nodes suits the pod. A bad request with readable nodes gets 0 for each.",
        ("web",),
        cached=True,
    ),
    "/bind": _Verb(
        "ExtenderBindingArgs",
        ("ExtenderBindingResult",),
        "Check all rules again, with the pods that were bound a moment ago, and only then bind the pod. Without "
        "KINDRED_BIND=true no pod is bound, and `Error` says so.",
    ),
    "/preempt": _Verb(
        "ExtenderPreemptionArgs",
        ("ExtenderPreemptionResult",),
        "The nodes on which the pod fits, each with the pods to evict.",
    ),
}


class _Answer(NamedTuple):
    """The part of an operation that FastAPI cannot describe, because the response consists of bytes, or is raised."""

    kinds: tuple[Any, ...] = ()
    """Types that msgspec encodes. The response has one of them."""
    errors: Mapping[HTTPStatus, str] = {}
    """Status -> its cause. Each such response has a `detail`."""
    asked: Any = None
    """Type of the request's body."""


_QUESTION_ERRORS: Final[Mapping[HTTPStatus, str]] = {
    HTTPStatus.BAD_REQUEST: "The request cannot be read. `field` has the place.",
    HTTPStatus.NOT_FOUND: "There is no such pod or node; `field` says which.",
    HTTPStatus.CONFLICT: "What is supposed contradicts the cluster, or itself; `field` says what.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is larger than KINDRED_MAX_BODY_BYTES, or the pod takes more work "
    "than KINDRED_MAX_WORK allows; `field` says which part.",
}
_NO_DECISION: Final = "There is no such decision, or the service no longer keeps it."
_ANSWERS: Final[Mapping[tuple[str, str], _Answer]] = {
    ("get", "/debug/mirror"): _Answer(
        (MirrorDump,), {HTTPStatus.NOT_FOUND: "The mirror has no such node or pod, or no such pod on that node."}
    ),
    ("get", "/debug/mirror/diff"): _Answer(
        (dict[str, Differences],),
        {
            HTTPStatus.CONFLICT: "The mirror comes from a dump, or another comparison is under way.",
            HTTPStatus.SERVICE_UNAVAILABLE: "The API server did not return the list.",
        },
    ),
    ("get", "/debug/partition"): _Answer((PartitionState,)),
    ("put", "/debug/partition"): _Answer(
        (PartitionState,),
        {
            HTTPStatus.UNPROCESSABLE_ENTITY: "Not a rule, or a rule that contradicts itself.",
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "A body of more than 4 MiB.",
        },
        Rule,
    ),
    ("get", "/debug/decisions"): _Answer((LastDecisions,)),
    ("get", "/debug/decisions/{number}"): _Answer((DecisionDetail,), {HTTPStatus.NOT_FOUND: _NO_DECISION}),
    ("post", "/explain"): _Answer((Explanation,), _QUESTION_ERRORS, ExplainRequestBody),
    ("post", "/explain/nodes"): _Answer((NodeMap,), _QUESTION_ERRORS, ExplainRequestBody),
    ("get", "/explain/state"): _Answer((PageState,)),
    ("get", "/cluster"): _Answer(
        (ClusterView,),
        {HTTPStatus.BAD_REQUEST: "`rack` is no label key.", HTTPStatus.NOT_FOUND: "No node has the label."},
    ),
    ("get", "/names"): _Answer((FoundNames,)),
    ("get", "/samples"): _Answer((Samples,)),
    ("get", "/pending"): _Answer((PendingPods,)),
    ("get", "/units"): _Answer((Units,)),
    ("post", "/explain/manifest"): _Answer(
        (dict[str, Any],),
        {
            HTTPStatus.BAD_REQUEST: "Neither JSON nor YAML, or not one manifest.",
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "A body of more than 256 KiB.",
        },
    ),
    ("get", "/debug/equivalence"): _Answer(
        (CacheState, ClassState, CellsOfNode),
        {
            HTTPStatus.NOT_FOUND: "The cache has no such class, or the mirror no such node.",
            HTTPStatus.CONFLICT: "The equivalence cache is off.",
        },
    ),
}
_DETAIL: Final[Schema] = {"type": "object", "properties": {"detail": {"type": "string"}}, "required": ["detail"]}


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
    verbs = app.verbs.keys() if isinstance(app, ExtenderApp) else ()
    found: Schema = get_openapi(
        title=app.title,
        version=app.version,
        description=_ABOUT_VERBS if verbs else _ABOUT_OTHERS,
        routes=app.routes,
    )
    schemas = found.setdefault("components", {}).setdefault("schemas", {})
    _add_verbs(found["paths"], schemas, verbs)
    _add_answers(found["paths"], schemas)
    _correct_health(found["paths"])
    return found


def _add_verbs(paths: Schema, schemas: Schema, verbs: Collection[str]) -> None:
    if verbs:
        schemas.update(extender_schemas())
    for path in verbs:
        paths[path] = {"post": _operation(path.removeprefix("/"), _VERBS[path])}


def _operation(name: str, verb: _Verb) -> Schema:
    result = _one_of([{"$ref": REFERENCE.format(name=result)} for result in verb.results])
    asked: Schema = {"schema": {"$ref": REFERENCE.format(name=verb.args)}}
    if verb.examples:
        asked["examples"] = {example: {"value": _example(example)} for example in verb.examples}
    operation: Schema = {
        "summary": verb.text,
        "description": _WHY_200,
        "operationId": name,
        "requestBody": {"required": True, "content": {_JSON: asked}},
        "responses": {
            "200": {
                "description": "The result, or the error.",
                "headers": _answer_headers(cached=verb.cached),
                "content": {_JSON: {"schema": result}},
            }
        },
    }
    operation["parameters"] = [*([_CACHE_OFF] if verb.cached else []), _DRY_RUN]
    return operation


_CACHE_OFF: Final[Schema] = {
    "name": "Kindred-Cache",
    "in": "header",
    "required": False,
    "description": "`off`: evaluate the request without the equivalence cache.",
    "schema": {"type": "string", "enum": ["off"]},
}


_DRY_RUN: Final[Schema] = {
    "name": "Kindred-Dry-Run",
    "in": "header",
    "required": False,
    "description": "Any value but `false`: the request has no effect, and is evaluated without the equivalence cache.",
    "schema": {"type": "string"},
}


def _answer_headers(*, cached: bool) -> Schema:
    headers: Schema = {
        "Kindred-Stale": {
            "description": "Reason why the mirror may be behind. Only if KINDRED_STALE_POLICY allows such responses.",
            "schema": {"type": "string"},
        },
        "Kindred-Shed": {
            "description": "Reason why the request was rejected. The body then has an `Error`, or no score.",
            "schema": {"type": "string", "enum": ["deadline", "queue_full", "bytes"]},
        },
    }
    if cached:
        headers["Kindred-Equivalence"] = {
            "description": "Source of the result: `hit`, `partial` or `miss` with the hash of the pod's class; "
            "`none`: the pod has no class; `off`: by the request's parameter. Absent without a cache, or on error.",
            "schema": {"type": "string", "pattern": "^((hit|partial|miss) [0-9a-f]{16}|none|off)$"},
        }
    return headers


def _one_of(schemas: list[Schema]) -> Schema:
    return schemas[0] if len(schemas) == 1 else {"oneOf": schemas}


def _example(name: str) -> object:
    return decode((_REQUESTS / f"{name}.json").read_bytes())


def _add_answers(paths: Schema, schemas: Schema) -> None:
    known = {key: answer for key, answer in _ANSWERS.items() if key[0] in paths.get(key[1], {})}
    types = dict.fromkeys(kind for each in known.values() for kind in (*each.kinds, each.asked) if kind is not None)
    found, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    schemas.update(components)
    written = dict(zip(types, found, strict=True))
    for (method, path), answer in known.items():
        operation = paths[path][method]
        if answer.kinds:
            answered = _one_of([written[kind] for kind in answer.kinds])
            operation["responses"]["200"]["content"] = {_JSON: {"schema": answered}}
        for status, when in answer.errors.items():
            operation["responses"][str(status.value)] = {"description": when, "content": {_JSON: {"schema": _DETAIL}}}
        if answer.asked is not None:
            operation["requestBody"] = {"required": True, "content": {_JSON: {"schema": written[answer.asked]}}}


def _correct_health(paths: Schema) -> None:
    if "/readyz" in paths:
        readiness = {_JSON: {"schema": {"$ref": REFERENCE.format(name=Readiness.__name__)}}}
        paths["/readyz"]["get"]["responses"]["503"] = {"description": "Not ready.", "content": readiness}
    if "/metrics" in paths:
        text: Schema = {Metrics.CONTENT_TYPE.partition(";")[0]: {"schema": {"type": "string"}}}
        paths["/metrics"]["get"]["responses"]["200"]["content"] = text
