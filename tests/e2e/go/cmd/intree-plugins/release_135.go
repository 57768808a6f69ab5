//go:build kubernetes1.35

package main

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
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

// optionsOf are options of the framework that not every release has: who knows drivers on nodes.
func optionsOf(
	manager *dynamicresources.DefaultDRAManager, factory *staticFactory, snapshot *internalcache.Snapshot,
) []frameworkruntime.Option {
	handler, ok := manager.DeviceClassResolver().(cache.ResourceEventHandler)
	if ok && utilfeature.DefaultFeatureGate.Enabled(features.DRAExtendedResource) { // off, it is a nil in an interface
		_, _ = factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(handler)
	}
	return append(newerOptions(snapshot),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
	)
}
