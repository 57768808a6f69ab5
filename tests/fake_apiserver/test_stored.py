"""Objects as bytes."""

import msgspec

from tests.fake_apiserver.resources import PODS, REPLICA_SETS
from tests.fake_apiserver.stored import Event, Stored, encode, event_begin, reduced


def test_metadata_comes_first_with_the_version_before_what_users_write() -> None:
    metadata = {"labels": {"resourceVersion": "5"}, "resourceVersion": "5", "uid": "u", "name": "a"}
    rest = encode({"spec": {"x": None}, "kind": "Pod", "apiVersion": "v1", "metadata": {}}, metadata)
    assert rest == (
        b'"metadata":{"name":"a","uid":"u","resourceVersion":"5","labels":{"resourceVersion":"5"}},"spec":{"x":null}}'
    )
    assert Stored("", "a", "u", 5, rest).at_version(66) == rest.replace(b'"5"', b'"66"', 1)
    assert Stored("", "a", "u", 5, rest).object() == msgspec.json.decode(b"{" + rest)


def test_what_is_reduced_is_the_metadata() -> None:
    assert reduced(b'"metadata":{"name":"a","labels":{"metadata":"x"}},"spec":{"metadata":1}}') == (
        b'"metadata":{"name":"a","labels":{"metadata":"x"}}}'
    )


def test_a_key_is_of_namespace_and_name() -> None:
    assert [Stored("x", "a", "", 1, b"").key, Stored("", "a", "", 1, b"").key] == ["x/a", "a"]


def test_a_line_is_made_once_for_each_form() -> None:
    before = Stored("x", "a", "u", 7, b'"metadata":{"resourceVersion":"7"},"spec":{"n":1}}')
    after = Stored("x", "a", "u", 8, b'"metadata":{"resourceVersion":"8"},"spec":{"n":2}}')
    event = Event(8, before, after)
    begins = [event_begin("MODIFIED", PODS, partial=False), event_begin("DELETED", PODS, partial=False)]
    partial = event_begin("MODIFIED", PODS, partial=True)
    line = event.line(begins[0], deleted=False, partial=False)
    assert line == (
        b'{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1",'
        b'"metadata":{"resourceVersion":"8"},"spec":{"n":2}}}\n'
    )
    assert event.line(begins[1], deleted=True, partial=False) == (
        b'{"type":"DELETED","object":{"kind":"Pod","apiVersion":"v1",'
        b'"metadata":{"resourceVersion":"8"},"spec":{"n":1}}}\n'
    )
    assert event.line(partial, deleted=False, partial=True) == (
        b'{"type":"MODIFIED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",'
        b'"metadata":{"resourceVersion":"8"}}}\n'
    )
    assert event.line(begins[0], deleted=False, partial=False) is line


def test_an_event_says_the_group_of_its_object() -> None:
    assert event_begin("ADDED", REPLICA_SETS, partial=False) == (
        b'{"type":"ADDED","object":{"kind":"ReplicaSet","apiVersion":"apps/v1",'
    )
