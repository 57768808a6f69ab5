//go:build kubernetes1.35 && !kubernetes1.37

package main

import (
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func newerOptions(*cache.Snapshot) []frameworkruntime.Option {
	return nil
}
