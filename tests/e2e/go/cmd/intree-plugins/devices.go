package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"
	"unsafe"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// longest is the time for a node, wall clock. A case that takes longer says nothing: it would depend on the machine.
var longest = 3 * time.Second

// timedOut is in the reason of a node that took longer.
const timedOut = "timed out trying to allocate devices"

// shareID stands for the random identity of a share of a device.
const shareID types.UID = "00000000-0000-4000-8000-000000000000"

// draManager knows the objects of DRA from the informers, as in upstream's New (pkg/scheduler/scheduler.go).
func draManager(ctx context.Context, factory *staticFactory) (*dynamicresources.DefaultDRAManager, error) {
	claims := factory.Resource().V1().ResourceClaims().Informer()
	slices, err := tracker.StartTracker(ctx, trackerOptions(factory))
	if err != nil {
		return nil, err
	}
	cache := assumecache.NewAssumeCache(klog.FromContext(ctx), claims, "ResourceClaim", "", nil)
	return dynamicresources.NewDRAManager(ctx, cache, slices, factory), nil
}

// shuffled puts the objects of DRA into another order, each time. A lister has that of a map, which for up to eight
// entries is a rotation of the order in which they came.
func (c *testCase) shuffled() {
	rand.Shuffle(len(c.DeviceSlices), reflect.Swapper(c.DeviceSlices))
	rand.Shuffle(len(c.DeviceClaims), reflect.Swapper(c.DeviceClaims))
	rand.Shuffle(len(c.DeviceClasses), reflect.Swapper(c.DeviceClasses))
	rand.Shuffle(len(c.DeviceTaintRules), reflect.Swapper(c.DeviceTaintRules))
}

// deviceAnswer is `expected` of a device case: DynamicResources alone, and all default plugins together.
func (c *cluster) deviceAnswer(ctx context.Context) (object, error) {
	f := c.filter(ctx, names.DynamicResources)
	members := object{"prefilter": f.prefilter.Code().String(), "filter_failed": f.failed}
	if !f.passed() {
		members["prefilter_reasons"] = reasonsOf(f.prefilter)
	}
	feasible := []string{}
	var infos []fwk.NodeInfo
	for _, node := range c.nodes {
		if _, failed := f.failed[node.Node().Name]; !failed {
			feasible = append(feasible, node.Node().Name)
			infos = append(infos, node)
		}
	}
	for node, failed := range f.failed {
		if len(failed.Reasons) > 0 && strings.Contains(failed.Reasons[0], timedOut) {
			return nil, fmt.Errorf("node %s: %s", node, timedOut)
		}
	}
	if f.prefilter.IsSuccess() && len(infos) > 0 {
		if found := allocations(f.state); len(found) > 0 {
			members["allocation"] = found
		}
		c.addDeviceScores(ctx, f, infos, members)
	}
	plugins := object{names.DynamicResources: members}
	return object{"plugins": plugins, "feasible": feasible, "full": c.together(ctx)}, nil
}

// addDeviceScores adds the scores over feasible nodes. v1.34 has none.
func (c *cluster) addDeviceScores(ctx context.Context, f filtered, feasible []fwk.NodeInfo, members object) {
	found, err := c.score(ctx, names.DynamicResources, f, feasible)
	switch {
	case err != nil:
		members["score_error"] = errors.Unwrap(err).Error()
	case len(found.raw) > 0:
		members["raw_scores_feasible"] = found.raw
		members["normalized_feasible"] = found.normalized
	}
}

// together is what all default plugins say in one cycle.
func (c *cluster) together(ctx context.Context) object {
	s := c.begin(ctx)
	failed := c.failing(s, func(state fwk.CycleState, node fwk.NodeInfo) *fwk.Status {
		return c.framework.RunFilterPlugins(ctx, state, c.testCase.Pod, node)
	})
	feasible := []string{}
	for _, node := range c.testCase.Nodes {
		if failed[node.Name] == nil {
			feasible = append(feasible, node.Name)
		}
	}
	shown := object{"filter_failed": withPlugins(failed), "feasible": feasible}
	if !s.status.IsSuccess() {
		shown["prefilter"] = s.status.Code().String()
		shown["prefilter_plugin"] = s.status.Plugin()
	}
	return shown
}

// allocations returns node -> claim -> what Filter found for a claim without an allocation. The plugin keeps it in
// unexported fields of its state: stateData in dynamicresources.go.
func allocations(state fwk.CycleState) map[string]map[string]resourcev1.AllocationResult {
	data, err := state.Read(fwk.StateKey(names.DynamicResources))
	if err != nil {
		return nil
	}
	stored := reflect.ValueOf(data).Elem()
	var unallocated []string
	for _, claim := range exported(exported(stored, "claims"), "claims").Interface().([]*resourcev1.ResourceClaim) {
		if claim.Status.Allocation == nil {
			unallocated = append(unallocated, claim.Name)
		}
	}
	found := map[string]map[string]resourcev1.AllocationResult{}
	for nodes := exported(stored, "nodeAllocations").MapRange(); nodes.Next(); {
		node := reflect.New(nodes.Value().Type()).Elem() // fields of an element of a map have no address
		node.Set(nodes.Value())
		byClaim := map[string]resourcev1.AllocationResult{}
		for i, each := range exported(node, "allocationResults").Interface().([]resourcev1.AllocationResult) {
			for j := range each.Devices.Results {
				if result := &each.Devices.Results[j]; result.ShareID != nil {
					result.ShareID = new(shareID)
				}
			}
			byClaim[unallocated[i]] = each
		}
		if len(byClaim) > 0 {
			found[nodes.Key().String()] = byClaim
		}
	}
	return found
}

// exported returns a field of a struct as if it were exported.
func exported(of reflect.Value, name string) reflect.Value {
	field := of.FieldByName(name)
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
}
