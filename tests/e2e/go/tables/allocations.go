package tables

import (
	"fmt"
	"os"
	"reflect"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// RecordAllocation writes down a call of the allocator of DynamicResources as a call of the plugin: the claims are those
// of a pod, and claims of others have the devices that are allocated.
func RecordAllocation(allocator any, node *v1.Node, claims []*resourcev1.ResourceClaim) {
	value := reflect.ValueOf(allocator).Elem()
	pod := &v1.Pod{}
	pod.Name, pod.Namespace, pod.UID = "incoming", "default", "uid-incoming"
	all := allocated(field(value, "allocatedState"))
	for i, claim := range claims {
		copied := claim.DeepCopy()
		copied.Name, copied.Namespace = fmt.Sprintf("claim-%d", i), pod.Namespace
		copied.UID = types.UID("uid-" + copied.Name)
		all = append(all, copied)
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, v1.PodResourceClaim{
			Name: copied.Name, ResourceClaimName: ptr.To(copied.Name),
		})
	}
	r := recorder{objects: map[string][]any{}, seen: map[any]bool{}}
	r.follow(field(value, "classLister"), depth)
	line := map[string]any{
		"package": "dynamicresources", "pod": pod, "nodes": []*v1.Node{node}, "pods": []*v1.Pod{}, "resourceclaims": all,
		"resourceslices": field(value, "allSlices").Interface(), "deviceclasses": r.objects["deviceclasses"],
	}
	if err := write(line); err != nil {
		fmt.Fprintln(os.Stderr, "tables:", err)
		os.Exit(1)
	}
}

// allocated makes a claim for each device, share and amount of an AllocatedState.
func allocated(state reflect.Value) []*resourcev1.ResourceClaim {
	var all []*resourcev1.ResourceClaim
	add := func(id reflect.Value, share *types.UID, amounts map[resourcev1.QualifiedName]resource.Quantity) {
		part := func(name string) string { return fmt.Sprint(id.FieldByName(name).Interface()) }
		claim := &resourcev1.ResourceClaim{}
		claim.Name, claim.Namespace = fmt.Sprintf("allocated-%d", len(all)), "default"
		claim.UID = types.UID("uid-" + claim.Name)
		claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{
				Request: "r", Driver: part("Driver"), Pool: part("Pool"), Device: part("Device"),
				ShareID: share, ConsumedCapacity: amounts,
			}},
		}}
		all = append(all, claim)
	}
	for _, id := range field(state, "AllocatedDevices").MapKeys() {
		add(id, nil, nil)
	}
	for i, id := range field(state, "AllocatedSharedDeviceIDs").MapKeys() {
		add(id, ptr.To(types.UID(fmt.Sprintf("%08d-0000-4000-8000-000000000000", i))), nil)
	}
	for devices := field(state, "AggregatedCapacity").MapRange(); devices.Next(); {
		amounts := map[resourcev1.QualifiedName]resource.Quantity{}
		for each := devices.Value().MapRange(); each.Next(); {
			amounts[resourcev1.QualifiedName(each.Key().String())] = each.Value().Elem().Interface().(resource.Quantity)
		}
		add(devices.Key(), ptr.To(types.UID(fmt.Sprintf("1%07d-0000-4000-8000-000000000000", len(all)))), amounts)
	}
	return all
}

// field returns a field of a struct as if it were exported.
func field(of reflect.Value, name string) reflect.Value {
	found := of.FieldByName(name)
	if !found.CanAddr() {
		return found
	}
	return reflect.NewAt(found.Type(), found.Addr().UnsafePointer()).Elem()
}
