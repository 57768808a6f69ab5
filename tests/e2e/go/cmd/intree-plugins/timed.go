package main

import (
	"context"
	"encoding/json"
	"runtime"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/version"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// timing is the other side of the sections `devices` and `simulation` of the benchmark. The first line is a case, whose
// objects are loaded once. Each further line is a pod: {"nanoseconds": ..., "failed": {node: verdict}} goes to stdout, or
// `node` instead of `failed` if the case has no devices. Go runs on one CPU.
type timing struct{ cluster *cluster }

func (t *timing) reply(ctx context.Context, text []byte) map[string]any {
	if t.cluster == nil {
		runtime.GOMAXPROCS(1)
		longest = time.Minute // CPU time is measured, and the machine may do other work
		var line testCase
		err := json.Unmarshal(text, &line)
		if err == nil {
			t.cluster, err = newCluster(ctx, &line)
		}
		if err != nil {
			return map[string]any{"rejected": err.Error()}
		}
		return map[string]any{"go": runtime.Version(), "kubernetes": version.Get().GitVersion}
	}
	var pod v1.Pod
	if err := json.Unmarshal(text, &pod); err != nil {
		return map[string]any{"rejected": err.Error()}
	}
	if t.cluster.testCase.DeviceSlices == nil {
		return t.cluster.timedCycle(ctx, &pod)
	}
	return t.cluster.timed(ctx, &pod)
}

// timedCycle runs what a scheduler runs to choose a node for a pod among all nodes, with all default plugins but
// DynamicResources. Nothing counts the pod afterwards.
func (c *cluster) timedCycle(ctx context.Context, pod *v1.Pod) object {
	began := cpuTime()
	state, fitting, err := c.fitting(ctx, pod)
	node := ""
	if err == nil && len(fitting) > 0 {
		node, err = c.best(ctx, state, pod, fitting)
	}
	spent := cpuTime() - began
	if err != nil {
		return object{"rejected": err.Error()}
	}
	return object{"nanoseconds": spent.Nanoseconds(), "node": node}
}

// timed runs PreFilter, and Filter of each node, as a scheduler would in one cycle. The time is that of all CPUs, with
// the collection of garbage.
func (c *cluster) timed(ctx context.Context, pod *v1.Pod) object {
	first := c.plugins[names.DynamicResources].(preFilterPlugin)
	then := c.plugins[names.DynamicResources].(filterPlugin)
	statuses := make([]*fwk.Status, len(c.nodes))
	state := framework.NewCycleState()
	began := cpuTime()
	_, status := first.PreFilter(ctx, state, pod, c.nodes)
	for at, node := range c.nodes {
		statuses[at] = status
		if status.IsSuccess() {
			statuses[at] = then.Filter(ctx, state, pod, node)
		}
	}
	spent := cpuTime() - began
	failed := map[string]verdict{}
	for at, node := range c.nodes {
		if !statuses[at].IsSuccess() {
			failed[node.Node().Name] = verdictOf(statuses[at])
		}
	}
	return object{"nanoseconds": spent.Nanoseconds(), "failed": failed}
}

func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
