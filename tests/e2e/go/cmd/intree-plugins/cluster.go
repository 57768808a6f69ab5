package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/featuregate"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// testCase is the input of a golden case. A field that the release does not know is dropped, as its API server would.
type testCase struct {
	Name              string                          `json:"name"`
	Args              arguments                       `json:"args"`
	Namespaces        []*v1.Namespace                 `json:"namespaces"`
	Nodes             []*v1.Node                      `json:"nodes"`
	Pods              []*v1.Pod                       `json:"pods"`
	Pod               *v1.Pod                         `json:"pod"`
	Queue             []*v1.Pod                       `json:"queue"`
	Nominated         []*v1.Pod                       `json:"nominated"`
	Budgets           []*policyv1.PodDisruptionBudget `json:"pdbs"`
	Volumes           []*v1.PersistentVolume          `json:"pvs"`
	Claims            []*v1.PersistentVolumeClaim     `json:"pvcs"`
	StorageClasses    []*storagev1.StorageClass       `json:"storageclasses"`
	CSINodes          []*storagev1.CSINode            `json:"csinodes"`
	CSIDrivers        []*storagev1.CSIDriver          `json:"csidrivers"`
	StorageCapacities []*storagev1.CSIStorageCapacity `json:"csistoragecapacities"`
	VolumeAttachments []*storagev1.VolumeAttachment   `json:"volumeattachments"`
	DeviceClasses     []*resourcev1.DeviceClass       `json:"deviceclasses"`
	DeviceSlices      []*resourcev1.ResourceSlice     `json:"resourceslices"`
	DeviceClaims      []*resourcev1.ResourceClaim     `json:"resourceclaims"`
	DeviceTaintRules  []*deviceTaintRule              `json:"devicetaintrules"`
	Services          []*v1.Service                   `json:"services"`
	Controllers       []*v1.ReplicationController     `json:"replicationcontrollers"`
	ReplicaSets       []*appsv1.ReplicaSet            `json:"replicasets"`
	StatefulSets      []*appsv1.StatefulSet           `json:"statefulsets"`
	PluginConfig      []json.RawMessage               `json:"pluginConfig"` // of the profile, as in its file
	FeatureGates      map[string]bool                 `json:"featureGates"`
}

// arguments are those of InterPodAffinity; what is absent has upstream's default.
type arguments struct {
	HardPodAffinityWeight              *int32 `json:"hardPodAffinityWeight"`
	IgnorePreferredTermsOfExistingPods bool   `json:"ignorePreferredTermsOfExistingPods"`
}

// plugin is what all plugins have in common in every release.
type plugin interface{ Name() string }

// cluster is a case as a scheduler sees it: a snapshot, a framework with the default plugins, and its plugins one by one.
type cluster struct {
	testCase   *testCase
	framework  framework.Framework
	capacities cache.Indexer // CSIStorageCapacities, as plugins list them
	claims     cache.Indexer // PersistentVolumeClaims
	plugins    map[string]plugin
	weights    map[string]int64
	snapshot   *internalcache.Snapshot
	nodes      []fwk.NodeInfo // in the order of the case; a snapshot's own is that of a map
}

func newCluster(ctx context.Context, line *testCase) (*cluster, error) {
	profile, err := profileOf(line)
	if err != nil {
		return nil, err
	}
	if err := line.onNodes(); err != nil {
		return nil, err
	}
	snapshot := internalcache.NewSnapshot(line.Pods, line.Nodes)
	c := &cluster{testCase: line, snapshot: snapshot, plugins: map[string]plugin{}, weights: map[string]int64{}}
	for _, each := range profile.Plugins.MultiPoint.Enabled {
		c.weights[each.Name] = max(1, int64(each.Weight))
	}
	registry := frameworkruntime.Registry{}
	for name, factory := range plugins.NewInTreeRegistry() {
		registry[name] = captured(name, factory, c.plugins)
	}
	factory := newStaticFactory()
	c.capacities = factory.Storage().V1().CSIStorageCapacities().Informer().GetIndexer()
	c.claims = factory.Core().V1().PersistentVolumeClaims().Informer().GetIndexer()
	manager, err := draManager(ctx, factory)
	if err != nil {
		return nil, err
	}
	c.framework, err = frameworkruntime.NewFramework(ctx, registry, profile, append(optionsOf(manager, factory, snapshot),
		frameworkruntime.WithSharedDRAManager(manager),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithPodNominator(nominator{byNode: nominatedPods(line)}),
		frameworkruntime.WithParallelism(1),
	)...)
	if err != nil {
		return nil, err
	}
	line.shuffled()
	if err := factory.load(line.objects()); err != nil {
		return nil, err
	}
	return c, c.readNodes()
}

// readNodes takes the nodes from the snapshot.
func (c *cluster) readNodes() error {
	c.nodes = nil
	for _, node := range c.testCase.Nodes {
		info, err := c.snapshot.NodeInfos().Get(node.Name)
		if err != nil {
			return fmt.Errorf("node %s: %w", node.Name, err)
		}
		c.nodes = append(c.nodes, info)
	}
	return nil
}

// setGates sets the feature gates of a case, and returns what sets them as they were.
func (c *testCase) setGates() (func(), error) {
	gate := utilfeature.DefaultMutableFeatureGate
	known, before := gate.GetAll(), map[string]bool{}
	for name := range c.FeatureGates {
		if _, ok := known[featuregate.Feature(name)]; !ok {
			return nil, fmt.Errorf("featureGates: %s is unknown", name)
		}
		before[name] = gate.Enabled(featuregate.Feature(name))
	}
	reset := func() { _ = gate.SetFromMap(before) }
	if err := gate.SetFromMap(c.FeatureGates); err != nil {
		reset() // gates are set even where one that they depend on is off
		return nil, fmt.Errorf("featureGates: %w", err)
	}
	return reset, nil
}

// configured is a file of the release with one profile, and the pluginConfig of the case in it.
func configured(line *testCase) (*config.KubeSchedulerConfiguration, error) {
	text, err := json.Marshal(object{
		"apiVersion": configv1.SchemeGroupVersion.String(),
		"kind":       "KubeSchedulerConfiguration",
		"profiles":   []object{{"pluginConfig": line.PluginConfig}},
	})
	if err != nil {
		return nil, err
	}
	made, _, err := scheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	if err != nil {
		return nil, err
	}
	found, ok := made.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("it is a %T", made)
	}
	found.TypeMeta.APIVersion = configv1.SchemeGroupVersion.String()
	if err := validation.ValidateKubeSchedulerConfiguration(found); err != nil {
		return nil, err
	}
	return found, nil
}

// profileOf is the default profile of the release. Only device cases have DynamicResources, and only nominated and device
// cases have default constraints of topology spread, unless the case has a pluginConfig.
func profileOf(line *testCase) (*config.KubeSchedulerProfile, error) {
	file, err := configured(line)
	if err != nil {
		return nil, fmt.Errorf("pluginConfig: %w", err)
	}
	profile := &file.Profiles[0]
	kept := profile.Plugins.MultiPoint.Enabled[:0]
	for _, each := range profile.Plugins.MultiPoint.Enabled {
		if each.Name != names.DynamicResources || line.DeviceSlices != nil {
			kept = append(kept, each)
		}
	}
	profile.Plugins.MultiPoint.Enabled = kept
	for _, each := range profile.PluginConfig {
		switch args := each.Args.(type) {
		case *config.InterPodAffinityArgs:
			if line.Args.HardPodAffinityWeight != nil {
				args.HardPodAffinityWeight = *line.Args.HardPodAffinityWeight
			}
			if line.Args.IgnorePreferredTermsOfExistingPods {
				args.IgnorePreferredTermsOfExistingPods = true
			}
		case *config.PodTopologySpreadArgs:
			hasDefaults := line.DeviceSlices != nil || (line.Nominated != nil && line.Budgets == nil)
			if !hasDefaults && line.PluginConfig == nil {
				args.DefaultingType = config.ListDefaulting
			}
		case *config.DynamicResourcesArgs:
			args.FilterTimeout = &metav1.Duration{Duration: longest}
		}
	}
	return profile, nil
}

// captured keeps what a factory makes. Types are parameters, as releases have them in different packages.
func captured[H any, P plugin](
	name string, factory func(context.Context, runtime.Object, H) (P, error), into map[string]plugin,
) func(context.Context, runtime.Object, H) (P, error) {
	return func(ctx context.Context, args runtime.Object, handle H) (P, error) {
		made, err := factory(ctx, args, handle)
		if err == nil {
			into[name] = made
		}
		return made, err
	}
}

// onNodes finds a pod on a node that is not there: upstream's plugins take it for granted that there is none.
func (c *testCase) onNodes() error {
	for _, pod := range c.Pods {
		if !slices.ContainsFunc(c.Nodes, func(node *v1.Node) bool { return node.Name == pod.Spec.NodeName }) {
			return fmt.Errorf("pod %s is on node %q, which is not there", pod.Name, pod.Spec.NodeName)
		}
	}
	if c.Pod == nil && c.Queue == nil {
		return errors.New("there is no incoming pod")
	}
	return nil
}

// objects are those that plugins find by listers.
func (c *testCase) objects() []runtime.Object {
	var all []runtime.Object
	all = appended(all, c.Namespaces)
	all = appended(all, c.Nodes)
	all = appended(all, c.Pods)
	all = appended(all, c.Budgets)
	all = appended(all, c.Volumes)
	all = appended(all, c.Claims)
	all = appended(all, c.StorageClasses)
	all = appended(all, c.CSINodes)
	all = appended(all, c.CSIDrivers)
	all = appended(all, c.StorageCapacities)
	all = appended(all, c.VolumeAttachments)
	all = appended(all, c.DeviceClasses)
	all = appended(all, c.DeviceSlices)
	all = appended(all, c.DeviceClaims)
	all = appended(all, c.Services)
	all = appended(all, c.Controllers)
	all = appended(all, c.ReplicaSets)
	all = appended(all, c.StatefulSets)
	return append(all, taintRules(c)...)
}

func appended[T runtime.Object](all []runtime.Object, more []T) []runtime.Object {
	for _, each := range more {
		all = append(all, each)
	}
	return all
}

// nominator knows the nominated pods of a case; nothing changes them.
type nominator struct {
	podNominator
	byNode map[string][]fwk.PodInfo
}

func (n nominator) NominatedPodsForNode(node string) []fwk.PodInfo {
	return n.byNode[node]
}

// nominatedPods are those of a case by node. The incoming pod is in a scheduler's queue as the others are.
func nominatedPods(line *testCase) map[string][]fwk.PodInfo {
	byNode := map[string][]fwk.PodInfo{}
	for _, pod := range append(append([]*v1.Pod{}, line.Nominated...), line.Pod) {
		if line.Nominated == nil {
			break
		}
		if node := pod.Status.NominatedNodeName; node != "" {
			// An invalid affinity term is an error, and the pod counts all the same: as upstream's queue has it.
			info, _ := framework.NewPodInfo(pod)
			byNode[node] = append(byNode[node], info)
		}
	}
	return byNode
}
