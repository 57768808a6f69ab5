"""A KubeSchedulerConfiguration is read as kube-scheduler reads it: strictly, with its defaults."""

from pathlib import Path

import pytest

from app.commands.doctor.findings import Severity
from app.commands.doctor.registration import choose_extender
from app.commands.doctor.scheduler_config import (
    Reading,
    SchedulerConfig,
    UnreadableError,
    parse_scheduler_config,
    read_scheduler_config,
)

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def reading(text: str) -> Reading:
    return parse_scheduler_config(HEAD + text)


def config(text: str) -> SchedulerConfig:
    read = reading(text)
    assert read.config is not None
    assert read.findings == ()
    return read.config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [", "no YAML: line 1: ", id="no YAML"),
        pytest.param("", "no KubeSchedulerConfiguration: expected fields with values", id="nothing"),
        pytest.param("- a", "no KubeSchedulerConfiguration: expected fields with values", id="a list"),
        pytest.param("[" * 5000, "no YAML: too deep", id="too deep"),
    ],
)
def test_what_is_no_configuration_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(UnreadableError) as error:
        parse_scheduler_config(text)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match=r"absent\.yaml: No such file or directory"):
        read_scheduler_config(tmp_path / "absent.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe4")
    with pytest.raises(UnreadableError, match=r"latin\.yaml: not UTF-8"):
        read_scheduler_config(tmp_path / "latin.yaml")
    (tmp_path / "list.yaml").write_text("- a")
    with pytest.raises(UnreadableError, match=r"list\.yaml: no KubeSchedulerConfiguration"):
        read_scheduler_config(tmp_path / "list.yaml")


@pytest.mark.parametrize(
    ("text", "check", "where", "fix"),
    [
        pytest.param(
            "extenders: [{urlPrefix: a, nodecacheCapable: true}]",
            "unknown-field",
            "extenders[0].nodecacheCapable",
            "rename nodecacheCapable to nodeCacheCapable",
            id="an unknown field that is like another",
        ),
        pytest.param(
            "profiles: [{plugins: {score: {without: []}}}]",
            "unknown-field",
            "profiles[0].plugins.score.without",
            "take profiles[0].plugins.score.without out",
            id="an unknown field deep inside",
        ),
        pytest.param(
            "extenders: [{urlPrefix: a, 1: b}]",
            "unknown-field",
            "extenders[0].1",
            "take extenders[0].1 out",
            id="a key that is no text",
        ),
        pytest.param(
            "extenders: [{weight: '1'}]", "wrong-type", "extenders[0].weight", "give weight an integer", id="a text"
        ),
        pytest.param(
            "extenders: [{ignorable: 1}]", "wrong-type", "extenders[0].ignorable", "give ignorable a boolean", id="a 1"
        ),
        pytest.param(
            "extenders: {}", "wrong-type", "extenders", "give extenders a list", id="fields where a list has to be"
        ),
        pytest.param(
            "profiles: [a]", "wrong-type", "profiles[0]", "give profiles[0] fields with values", id="a text for fields"
        ),
        pytest.param(
            "parallelism: true", "wrong-type", "parallelism", "give parallelism an integer", id="true for a number"
        ),
        pytest.param(
            "extenders: [{httpTimeout: 5}]",
            "bad-duration",
            "extenders[0].httpTimeout",
            "httpTimeout: 5s",
            id="a number",
        ),
        pytest.param(
            "extenders: [{httpTimeout: 5 sec}]",
            "bad-duration",
            "extenders[0].httpTimeout",
            "httpTimeout: 5s",
            id="no duration",
        ),
        pytest.param(
            "parallelism: 1\nparallelism: 2",
            "duplicate-field",
            "parallelism (line 4)",
            "take one of them out",
            id="a field that is there twice",
        ),
        pytest.param(
            "extenders: []\n---\na: b", "several-documents", "", "keep one of them in the file", id="two documents"
        ),
    ],
)
def test_what_kube_scheduler_would_refuse_is_an_error(text: str, check: str, where: str, fix: str) -> None:
    (finding,) = reading(text).findings
    assert (check, Severity.ERROR, where, fix) == (finding.id, finding.severity, finding.where, finding.fix)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        pytest.param("apiVersion: v1\nkind: KubeSchedulerConfiguration", "apiVersion", id="apiVersion"),
        pytest.param("apiVersion: kubescheduler.config.k8s.io/v1\nkind: Pod\nspec: {}", "kind", id="kind"),
        pytest.param("apiVersion: kubescheduler.config.k8s.io/v1", "kind", id="no kind"),
    ],
)
def test_something_else_is_not_looked_at_further(text: str, where: str) -> None:
    read = parse_scheduler_config(text)
    assert [("wrong-kind", where)] == [(finding.id, finding.where) for finding in read.findings]
    assert read.config is None


def test_a_wrong_type_ends_the_look_and_an_unknown_field_does_not() -> None:
    assert reading("extenders: [{weight: many}]").config is None
    assert reading("extenders: [{wait: 1, 2: 3}]").config is not None


def test_all_that_is_wrong_is_told_at_once() -> None:
    assert len(reading("extenders: [{a: 1, httpTimeout: 1, weight: x}]").findings) == 3


def test_what_is_not_written_has_upstreams_defaults() -> None:
    read = config("extenders: [{urlPrefix: a}]\nprofiles: [{}]\npercentageOfNodesToScore:")
    (extender,), (profile,) = read.extenders, read.profiles
    assert (extender.timeout, extender.node_cache_capable, extender.filter_verb) == (5.0, False, "")
    assert (profile.name, profile.percentage_of_nodes_to_score) == ("default-scheduler", None)
    assert read.percentage_of_nodes_to_score == 0
    assert [each.name for each in config("extenders: []").profiles] == ["default-scheduler"]


def test_every_field_of_an_extender_is_read() -> None:
    text = """extenders: [{urlPrefix: a, filterVerb: f, prioritizeVerb: p, bindVerb: b, preemptVerb: e, weight: 3,
      enableHTTPS: true, httpTimeout: 1m, nodeCacheCapable: true, ignorable: true, managedResources: [{name: x}],
      tlsConfig: {insecure: true, serverName: s, certFile: c, keyFile: k, caFile: a, certData: d, keyData: d,
      caData: d}}]
    """
    (extender,) = config(text).extenders
    assert extender.verbs == {"filterVerb": "f", "prioritizeVerb": "p", "bindVerb": "b", "preemptVerb": "e"}
    assert (
        extender.timeout,
        extender.weight,
        extender.enable_https,
        extender.node_cache_capable,
        extender.ignorable,
    ) == (60.0, 3, True, True, True)
    tls = extender.tls_config
    assert tls is not None
    assert (tls.insecure, tls.server_name, tls.has_ca, tls.has_certificate) == (True, "s", True, True)
    assert [each.name for each in extender.managed_resources] == ["x"]


def test_json_is_read_too() -> None:
    text = '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "extenders": [{}]}'
    assert parse_scheduler_config(text).config is not None


@pytest.mark.parametrize(
    ("prefixes", "prefix", "url", "chosen"),
    [
        pytest.param(["http://a"], "", "", 0, id="the only one"),
        pytest.param(["http://a", "http://kindred.x:1"], "", "", 1, id="by its name"),
        pytest.param(["http://kindred", "http://10.0.0.1:8888"], "", "http://10.0.0.1:8888/", 1, id="by the URL asked"),
        pytest.param(
            ["http://kindred", "http://a:80/x"], "", "http://a", 1, id="by the URL asked, its port understood"
        ),
        pytest.param(["http://a/x", "http://a/y"], "http://a/y", "", 1, id="by what was given"),
        pytest.param(["http://a", "http://b"], "", "", None, id="none that is called so"),
        pytest.param(["http://kindred", "http://kindred-2"], "", "", None, id="two that are called so"),
        pytest.param(["http://a"], "http://b", "", None, id="none that was given"),
        pytest.param([], "", "", None, id="none at all"),
    ],
)
def test_it_is_known_which_extender_is_kindred(prefixes: list[str], prefix: str, url: str, chosen: int | None) -> None:
    read = config("extenders: [" + ", ".join(f"{{urlPrefix: '{each}'}}" for each in prefixes) + "]")
    extender, problem = choose_extender(read, prefix, url)
    assert chosen == (extender.index if extender else None)
    assert bool(problem) == (extender is None)
