package main

import (
	"context"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// volumeAnswer is `expected` of a volume case: the four plugins that read volumes, and the nodes that pass all of them.
func (c *cluster) volumeAnswer(ctx context.Context) (object, error) {
	first := map[string]filtered{}
	for _, name := range []string{
		names.VolumeRestrictions, names.NodeVolumeLimits, names.VolumeBinding, names.VolumeZone,
	} {
		first[name] = c.filter(ctx, name)
	}
	feasible := []string{}
	var infos []fwk.NodeInfo
	for _, node := range c.nodes {
		if name := node.Node().Name; passesAll(first, name) {
			feasible = append(feasible, name)
			infos = append(infos, node)
		}
	}
	shown := object{}
	for name, f := range first {
		members := object{"prefilter": f.prefilter.Code().String()}
		if !f.passed() {
			members["prefilter_reasons"] = reasonsOf(f.prefilter)
		}
		if len(f.failed) > 0 {
			members["filter_failed"] = f.failed
		}
		if f.prefilter.IsSuccess() {
			if err := c.addVolumeScores(ctx, name, f, infos, members); err != nil {
				return nil, err
			}
		}
		shown[name] = members
	}
	return object{"plugins": shown, "feasible": feasible}, nil
}

// addVolumeScores adds the scores of a plugin that has some: VolumeBinding, where storage capacity is scored.
func (c *cluster) addVolumeScores(
	ctx context.Context, name string, f filtered, feasible []fwk.NodeInfo, members object,
) error {
	for suffix, nodes := range map[string][]fwk.NodeInfo{"all": c.nodes, "feasible": feasible} {
		if len(nodes) == 0 {
			continue
		}
		found, err := c.score(ctx, name, f, nodes)
		if err != nil {
			return err
		}
		if found.prescore == fwk.Success.String() {
			members["prescore_"+suffix] = found.prescore
			members["raw_scores_"+suffix] = found.raw
			members["normalized_"+suffix] = found.normalized
		}
	}
	return nil
}
