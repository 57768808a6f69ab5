"""A broken object in a dump is named, and refused or, when asked for, counted and left out."""

import pytest

from app.dump.snapshot_file import SnapshotError
from app.settings.settings import Settings
from app.verbs.request import Request
from app.wiring.engine import create_extender
from tests.app.dump.dumps import as_json, kinded, listed, load
from tests.app.questions import NEAR_WEB, ZONE, by_name, decoded, state
from tests.builders import REQUIRED, Object, expressed, labelled, make_namespace, make_node, make_pod, term

NEAR = term(ZONE, expressed("app", "Near"))
BROKEN_TERM = (
    f"spec.affinity.podAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].operator: "
    '"Near" is not a valid label selector operator'
)
GOOD = kinded(make_node("n1").label(ZONE, "a"), make_pod("web").label("app", "web").on("n1"), make_namespace("default"))


def pod(**members: object) -> Object:
    return {**kinded(make_pod("bad").in_namespace("shop"))[0], **members}


# id -> a broken object, what stands for it in the message, what is said of it
BROKEN: dict[str, tuple[object, str, str]] = {
    "null": (None, "unreadable", "expected object, got null"),
    "number": (3, "unreadable", "expected object, got int"),
    "no-kind": ({"metadata": {"name": "x", "namespace": "y"}}, "? y/x", "kind: required"),
    "kind-number": ({"kind": 3}, "unreadable", "kind: expected str | null, got int"),
    "node-without-name": ({"kind": "Node", "metadata": {}}, "Node ?", "metadata.name: required"),
    "node-without-metadata": ({"kind": "Node"}, "Node ?", "metadata.name: required"),
    "node-with-broken-labels": (
        {"kind": "Node", "metadata": {"name": "x", "labels": []}},
        "Node x",
        "metadata.labels: expected object | null, got array",
    ),
    "namespace-with-broken-label": (
        {"kind": "Namespace", "metadata": {"name": "x", "labels": {"a": 1}}},
        "Namespace x",
        "metadata.labels[...]: expected str, got int",
    ),
    "pod-with-broken-spec": (pod(spec=3), "Pod shop/bad", "spec: expected object | null, got int"),
    "pod-with-broken-node-name": (
        pod(spec={"nodeName": []}),
        "Pod shop/bad",
        "spec.nodeName: expected str | null, got array",
    ),
    "pod-with-broken-affinity": (
        pod(spec={"affinity": {"podAffinity": {REQUIRED: 3}}}),
        "Pod shop/bad",
        f"spec.affinity.podAffinity.{REQUIRED}: expected array | null, got int",
    ),
    "node-with-broken-quantity": (
        {"kind": "Node", "metadata": {"name": "x"}, "status": {"allocatable": {"cpu": "4K"}}},
        "Node x",
        "status.allocatable.cpu: unable to parse quantity's suffix",
    ),
    "budget-with-broken-selector-type": (
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "x"}, "spec": {"selector": 3}},
        "PodDisruptionBudget x",
        "spec.selector: expected object | null, got int",
    ),
    "node-twice": (kinded(make_node("n1"))[0], "Node n1", "metadata.name: already used by the Node at items[0]"),
    "pod-twice": (
        kinded(make_pod("web").uid("other"))[0],
        "Pod default/web",
        "metadata.name: already used by the Pod at items[1]",
    ),
    "uid-twice": (
        kinded(make_pod("other").uid("default/web"))[0],
        "Pod default/other",
        "metadata.uid: already used by the Pod at items[1]",
    ),
    "namespace-twice": (
        kinded(make_namespace("default"))[0],
        "Namespace default",
        "metadata.name: already used by the Namespace at items[2]",
    ),
}

SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}}

each_broken_object = pytest.mark.parametrize(
    ("broken", "identity", "problem"), [pytest.param(*case, id=name) for name, case in BROKEN.items()]
)


@each_broken_object
def test_a_broken_object_is_refused_with_its_place_its_name_and_the_field(
    broken: object, identity: str, problem: str
) -> None:
    with pytest.raises(SnapshotError) as caught:
        load(as_json(listed(*GOOD, broken)))
    assert f"items[3] ({identity}): {problem}" == str(caught.value)


@each_broken_object
def test_a_broken_object_can_be_left_out_and_is_counted(broken: object, identity: str, problem: str) -> None:
    last = kinded(make_node("n2"))
    mirror, summary = load(as_json(listed(*GOOD, broken, *last)), skip_invalid=True)
    assert state(load(as_json(listed(*GOOD, *last)))[0]) == state(mirror)
    assert [f"items[3] ({identity}): {problem}"] == summary.invalid
    assert str(summary) == "2 nodes, 1 pods, 1 namespaces; invalid: 1"


def test_an_object_of_any_kind_is_refused_the_second_time() -> None:
    with pytest.raises(
        SnapshotError, match=r"^items\[1\] \(Service shop/web\): metadata\.name: already used by the Service"
    ):
        load(as_json(listed(SERVICE, SERVICE)))
    elsewhere = {**SERVICE, "metadata": {"name": "web", "namespace": "other"}}
    assert load(as_json(listed(SERVICE, elsewhere)))[1].taken == {"Service": 2}


def test_a_dump_without_broken_objects_is_the_same_with_and_without_skipping() -> None:
    text = as_json(listed(*GOOD))
    assert state(load(text)[0]) == state(load(text, skip_invalid=True)[0])
    assert load(text, skip_invalid=True)[1].invalid == []


def test_every_broken_object_is_counted() -> None:
    summary = load(as_json(listed(None, *GOOD, {"kind": "Node"}, 3)), skip_invalid=True)[1]
    assert [problem.partition(" ")[0] for problem in summary.invalid] == ["items[0]", "items[4]", "items[5]"]
    assert str(summary).endswith("; invalid: 3")


def test_the_document_of_a_broken_object_is_named_where_there_are_several() -> None:
    text = b"---\n".join(as_json(listed(*items)) for items in (GOOD, [kinded(make_node("n2"))[0], {"kind": "Node"}]))
    with pytest.raises(SnapshotError, match=r"^document 2 items\[1\] \(Node \?\): metadata\.name: required$"):
        load(b"---\n" + text)


def test_a_broken_document_is_named_where_each_is_an_object() -> None:
    with pytest.raises(SnapshotError, match=r"^document 2 \(Pod \?\): metadata\.name: required$"):
        load(b"kind: Node\nmetadata: {name: n1}\n---\nkind: Pod\n")


def test_an_item_of_a_pod_list_that_says_another_kind_is_refused() -> None:
    with pytest.raises(SnapshotError, match=r"^items\[0\] \(Pod n1\): kind: expected Pod, got Node$"):
        load(as_json(listed(*kinded(make_node("n1")), kind="PodList")))


def test_a_name_that_is_not_utf_8_is_refused_like_any_broken_object() -> None:
    text = b'{"kind":"List","items":[{"kind":"Node","metadata":{"name":"a\xff"}}]}'
    with pytest.raises(SnapshotError, match=r"^items\[0\] \(.*\): malformed JSON: "):
        load(text)


def test_an_object_is_not_the_repetition_of_one_that_was_left_out() -> None:
    twin = make_pod("api").on("n1").uid("default/web")  # the uid of `web`, so it is left out
    real = make_pod("api").on("n1").uid("real")
    mirror, summary = load(as_json(listed(*GOOD, *kinded(twin, real))), skip_invalid=True)
    assert [problem.partition(" ")[0] for problem in summary.invalid] == ["items[3]"]
    assert sorted(mirror.pods.rows) == ["default/web", "real"]


# Pods of which only terms are broken.

HALF_BROKEN = (
    make_pod("api")
    .label("app", "api")
    .on("n1")
    .required_affinity(NEAR)
    .required_affinity(NEAR_WEB)
    .required_anti_affinity(NEAR_WEB)
)


def test_a_pod_with_a_broken_term_is_refused_with_the_path_of_the_term() -> None:
    with pytest.raises(SnapshotError) as caught:
        load(as_json(listed(*GOOD, *kinded(HALF_BROKEN))))
    assert f"items[3] (Pod default/api): {BROKEN_TERM}" == str(caught.value)


def test_a_pod_with_a_broken_term_stays_without_the_broken_list_when_broken_objects_are_skipped() -> None:
    mirror, summary = load(as_json(listed(*GOOD, *kinded(HALF_BROKEN))), skip_invalid=True)
    assert [f"items[3] (Pod default/api): {BROKEN_TERM}"] == summary.invalid
    whole = make_pod("api").label("app", "api").on("n1").required_anti_affinity(NEAR_WEB)
    without_errors = load(as_json(listed(*GOOD, *kinded(whole))))[0]
    assert without_errors.affinity.owner_counts() == mirror.affinity.owner_counts()
    assert without_errors.pods.rows.keys() == mirror.pods.rows.keys()


def test_a_pod_with_a_broken_term_is_still_found_by_the_terms_of_others() -> None:
    near_api = by_name(make_pod("p").required_affinity(term(ZONE, labelled(app="api"))), "n1")
    with_api = load(as_json(listed(*GOOD, *kinded(HALF_BROKEN))), skip_invalid=True)[0]
    assert decoded(create_extender(Settings(), with_api).filter(Request(near_api)).body)["NodeNames"] == ["n1"]
    without_api = load(as_json(listed(*GOOD)))[0]
    assert decoded(create_extender(Settings(), without_api).filter(Request(near_api)).body)["NodeNames"] == []
