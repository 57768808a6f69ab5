//go:build !kubernetes1.37

package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
)

// deviceTaintRule is not in the v1 API, and its gate is off by default: no rule is read.
type deviceTaintRule = struct{}

func taintRules(*testCase) []runtime.Object { return nil }

func trackerOptions(factory *staticFactory) tracker.Options {
	return tracker.Options{SliceInformer: factory.Resource().V1().ResourceSlices()}
}
