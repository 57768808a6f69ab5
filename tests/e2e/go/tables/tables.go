// Package tables writes down what upstream's unit tests give to a plugin, for tests/parity/tables.py: it copies the
// package of a plugin, and puts a call of Record at the head of each of the plugin's extension points.
//
// What the test expects is not written: the plugins of a release are asked for it, with their default arguments.
package tables

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	fwk "k8s.io/kube-scheduler/framework"
)

// file is the environment variable that names the file, to which a JSON object a call is appended.
const file = "KINDRED_TABLES"

// depth is how far the fields of a plugin are followed: VolumeBinding has its listers in a binder's caches.
const depth = 6

// members are those of a golden case, by the type of their objects.
var members = map[string]string{
	"Namespace":             "namespaces",
	"PersistentVolume":      "pvs",
	"PersistentVolumeClaim": "pvcs",
	"PodDisruptionBudget":   "pdbs",
	"StorageClass":          "storageclasses",
	"CSINode":               "csinodes",
	"CSIDriver":             "csidrivers",
	"CSIStorageCapacity":    "csistoragecapacities",
	"VolumeAttachment":      "volumeattachments",
	"DeviceClass":           "deviceclasses",
	"ResourceClaim":         "resourceclaims",
	"ResourceSlice":         "resourceslices",
}

// followed are packages whose structs hold listers: those of the plugins, copied or not, and of their caches and fakes.
var followed = []string{
	"kindred.test/e2e/tables/", "scheduler/framework/plugins/", "scheduler/util/assumecache", "scheduler/testing/framework",
}

var lock sync.Mutex

type recorder struct {
	nodes   []*v1.Node
	pods    []*v1.Pod
	objects map[string][]any
	seen    map[any]bool
}

// Record writes down a call of a plugin: the pod, and what can be reached from the plugin and from the other arguments.
func Record(plugin any, name string, pod *v1.Pod, others ...any) {
	r := recorder{objects: map[string][]any{}, seen: map[any]bool{}}
	r.follow(reflect.ValueOf(plugin), depth)
	for _, each := range others {
		r.follow(reflect.ValueOf(each), depth)
	}
	line := map[string]any{"package": name, "pod": pod, "nodes": r.nodes, "pods": r.pods}
	for member, objects := range r.objects {
		line[member] = objects
	}
	if err := write(line); err != nil {
		fmt.Fprintln(os.Stderr, "tables:", err)
		os.Exit(1)
	}
}

func write(line map[string]any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	lock.Lock()
	defer lock.Unlock()
	output, err := os.OpenFile(os.Getenv(file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer output.Close()
	_, err = output.Write(append(text, '\n'))
	return err
}

// follow takes what a value holds: nodes, objects of a lister, snapshots of a handle, fields of a struct.
func (r *recorder) follow(value reflect.Value, left int) {
	for value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	if !value.IsValid() || left == 0 {
		return
	}
	switch value.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Func, reflect.Chan:
		if value.IsNil() {
			return
		}
	}
	if info, ok := value.Interface().(fwk.NodeInfo); ok {
		r.node(info)
		return
	}
	if value.Kind() == reflect.Slice {
		for i := range value.Len() {
			if each := value.Index(i); each.Kind() == reflect.Struct {
				r.object(each.Addr()) // a fake lister
			} else {
				r.follow(each, left)
			}
		}
		return
	}
	if r.object(value) || r.called(value, left) {
		return
	}
	r.fields(value, left)
}

func (r *recorder) node(info fwk.NodeInfo) {
	node := info.Node()
	if node == nil && len(info.GetPods()) > 0 {
		node = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}} // some tests need its pods alone
	}
	if node == nil || r.seen[info] || r.seen[node] {
		return
	}
	r.seen[info], r.seen[node] = true, true
	r.nodes = append(r.nodes, node)
	for _, each := range info.GetPods() {
		pod := each.GetPod().DeepCopy()
		pod.Spec.NodeName = node.Name
		r.pods = append(r.pods, pod)
	}
}

// object takes a pointer to an object of the API, and tells whether it was one.
func (r *recorder) object(value reflect.Value) bool {
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return false
	}
	member, ok := members[value.Elem().Type().Name()]
	if !ok {
		return false
	}
	if !r.seen[value.Interface()] {
		r.seen[value.Interface()] = true
		r.objects[member] = append(r.objects[member], value.Interface())
	}
	return true
}

// called asks a lister, a cache, a handle or a snapshot for what it holds. Releases have their types in other packages.
// A snapshot is a lister, too, of itself.
func (r *recorder) called(value reflect.Value, left int) bool {
	for _, name := range []string{"SnapshotSharedLister", "List", "ListWithDeviceTaintRules", "CSINodes", "NodeInfos"} {
		method := value.MethodByName(name)
		if !method.IsValid() {
			continue
		}
		if result, ok := call(method); ok {
			r.follow(result, left-1)
			return true
		}
	}
	return false // or a fake one, that holds its objects in a field
}

// call calls a method that needs nothing, or a selector.
func call(method reflect.Value) (result reflect.Value, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false // a fake one
		}
	}()
	var arguments []reflect.Value
	if method.Type().NumIn() == 1 {
		if reflect.TypeFor[labels.Selector]() == method.Type().In(0) {
			arguments = append(arguments, reflect.ValueOf(labels.Everything()))
		} else {
			arguments = append(arguments, reflect.Zero(method.Type().In(0)))
		}
	}
	results := method.Call(arguments)
	if len(results) == 2 && !results[1].IsNil() {
		return reflect.Value{}, false
	}
	return results[0], true
}

// fields follows the fields of a struct, exported or not.
func (r *recorder) fields(value reflect.Value, left int) {
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct || r.seen[value.Interface()] {
		return
	}
	if !slices.ContainsFunc(followed, func(each string) bool { return strings.Contains(value.Elem().Type().PkgPath(), each) }) {
		return // an informer, a clock, a client: nothing of a case
	}
	r.seen[value.Interface()] = true
	for i := range value.Elem().NumField() {
		field := value.Elem().Field(i)
		if kind := field.Kind(); kind != reflect.Interface && kind != reflect.Pointer && kind != reflect.Struct {
			continue
		}
		// The address lets an unexported field be read.
		there := reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr()))
		if field.Kind() == reflect.Struct {
			r.follow(there, left-1)
		} else {
			r.follow(there.Elem(), left-1)
		}
	}
}
