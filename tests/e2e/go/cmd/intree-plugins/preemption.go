package main

import (
	"context"
	"fmt"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// drawings of lots between two candidates. Go begins a map of two at one of eight slots, so one of the two comes first in
// an eighth of the drawings: a tie is missed with a chance of (7/8)^drawings, which is 1e-23. It was seen with 40.
const drawings = 400

type victims struct {
	Victims    []string `json:"victims"`
	Violations int64    `json:"num_pdb_violations"`
}

// preemptionAnswer is `expected` of a preemption case. The dry run is of every node, also where nothing would try it.
func (c *cluster) preemptionAnswer(ctx context.Context) (object, error) {
	plugin, ok := c.plugins[names.DefaultPreemption].(*defaultpreemption.DefaultPreemption)
	if !ok {
		return nil, fmt.Errorf("%s is a %T", names.DefaultPreemption, c.plugins[names.DefaultPreemption])
	}
	pod := c.testCase.Pod
	s := c.begin(ctx)
	failed := c.failing(s, func(state fwk.CycleState, node fwk.NodeInfo) *fwk.Status {
		return c.framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
	})
	potential := []string{}
	for _, node := range c.testCase.Nodes {
		if failed[node.Name].Code() == fwk.Unschedulable {
			potential = append(potential, node.Name)
		}
	}
	found, others := c.dryRun(ctx, plugin, s)
	shown := s.members()
	shown["filter_failed"] = withPlugins(failed)
	shown["potential_nodes"] = potential
	shown["failed"] = withPlugins(others)
	shown["candidates"] = candidatesShown(found)
	shown["chosen_all_nodes"] = chosen(ctx, plugin, found)
	tried := slices.DeleteFunc(found, func(each preemption.Candidate) bool {
		return !slices.Contains(potential, each.Name())
	})
	shown["chosen"] = chosen(ctx, plugin, tried)
	eligible, reason := plugin.PodEligibleToPreemptOthers(ctx, pod, failed[pod.Status.NominatedNodeName])
	shown["eligible"] = eligible
	if reason != "" {
		shown["not_eligible_reason"] = reason
	}
	return shown, nil
}

// dryRun returns candidates and, of the other nodes, why not; nothing where PreFilter failed.
func (c *cluster) dryRun(
	ctx context.Context, plugin *defaultpreemption.DefaultPreemption, s cycle,
) ([]preemption.Candidate, map[string]*fwk.Status) {
	others := map[string]*fwk.Status{}
	if !s.status.IsSuccess() || len(c.nodes) == 0 {
		return nil, others
	}
	// The error repeats statuses. No limit: more candidates than there are nodes.
	found, statuses, _ := plugin.Evaluator.DryRunPreemption(
		ctx, s.state, c.testCase.Pod, c.nodes, c.testCase.Budgets, 0, int32(len(c.nodes))+1)
	for _, node := range c.testCase.Nodes {
		if !slices.ContainsFunc(found, func(each preemption.Candidate) bool { return each.Name() == node.Name }) {
			others[node.Name] = statuses.Get(node.Name)
		}
	}
	return found, others
}

func candidatesShown(found []preemption.Candidate) map[string]victims {
	shown := map[string]victims{}
	for _, candidate := range found {
		each := victims{Victims: []string{}, Violations: candidate.Victims().NumPDBViolations}
		for _, pod := range candidate.Victims().Pods {
			each.Victims = append(each.Victims, pod.Namespace+"/"+pod.Name)
		}
		shown[candidate.Name()] = each
	}
	return shown
}

// chosen are the candidates that SelectCandidate may return: between two that tie it takes one in the order of a map.
func chosen(
	ctx context.Context, plugin *defaultpreemption.DefaultPreemption, found []preemption.Candidate,
) []string {
	best := plugin.Evaluator.SelectCandidate(ctx, found)
	if best == nil {
		return []string{}
	}
	may := []string{best.Name()}
	for _, other := range found {
		pair := []preemption.Candidate{best, other}
		for drawn := 0; drawn < drawings && other.Name() != best.Name(); drawn++ {
			if plugin.Evaluator.SelectCandidate(ctx, pair).Name() == other.Name() {
				may = append(may, other.Name())
				break
			}
		}
	}
	slices.Sort(may)
	return may
}
