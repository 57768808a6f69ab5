package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// placement is what becomes of one pod of a queue; without a node it stays over.
type placement struct {
	Pod  string `json:"pod"`
	Node string `json:"node"`
}

// sequenceAnswer is `expected` of a case with a queue: its pods one after the other, each beside those before it, on the
// first by name of the nodes with the highest score. What Reserve assumes holds for the pods after it, and so does what is
// left of the capacity for volumes once a driver has made those of the pod. Pods that stay over are tried again, until
// none of them finds a node: a scheduler's queue does so for those that a placed pod may help.
func (c *cluster) sequenceAnswer(ctx context.Context) (object, error) {
	placed := make([]placement, len(c.testCase.Queue))
	for changed := true; changed; {
		changed = false
		for at, pod := range c.testCase.Queue {
			if placed[at].Node != "" {
				continue
			}
			node, err := c.placed(ctx, pod)
			if err != nil {
				return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
			}
			placed[at] = placement{pod.Namespace + "/" + pod.Name, node}
			changed = changed || node != ""
		}
	}
	return object{"placed": placed}, nil
}

// placed returns the node of a pod, empty for none, and counts the pod there. A filter that ends with an error ends the
// attempt of a scheduler, so no case has one.
func (c *cluster) placed(ctx context.Context, pod *v1.Pod) (string, error) {
	state, fitting, err := c.fitting(ctx, pod)
	if err != nil || len(fitting) == 0 {
		return "", err
	}
	best, err := c.best(ctx, state, pod, fitting)
	if err != nil {
		return "", err
	}
	made, err := c.toProvision(ctx, pod, best)
	if err != nil {
		return "", err
	}
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = best
	if status := c.framework.RunReservePluginsReserve(ctx, state, assumed, best); !status.IsSuccess() {
		return "", status.AsError()
	}
	if err := c.provision(made, best); err != nil {
		return "", err
	}
	return best, c.count(assumed)
}

func (c *cluster) fitting(ctx context.Context, pod *v1.Pod) (fwk.CycleState, []fwk.NodeInfo, error) {
	state := framework.NewCycleState()
	_, status, _ := c.framework.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		return state, nil, errorOf(status)
	}
	var fitting []fwk.NodeInfo
	for _, node := range c.nodes {
		status := c.framework.RunFilterPlugins(ctx, state, pod, node)
		if err := errorOf(status); err != nil {
			return state, nil, err
		}
		if status.IsSuccess() {
			fitting = append(fitting, node)
		}
	}
	return state, fitting, nil
}

// best returns the node with the highest score, the first by name of several.
func (c *cluster) best(ctx context.Context, state fwk.CycleState, pod *v1.Pod, fitting []fwk.NodeInfo) (string, error) {
	if status := c.framework.RunPreScorePlugins(ctx, state, pod, fitting); !status.IsSuccess() {
		return "", status.AsError()
	}
	scores, status := c.framework.RunScorePlugins(ctx, state, pod, fitting)
	if !status.IsSuccess() {
		return "", status.AsError()
	}
	best := scores[0]
	for _, each := range scores[1:] {
		if each.TotalScore > best.TotalScore || (each.TotalScore == best.TotalScore && each.Name < best.Name) {
			best = each
		}
	}
	return best.Name, nil
}

// count makes the snapshot anew with one more pod. Plugins hold the snapshot by its address.
func (c *cluster) count(assumed *v1.Pod) error {
	c.testCase.Pods = append(c.testCase.Pods, assumed)
	*c.snapshot = *internalcache.NewSnapshot(c.testCase.Pods, c.testCase.Nodes)
	return c.readNodes()
}

func errorOf(status *fwk.Status) error {
	if status.Code() == fwk.Error {
		return status.AsError()
	}
	return nil
}
