"""Random small clusters as v1 objects: few names, labels and values, so that terms and pods meet often.

What makes terms and pods meet is drawn more often than what keeps them apart, or nearly all answers would be empty.
The first choices are the simple ones, towards which hypothesis shrinks a failure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

Object: TypeAlias = dict[str, Any]
Labels: TypeAlias = dict[str, str]

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
NODE_NAMES: Final = ("n0", "n1", "n2", "n3", "n4")
UNMIRRORED: Final = ("s0", "s1")  # nodes that only a question brings along; pods may name them all the same
NAMESPACES: Final = ("a", "b", "c")
NAMESPACE_OF_POD: Final = ("a", "a", "b", "a", "c", "a", "b", "a", "a")  # by the number of the pod
PODS: Final = len(NAMESPACE_OF_POD)
# Label key -> values; the empty value is a value, and not the same as an absent label.
POD_LABELS: Final[Mapping[str, Sequence[str]]] = {"app": ("x", "y", ""), "tier": ("1", "2")}
NODE_LABELS: Final[Mapping[str, Sequence[str]]] = {"zone": ("a", "b", ""), "rack": ("1", "2")}
NAMESPACE_LABELS: Final[Mapping[str, Sequence[str]]] = {"team": ("red", "blue"), "env": ("prod",)}
TOPOLOGY_KEYS: Final = (*("zone", "host", "rack") * 3, "key-of-no-node")
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
BROKEN_EXPRESSIONS: Final = (
    {"key": "app", "operator": "In", "values": []},
    {"key": "app", "operator": "NotIn"},
    {"key": "app", "operator": "Exists", "values": ["x"]},
    {"key": "app", "operator": "Near", "values": ["x"]},
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """The objects of a cluster; pods may be in namespaces and on nodes that are not among them."""

    namespaces: Sequence[Object]
    nodes: Sequence[Object]
    pods: Sequence[Object]


@dataclass(frozen=True, slots=True)
class Args:
    """The plugin's arguments."""

    hard_pod_affinity_weight: int
    ignore_preferred_terms_of_existing_pods: bool


def labels(vocabulary: Mapping[str, Sequence[str]]) -> SearchStrategy[Labels]:
    """Return some of the labels of a vocabulary."""
    return st.fixed_dictionaries({}, optional={key: st.sampled_from(values) for key, values in vocabulary.items()})


@st.composite
def seldom(draw: DrawFn) -> bool:
    """Return True about once in thirty times."""
    return draw(st.integers(0, 29)) == 29


@st.composite
def expressions(draw: DrawFn, vocabulary: Mapping[str, Sequence[str]]) -> Object:
    """Return one matchExpression, valid but for a few."""
    if draw(seldom()):
        return dict(draw(st.sampled_from(BROKEN_EXPRESSIONS)))
    key = draw(st.sampled_from([*vocabulary, "label-of-none"]))
    operator = draw(st.sampled_from(OPERATORS))
    expression: Object = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        values = st.sampled_from(vocabulary.get(key, ("x",)))
        expression["values"] = draw(st.lists(values, min_size=1, max_size=3))
    return expression


@st.composite
def selectors(draw: DrawFn, vocabulary: Mapping[str, Sequence[str]]) -> Object | None:
    """Return a LabelSelector, `{}` or null."""
    shapes = ("labels", "labels", "expressions", "expressions", "everything", "everything", "both", "nothing")
    match draw(st.sampled_from(shapes)):
        case "labels":
            return {"matchLabels": draw(labels(vocabulary))}
        case "expressions":
            return {"matchExpressions": draw(st.lists(expressions(vocabulary), min_size=1, max_size=2))}
        case "both":
            return {
                "matchLabels": draw(labels(vocabulary)),
                "matchExpressions": draw(st.lists(expressions(vocabulary), max_size=1)),
            }
        case "everything":
            return {}
        case _:
            return None


@st.composite
def terms(draw: DrawFn) -> Object:
    """Return a PodAffinityTerm."""
    term: Object = {"topologyKey": draw(st.sampled_from(TOPOLOGY_KEYS)), "labelSelector": draw(selectors(POD_LABELS))}
    if draw(st.booleans()):
        # No API server lets the empty name through, but the pods of simulators have seen none.
        term["namespaces"] = draw(st.lists(st.sampled_from((*NAMESPACES, *NAMESPACES, "")), max_size=3))
    if draw(st.booleans()):
        term["namespaceSelector"] = draw(selectors(NAMESPACE_LABELS))
    return term


@st.composite
def term_lists(draw: DrawFn) -> Object:
    """Return a PodAffinity or PodAntiAffinity."""
    required = draw(st.lists(terms(), max_size=2))
    preferred = [
        {"weight": draw(st.integers(1, 100)), "podAffinityTerm": term} for term in draw(st.lists(terms(), max_size=2))
    ]
    return {REQUIRED: required, PREFERRED: preferred}


def affinities() -> SearchStrategy[Object]:
    """Return what may stand in `spec.affinity`, an empty one included."""
    both = st.fixed_dictionaries({"podAffinity": term_lists(), "podAntiAffinity": term_lists()})
    return both | st.fixed_dictionaries({}, optional={"podAffinity": term_lists(), "podAntiAffinity": term_lists()})


@st.composite
def pods(draw: DrawFn, number: SearchStrategy[int], affinity: SearchStrategy[Object | None], *nodes: str) -> Object:
    """Return the pod of a number, on one of the nodes if there are any to choose from.

    A pod's number fixes its namespace and its uid; half of the pods have none, and are known by their names.
    """
    drawn = draw(number)
    metadata: Object = {"name": f"p{drawn}", "namespace": NAMESPACE_OF_POD[drawn], "labels": draw(labels(POD_LABELS))}
    if drawn % 2:
        metadata["uid"] = f"uid-{drawn}"
    spec: Object = {"affinity": draw(affinity)}
    if nodes:
        spec["nodeName"] = draw(st.sampled_from(nodes))
    phase = draw(st.sampled_from(("Succeeded", "Failed"))) if draw(seldom()) else "Running"
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def pod_numbers() -> SearchStrategy[int]:
    """Return the number of a pod."""
    return st.integers(0, PODS - 1)


def incoming_pods() -> SearchStrategy[Object]:
    """Return a pod to ask about, which may be one that exists already."""
    return pods(pod_numbers(), affinities())


def existing_pods(number: SearchStrategy[int]) -> SearchStrategy[Object]:
    """Return a pod on a node, known or not, or on none yet."""
    return pods(number, st.none() | affinities(), *NODE_NAMES * 3, "", *UNMIRRORED)


@st.composite
def nodes(draw: DrawFn, name: SearchStrategy[str]) -> Object:
    """Return a node; its hostname label is missing seldom."""
    drawn = draw(name)
    found = draw(labels(NODE_LABELS))
    if not draw(seldom()):
        found["host"] = drawn
    return {"metadata": {"name": drawn, "labels": found}}


@st.composite
def namespaces(draw: DrawFn, name: SearchStrategy[str]) -> Object:
    """Return a namespace object, without labels at times."""
    return {"metadata": {"name": draw(name), "labels": draw(labels(NAMESPACE_LABELS))}}


@st.composite
def clusters(draw: DrawFn) -> Cluster:
    """Return a whole cluster: of each object that there could be, whether it is there; seldom without any node."""
    present = st.sampled_from((False, True, True, True, True, True))
    return Cluster(
        namespaces=[draw(namespaces(st.just(name))) for name in NAMESPACES if draw(present)],
        nodes=[] if draw(seldom()) else [draw(nodes(st.just(name))) for name in NODE_NAMES if draw(present)],
        pods=[draw(existing_pods(st.just(number))) for number in range(PODS) if draw(present)],
    )


def unmirrored() -> SearchStrategy[list[Object]]:
    """Return whole nodes that come with a question and that the cluster does not have."""
    return st.lists(nodes(st.sampled_from(UNMIRRORED)), min_size=1, max_size=len(UNMIRRORED), unique_by=name_of)


def args() -> SearchStrategy[Args]:
    """Return the plugin's arguments, in the range that upstream accepts."""
    return st.builds(Args, st.sampled_from((1, 0, 7, 100)), st.sampled_from((False, False, True)))


def name_of(v1_object: Object) -> str:
    """Return the name, which identifies nodes, namespaces and (as it fixes their namespace) pods here."""
    name: str = v1_object["metadata"]["name"]
    return name
