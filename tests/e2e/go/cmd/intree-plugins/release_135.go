//go:build kubernetes1.35

package main

import (
	"context"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

type (
	filterPlugin    = fwk.FilterPlugin
	nodeScore       = fwk.NodeScore
	nodeScoreList   = fwk.NodeScoreList
	podNominator    = fwk.PodNominator
	preFilterPlugin = fwk.PreFilterPlugin
	preFilterResult = fwk.PreFilterResult
	preScorePlugin  = fwk.PreScorePlugin
	scorePlugin     = fwk.ScorePlugin
)

// optionsOf are options of the framework that not every release has: who knows device classes, and drivers on nodes.
func optionsOf(ctx context.Context, factory *staticFactory, snapshot *internalcache.Snapshot) []frameworkruntime.Option {
	claims := factory.Resource().V1().ResourceClaims().Informer()
	manager := dynamicresources.NewDRAManager(
		ctx, assumecache.NewAssumeCache(klog.FromContext(ctx), claims, "ResourceClaim", "", nil), nil, factory)
	handler, ok := manager.DeviceClassResolver().(cache.ResourceEventHandler)
	if ok && utilfeature.DefaultFeatureGate.Enabled(features.DRAExtendedResource) { // off, it is a nil in an interface
		_, _ = factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(handler)
	}
	return append(newerOptions(snapshot),
		frameworkruntime.WithSharedDRAManager(manager),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
	)
}
