"""A KubeSchedulerConfiguration is read as kube-scheduler reads it: strictly, with its defaults."""

from pathlib import Path

import pytest
import yaml

from app.scheduler_configuration.scheduler_config import (
    SchedulerConfig,
    choose_extender,
    load_scheduler_config,
    parse_scheduler_config,
)
from app.scheduler_configuration.schema import go_duration, parse_go_duration
from app.scheduler_configuration.validation import UnreadableError
from tests.app.yaml_bomb import BOMB, REJECTION

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def config(text: str) -> SchedulerConfig:
    return parse_scheduler_config(HEAD + text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [", "no YAML: line 1: ", id="no YAML"),
        pytest.param("", "not a KubeSchedulerConfiguration: expected one document", id="nothing"),
        pytest.param("- a", "not a KubeSchedulerConfiguration: expected one document", id="a list"),
        pytest.param("[" * 1000, "no YAML: nested more than 200 levels deep", id="too deep"),
        pytest.param(f"profiles: {BOMB}", f"no YAML: {REJECTION}", id="bomb"),
        pytest.param(f"profiles: 1{':1' * 200}", "no YAML: a base-60 number", id="quadratic"),
        pytest.param("apiVersion: v1\nkind: KubeSchedulerConfiguration", "apiVersion: expected kube", id="apiVersion"),
        pytest.param("apiVersion: kubescheduler.config.k8s.io/v1\nkind: Pod\nspec: {}", "kind: expected Ku", id="kind"),
        pytest.param("apiVersion: kubescheduler.config.k8s.io/v1", "kind: expected Kube", id="no kind"),
    ],
)
def test_what_is_no_configuration_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(UnreadableError) as error:
        parse_scheduler_config(text)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def config_map(**data: str) -> str:
    return yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})


def test_the_configuration_in_a_config_map_is_read() -> None:
    """Source: the page "Configure Multiple Schedulers" of Kubernetes has it between other objects of one file."""
    text = config_map(settings=HEAD + "extenders: [{urlPrefix: a}]", other="x: y")
    in_list = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(text), {"kind": "Secret"}]})
    for written in (text, in_list, f"kind: ServiceAccount\n---\n{text}---\nkind: Deployment\nspec: {{}}\n"):
        assert [each.url_prefix for each in parse_scheduler_config(written).extenders] == ["a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            config_map(a=HEAD.replace("/v1", "/v1beta2")),
            "data['a']: apiVersion: expected kubescheduler.config.k8s.io/v1, found 'kubescheduler.config",
            id="gpushare-scheduler-extender#166",
        ),
        pytest.param(
            config_map(**{"stork-config.yaml": HEAD.replace("/v1", "/v1beta3") + "profiles: [{schedulerName: stork}]"}),
            "data['stork-config.yaml']: apiVersion: expected kubescheduler.config.k8s.io/v1, found",
            id="libopenstorage/operator#862",
        ),
        pytest.param(
            config_map(
                **{"config.yaml": HEAD.replace("/v1", "/v1beta1"), "policy.cfg": '{"kind": "Policy", "extenders": []}'}
            ),
            "data['config.yaml']: apiVersion: expected kubescheduler.config.k8s.io/v1, found",
            id="Huang-Wei/sample-scheduler-extender#7",
        ),
        pytest.param(
            '{"kind": "Policy", "apiVersion": "v1", "extenders": [{"urlPrefix": "a", "enableHttps": false}]}',
            "a Policy: kube-scheduler has read none since 1.23",
            id="elastic-ai/elastic-gpu-scheduler#12",
        ),
        pytest.param(
            HEAD.replace("/v1", "/v1beta2") + "extenders: [{urlPrefix: a, filterVerb: predicates}]",
            "apiVersion: expected kubescheduler.config.k8s.io/v1, found 'kubescheduler.config.k8s.io/v1beta2'",
            id="tkestack/gpu-admission#24",
        ),
        pytest.param(config_map(a=HEAD, b=HEAD), "several configurations: data['a'], data['b']; give one", id="two"),
        pytest.param(
            "apiVersion: kindred.dev/v1alpha1\nkind: KindredConfiguration",
            "apiVersion: expected kubescheduler.config.k8s.io/v1, found 'kindred.dev/v1alpha1'. This is a file of Kin",
            id="the other file",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod",
            "apiVersion: expected kubescheduler.config.k8s.io/v1, found 'v1'. This is a pod: its kube-scheduler reads",
            id="gpushare-scheduler-extender#166: the static pod",
        ),
        pytest.param(config_map(a="x: y"), "a ConfigMap without a KubeSchedulerConfiguration in its", id="none"),
        pytest.param(config_map(), "a ConfigMap without a KubeSchedulerConfiguration in its data", id="empty"),
        pytest.param('{"kind": "Policy", "apiVersion": "v1"}', "a Policy: kube-scheduler has read none", id="#89396"),
        pytest.param('{"predicates": [], "priorities": []}', "a Policy: kube-scheduler has read none", id="#91625"),
        pytest.param(
            config_map(a='{"kind": "Policy"}'), "data['a']: a Policy: kube-scheduler has", id="a policy inside"
        ),
    ],
)
def test_what_is_no_configuration_is_named_with_what_to_use(text: str, message: str) -> None:
    with pytest.raises(UnreadableError) as error:
        parse_scheduler_config(text)
    assert str(error.value).startswith(message)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match=r"absent\.yaml: No such file or directory"):
        load_scheduler_config(tmp_path / "absent.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe4")
    with pytest.raises(UnreadableError, match=r"latin\.yaml: not UTF-8"):
        load_scheduler_config(tmp_path / "latin.yaml")
    (tmp_path / "list.yaml").write_text("- a")
    with pytest.raises(UnreadableError, match=r"list\.yaml: not a KubeSchedulerConfiguration"):
        load_scheduler_config(tmp_path / "list.yaml")


def test_what_is_not_written_has_upstreams_defaults() -> None:
    read = config("extenders: [{urlPrefix: a}]\nprofiles: [{}]\npercentageOfNodesToScore:")
    (extender,), (profile,) = read.extenders, read.profiles
    assert (extender.timeout, extender.node_cache_capable, extender.filter_verb) == (5.0, False, "")
    assert (profile.name, profile.percentage_of_nodes_to_score) == ("default-scheduler", None)
    assert read.percentage_of_nodes_to_score == 0
    assert [each.name for each in config("extenders: []").profiles] == ["default-scheduler"]


def test_every_field_of_an_extender_is_read() -> None:
    text = """extenders: [{urlPrefix: a, filterVerb: f, prioritizeVerb: p, bindVerb: b, preemptVerb: e, weight: 3,
      enableHTTPS: true, httpTimeout: 1m, nodeCacheCapable: true, ignorable: true, managedResources: [{name: x/y}],
      tlsConfig: {insecure: false, serverName: s, certFile: c, keyFile: k, caFile: a, certData: d, keyData: d,
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
    assert (tls.insecure, tls.server_name, tls.has_ca, tls.has_certificate) == (False, "s", True, True)
    assert [each.name for each in extender.managed_resources] == ["x/y"]


def test_json_is_read_too() -> None:
    text = '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "extenders": [{}]}'
    assert parse_scheduler_config(text).profiles


def written(folder: Path, text: str) -> Path:
    path = folder / "scheduler.yaml"
    path.write_text(HEAD + text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "profiles: [{plugin: {}}]", "profiles[0]: object contains unknown field plugin", id="unknown field"
        ),
        pytest.param(
            "extenders: [{1: b}]", "extenders[0]: object contains unknown field 1", id="a key that is no text"
        ),
        pytest.param(
            "profiles: [{plugins: {scor: {}}}]", "a key of profiles[0].plugins: invalid enum value 'scor'", id="a point"
        ),
        pytest.param("extenders: [{weight: '1'}]", "extenders[0].weight: expected int, got str", id="a text"),
        pytest.param("extenders: [{ignorable: 1}]", "extenders[0].ignorable: expected bool, got int", id="a 1"),
        pytest.param("extenders: {}", "extenders: expected array, got object", id="fields where a list has to be"),
        pytest.param("profiles: [a]", "profiles[0]: expected object, got str", id="a text for fields"),
        pytest.param("extenders: [{httpTimeout: 5}]", "extenders[0].httpTimeout: expected str, got int", id="a number"),
        pytest.param(
            "extenders: [{httpTimeout: 5 sec}]",
            "extenders[0].httpTimeout: '5 sec': must be a duration such as 5s",
            id="no duration",
        ),
        pytest.param("parallelism: 1\nparallelism: 2", "no YAML: line 4: parallelism is there twice", id="twice"),
        pytest.param("parallelism: 0", "parallelism: 0: must be positive", id="no goroutine"),
        pytest.param("podMaxBackoffSeconds: 0", "podMaxBackoffSeconds: 0: must be at least podInitial", id="backoff"),
        pytest.param("clientConnection: {burst: -1}", "clientConnection.burst: -1: must not be", id="burst"),
        pytest.param(
            "leaderElection: {leaseDuration: 10s}",
            "leaderElection.leaseDuration: 10s: must be longer than renewDeadline, 10s",
            id="k8s client-go leaderelection: a lease that ends when it is renewed",
        ),
        pytest.param(
            "leaderElection: {resourceLock: endpointsleases}",
            "leaderElection.resourceLock: 'endpointsleases': must be leases",
            id="scheduler-plugins#247: a lock of 1.19",
        ),
        pytest.param(
            "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {queueSort: {enabled: [{name: C}]}}}]",
            "profiles[1].plugins.queueSort: must be the same in all profiles",
            id="scheduler-plugins: Coscheduling in one of two profiles",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeigth: 5}}]}]",
            "profiles[0].pluginConfig[0].args: InterPodAffinity: object contains unknown field hardPodAffinityWeigth",
            id="an argument that is none",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}]}]",
            "profiles[0].pluginConfig[0].args: InterPodAffinity.hardPodAffinityWeight: must be 0..100",
            id="an argument that is too large",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: "
            "{apiVersion: kubescheduler.config.k8s.io/v1beta2, kind: NodeResourcesFitArgs}}]}]",
            "profiles[0].pluginConfig[0].args.apiVersion: expected kubescheduler.config.k8s.io/v1, found",
            id="kubernetes#103478: arguments of another version",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: DefaultPreemption, args: {minCandidateNodes: 5}}]}]",
            "profiles[0].pluginConfig[0].args: object contains unknown field minCandidateNodes",
            id="an argument of a plugin without verdicts",
        ),
        pytest.param(
            "extenders: [{urlPrefix: 'https://a', enableHTTPS: true, tlsConfig: {insecure: true, caFile: /ca.crt}}]",
            "extenders[0].tlsConfig.insecure: true, beside a CA: take insecure out",
            id="client-go: a root certificates file with the insecure flag is not allowed",
        ),
        *(
            pytest.param(
                f"profiles: [{{plugins: {{{plugins}}}}}]",
                f"profiles[0].plugins.{problem}",
                id=f"kube-scheduler v1.36.3, v1.37.1: {plugins}",
            )
            for plugins, problem in (
                ("multiPoint: {disabled: [{name: '*'}]}", "queueSort: no plugin"),
                ("multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}]}", "bind: no plugin"),
                ("bind: {disabled: [{name: DefaultBinder}]}", "bind: no plugin"),
                ("filter: {enabled: [{name: NodeName}, {name: NodeName}]}", "filter.enabled: NodeName: twice"),
                ("multiPoint: {enabled: [{name: Mine}, {name: Mine}]}", "multiPoint.enabled: Mine: twice"),
                ("filter: {enabled: [{name: EBSLimits}]}", "filter.enabled: EBSLimits: is NodeVolumeLimits today"),
                ("multiPoint: {enabled: [{name: MatchNodeSelector}]}", "multiPoint.enabled: MatchNodeSelector: is"),
                ("filter: {enabled: [{name: ImageLocality}]}", "filter.enabled: ImageLocality: has nothing there"),
                ("score: {enabled: [{name: NodeName}]}", "score.enabled: NodeName: has nothing there"),
                ("filter: {enabled: [{name: '*'}]}", "filter.enabled: '*': is no plugin"),
            )
        ),
        *(
            pytest.param(
                f"profiles: [{{pluginConfig: [{{name: {plugin}, args: {{{args}}}}}]}}]",
                f"profiles[0].pluginConfig[0].args.{problem}",
                id=f"kube-scheduler v1.36.3, v1.37.1: {plugin} {args}",
            )
            for plugin, args, problem in (
                ("VolumeBinding", "bindTimeoutSeconds: -1", "bindTimeoutSeconds: expected int >= 0"),
                ("VolumeBinding", "bindTimeoutSeconds: 10m", "bindTimeoutSeconds: expected int, got str"),
                ("DefaultPreemption", "minCandidateNodesPercentage: 101", "minCandidateNodesPercentage: expected int"),
                ("DefaultPreemption", "minCandidateNodesAbsolute: -1", "minCandidateNodesAbsolute: expected int >= 0"),
                ("DynamicResources", "filterTimeout: 10", "filterTimeout: expected str, got int"),
            )
        ),
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
        pytest.param(
            "extenders: [{prioritizeVerb: p}]", "extenders[0].weight: 0, or not set: must be positive", id="no weight"
        ),
        pytest.param(
            "extenders: [{bindVerb: b}, {}, {bindVerb: b}]",
            "extenders[0].bindVerb, extenders[2].bindVerb: only one extender can implement bind",
            id="two that bind",
        ),
        pytest.param(
            "extenders: [{managedResources: [{name: x/gpu}]}, {managedResources: [{name: y/gpu}, {name: x/gpu}]}]",
            "extenders[1].managedResources[1].name: 'x/gpu': only one extender can",
            id="a resource of two extenders",
        ),
        *(
            pytest.param(
                f"extenders: [{{managedResources: [{{name: '{name}'}}]}}]",
                f"extenders[0].managedResources[0].name: '{name}': must be the name of an extended resource",
                id=f"no extended resource: {name}",
            )
            for name in ("cpu", "hugepages-2Mi", "kubernetes.io/x", "requests.a/b", "a/b c", "example.com/-x")
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


def test_what_a_kube_scheduler_accepts_of_plugins_and_documents_is_accepted() -> None:
    """A plugin of one's own has its own arguments, and what follows the first document is not read: v1.36.3 starts."""
    arguments = "{name: Coscheduling, args: {permitWaitingTimeSeconds: 5}}, {name: VolumeBinding, args: {shape: []}}"
    election = "leaderElection: {leaderElect: false, leaseDuration: 1s}"
    loaded = config(f"{election}\nprofiles: [{{pluginConfig: [{arguments}]}}]\n---\nkind: Secret\n")
    assert [each.name for each in loaded.profiles[0].plugin_config] == ["Coscheduling", "VolumeBinding"]


def test_an_extender_of_resources_is_asked_about_pods_that_request_one() -> None:
    everything, gpus = config(
        "extenders: [{urlPrefix: a}, {urlPrefix: b, managedResources: [{name: x/gpu}, {name: x/npu}]}]"
    ).extenders
    assert everything.gets_requests_for(())
    assert gpus.gets_requests_for({"cpu": 1, "x/npu": 1})
    assert not gpus.gets_requests_for({"cpu": 1})


@pytest.mark.parametrize(
    ("prefixes", "prefix", "url", "chosen"),
    [
        pytest.param(["http://a"], "", "", 0, id="the only one"),
        pytest.param(["http://a", "http://kindred.x:1"], "", "", 1, id="by its name"),
        pytest.param(["http://[", "http://kindred"], "", "", 1, id="beside a URL that is none"),
        pytest.param(["http://kindred", "http://10.0.0.1:8888"], "", "http://10.0.0.1:8888/", 1, id="by the URL asked"),
        pytest.param(
            ["http://kindred", "http://a:80/x"], "", "http://a", 1, id="by the URL asked, its port understood"
        ),
        pytest.param(["http://a/x", "http://a/y"], "http://a/y", "", 1, id="by what was given"),
        pytest.param(["http://a", "http://b"], "", "", None, id="none that is called so"),
        pytest.param(["http://kindred", "http://kindred-2"], "", "", None, id="two that are called so"),
        pytest.param(["http://kindred.a.svc", "http://kindred.a"], "", "", 0, id="two names of one Service"),
        pytest.param(["http://kindred.a.svc", "http://kindred.b"], "", "", None, id="Services of two namespaces"),
        pytest.param(["http://kindred.a.svc:1", "http://kindred.a:2"], "", "", None, id="two ports of a Service"),
        pytest.param(["http://a"], "http://b", "", None, id="none that was given"),
        pytest.param([], "", "", None, id="none at all"),
    ],
)
def test_it_is_known_which_extender_is_kindred(prefixes: list[str], prefix: str, url: str, chosen: int | None) -> None:
    read = config("extenders: [" + ", ".join(f"{{urlPrefix: '{each}'}}" for each in prefixes) + "]")
    extender, problem = choose_extender(read, prefix, url)
    assert chosen == (extender.index if extender else None)
    assert bool(problem) == (extender is None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5s", 5.0),
        ("1m30s", 90.0),
        ("500ms", 0.5),
        ("1.5s", 1.5),
        (".5s", 0.5),
        ("1.s", 1.0),
        ("-1h", -3600.0),
        ("+2s", 2.0),
        ("0", 0.0),
        ("0s", 0.0),
        ("20us", 2e-5),
        ("20µs", 2e-5),
        ("7ns", 7e-9),
    ],
)
def test_a_duration_is_read_as_go_does(text: str, seconds: float) -> None:
    assert seconds == pytest.approx(parse_go_duration(text), abs=1e-12)


@pytest.mark.parametrize("text", ["", "5", "5 s", "s", "5sec", "1d", "5s ", "5S", "1s-1s", "."])
def test_what_go_refuses_is_none(text: str) -> None:
    assert parse_go_duration(text) is None


@pytest.mark.parametrize(("seconds", "text"), [(5.0, "5s"), (0.8, "800ms"), (90.0, "90s"), (1.5, "1500ms")])
def test_a_duration_is_written_as_go_reads_it(seconds: float, text: str) -> None:
    assert text == go_duration(seconds)
    assert seconds == parse_go_duration(text)
