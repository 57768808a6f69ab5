"""A KubeSchedulerConfiguration is read as kube-scheduler reads it: strictly, with its defaults."""

from pathlib import Path

import pytest

from app.scheduler_configuration.scheduler_config import (
    Reading,
    SchedulerConfig,
    UnreadableError,
    load_scheduler_config,
    parse_scheduler_config,
    read_scheduler_config,
)
from app.scheduler_configuration.schema import Severity

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
        pytest.param("", "not a KubeSchedulerConfiguration: expected fields with values", id="nothing"),
        pytest.param("- a", "not a KubeSchedulerConfiguration: expected fields with values", id="a list"),
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
    with pytest.raises(UnreadableError, match=r"list\.yaml: not a KubeSchedulerConfiguration"):
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


def written(folder: Path, text: str) -> Path:
    path = folder / "scheduler.yaml"
    path.write_text(HEAD + text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("profiles: [{plugin: {}}]", "profiles[0].plugin: unknown field", id="unknown field"),
        pytest.param("percentageOfNodesToScore: 101", "percentageOfNodesToScore: 101: must be 0..100", id="percentage"),
        pytest.param(
            "profiles: [{percentageOfNodesToScore: -1}]",
            "profiles[0].percentageOfNodesToScore: -1: must be 0..100",
            id="percentage of a profile",
        ),
        pytest.param(
            "profiles: [{schedulerName: a}, {}]",
            "profiles[1].schedulerName: required where there are several",
            id="no name",
        ),
        pytest.param(
            "profiles: [{schedulerName: a}, {schedulerName: a}]",
            "profiles[0].schedulerName: several profiles have the name a",
            id="a name twice",
        ),
        pytest.param(
            "profiles: [{plugins: {score: {enabled: [{name: NodeAffinity, weight: -1}]}}}]",
            "profiles[0].plugins.score.enabled: NodeAffinity: weight: -1: must be 0..2147483647",
            id="a weight below 0",
        ),
        pytest.param(
            "extenders: [{urlPrefix: a, weight: 9999999999}]",
            "extenders[0].weight: 9999999999: must be 0..2147483647",
            id="an extender that weighs too much",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: NodeAffinity}, {name: NodeAffinity}]}]",
            "profiles[0].pluginConfig: several entries have the name NodeAffinity",
            id="arguments twice",
        ),
    ],
)
def test_a_file_that_no_kube_scheduler_starts_with_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UnreadableError) as error:
        load_scheduler_config(path)
    assert str(error.value).startswith(f"{path}: {problem}")
    assert "\n" not in str(error.value)


def test_a_file_that_a_kube_scheduler_starts_with_is_loaded(tmp_path: Path) -> None:
    path = written(tmp_path, "profiles: [{schedulerName: a}, {schedulerName: b, percentageOfNodesToScore: 30}]")
    loaded = load_scheduler_config(path)
    assert [profile.name for profile in loaded.profiles] == ["a", "b"]
    assert loaded.percentage_of(loaded.profiles[1]) == ("profiles[1].percentageOfNodesToScore", 30)


def test_an_extender_of_resources_is_asked_about_pods_that_request_one() -> None:
    everything, gpus = config(
        "extenders: [{urlPrefix: a}, {urlPrefix: b, managedResources: [{name: x/gpu}, {name: x/npu}]}]"
    ).extenders
    assert everything.is_asked_about(())
    assert gpus.is_asked_about({"cpu": 1, "x/npu": 1})
    assert not gpus.is_asked_about({"cpu": 1})
