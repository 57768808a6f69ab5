//go:build !kubernetes1.35

package main

import (
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// The interfaces of plugins were in k8s.io/kubernetes until v1.34.
type (
	filterPlugin    = framework.FilterPlugin
	nodeScore       = framework.NodeScore
	nodeScoreList   = framework.NodeScoreList
	podNominator    = framework.PodNominator
	preFilterPlugin = framework.PreFilterPlugin
	preFilterResult = framework.PreFilterResult
	preScorePlugin  = framework.PreScorePlugin
	scorePlugin     = framework.ScorePlugin
)

// optionsOf are options of the framework that a release alone has; v1.34 asks nobody for device classes by default.
func optionsOf(*dynamicresources.DefaultDRAManager, *staticFactory, *cache.Snapshot) []frameworkruntime.Option {
	return nil
}
