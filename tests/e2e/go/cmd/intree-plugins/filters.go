package main

import (
	"context"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// cycle is PreFilter of all plugins together.
type cycle struct {
	state   fwk.CycleState
	status  *fwk.Status
	nodes   []string // that PreFilter narrows to; nil: all
	skipped []string
}

func (c *cluster) begin(ctx context.Context) cycle {
	state := framework.NewCycleState()
	result, status, _ := c.framework.RunPreFilterPlugins(ctx, state, c.testCase.Pod)
	skipped := state.GetSkipFilterPlugins().UnsortedList()
	slices.Sort(skipped)
	return cycle{state, status, narrowedTo(c, result), append([]string{}, skipped...)}
}

// members are those that say what PreFilter said.
func (s cycle) members() object {
	shown := object{"prefilter": s.status.Code().String()}
	if !s.status.IsSuccess() {
		shown["prefilter_reasons"] = reasonsOf(s.status)
	}
	if s.nodes != nil {
		shown["prefilter_nodes"] = s.nodes
	}
	return shown
}

// failing asks every node, also those that PreFilter leaves out, and returns the first failure of each.
func (c *cluster) failing(s cycle, run func(fwk.CycleState, fwk.NodeInfo) *fwk.Status) map[string]*fwk.Status {
	failed := map[string]*fwk.Status{}
	for _, node := range c.nodes {
		status := s.status
		if status.IsSuccess() {
			status = run(s.state, node)
		}
		if !status.IsSuccess() {
			failed[node.Node().Name] = status
		}
	}
	return failed
}

func withPlugins(statuses map[string]*fwk.Status) map[string]verdict {
	shown := map[string]verdict{}
	for node, status := range statuses {
		each := verdictOf(status)
		each.Plugin = status.Plugin()
		shown[node] = each
	}
	return shown
}

// nominatedAnswer is `expected` of a nominated case.
func (c *cluster) nominatedAnswer(ctx context.Context) object {
	pod := c.testCase.Pod
	s := c.begin(ctx)
	with := c.failing(s, func(state fwk.CycleState, node fwk.NodeInfo) *fwk.Status {
		return c.framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
	})
	without := c.failing(s, func(state fwk.CycleState, node fwk.NodeInfo) *fwk.Status {
		return c.framework.RunFilterPlugins(ctx, state, pod, node)
	})
	// What passes without nominated pods fails in the first of the two runs, with them.
	feasible, refused := []string{}, []string{}
	for _, node := range c.testCase.Nodes {
		switch {
		case with[node.Name] == nil:
			feasible = append(feasible, node.Name)
		case without[node.Name] == nil:
			refused = append(refused, node.Name)
		}
	}
	shown := s.members()
	shown["skipped"] = s.skipped
	shown["filter_failed"] = withPlugins(with)
	shown["feasible"] = feasible
	shown["refused_by_nominated"] = refused
	return shown
}
