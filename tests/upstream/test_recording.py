"""The parts of upstream's sources that are recorded, on small texts in the form of the real ones."""

import pytest

from core.releases import RELEASES
from tests.e2e.binaries import RELEASES as BUILT
from tests.upstream.recording import (
    Gates,
    RecordError,
    default_plugins,
    encoded,
    extension_points,
    file_of,
    gates_of_fields,
    implemented_points,
    pod_fields,
    recorded,
)

FEATURES = """
	TeapotScheduling: {
		{Version: version.MustParse("1.35"), Default: false, PreRelease: featuregate.Alpha},
		{Version: version.MustParse("1.37"), Default: true, PreRelease: featuregate.Beta}, // a remark
	},

	TeapotScheduling: {},
"""
TYPES = """
type Container struct {
	// +featureGate=Teapots
	// +optional
	Teapot *string `json:"teapot,omitempty" protobuf:"bytes,8"`
	Name string `json:"name"`
}
"""
DEFAULTS = """
func getDefaultPlugins() *v1.Plugins {
	plugins := &v1.Plugins{
		MultiPoint: v1.PluginSet{
			Enabled: []v1.Plugin{
				{Name: names.NodeName},
				{Name: names.ImageLocality, Weight: ptr.To[int32](1)},
			},
		},
	}
	return plugins
}

func applyFeatureGates(config *v1.Plugins) {
	if utilfeature.DefaultFeatureGate.Enabled(features.Teapots) {
		config.MultiPoint.Enabled = append(config.MultiPoint.Enabled, v1.Plugin{Name: names.Teapot})
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.Kettles) {
		applyKettles(config)
	}
}

func applyKettles(config *v1.Plugins) {
	config.MultiPoint.Enabled = append(config.MultiPoint.Enabled, v1.Plugin{Name: names.Kettle})
}
"""
PLUGIN = """
const Name = names.Teapot

var _ fwk.FilterPlugin = &Teapot{}
var _ fwk.SignPlugin = &Teapot{}

func (pl *Teapot) Name() string {
	return Name
}

func (pl *Teapot) Filter(ctx context.Context) *fwk.Status {
}

func (pl *Teapot) ScorePlacement(ctx context.Context) {
}
"""
POINTS = ["preFilter", "filter", "placementScore"]


def schema(**properties: object) -> dict[str, object]:
    return {"properties": properties}


def test_the_types_of_a_pod_are_followed_through_lists_maps_and_references() -> None:
    def to(name: str) -> dict[str, str]:
        return {"$ref": f"#/components/schemas/io.k8s.api.core.v1.{name}"}

    schemas = {
        "io.k8s.api.core.v1.Pod": schema(spec={"allOf": [to("PodSpec")], "default": {}}),
        "io.k8s.api.core.v1.PodSpec": schema(
            containers={"type": "array", "items": {"allOf": [to("Container")]}},
            overhead={"type": "object", "additionalProperties": to("Quantity")},
            nodeName={"type": "string"},
        ),
        "io.k8s.api.core.v1.Container": schema(next=to("Container")),
        "io.k8s.api.core.v1.Quantity": {"type": "string"},
        "io.k8s.api.core.v1.Node": schema(spec=to("NodeSpec")),
    }
    assert pod_fields({"components": {"schemas": schemas}}) == {
        "Pod": {"spec": "PodSpec"},
        "PodSpec": {"containers": "Container", "overhead": "Quantity", "nodeName": ""},
        "Container": {"next": "Container"},
    }


def test_a_gate_is_of_the_field_below_its_marker() -> None:
    assert gates_of_fields(TYPES) == {"Container.teapot": "Teapots"}


@pytest.mark.parametrize(("minor", "on"), [(35, False), (36, False), (37, True), (38, True)])
def test_a_gate_has_the_stage_that_began_last(minor: int, on: bool) -> None:  # noqa: FBT001  a parameter
    assert Gates(FEATURES, minor).on("TeapotScheduling") is on


@pytest.mark.parametrize(("minor", "gate"), [(34, "TeapotScheduling"), (37, "Teapots")])
def test_a_gate_that_the_release_does_not_have_is_an_error(minor: int, gate: str) -> None:
    with pytest.raises(RecordError, match=gate):
        Gates(FEATURES, minor).on(gate)


def test_default_plugins_have_the_gate_that_adds_them() -> None:
    assert default_plugins(DEFAULTS) == {"NodeName": "", "ImageLocality": "", "Teapot": "Teapots", "Kettle": "Kettles"}


def test_a_gate_that_adds_no_plugin_is_an_error() -> None:
    with pytest.raises(RecordError, match="Kettles"):
        default_plugins(DEFAULTS.replace("names.Kettle", "kettle"))


def test_the_points_of_a_configuration_are_its_plugin_sets() -> None:
    text = "type Plugins struct {\n\t// a remark\n\tPreFilter PluginSet\n\n\tMultiPoint PluginSet\n}\n"
    assert extension_points(text) == ["preFilter"]
    with pytest.raises(RecordError):
        extension_points("")


def test_the_methods_of_a_plugin_are_its_points() -> None:
    assert implemented_points(iter([PLUGIN]), POINTS) == {"Teapot": ["filter", "placementScore"]}


def test_a_stated_interface_without_its_method_is_an_error() -> None:
    with pytest.raises(RecordError, match="preFilter"):
        implemented_points(iter([PLUGIN.replace("fwk.FilterPlugin", "fwk.PreFilterPlugin")]), POINTS)


@pytest.mark.parametrize("release", [str(each) for each in RELEASES])
def test_each_known_release_is_recorded_from_the_patch_release_that_is_built(release: str) -> None:
    found = recorded(release)
    assert found.kubernetes == BUILT[release]
    assert file_of(release).read_bytes() == encoded(found)
