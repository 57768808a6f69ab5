"""Arguments of plugins are upstream's *Args as JSON; what is wrong with them is named by its path."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
import pytest

from app.objects.decode import DecodeError, Wire
from app.objects.plugin_args import args_type_of, decode_plugin_args, strict
from app.settings.settings import Settings, SettingsError
from app.wiring.engine import create_profile
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import AnyFilter
from core.objects.pod import SCHEDULE_ANYWAY, SpreadConstraint
from core.plugins import PLUGINS
from core.plugins.noderesources.arguments import ResourceSpec, ScoringStrategy, UtilizationShapePoint
from tests.builders import expressed, make_node, make_pod, named
from tests.core.decoded import mirror_of, pod_of

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
SHAPE: Final = [{"utilization": 0, "score": 10}, {"utilization": 100}]


def args_of(plugin: str, **args: object) -> str:
    return json.dumps({plugin: args})


def required(*terms: object) -> Mapping[str, object]:
    return {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


def constraint(**members: object) -> Mapping[str, object]:
    whole = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", **members}
    return {"defaultingType": "List", "defaultConstraints": [whole]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(args_of("NodeName"), {"NodeName": {}}, id="a-plugin-that-has-none"),
        pytest.param(
            args_of("InterPodAffinity", hardPodAffinityWeight=None), {"InterPodAffinity": {}}, id="null-is-left-out"
        ),
        pytest.param(
            args_of("InterPodAffinity", hardPodAffinityWeight=0, ignorePreferredTermsOfExistingPods=True),
            {"InterPodAffinity": {"hard_pod_affinity_weight": 0, "ignore_preferred_terms_of_existing_pods": True}},
            id="inter-pod-affinity",
        ),
        pytest.param(
            args_of("InterPodAffinity", apiVersion=API_VERSION, kind="InterPodAffinityArgs"),
            {"InterPodAffinity": {}},
            id="with-the-type",
        ),
        pytest.param(
            args_of("PodFitsResources", ignoredResources=["example.com/a"], ignoredResourceGroups=["example.org"]),
            {"NodeResourcesFit": {"ignored_resources": ["example.com/a"], "ignored_resource_groups": ["example.org"]}},
            id="ignored-resources-by-a-former-name",
        ),
        pytest.param(
            args_of(
                "NodeResourcesFit",
                scoringStrategy={
                    "type": "RequestedToCapacityRatio",
                    "resources": [{"name": "cpu", "weight": 3}, {"name": "memory"}],
                    "requestedToCapacityRatio": {"shape": SHAPE},
                },
            ),
            {
                "NodeResourcesFit": {
                    "scoring_strategy": ScoringStrategy(
                        "RequestedToCapacityRatio",
                        (ResourceSpec("cpu", 3), ResourceSpec("memory")),
                        (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0)),
                    ),
                }
            },
            id="scoring-strategy",
        ),
        pytest.param(
            args_of("NodeResourcesBalancedAllocation", resources=[{"name": "cpu", "weight": 1}]),
            {"NodeResourcesBalancedAllocation": {"resources": [ResourceSpec("cpu", 1)]}},
            id="balanced-allocation",
        ),
        pytest.param(
            args_of("PodTopologySpread", defaultingType="List"),
            {"PodTopologySpread": {"defaulting_type": "List"}},
            id="spread-nothing-by-default",
        ),
        pytest.param(
            args_of("PodTopologySpread", defaultingType=""),
            {"PodTopologySpread": {}},
            id="spread-as-upstream-does-by-default",
        ),
        pytest.param(
            args_of("PodTopologySpread", **constraint(minDomains=2, nodeTaintsPolicy="Honor", labelSelector=None)),
            {
                "PodTopologySpread": {
                    "defaulting_type": "List",
                    "default_constraints": (
                        SpreadConstraint(1, "zone", SCHEDULE_ANYWAY, min_domains=2, node_taints_policy="Honor"),
                    ),
                }
            },
            id="default-constraints",
        ),
        pytest.param(
            args_of("ServiceAffinity", affinityLabels=["region", "zone"]),
            {"ServiceAffinity": {"affinity_labels": ["region", "zone"]}},
            id="service-affinity",
        ),
        pytest.param(
            args_of(
                "TargetLoadPacking",
                targetUtilization=80,
                defaultRequests={"cpu": "500m"},
                defaultRequestsMultiplier="2.5",
            ),
            {
                "TargetLoadPacking": {
                    "target_utilization": 80,
                    "default_request": 500,
                    "default_requests_multiplier": 2.5,
                }
            },
            id="target-load-packing",
        ),
        pytest.param(
            args_of("TargetLoadPacking", targetUtilization=0, defaultRequests={}),
            {"TargetLoadPacking": {}},
            id="target-load-packing-by-default",
        ),
        pytest.param(
            args_of("LoadVariationRiskBalancing", safeVarianceMargin=2, safeVarianceSensitivity=0.5),
            {"LoadVariationRiskBalancing": {"safe_variance_margin": 2.0, "safe_variance_sensitivity": 0.5}},
            id="risk-balancing",
        ),
        pytest.param(
            args_of(
                "LoadAware",
                usageThresholds={"cpu": 80},
                resourceWeights={"memory": 3},
                estimatedScalingFactors={"cpu": 100},
                enableScheduleWhenNodeMetricsExpired=False,
            ),
            {
                "LoadAware": {
                    "usage_thresholds": {"cpu": 80},
                    "resource_weights": {"memory": 3},
                    "estimated_scaling_factors": {"cpu": 100},
                    "enable_schedule_when_node_metrics_expired": False,
                }
            },
            id="load-aware",
        ),
        pytest.param(
            args_of("LoadAware", usageThresholds={}, resourceWeights={}),
            {"LoadAware": {}},
            id="load-aware-by-default",
        ),
        pytest.param(
            args_of("LoadAware", dominantResourceWeight=1),
            {"LoadAware": {"dominant_resource_weight": 1}},
            id="load-aware-by-the-dominant-resource-alone",
        ),
    ],
)
def test_args_are_the_arguments_of_a_plugin(text: str, expected: Mapping[str, Mapping[str, Any]]) -> None:
    assert expected == decode_plugin_args(text)
    for plugin, keywords in expected.items():
        PLUGINS[plugin](**keywords)


def feasible(plugin: AnyFilter) -> list[str]:
    mirror = mirror_of(make_node("n1").label("disk", "ssd"), make_node("n2").label("disk", "hdd"), make_node("n3"))
    batch = mirror.batch(["n1", "n2", "n3"])
    verdicts = FreshEvaluation(mirror, pod_of(make_pod("p"))).verdicts(plugin, batch)
    assert verdicts is not None
    return [name for name, code in zip(batch.names, verdicts.codes.tolist(), strict=True) if not code]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param(required(expressed("disk", "In", "ssd")), ["n1"], id="labels"),
        pytest.param(required(expressed("disk", "In", "ssd"), named("In", "n3")), ["n1", "n3"], id="or-names"),
        pytest.param(required(), [], id="no-term-is-met-by-nothing"),
    ],
)
def test_added_affinity_is_asked_of_nodes_on_behalf_of_every_pod(
    args: Mapping[str, object], expected: list[str]
) -> None:
    profile = create_profile(Settings(profile="filter:NodeAffinity", plugin_args=args_of("NodeAffinity", **args)))
    assert expected == feasible(profile.filters[0])


def test_added_affinity_can_prefer_nodes() -> None:
    preferred = {PREFERRED: [{"weight": 5, "preference": expressed("disk", "Exists")}]}
    arguments = decode_plugin_args(args_of("NodeAffinity", addedAffinity=preferred))
    assert [each.weight for each in arguments["NodeAffinity"]["added_affinity"].preferred] == [5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{", "malformed JSON: ", id="cut-off"),
        pytest.param("[]", "expected object, got array", id="no-object"),
        pytest.param('{"NodeNam":{}}', "NodeNam: unknown plugin; there are CheckNodeCondition, ", id="unknown-plugin"),
        pytest.param(
            '{"GeneralPredicates":{}}',
            "GeneralPredicates: has no arguments of its own, but NodeResourcesFit, NodeName, NodePorts, NodeAffinity",
            id="a-composite",
        ),
        pytest.param(
            '{"InterPodAffinity":{},"MatchInterPodAffinity":{}}',
            "MatchInterPodAffinity: the arguments of InterPodAffinity are already given",
            id="by-both-names",
        ),
        pytest.param(
            args_of("InterPodAffinity", hardPodAffinityWeigth=1),
            "InterPodAffinity: object contains unknown field hardPodAffinityWeigth",
            id="a-slip-of-the-pen",
        ),
        pytest.param(
            args_of("InterPodAffinity", hardPodAffinityWeight="1"),
            "InterPodAffinity.hardPodAffinityWeight: expected int | null, got str",
            id="wrong-type",
        ),
        pytest.param(
            args_of("InterPodAffinity", hardPodAffinityWeight=101),
            "InterPodAffinity.hardPodAffinityWeight: must be 0..100, got 101",
            id="out-of-range",
        ),
        pytest.param(
            args_of("InterPodAffinity", kind="NodeAffinityArgs"),
            "InterPodAffinity.kind: expected InterPodAffinityArgs, got NodeAffinityArgs",
            id="another-kind",
        ),
        pytest.param(
            args_of("InterPodAffinity", apiVersion="v1"),
            f"InterPodAffinity.apiVersion: expected {API_VERSION}, got v1",
            id="another-group",
        ),
        pytest.param(
            args_of("NodeResourcesFit", scoringStrategy={"type": "LeastAllocated", "resources": [{"wight": 1}]}),
            "NodeResourcesFit.scoringStrategy.resources[0]: object contains unknown field wight",
            id="unknown-field-deep-inside",
        ),
        pytest.param(
            args_of("NodeResourcesFit", scoringStrategy={"type": "LeastAllocated", "requestedToCapacityRatio": {}}),
            "NodeResourcesFit.scoringStrategy.shape: at least one point must be specified",
            id="a-ratio-without-a-shape",
        ),
        pytest.param(
            args_of("NodeResourcesFit", ignoredResourceGroups=["example.com/a"]),
            "NodeResourcesFit.ignoredResourceGroups[0]: ",
            id="a-group-with-a-slash",
        ),
        pytest.param(
            args_of("NodeAffinity", **required({"matchLabels": {"disk": "ssd"}})),
            f"NodeAffinity.addedAffinity.{REQUIRED}.nodeSelectorTerms[0]: object contains unknown field matchLabels",
            id="a-label-selector-for-nodes",
        ),
        pytest.param(
            args_of("NodeAffinity", **required(expressed("disk", "Near"), expressed("zone", "Far"))),
            f"NodeAffinity: [addedAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported ",
            id="two-broken-terms",
        ),
        pytest.param(
            args_of("PodTopologySpread", **constraint(labelSelector={})),
            "PodTopologySpread.defaultConstraints[0].labelSelector: must be absent",
            id="a-constraint-with-a-selector",
        ),
        pytest.param(
            args_of("TargetLoadPacking", defaultRequestsMultiplier="much"),
            "TargetLoadPacking.defaultRequestsMultiplier: expected a number, got 'much'",
            id="a-multiplier-that-is-no-number",
        ),
        pytest.param(
            args_of("LoadAware", usageThresholds={"gpu": 1}),
            "LoadAware.usageThresholds.gpu: is not measured; there are cpu, memory",
            id="a-resource-that-is-not-measured",
        ),
    ],
)
def test_args_that_are_wrong_are_refused_by_the_path_of_what_is(text: str, message: str) -> None:
    with pytest.raises(DecodeError) as raised:
        decode_plugin_args(text)
    assert str(raised.value).startswith(message)


REJECTED: Final[Mapping[str, Mapping[str, object]]] = {
    "InterPodAffinity": {"hardPodAffinityWeight": -1},
    "NodeAffinity": {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": [expressed("disk", "Near")]}}},
    "NodeResourcesFit": {
        "ignoredResources": ["-"],
        "ignoredResourceGroups": ["example.com/a"],
        "scoringStrategy": {"type": "Random"},
    },
    "NodeResourcesBalancedAllocation": {"resources": [{"name": "cpu", "weight": 2}]},
    "PodTopologySpread": {"defaultingType": "Set", "defaultConstraints": constraint(maxSkew=0)["defaultConstraints"]},
    "TargetLoadPacking": {
        "targetUtilization": 100,
        "defaultRequests": {"cpu": "-1"},
        "defaultRequestsMultiplier": "1001",
    },
    "LoadVariationRiskBalancing": {"safeVarianceMargin": -1, "safeVarianceSensitivity": -1},
    "LoadAware": {
        "usageThresholds": {"cpu": 101},
        "resourceWeights": {"cpu": 101},
        "dominantResourceWeight": -1,
        "estimatedScalingFactors": {"cpu": 101},
    },
}
"""Plugin -> a value of each argument that its check refuses, though its type is right."""
UNCHECKED: Final = {
    "InterPodAffinity": {"ignorePreferredTermsOfExistingPods"},
    "LoadAware": {"enableScheduleWhenNodeMetricsExpired"},
    "ServiceAffinity": {"affinityLabels"},
}
"""Plugin -> arguments of which every value of the type is allowed."""


@pytest.mark.parametrize("plugin", PLUGINS)
def test_every_argument_of_every_plugin_is_checked_or_takes_every_value(plugin: str) -> None:
    arguments = {each.encode_name for each in msgspec.structs.fields(args_type_of(PLUGINS[plugin]))}
    rejected = REJECTED.get(plugin, {})
    assert {*rejected} | UNCHECKED.get(plugin, set()) == arguments - {"apiVersion", "kind"}
    for name, value in rejected.items():
        next_to = {"defaultingType": "List"} if name == "defaultConstraints" else {}
        with pytest.raises(DecodeError, match=rf"^{plugin}(\.|: \[){name}"):
            decode_plugin_args(args_of(plugin, **next_to, **{name: value}))


# In the settings.


def test_wrong_args_are_an_error_of_the_setting_whether_the_plugin_is_enabled_or_not() -> None:
    settings = Settings(plugin_args=args_of("NodeResourcesFit", scoringStrategy={"type": "Random"}))
    with pytest.raises(SettingsError, match=r"^KINDRED_PLUGIN_ARGS: NodeResourcesFit\.scoringStrategy\.type: must be "):
        create_profile(settings)


def test_a_profile_that_is_none_is_an_error_of_the_setting() -> None:
    with pytest.raises(SettingsError, match=r"^KINDRED_PROFILE='NodeName=3': NodeName=3: only scores have a weight$"):
        create_profile(Settings(profile="NodeName=3"))


# Strict structs.


class Inner(Wire):
    """What is inside."""

    node_name: str | None = None


class Outer(Wire):
    """What holds it in each form that a field can have."""

    count: Annotated[int, msgspec.Meta(ge=0)] | None = None
    labels: dict[str, str] | None = None
    inner: Inner | None = msgspec.field(default=None, name="INNER")
    items: list[Inner] | None = None
    named: dict[str, Inner] = msgspec.field(default_factory=dict)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        pytest.param('{"x":1}', "", id="outside"),
        pytest.param('{"INNER":{"x":1}}', " - at `$.INNER`", id="in-an-optional-struct"),
        pytest.param('{"items":[{},{"x":1}]}', " - at `$.items[1]`", id="in-a-list"),
        pytest.param('{"named":{"a":{"x":1}}}', " - at `$.named[...]`", id="in-a-mapping"),
    ],
)
def test_an_unknown_field_is_an_error_however_deep_it_is(text: str, path: str) -> None:
    msgspec.json.decode(text, type=Outer)
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(text, type=strict(Outer))
    assert f"Object contains unknown field `x`{path}" == str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{}", id="nothing"),
        pytest.param('{"labels":{"any":"key"},"INNER":null,"items":[{"nodeName":"n1"}],"named":{"a":{}}}', id="all"),
    ],
)
def test_known_fields_are_read_alike(text: str) -> None:
    read = msgspec.json.decode(text, type=strict(Outer))
    assert isinstance(read, Outer)
    assert msgspec.to_builtins(msgspec.json.decode(text, type=Outer)) == msgspec.to_builtins(read)
