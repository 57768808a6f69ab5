package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// scheduler is the part of upstream's that filters and scores: its cache, its snapshot and its framework, put together
// as scheduler.New does it, with the default arguments, feature gates and parallelism. The framework runs no plugin but
// InterPodAffinity, with weight 1, so that a total is its normalized score.
type scheduler struct {
	cache       internalcache.Cache
	snapshot    *internalcache.Snapshot
	framework   framework.Framework
	informers   informers.SharedInformerFactory
	parallelism int
}

func newScheduler(ctx context.Context) (*scheduler, error) {
	metrics.Register()
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	s := &scheduler{
		cache:       internalcache.New(ctx, nil, utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload)),
		snapshot:    internalcache.NewEmptySnapshot(),
		informers:   informers.NewSharedInformerFactory(nil, 0), // never started: there is no API server to follow
		parallelism: int(defaults.Parallelism),
	}
	s.framework, err = frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), onlyAffinity(defaults.Profiles[0]),
		frameworkruntime.WithInformerFactory(s.informers),
		frameworkruntime.WithSnapshotSharedLister(s.snapshot),
		frameworkruntime.WithParallelism(s.parallelism),
	)
	return s, err
}

// onlyAffinity leaves a profile its arguments, and InterPodAffinity alone of the plugins that are run here. A framework
// is not made without a queue sort and a bind plugin; nothing asks them.
func onlyAffinity(profile config.KubeSchedulerProfile) *config.KubeSchedulerProfile {
	only := func(name string, weight int32) config.PluginSet {
		return config.PluginSet{Enabled: []config.Plugin{{Name: name, Weight: weight}}}
	}
	profile.Plugins = &config.Plugins{
		PreFilter: only(names.InterPodAffinity, 0),
		Filter:    only(names.InterPodAffinity, 0),
		PreScore:  only(names.InterPodAffinity, 0),
		Score:     only(names.InterPodAffinity, 1),
		QueueSort: only(names.PrioritySort, 0),
		Bind:      only(names.DefaultBinder, 0),
	}
	return &profile
}

// addNamespace puts a namespace where the plugin's lister finds it: what an informer does with an event.
func (s *scheduler) addNamespace(namespace *v1.Namespace) error {
	return s.informers.Core().V1().Namespaces().Informer().GetIndexer().Add(namespace)
}

func (s *scheduler) addNode(node *v1.Node) {
	s.cache.AddNode(klog.Background(), node)
}

func (s *scheduler) addPod(pod *v1.Pod) error {
	return s.cache.AddPod(klog.Background(), pod)
}

// takeSnapshot brings the snapshot up to date, as upstream does before every scheduling cycle. It returns how many nodes
// and pods are in it.
func (s *scheduler) takeSnapshot(ctx context.Context) (nodes, pods int, err error) {
	if err := s.cache.UpdateSnapshot(klog.FromContext(ctx), s.snapshot); err != nil {
		return 0, 0, err
	}
	infos, err := s.snapshot.List()
	if err != nil {
		return 0, 0, err
	}
	for _, info := range infos {
		pods += len(info.GetPods())
	}
	return len(infos), pods, nil
}

// schedule filters all nodes and scores those that fit. The time is that of PreFilter, Filter, PreScore, Score and
// NormalizeScore by the framework's own Run functions, which honour Skip, and of the list of feasible nodes in between.
//
// Of what else upstream spends in a scheduling cycle none of it counts: the update of the snapshot, pods that are
// nominated, the statuses collected for preemption, and the choice of a node. Plugin metrics are off, as they are in nine
// of ten cycles upstream. All nodes are looked at, as with percentageOfNodesToScore: 100.
func (s *scheduler) schedule(ctx context.Context, pod *v1.Pod) ([]fwk.NodePluginScores, time.Duration, error) {
	began := time.Now()
	totals, err := s.score(ctx, pod)
	return totals, time.Since(began), err
}

// score is upstream's schedulePod without all that schedule does not count.
func (s *scheduler) score(ctx context.Context, pod *v1.Pod) ([]fwk.NodePluginScores, error) {
	state := framework.NewCycleState()
	nodes, err := s.snapshot.ListNodesInPlacement()
	if err != nil {
		return nil, err
	}
	if _, status, _ := s.framework.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		return nil, fmt.Errorf("PreFilter: %w", status.AsError())
	}
	feasible, err := s.passingFilters(ctx, state, pod, nodes)
	if err != nil || len(feasible) == 0 {
		return nil, err
	}
	if status := s.framework.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		return nil, fmt.Errorf("PreScore: %w", status.AsError())
	}
	totals, status := s.framework.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		return nil, fmt.Errorf("Score: %w", status.AsError())
	}
	return totals, nil
}

// passingFilters is the loop of upstream's findNodesThatPassFilters.
func (s *scheduler) passingFilters(
	ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo,
) ([]fwk.NodeInfo, error) {
	feasible := make([]fwk.NodeInfo, len(nodes))
	failed := parallelize.NewResultChannel[error]()
	var found int32
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errors.New("all nodes are filtered"))
	s.framework.Parallelizer().Until(ctx, len(nodes), func(i int) {
		status := s.framework.RunFilterPlugins(ctx, state, pod, nodes[i])
		if status.Code() == fwk.Error {
			failed.SendWithCancel(status.AsError(), func() { cancel(errors.New("another Filter operation failed")) })
			return
		}
		if status.IsSuccess() {
			feasible[atomic.AddInt32(&found, 1)-1] = nodes[i]
		}
	}, metrics.Filter)
	return feasible[:found], failed.Receive()
}
