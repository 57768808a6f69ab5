package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
)

const selectedNode = "volume.kubernetes.io/selected-node"

// toProvision are the claims of a pod for which volumes will be made on a node that fits, as the plugin finds them
// before Reserve, the smallest first.
func (c *cluster) toProvision(ctx context.Context, pod *v1.Pod, name string) ([]*v1.PersistentVolumeClaim, error) {
	binder := c.plugins[names.VolumeBinding].(*volumebinding.VolumeBinding).Binder
	logger := klog.FromContext(ctx)
	claims, err := binder.GetPodVolumeClaims(logger, pod)
	if err != nil {
		return nil, fmt.Errorf("claims: %w", err)
	}
	info, err := c.snapshot.NodeInfos().Get(name)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	volumes, _, err := binder.FindPodVolumes(logger, pod, claims, info.Node())
	if err != nil {
		return nil, fmt.Errorf("volumes: %w", err)
	}
	var made []*v1.PersistentVolumeClaim
	for _, each := range volumes.DynamicProvisions {
		if each.PVC.Annotations[selectedNode] == "" {
			made = append(made, each.PVC)
		}
	}
	return made, nil
}

// provision is a driver that has made the volumes of claims on a node before the next pod comes, and has published what
// is left of the capacity that they took. No plugin does so. Another pod of a claim stays at the node, and asks for no
// more capacity.
func (c *cluster) provision(claims []*v1.PersistentVolumeClaim, name string) error {
	info, err := c.snapshot.NodeInfos().Get(name)
	if err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	for _, claim := range claims {
		if err := c.made(claim, name); err != nil {
			return err
		}
		size, found := claim.Spec.Resources.Requests[v1.ResourceStorage]
		room := c.largest(*claim.Spec.StorageClassName, info.Node())
		if !found || room == nil || room.Capacity == nil || room.Capacity.IsZero() {
			continue
		}
		published := room.DeepCopy()
		left := max(0, room.Capacity.Value()-size.Value())
		published.Capacity = resource.NewQuantity(left, resource.BinarySI)
		if limit := published.MaximumVolumeSize; limit != nil && limit.Value() > left {
			published.MaximumVolumeSize = published.Capacity
		}
		if err := c.capacities.Update(published); err != nil {
			return fmt.Errorf("capacity %s: %w", room.Name, err)
		}
	}
	return nil
}

func (c *cluster) made(claim *v1.PersistentVolumeClaim, node string) error {
	changed := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, selectedNode, node)
	delete(changed.Spec.Resources.Requests, v1.ResourceStorage)
	changed.ResourceVersion = "2" // newer than what Reserve assumed
	if err := c.claims.Update(changed); err != nil {
		return fmt.Errorf("claim %s: %w", claim.Name, err)
	}
	return nil
}

// largest is the capacity of a class with the largest limit of those for a node, the first by name of several.
func (c *cluster) largest(class string, node *v1.Node) *storagev1.CSIStorageCapacity {
	var best *storagev1.CSIStorageCapacity
	for _, object := range c.capacities.List() {
		each, ok := object.(*storagev1.CSIStorageCapacity)
		if !ok || each.StorageClassName != class || limitOf(each) == nil || each.NodeTopology == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(each.NodeTopology)
		if err != nil || !selector.Matches(labels.Set(node.Labels)) {
			continue
		}
		if best == nil || limitOf(each).Cmp(*limitOf(best)) > 0 ||
			(limitOf(each).Cmp(*limitOf(best)) == 0 && each.Name < best.Name) {
			best = each
		}
	}
	return best
}

func limitOf(room *storagev1.CSIStorageCapacity) *resource.Quantity {
	if room.MaximumVolumeSize != nil {
		return room.MaximumVolumeSize
	}
	return room.Capacity
}
