package main

import (
	"context"
	"fmt"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// What golden data writes where a plugin did not score.
const (
	notRun  = "NotRun"  // PreFilter failed
	noNodes = "NoNodes" // no node is feasible
)

type object = map[string]any

// Plugins of a plugin case beside InterPodAffinity. Of a release that has not got one, it is left out.
var judged = []string{
	names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity, names.NodePorts,
	names.NodeResourcesFit, names.PodTopologySpread, names.NodeResourcesBalancedAllocation, names.ImageLocality,
	"NodeDeclaredFeatures",
}

// verdict is what a plugin says of one node.
type verdict struct {
	Code    string   `json:"code"`
	Plugin  string   `json:"plugin,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
}

func verdictOf(status *fwk.Status) verdict {
	return verdict{Code: status.Code().String(), Reasons: reasonsOf(status)}
}

// reasonsOf has no null in JSON.
func reasonsOf(status *fwk.Status) []string {
	return append([]string{}, status.Reasons()...)
}

// filtered is what a plugin said, alone, with a state of its own, which its scores need, too.
type filtered struct {
	state     fwk.CycleState
	prefilter *fwk.Status
	hasFirst  bool     // the plugin has a PreFilter
	nodes     []string // that PreFilter narrows to; nil: all
	failed    map[string]verdict
}

func (c *cluster) filter(ctx context.Context, name string) filtered {
	f := filtered{state: framework.NewCycleState(), failed: map[string]verdict{}}
	pod := c.testCase.Pod
	if plugin, ok := c.plugins[name].(preFilterPlugin); ok {
		var narrowed *preFilterResult
		narrowed, f.prefilter = plugin.PreFilter(ctx, f.state, pod, c.nodes)
		f.hasFirst = true
		f.nodes = narrowedTo(c, narrowed)
	}
	plugin, ok := c.plugins[name].(filterPlugin)
	if !ok || f.prefilter.IsSkip() {
		return f
	}
	for _, node := range c.nodes {
		status := f.prefilter
		if status.IsSuccess() {
			status = plugin.Filter(ctx, f.state, pod, node)
		}
		if !status.IsSuccess() {
			f.failed[node.Node().Name] = verdictOf(status)
		}
	}
	return f
}

// passed tells whether PreFilter let the plugin go on to the scores; on Skip a plugin scores all the same.
func (f filtered) passed() bool {
	return f.prefilter.IsSuccess() || f.prefilter.IsSkip()
}

func narrowedTo(c *cluster, result *preFilterResult) []string {
	if result.AllNodes() {
		return nil
	}
	found := []string{}
	for _, node := range c.testCase.Nodes {
		if result.NodeNames.Has(node.Name) {
			found = append(found, node.Name)
		}
	}
	return found
}

// scored is what a plugin says of some nodes.
type scored struct {
	prescore        string // empty: the plugin has no PreScore
	raw, normalized map[string]int64
}

func (c *cluster) score(ctx context.Context, name string, f filtered, nodes []fwk.NodeInfo) (scored, error) {
	s := scored{raw: map[string]int64{}, normalized: map[string]int64{}}
	plugin, ok := c.plugins[name].(scorePlugin)
	if !ok {
		return s, nil
	}
	state, pod := f.state.Clone(), c.testCase.Pod
	if first, ok := c.plugins[name].(preScorePlugin); ok {
		status := first.PreScore(ctx, state, pod, nodes)
		s.prescore = status.Code().String()
		if !status.IsSuccess() {
			return s, nil
		}
	}
	list := make(nodeScoreList, 0, len(nodes))
	for _, node := range nodes {
		score, status := plugin.Score(ctx, state, pod, node)
		if !status.IsSuccess() {
			return s, fmt.Errorf("%s: %w", name, status.AsError())
		}
		s.raw[node.Node().Name] = score
		list = append(list, nodeScore{Name: node.Node().Name, Score: score})
	}
	if extensions := plugin.ScoreExtensions(); extensions != nil {
		if status := extensions.NormalizeScore(ctx, state, pod, list); !status.IsSuccess() {
			return s, fmt.Errorf("%s: %w", name, status.AsError())
		}
	}
	for _, each := range list {
		s.normalized[each.Name] = each.Score
	}
	return s, nil
}

// pluginAnswer is `expected` of a plugin case: InterPodAffinity at the top, the others, and all of them together.
func (c *cluster) pluginAnswer(ctx context.Context) (object, error) {
	first := map[string]filtered{names.InterPodAffinity: c.filter(ctx, names.InterPodAffinity)}
	for _, name := range judged {
		if c.plugins[name] != nil {
			first[name] = c.filter(ctx, name)
		}
	}
	feasible := []string{}
	var infos []fwk.NodeInfo
	for _, node := range c.nodes {
		if name := node.Node().Name; passesAll(first, name) {
			feasible = append(feasible, name)
			infos = append(infos, node)
		}
	}
	total, others := map[string]int64{}, object{}
	for name, f := range first {
		if name == names.InterPodAffinity {
			continue
		}
		shown, over, err := c.shown(ctx, name, f, infos)
		if err != nil {
			return nil, err
		}
		others[name] = shown
		c.add(total, name, over)
	}
	affinity, over, err := c.affinity(ctx, first[names.InterPodAffinity], infos)
	if err != nil {
		return nil, err
	}
	c.add(total, names.InterPodAffinity, over)
	for _, node := range feasible {
		total[node] += 0 // a node that nothing scores has a total
	}
	affinity["plugins"] = others
	affinity["combined"] = object{"feasible": feasible, "total": total}
	return affinity, nil
}

func passesAll(first map[string]filtered, node string) bool {
	for _, f := range first {
		if _, failed := f.failed[node]; failed {
			return false
		}
	}
	return true
}

func (c *cluster) add(total map[string]int64, name string, over scored) {
	for node, score := range over.normalized {
		total[node] += c.weights[name] * score
	}
}

// shown is `expected.plugins.NAME`, without empty members; beside it what counts for the totals.
func (c *cluster) shown(
	ctx context.Context, name string, f filtered, feasible []fwk.NodeInfo,
) (object, scored, error) {
	shown := object{}
	if f.hasFirst {
		shown["prefilter"] = f.prefilter.Code().String()
		if !f.passed() {
			shown["prefilter_reasons"] = reasonsOf(f.prefilter)
		}
	}
	if f.nodes != nil {
		shown["prefilter_nodes"] = f.nodes
	}
	if len(f.failed) > 0 {
		shown["filter_failed"] = f.failed
	}
	if _, ok := c.plugins[name].(scorePlugin); !ok {
		return shown, scored{}, nil
	}
	all, over := scored{prescore: notRun}, scored{prescore: noNodes}
	var err error
	if f.passed() {
		if all, err = c.score(ctx, name, f, c.nodes); err == nil && len(feasible) > 0 {
			over, err = c.score(ctx, name, f, feasible)
		}
	}
	for suffix, each := range map[string]scored{"all": all, "feasible": over} {
		if each.prescore != "" {
			shown["prescore_"+suffix] = each.prescore
		}
		if len(each.raw) > 0 {
			shown["raw_scores_"+suffix] = each.raw
			shown["normalized_"+suffix] = each.normalized
		}
	}
	return shown, over, err
}

// affinity is what a plugin case has at its top: InterPodAffinity, the *_feasible members over nodes that it lets pass.
func (c *cluster) affinity(
	ctx context.Context, f filtered, combined []fwk.NodeInfo,
) (object, scored, error) {
	verdicts := map[string]verdict{}
	var feasible []fwk.NodeInfo
	for _, node := range c.nodes {
		name := node.Node().Name
		if failed, ok := f.failed[name]; ok {
			verdicts[name] = failed
			continue
		}
		verdicts[name] = verdict{Code: fwk.Success.String(), Reasons: []string{}}
		feasible = append(feasible, node)
	}
	shown := object{
		"prefilter":      f.prefilter.Code().String(),
		"prefilter_skip": f.prefilter.IsSkip(),
		"filter":         verdicts,
	}
	if !f.passed() {
		shown["prefilter_reasons"] = reasonsOf(f.prefilter)
	}
	all, over := scored{prescore: notRun}, scored{prescore: noNodes}
	var total scored
	var err error
	if f.passed() {
		all, err = c.score(ctx, names.InterPodAffinity, f, c.nodes)
		if err == nil && len(feasible) > 0 {
			over, err = c.score(ctx, names.InterPodAffinity, f, feasible)
		}
		if err == nil && len(combined) > 0 {
			total, err = c.score(ctx, names.InterPodAffinity, f, combined)
		}
	}
	for suffix, each := range map[string]scored{"all": all, "feasible": over} {
		shown["prescore_"+suffix] = each.prescore
		shown["raw_scores_"+suffix] = notNull(each.raw)
		shown["normalized_"+suffix] = notNull(each.normalized)
	}
	return shown, total, err
}

func notNull(scores map[string]int64) map[string]int64 {
	if scores == nil {
		return map[string]int64{}
	}
	return scores
}
