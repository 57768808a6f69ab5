"""ExtenderArgs in both forms, and the answers in Go's spelling."""

import json

import pytest

from app.settings.settings import Settings
from app.verbs.filter import Extender
from app.wiring.engine import create_extender
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.mirror.cluster import ClusterMirror
from core.profile import parse_profile
from tests.app.questions import (
    AFFINITY_RULES,
    ANTI_AFFINITY_RULES,
    EXISTING_ANTI_AFFINITY_RULES,
    NEAR_WEB,
    UNKNOWN,
    ZONE,
    Bodies,
    by_name,
    by_object,
    decoded,
    mirror_of,
    reasons,
    scores,
    shop,
    state,
    zeros,
)
from tests.builders import NodeBuilder, PodBuilder, labelled, make_node, make_pod, term

ALL = ("c1", "a1", "bare", "b1", "a2")
ANYONE = make_pod("p")
WANTS_WEB = make_pod("p").required_affinity(NEAR_WEB)
LIKES_WEB = make_pod("p").preferred_affinity(10, NEAR_WEB)
AVOIDS_WEB = make_pod("p").required_anti_affinity(NEAR_WEB)
INTRUDER = make_pod("p").label("app", "intruder")
FIRST_OF_ITS_KIND = make_pod("p").label("app", "new").required_affinity(term(ZONE, labelled(app="new")))


def extender(mirror: ClusterMirror | None = None, *, max_score: int = 100) -> Bodies:
    return Bodies(create_extender(Settings(max_score=max_score), shop() if mirror is None else mirror))


def in_zone(name: str, zone: str) -> NodeBuilder:
    return make_node(name).label(ZONE, zone)


# The answers, to the letter.


def test_filter_writes_the_result_in_go_spelling_and_the_nodes_in_the_order_asked() -> None:
    expected = (
        b'{"Nodes":null,"NodeNames":["b1","a1","a2"],"FailedNodes":{},"FailedAndUnresolvableNodes":'
        b'{"c1":"node(s) didn\'t match pod affinity rules","bare":"node(s) didn\'t match pod affinity rules"},'
        b'"Error":""}'
    )
    assert expected == extender().filter(by_name(WANTS_WEB, "c1", "b1", "bare", "a1", "a2"))


def test_filter_writes_an_error_with_every_other_member_null() -> None:
    expected = (
        b'{"Nodes":null,"NodeNames":null,"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":"Pod: required"}'
    )
    assert expected == extender().filter(b'{"NodeNames":["a1"]}')


def test_prioritize_writes_a_score_for_exactly_the_nodes_asked_in_their_order() -> None:
    expected = (
        b'[{"Host":"c1","Score":  0},{"Host":"a1","Score":100},{"Host":"bare","Score":  0},'
        b'{"Host":"b1","Score": 33},{"Host":"a2","Score":100}]'
    )
    assert expected == extender().prioritize(by_name(LIKES_WEB, *ALL))


def test_prioritize_writes_a_list_for_a_single_node() -> None:
    assert zeros(["a1"]) == extender().prioritize(by_name(LIKES_WEB, "a1"))


# Which nodes fail, and why.


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(WANTS_WEB, dict.fromkeys(("c1", "bare"), AFFINITY_RULES), id="affinity"),
        pytest.param(AVOIDS_WEB, dict.fromkeys(("a1", "b1", "a2"), ANTI_AFFINITY_RULES), id="anti-affinity"),
        pytest.param(INTRUDER, {"b1": EXISTING_ANTI_AFFINITY_RULES}, id="existing-anti-affinity"),
        pytest.param(FIRST_OF_ITS_KIND, {"bare": AFFINITY_RULES}, id="first-of-its-kind"),
        pytest.param(ANYONE, {}, id="no-rules"),
    ],
)
def test_filter_gives_the_reasons_of_the_plugin_and_passes_the_rest(pod: PodBuilder, expected: dict[str, str]) -> None:
    response = extender().filter(by_name(pod, *ALL))
    assert expected == reasons(response)
    assert [name for name in ALL if name not in expected] == decoded(response)["NodeNames"]


def test_what_preemption_may_help_is_failed_and_the_rest_is_unresolvable() -> None:
    result = decoded(extender().filter(by_name(AVOIDS_WEB.required_affinity(NEAR_WEB), "a1", "c1")))
    assert result["FailedNodes"] == {"a1": ANTI_AFFINITY_RULES}
    assert result["FailedAndUnresolvableNodes"] == {"c1": AFFINITY_RULES}


def test_node_names_is_an_empty_list_and_not_null_when_no_node_fits() -> None:
    result = decoded(extender().filter(by_name(WANTS_WEB, "c1", "bare")))
    assert result["NodeNames"] == []
    assert not result["Error"]


def test_a_pod_does_not_count_for_its_own_decision() -> None:
    """Its scheduler has not seen yet that it is bound."""
    near = term(ZONE, labelled(app="db"))
    pod, other = (
        make_pod(name).label("app", "db").required_anti_affinity(near).preferred_anti_affinity(10, near)
        for name in "po"
    )
    mirror, profile = mirror_of(in_zone("a1", "a"), in_zone("b1", "b"), pod.on("a1")), parse_profile("affinity")
    cached = Bodies(Extender(profile, mirror, EquivalenceCache(mirror, profile.plugins, CacheOptions(mode="spec"))))
    body, body_of_other = by_name(pod, "a1", "b1"), by_name(other, "a1", "b1")
    for verbs in (extender(mirror), cached):
        for _ in range(2):
            assert reasons(verbs.filter(body_of_other)) == {"a1": ANTI_AFFINITY_RULES}
            assert scores(verbs.prioritize(body_of_other)) == {"a1": 0, "b1": 100}
            assert reasons(verbs.filter(body)) == {}
            assert scores(verbs.prioritize(body)) == {"a1": 0, "b1": 0}


# Keys in any case.


@pytest.mark.parametrize(
    ("pod_key", "names_key"),
    [("Pod", "NodeNames"), ("pod", "nodenames"), ("pod", "nodeNames"), ("POD", "NODENAMES"), ("pOd", "nOdEnAmEs")],
    ids=lambda key: key,
)
def test_keys_are_read_in_any_case(pod_key: str, names_key: str) -> None:
    body = json.dumps({pod_key: WANTS_WEB.obj(), names_key: ALL}).encode()
    assert extender().filter(by_name(WANTS_WEB, *ALL)) == extender().filter(body)
    assert extender().prioritize(by_name(WANTS_WEB, *ALL)) == extender().prioritize(body)


def test_whole_nodes_are_read_under_a_key_in_any_case() -> None:
    body = by_object(WANTS_WEB, make_node("a1"))
    assert extender().filter(body) == extender().filter(body.replace(b'"Nodes"', b'"nodes"'))


def test_spelling_null_for_the_form_that_is_not_used_is_the_same_as_leaving_it_out() -> None:
    with_null = b'{"Pod":%s,"Nodes": null ,"NodeNames":["a1"]}' % WANTS_WEB.json()
    assert extender().filter(b'{"Pod":%s,"NodeNames":["a1"]}' % WANTS_WEB.json()) == extender().filter(with_null)


# Whole Node objects.

ODD_A1 = (
    b'{ "metadata" :\t{"name":"a1" , "resourceVersion":"01"},\n  "status":{"free":1.50,"big":1E+400,"tiny":-0.0,'
    b'"huge":123456789012345678901234567890},"a\\u0062c":"\\u00e9\\/\\ud83d\\ude00","unheard-of":[null,{} , [ ]]}'
)
ODD_B1 = b'{"spec":{"b":1,"a":2,"b":3},"metadata":{"name":"\\u00621","labels":null},"metadata2":"\xc3\xa9"}'


def test_whole_nodes_come_back_byte_for_byte_in_their_envelope() -> None:
    envelope = b'"kind":"NodeList","apiVersion": "v1" ,"metadata":{ "resourceVersion":"7", "x":1.0 }'
    body = b'{"Pod":%s,"Nodes":{%s,"items":[ %s ,\n{"metadata":{"name":"c1"}},%s]}}'
    response = extender().filter(body % (WANTS_WEB.json(), envelope, ODD_A1, ODD_B1))
    expected = (
        b'{"Nodes":{"kind":"NodeList","apiVersion":"v1","metadata":{ "resourceVersion":"7", "x":1.0 },"items":[%s,%s]},'
        b'"NodeNames":null,"FailedNodes":{},"FailedAndUnresolvableNodes":'
        b'{"c1":"node(s) didn\'t match pod affinity rules"},"Error":""}'
    )
    assert expected % (ODD_A1, ODD_B1) == response


def test_the_envelope_has_only_items_when_it_came_with_only_items() -> None:
    body = b'{"Pod":%s,"Nodes":{"items":[%s]}}' % (WANTS_WEB.json(), ODD_A1)
    assert extender().filter(body).startswith(b'{"Nodes":{"items":[%s]},"NodeNames":null,' % ODD_A1)


def test_items_is_an_empty_list_and_not_null_when_no_whole_node_fits() -> None:
    result = decoded(extender().filter(by_object(WANTS_WEB, make_node("c1"), make_node("bare"))))
    assert result["Nodes"] == {"metadata": {}, "items": []}
    assert result["NodeNames"] is None
    assert result["FailedAndUnresolvableNodes"] == dict.fromkeys(("c1", "bare"), AFFINITY_RULES)


def test_both_forms_are_judged_and_scored_alike() -> None:
    nodes = [make_node(name) for name in ALL]
    names, objects = extender().filter(by_name(WANTS_WEB, *ALL)), extender().filter(by_object(WANTS_WEB, *nodes))
    assert decoded(names)["NodeNames"] == [node["metadata"]["name"] for node in decoded(objects)["Nodes"]["items"]]
    assert reasons(names) == reasons(objects)
    by_names = extender().prioritize(by_name(LIKES_WEB, *ALL))
    assert by_names == extender().prioritize(by_object(LIKES_WEB, *nodes))


# Nodes that the mirror lacks.


def test_a_name_that_nobody_knows_fails_with_a_reason_and_leaves_the_others_alone() -> None:
    result = decoded(extender().filter(by_name(WANTS_WEB, "ghost", "a1", "c1", "")))
    assert result["NodeNames"] == ["a1"]
    assert result["FailedNodes"] == {}
    assert result["FailedAndUnresolvableNodes"] == {"ghost": UNKNOWN, "c1": AFFINITY_RULES, "": UNKNOWN}
    assert not result["Error"]


def test_a_name_that_nobody_knows_fails_even_for_a_pod_without_rules() -> None:
    assert reasons(extender().filter(by_name(ANYONE, "a1", "ghost"))) == {"ghost": UNKNOWN}


def test_a_node_that_only_a_pod_of_the_mirror_names_is_unknown() -> None:
    mirror = mirror_of(in_zone("a1", "a"), make_pod("early").on("late"))
    assert reasons(extender(mirror).filter(by_name(ANYONE, "a1", "late"))) == {"late": UNKNOWN}


def test_a_name_that_nobody_knows_scores_zero_and_has_no_part_in_the_normalisation() -> None:
    assert scores(extender().prioritize(by_name(LIKES_WEB, "ghost", "b1", "a1"))) == {"ghost": 0, "b1": 0, "a1": 100}
    # Counted as raw 0, c1 would lift b1 to 33: so the ghost was not.
    assert scores(extender().prioritize(by_name(LIKES_WEB, "c1", "b1", "a1"))) == {"c1": 0, "b1": 33, "a1": 100}


def test_a_name_that_nobody_knows_does_not_hide_that_all_others_are_repelled_less() -> None:
    repelled = make_pod("p").preferred_anti_affinity(10, NEAR_WEB)
    assert scores(extender().prioritize(by_name(repelled, "a1", "ghost", "b1"))) == {"a1": 0, "ghost": 0, "b1": 100}


@pytest.mark.parametrize(
    ("foreign", "expected"),
    [
        pytest.param(in_zone("new", "a"), None, id="zone-with-pods"),
        pytest.param(in_zone("new", "c"), AFFINITY_RULES, id="zone-without-pods"),
        pytest.param(in_zone("new", "z"), AFFINITY_RULES, id="zone-never-seen"),
        pytest.param(make_node("new"), AFFINITY_RULES, id="no-zone"),
    ],
)
def test_a_node_that_the_mirror_lacks_is_judged_by_the_labels_it_came_with(
    foreign: NodeBuilder, expected: str | None
) -> None:
    response = extender().filter(by_object(WANTS_WEB, make_node("a1"), foreign))
    assert reasons(response) == ({} if expected is None else {"new": expected})
    retained = decoded(response)["Nodes"]["items"]
    assert retained == [make_node("a1").obj()] + ([foreign.obj()] if expected is None else [])


def test_a_node_that_the_mirror_lacks_is_kept_from_by_pods_in_the_zone_it_came_with() -> None:
    response = extender().filter(by_object(INTRUDER, in_zone("new-a", "a"), in_zone("new-b", "b")))
    assert reasons(response) == {"new-b": EXISTING_ANTI_AFFINITY_RULES}
    response = extender().filter(by_object(AVOIDS_WEB, in_zone("new-c", "c"), in_zone("new-b", "b")))
    assert reasons(response) == {"new-b": ANTI_AFFINITY_RULES}


def test_a_node_that_the_mirror_lacks_is_scored_by_the_labels_it_came_with() -> None:
    unmirrored = [in_zone("in-a", "a"), in_zone("in-b", "b"), in_zone("in-z", "z"), make_node("nowhere")]
    expected = {"in-a": 100, "in-b": 33, "in-z": 0, "nowhere": 0, "a1": 100}
    assert expected == scores(extender().prioritize(by_object(LIKES_WEB, *unmirrored, make_node("a1"))))


def test_a_node_that_the_mirror_knows_is_judged_by_the_mirror_and_not_by_the_object() -> None:
    response = extender().filter(by_object(WANTS_WEB, in_zone("c1", "a"), in_zone("a1", "c")))
    assert reasons(response) == {"c1": AFFINITY_RULES}


def test_whole_nodes_do_not_enter_the_mirror() -> None:
    mirror = shop()
    before = state(mirror)
    extender(mirror).filter(by_object(WANTS_WEB, in_zone("new", "a")))
    extender(mirror).prioritize(by_object(LIKES_WEB, in_zone("new", "q")))
    assert before == state(mirror)
    assert reasons(extender(mirror).filter(by_name(ANYONE, "new"))) == {"new": UNKNOWN}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(ANYONE, {}, id="no-rules"),
        pytest.param(WANTS_WEB, {"new": AFFINITY_RULES, "bare": AFFINITY_RULES}, id="affinity"),
        pytest.param(FIRST_OF_ITS_KIND, {"bare": AFFINITY_RULES}, id="first-of-its-kind"),
        pytest.param(AVOIDS_WEB, {}, id="anti-affinity"),
    ],
)
def test_an_empty_mirror_judges_whole_nodes(pod: PodBuilder, expected: dict[str, str]) -> None:
    response = extender(ClusterMirror()).filter(by_object(pod, in_zone("new", "a"), make_node("bare")))
    assert expected == reasons(response)
    assert not decoded(response)["Error"]


def test_an_empty_mirror_fails_names_and_scores_zero() -> None:
    assert reasons(extender(ClusterMirror()).filter(by_name(WANTS_WEB, "a1"))) == {"a1": UNKNOWN}
    assert zeros(["a1", "b1"]) == extender(ClusterMirror()).prioritize(by_name(LIKES_WEB, "a1", "b1"))


# Names that JSON has to escape.

ODD_NAMES = ['a"b', "back\\slash", "new\nline", "nul\x00", "café-\N{GRINNING FACE}", '","Score":7},{"Host":"', "</a>"]


@pytest.mark.parametrize("known", [True, False], ids=["in-the-mirror", "unknown"])
def test_node_names_are_escaped_wherever_they_stand(known: bool) -> None:  # noqa: FBT001 - one of two cases
    mirror = mirror_of(*([in_zone(name, "c") for name in ODD_NAMES] if known else []), in_zone("a1", "a"))
    fits = decoded(extender(mirror).filter(by_name(ANYONE, *ODD_NAMES)))
    assert fits["NodeNames"] == (ODD_NAMES if known else [])
    assert fits["FailedAndUnresolvableNodes"] == ({} if known else dict.fromkeys(ODD_NAMES, UNKNOWN))
    failed = reasons(extender(mirror).filter(by_name(WANTS_WEB, *ODD_NAMES)))
    assert failed == dict.fromkeys(ODD_NAMES, AFFINITY_RULES if known else UNKNOWN)
    assert scores(extender(mirror).prioritize(by_name(LIKES_WEB, *ODD_NAMES))) == dict.fromkeys(ODD_NAMES, 0)


# The range of scores.


@pytest.mark.parametrize(
    ("max_score", "expected"),
    [
        pytest.param(100, {"a1": 100, "b1": 33, "c1": 0}, id="kube-scheduler-plugins"),
        pytest.param(20, {"a1": 20, "b1": 6, "c1": 0}, id="weight-of-the-in-tree-plugin"),
        pytest.param(10, {"a1": 10, "b1": 3, "c1": 0}, id="max-extender-priority"),
        pytest.param(3, {"a1": 3, "b1": 0, "c1": 0}, id="rounded-down"),
        pytest.param(1, {"a1": 1, "b1": 0, "c1": 0}, id="one"),
    ],
)
def test_max_score_rescales_and_rounds_down(max_score: int, expected: dict[str, int]) -> None:
    assert expected == scores(extender(max_score=max_score).prioritize(by_name(LIKES_WEB, *expected)))


def test_scores_are_all_zero_where_no_node_differs() -> None:
    assert scores(extender().prioritize(by_name(LIKES_WEB, "a1", "a2"))) == {"a1": 0, "a2": 0}
    assert scores(extender().prioritize(by_name(ANYONE, *ALL))) == dict.fromkeys(ALL, 0)


def test_a_question_asked_twice_has_the_same_answer() -> None:
    verbs = extender()
    for body in (by_name(WANTS_WEB, *ALL), by_object(LIKES_WEB, *(make_node(name) for name in ALL))):
        assert verbs.filter(body) == verbs.filter(body)
        assert verbs.prioritize(body) == verbs.prioritize(body)
