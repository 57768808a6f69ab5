"""YAML and JSON as JSON documents: as Kubernetes reads them, and never much more than was written."""

import json
import resource
import time

import pytest

from app.objects.yaml_documents import DocumentsError, documents


def layered(shape: str, innermost: str) -> bytes:
    """Return ten layers of which each repeats the one below ten times."""
    layers = [f"a{n}: &a{n} {shape.format(', '.join([f'*a{n - 1}'] * 10))}" for n in range(1, 10)]
    return "\n".join([f"a0: &a0 {innermost}", *layers]).encode()


def test_json_is_passed_on_as_it_is() -> None:
    text = b' {"a": 1.50,\n"b":"\\u0062"}\n'
    assert [text] == documents(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"{kind: Pod, metadata: {name: p}}\n", [b'{"kind":"Pod","metadata":{"name":"p"}}']),
        (b'{"kind": "Pod",} # mine\n', [b'{"kind":"Pod"}']),
        (b'{"a": 1}\n---\nb: 2\n', [b'{"a":1}', b'{"b":2}']),
        (b'{"a": 1', [b'{"a": 1']),  # neither: what JSON lacks is told
    ],
)
def test_what_begins_like_json_may_be_yaml(text: bytes, expected: list[bytes]) -> None:
    """As in kubectl, which tries both: k8s.io/apimachinery pkg/util/yaml/decoder.go, YAMLOrJSONDecoder.Decode."""
    assert documents(text) == expected


def test_json_texts_may_follow_each_other() -> None:
    text = b'\xef\xbb\xbf{"a": "}{"} {"b":2}[3]\n\n[4] \n'
    assert [each.strip() for each in documents(text)] == [b'{"a": "}{"}', b'{"b":2}', b"[3]", b"[4]"]


def test_more_json_texts_than_a_cluster_has_objects_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.objects.yaml_documents.MAX_DOCUMENTS", 3)
    assert len(documents(b"{}" * 3)) == 3
    with pytest.raises(DocumentsError, match="more than 3 documents"):
        documents(b"{}" * 4)


# What YAMLToJSON of sigs.k8s.io/yaml v1.6.0 makes of it.
KEYS = {
    "yes": "true", "no": "false", "On": "true", "y": "true", "N": "false", "TRUE": "true", "yep": "yep",
    "1": "1", "-1": "-1", "010": "8", "0o10": "8", "0x1F": "31", "1_000": "1000",
    "123456789012345678901234567890": "1.2345679e+29",
    "1.10": "1.1", "1.0": "1", "1e3": "1000", "100000000.0": "1e+08", "0.00001": "1e-05", "16777217.0": "1.6777216e+07",
    "123456.5": "123456.5", "1234567.5": "1.2345675e+06", "1.5e-7": "1.5e-07",
    ".inf": ".inf", "-.inf": "-.inf", ".nan": ".nan",
    "1.0e+300": ".inf", "2026-01-01": "2026-01-01", "1:30": "1:30", "=": "=",
}  # fmt: skip


@pytest.mark.parametrize(("key", "expected"), KEYS.items())
def test_a_key_of_yaml_is_the_text_that_kubernetes_makes_of_it(key: str, expected: str) -> None:
    (document,) = documents(f"a:\n  {key}: b\n  c: d\n".encode())
    assert json.loads(document) == {"a": {expected: "b", "c": "d"}}


def test_values_of_yaml_are_read_as_kubernetes_reads_them() -> None:
    (document,) = documents(b"a: [y, n, yes, 1e3, 0o10, 010, 1_000, yn, 0o8, 1e, e3]")
    assert json.loads(document)["a"] == [True, False, True, 1000, 8, 8, 1000, "yn", "0o8", "1e", "e3"]


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"# a comment\n", b"---\n---\n"], ids=["empty", "line", "comment", "marks"]
)
def test_text_that_says_nothing_has_no_documents(text: bytes) -> None:
    assert documents(text) == []


@pytest.mark.parametrize(
    "stamp", ["2026-01-01T00:00:00Z", "2026-01-01", "2026-01-01 00:00:00.5 +1"], ids=["moment", "day", "zoned"]
)
def test_a_bare_timestamp_in_yaml_stays_text(stamp: str) -> None:
    (document,) = documents(f"metadata: {{creationTimestamp: {stamp}}}".encode())
    assert json.loads(document) == {"metadata": {"creationTimestamp": stamp}}


def test_yaml_anchors_and_merges_are_followed() -> None:
    text = b"- &a {x: 1}\n- <<: *a\n  z: 2\n"
    assert [json.loads(document) for document in documents(text)] == [[{"x": 1}, {"x": 1, "z": 2}]]


def test_an_equals_sign_in_yaml_is_text_as_kubectl_writes_it() -> None:
    # go-yaml writes the argument of `test a = b` bare, as in `- =`.
    (document,) = documents(b"command:\n- test\n- a\n- =\n- b\n")
    assert json.loads(document) == {"command": ["test", "a", "=", "b"]}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"a: [", id="open-bracket"),
        pytest.param(b"a: \xff\xfe", id="not-utf-8"),
        pytest.param(b"a: \x00", id="control-character"),
        pytest.param(b"a: *nobody", id="unknown-anchor"),
        pytest.param(b"a: !!python/object/apply:os.getcwd []", id="python-object"),
        pytest.param(b"? [a]\n: b", id="list-as-key"),
        pytest.param(b"a: !!int x", id="tagged-number"),
        pytest.param(b"a: !!int ''", id="tagged-empty-number"),
        pytest.param(b"a: !!timestamp x", id="tagged-moment"),
        pytest.param(b"a: !!binary \xc3\xa9", id="tagged-bytes"),
        pytest.param(b"a: !!int 0x" + b"f" * 5000, id="very-large-number"),
    ],
)
def test_what_is_neither_json_nor_yaml_is_refused_in_one_line(text: bytes) -> None:
    with pytest.raises(DocumentsError, match=r"^(neither JSON nor YAML|YAML that has no JSON form): .") as caught:
        documents(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"a: &a [*a]", id="contains-itself"),
        pytest.param(b"a: " + b"[" * 2000 + b"]" * 2000, id="deep"),
        pytest.param(b"? null\n: a", id="null-as-key"),
        pytest.param(b"? 2026-01-01\n: a\n? !!binary YQ==\n: b", id="bytes-as-key"),
    ],
)
def test_yaml_that_json_cannot_say_is_refused(text: bytes) -> None:
    with pytest.raises(DocumentsError, match=r"^YAML that has no JSON form: "):
        documents(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(layered("[{}]", "[x, x]"), id="lists"),
        pytest.param(layered("{{a: [{}]}}", "{x: x}"), id="maps"),
        pytest.param(layered("{{<<: [{}]}}", "{x: x}"), id="merges"),
        pytest.param(b"a: &a " + b"x" * 80_000 + b"\nb: [" + b"*a," * 10_000 + b"]\n", id="one-long-scalar"),
        pytest.param(b"? &a " + b"x" * 1_000 + b"\n: b\n? c\n: [" + b"*a," * 10_000 + b"]\n", id="a-long-key"),
        pytest.param(b'a: &a "' + b"\\x01" * 40_000 + b'"\nb: [' + b"*a," * 20 + b"]\n", id="escapes"),
        pytest.param(b"a: &a [" + b"x," * 10_000 + b"]\nb: [" + b"*a," * 1_000 + b"]\n", id="short-elements"),
    ],
)
def test_what_aliases_stand_for_is_counted_before_anything_is_made_of_it(text: bytes) -> None:
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DocumentsError, match=r"^YAML that has no JSON form: more than 4194304 bytes by aliases$"):
        documents(text)
    assert time.process_time() - began < 5.0
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100 * 1024  # KiB; written out, some are GBs


def test_the_size_that_is_counted_is_no_less_than_that_of_the_json(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b'a: &a {"k": ["\\x01\\x02", 1.5, null, \xc3\xa9, true]}\nb: [*a, *a, *a]\nc: {<<: *a}\n'
    (whole,) = documents(text)
    (alone,) = documents(text.partition(b"\n")[0])
    monkeypatch.setattr("app.process.yaml_traps.MAX_REPEATED_BYTES", len(whole) - len(alone))
    with pytest.raises(DocumentsError, match="bytes by aliases"):
        documents(text)


def test_a_number_to_the_base_60_is_text_as_kubernetes_reads_it() -> None:
    long = "1" + ":1" * 200
    (document,) = documents(f"- 1:30\n- 1:30.5\n- 12\n- 1.5\n- 0x1f\n- .inf\n- '{long}'\n".encode())
    assert json.loads(document) == ["1:30", "1:30.5", 12, 1.5, 31, None, long]


def test_a_number_that_takes_quadratic_time_to_read_is_refused() -> None:
    for tag in (b"!!int", b"!!float", b"!<tag:yaml.org,2002:int>"):
        with pytest.raises(DocumentsError, match="a base-60 number"):
            documents(b"a: " + tag + b" 1" + b":1" * 500_000)


def test_more_documents_than_a_cluster_has_objects_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.process.yaml_traps.MAX_DOCUMENTS", 3)
    assert len(documents(b"--- 1\n" * 3)) == 3
    with pytest.raises(DocumentsError, match="more than 3 documents"):
        documents(b"--- 1\n" * 4)


def test_a_message_quotes_little_of_the_text() -> None:
    for text in (b"a: *" + b"x" * 100_000, b"a: !" + b"x" * 100_000 + b" b", b"a: !!int " + b"x" * 100_000):
        with pytest.raises(DocumentsError) as caught:
            documents(text)
        assert len(str(caught.value)) < 3_000


def test_yaml_deeper_than_any_object_of_the_api_is_read() -> None:
    (document,) = documents(b"a: " + b"[" * 100 + b"]" * 100)
    assert document == b'{"a":' + b"[" * 100 + b"]" * 100 + b"}"
